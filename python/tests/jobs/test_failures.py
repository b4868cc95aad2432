"""Every exception is reported, whatever its text: in event loops, threads and forked processes."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest
from support.job_app import JobAppFlavour
from support.unusual_errors import ERRORS, MuteError, Silent, raise_error

from leaseq import exception_text
from leaseq.jobs import App, JobFailed, failure

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def flavour(url: str) -> Iterator[JobAppFlavour]:
    with JobAppFlavour(App(url), asynchronous=False) as made:
        yield made


@pytest.mark.parametrize("where", ["loop", "thread", "fork"])
def test_any_exception_of_a_job_is_told(flavour: JobAppFlavour, where: str) -> None:
    async def in_loop(name: str) -> None:
        raise_error(name)

    function: Any = in_loop if where == "loop" else raise_error
    f = flavour.app.job(name="f", retries=1, retry_on=(), fork=where == "fork")(function)
    handles = {name: f.with_options(retries=int(name != "retry")).enqueue(name) for name in ERRORS}
    assert flavour.burst() == len(ERRORS)
    for name, (_, kind, message) in ERRORS.items():
        with pytest.raises(JobFailed) as raised:
            handles[name].result(0)
        # an exception that cannot be reported is no death of a process
        assert raised.value.attempt == 1, name
        assert raised.value.type.rpartition(".")[2] == kind
        assert message in raised.value.message, name
        assert kind in {"DeadLetter", "Retry"} or "raise_error" in raised.value.traceback or name == "huge", (
            name
        )
        assert handles[name].info().error


class UnusualSerializer:
    """The only argument of its jobs is one without a text, and of their results it raises an error without one."""

    name = "unusual"

    def dumps(self, value: Any) -> bytes:
        if value == 1:
            raise MuteError
        return b""

    def loads(self, data: bytes) -> Any:
        return [[Silent()], {}]


@pytest.mark.parametrize("fork", [False, True])
def test_what_a_serializer_raises_is_told(url: str, fork: bool) -> None:
    app = App(url, serializer=UnusualSerializer())
    with JobAppFlavour(app, asynchronous=False) as flavour:

        @app.job(name="f", retries=1, fork=fork)
        def f(_: Any, /) -> int:
            return 1

        handle = f.enqueue(object())
        assert flavour.burst() == 1
        with pytest.raises(JobFailed) as raised:
            handle.result(0)
        assert raised.value.attempt == 1
        assert handle.info().description == "f(<repr() of Silent raised ValueError>)"


def test_a_job_whose_arguments_have_no_text_is_logged(url: str, caplog: pytest.LogCaptureFixture) -> None:
    app = App(url, serializer=UnusualSerializer())
    caplog.set_level(logging.INFO, "leaseq.worker")
    with JobAppFlavour(app, asynchronous=False) as flavour:

        @app.job(name="f", keep=None)
        def f(_: Any, /) -> None:
            pass

        f.enqueue(object())
        assert flavour.burst() == 1
    assert "f(<repr() of Silent raised ValueError>)" in caplog.text


def test_the_text_of_a_failure_is_bounded_and_is_read_again() -> None:
    for make, _, _ in ERRORS.values():
        error = make()
        text = failure.text_of(error, "worker", 1.0)
        assert len(text.encode()) <= failure.MAX_BYTES
        read = failure.read(text)
        assert (read.worker, read.started) == ("worker", 1.0)
        assert exception_text.text_of(error).encode()
