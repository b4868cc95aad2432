"""A job of a function that a worker does not have waits for a worker that has it (LQ-JOB-42)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest
from support.job_app import TIMEOUT_SECS, JobAppFlavour, until

from leaseq.jobs import App, JobFailed
from leaseq.jobs.worker import unknown_functions

if TYPE_CHECKING:
    from collections.abc import Iterator

WHY = "UnknownFunction: this App has no function 'new'; it has old"


@pytest.fixture
def flavour(url: str) -> Iterator[JobAppFlavour]:
    """An App of the old version."""
    with JobAppFlavour(App(url), asynchronous=False) as made:
        made.app.job(name="old")(lambda: "old")
        yield made


@pytest.fixture
def no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unknown_functions, "SHORTEST_DELAY_SECS", 0.01)
    monkeypatch.setattr(unknown_functions, "LONGEST_DELAY_SECS", 0.01)


@pytest.mark.usefixtures("no_delay")
def test_a_rolling_update_makes_no_dead_letters(
    flavour: JobAppFlavour, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with JobAppFlavour(App(url), asynchronous=False) as rolled_out:

        @rolled_out.app.job(name="new", retries=0)
        def new(number: int) -> int:
            return number

        with flavour.working():
            handles = [new.enqueue(number) for number in range(20)]
            old = flavour.app.enqueue("old")
            assert old.result(TIMEOUT_SECS) == "old"  # refused jobs are not in its way
            until(lambda: all(handle.info().error == WHY for handle in handles))
            with rolled_out.working():
                assert [handle.result(TIMEOUT_SECS) for handle in handles] == list(range(20))
    assert {handle.info().attempt for handle in handles} == {1}
    warnings = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == 1
    assert "no function 'new'" in warnings[0].getMessage()


def test_a_worker_warns_once_of_each_function(
    flavour: JobAppFlavour, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("new", "other", "new", "other"):
        flavour.app.enqueue(name)
    flavour.burst()
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert sorted(warning.partition(";")[0] for warning in warnings) == [
        "this App has no function 'new'",
        "this App has no function 'other'",
    ]


def test_a_job_that_waits_says_why(flavour: JobAppFlavour) -> None:
    handle = flavour.app.enqueue("new")
    assert flavour.burst() == 0
    info = handle.info()
    assert (info.status, info.error, info.attempt) == ("delayed", WHY, 0)
    with pytest.raises(
        TimeoutError, match="it is delayed, after UnknownFunction: this App has no function 'new'"
    ):
        handle.result(0)
    item = flavour.app.queue().inspect(handle.id)
    assert 9 < item.time - flavour.app.queue().stats().now <= 10


@pytest.mark.usefixtures("no_delay")
def test_a_job_that_no_worker_has_is_dead_in_the_end(
    flavour: JobAppFlavour, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unknown_functions, "REFUSAL_LIMIT_SECS", 0.1)
    handle = flavour.app.function("new").with_options(delay=0.2).enqueue()
    with flavour.working():
        with pytest.raises(JobFailed, match="this App has no function 'new'") as raised:
            handle.result(TIMEOUT_SECS)
        assert (raised.value.type, raised.value.attempt) == ("UnknownFunction", 1)  # LQ-JOB-43
        monkeypatch.setattr(unknown_functions, "REFUSAL_LIMIT_SECS", 600.0)
        assert flavour.app.queue().revive(handle.id)
        until(lambda: handle.info().status == "delayed")  # it has its time again


def test_delays_grow_with_the_time_that_a_job_was_refused(
    flavour: JobAppFlavour, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unknown_functions, "SHORTEST_DELAY_SECS", 0.01)
    handle = flavour.app.enqueue("new")
    queue = flavour.app.queue()
    with flavour.working():
        until(lambda: queue.stats().leases >= 5)
    stats = queue.stats()
    assert stats.leases < 20, "each wait is as long as all before it"
    assert handle.info().attempt == 0
