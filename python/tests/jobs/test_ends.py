"""Ends of a job, whatever it raises. Nothing of one job is seen by the next."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import pytest
from support.job_app import JobAppFlavour

from leaseq.jobs import App, Backoff, JobFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

VARIABLE: ContextVar[str] = ContextVar("VARIABLE", default="unset")


@pytest.fixture
def flavour(url: str) -> Iterator[JobAppFlavour]:
    with JobAppFlavour(App(url), asynchronous=False) as made:
        yield made


class Panic(BaseException):
    """As PyO3 raises for a panic of Rust."""


RAISED = (Panic, KeyboardInterrupt, GeneratorExit, SystemExit, asyncio.CancelledError)


@pytest.mark.parametrize("where", ["loop", "thread"])
def test_whatever_a_job_raises_is_a_failed_attempt(flavour: JobAppFlavour, where: str) -> None:
    """The exception is logged with its traceback, `retry_on` decides, and one worker with one slot runs all jobs (B1, B19)."""

    def fails(number: int) -> None:
        raise RAISED[number]("a message")

    async def in_loop(number: int) -> None:
        fails(number)

    function: Any = in_loop if where == "loop" else fails
    once = flavour.app.job(name="once", retries=3, retry_on=ValueError)(function)
    again = flavour.app.job(name="again", retries=1, retry_on=RAISED, backoff=Backoff(0.001, 0.001))(function)
    good = flavour.app.job(name="good")(lambda: 1)
    numbers = range(len(RAISED))
    handles = {
        **{once.enqueue(number): (number, 1) for number in numbers},
        **{again.enqueue(number): (number, 2) for number in numbers},
    }
    last = good.enqueue()
    with flavour.working(concurrency=1):
        assert last.result(30) == 1
        for handle, (number, attempts) in handles.items():
            with pytest.raises(JobFailed) as raised:
                handle.result(30)
            assert raised.value.type.rpartition(".")[2] == RAISED[number].__name__
            assert (raised.value.message, raised.value.attempt) == ("a message", attempts)
            assert "in fails" in raised.value.traceback


@pytest.mark.parametrize("where", ["loop", "thread"])
def test_each_job_has_a_context(flavour: JobAppFlavour, where: str) -> None:
    def look(name: str) -> str:
        seen = VARIABLE.get()
        VARIABLE.set(name)
        return seen

    async def in_loop(name: str) -> str:
        return look(name)

    function: Any = in_loop if where == "loop" else look
    job = flavour.app.job(name="look")(function)
    handles = [job.enqueue(str(number)) for number in range(20)]
    assert flavour.burst(concurrency=2) == 20
    assert {handle.result(0) for handle in handles} == {"unset"}
