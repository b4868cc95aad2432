"""The death of a worker's process, and what it means for its jobs, for the next process, and for those that are to end in time."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from support.job_app import until
from support.redis_probe import count_blocked
from support.servers import TIMEOUT_SECS

from leaseq.jobs import App, JobFailed
from leaseq.jobs.worker.child import Child
from leaseq.jobs.worker.estate import Estate
from leaseq.jobs.worker.lease_journal import HeldLease, JournalReader, LeaseJournal, new_marks
from leaseq.jobs.worker.process_life import END_SECS
from leaseq.jobs.worker.settlement import Settlement
from leaseq.jobs.worker.supervisor import STEADY_SECS, Supervisor
from leaseq.jobs.worker.suspects import SuspectSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    import redis

HOUR = 3600.0


@pytest.fixture
def app(url: str) -> Iterator[App]:
    with App(url) as made:
        made.job(name="f")(lambda: None)
        yield made


class Process:
    """The records of one process that holds leases, or was given those of another one to settle."""

    def __init__(self, given: tuple[HeldLease, ...] = (), worker: str = "host:2:b") -> None:
        marks = new_marks()
        self.reader = JournalReader(marks, given)
        self.journal = LeaseJournal(self.reader.take, marks)
        self.journal.began(worker)

    def estate(self, *, blameless: bool = False) -> Estate:
        return Estate.of_worker(self.reader, "was ended by SIGKILL", blameless=blameless)


@pytest.fixture
def items(app: App) -> list[Any]:
    app.enqueue_many([app.function("f").with_options(id=name).call() for name in "abcd"])
    return [*app.queue().lease_items(4, HOUR)]


def parts(estate: Estate) -> tuple[str, str, str]:
    """Charged, suspects, free."""
    first, second, third = (
        "".join(sorted(held.id for held in part)) for part in (estate.charged, estate.suspects, estate.free)
    )
    return first, second, third


@pytest.mark.parametrize(
    ("begun", "moved", "blameless", "expected"),
    [
        ("", "", False, ("", "", "abcd")),
        ("a", "", False, ("a", "", "bcd")),
        ("ab", "", False, ("", "ab", "cd")),
        ("ab", "a", False, ("b", "", "acd")),
        ("a", "", True, ("", "", "abcd")),
        ("ab", "", True, ("", "", "abcd")),
    ],
)
def test_what_a_death_means_for_each_job(
    items: list[Any], begun: str, moved: str, blameless: bool, expected: tuple[str, str, str]
) -> None:
    process = Process()
    process.journal.leased(items)
    for item in items:
        if item.id in begun:
            process.journal.begun(item)
        if item.id in moved:
            process.journal.moved(item)
    estate = process.estate(blameless=blameless)
    assert parts(estate) == expected
    assert (estate.worker, len(estate)) == ("host:2:b", 4)
    charged, suspects, free = expected
    assert parts(estate.without_trials()) == (charged, "", "".join(sorted(suspects + free)))


@pytest.mark.parametrize(
    ("blameless", "expected"), [(False, ("ab", "c", "")), (True, ("a", "bc", ""))], ids=["died", "was killed"]
)
def test_when_the_process_that_settles_dies_the_suspect_that_ran_is_charged(
    items: list[Any], blameless: bool, expected: tuple[str, str, str]
) -> None:
    """Another process charges what is still to be charged, leaves what was given back, and tries the suspect that was not tried."""
    first = Process()
    first.journal.leased(items)
    held = {each.id: each for each in first.estate()}
    estate = Estate(
        why="was ended by SIGKILL",
        worker="host:1:a",
        charged=(held["a"],),
        suspects=(held["b"], held["c"]),
        free=(held["d"],),
    )
    second = Process(tuple(estate), worker="")
    second.journal.settled([held["d"]])
    again = next(item for item in items if item.id == "b")
    second.journal.settled([held["b"]])  # it is taken, and held by this process from now on
    second.journal.leased([again])
    second.journal.begun(again)
    after = estate.after_death(second.reader, "exited with 1", blameless=blameless)
    assert parts(after) == expected
    assert (after.why, after.worker) == ("exited with 1", "host:1:a")


def test_a_charged_job_waits_by_its_own_backoff_and_the_number_of_its_attempt(app: App) -> None:
    given = app.function("f").with_options(attempt=2, retries=5, backoff=[1, HOUR, 5 * HOUR])
    handles = [given.with_options(queue=queue).enqueue() for queue in ("default", "mail")]
    process = Process()
    for queue in ("default", "mail"):
        process.journal.leased(app.queue(queue).lease_items(1, HOUR))
    held = [*process.estate()]
    estate = Estate(why="was ended by SIGSEGV", worker="host:1:a", charged=tuple(held))

    async def settle() -> None:
        async with app.aio:
            assert await Settlement(app.program, process.journal, estate, {}).run() == 0

    before = app.queue().stats().now
    asyncio.run(settle())
    after = app.queue().stats().now
    for handle in handles:
        info = app.queue(handle.queue).inspect(handle.id)
        assert before + HOUR - 0.001 <= info.time <= after + HOUR
        assert handle.info().error == "ProcessDied: its process was ended by SIGSEGV"
        assert handle.info().attempt == 2
    assert process.reader.over
    assert process.reader.left() == ([], [])


def test_who_waits_for_a_charged_job_is_woken_where_it_dies(
    app: App, redis_client: redis.Redis, cap_of_an_hour: None
) -> None:
    """LQ-CLIENT-12: its failure was written at the next look for it."""
    handle = app.function("f").with_options(retries=0).enqueue()
    process = Process()
    process.journal.leased(app.queue().lease_items(1, HOUR))
    estate = Estate(why="was ended by SIGSEGV", worker="host:1:a", charged=tuple(process.estate()))

    async def settle() -> None:
        async with app.aio:  # whose end ends waits
            assert await Settlement(app.program, process.journal, estate, {}).run() == 0
            assert await asyncio.to_thread(waiting.exception, TIMEOUT_SECS)

    with ThreadPoolExecutor(1) as waiters:
        waiting = waiters.submit(handle.result)
        until(lambda: count_blocked(redis_client) == 1)
        asyncio.run(settle())
        with pytest.raises(JobFailed, match="SIGSEGV"):
            waiting.result(0)


def test_suspects_of_all_queues_are_kept_and_taken_in_the_lease_that_they_had(app: App) -> None:
    given = app.function("f").with_options(headers={"trace": "7f"})
    for queue in ("default", "mail", "default"):
        given.with_options(queue=queue, keep=60 if queue == "mail" else None).enqueue()
    process = Process()
    leased = [*app.queue().lease_items(2, 60), *app.queue("mail").lease_items(1, 60)]
    process.journal.leased(leased)
    for item in leased:
        process.journal.begun(item)
    suspects = process.estate().suspects
    deadlines = [item.deadline for item in leased]
    assert app.queue().remove(leased[1].id) == "leased"

    async def take_all() -> list[Any]:
        async with app.aio:
            source = SuspectSource(app.program.clients.aio.store, process.journal, suspects, HOUR)
            await source.extend()
            times = [app.queue(held.queue).inspect(held.id).time for held in suspects]
            assert times[0] > deadlines[0] + 60
            assert times[2] > deadlines[2] + 60
            return [item for _ in range(3) for item in await source.take(10)]

    taken = asyncio.run(take_all())
    assert [(item.id, item.token, item.attempt) for item in taken] == [
        (item.id, item.token, 1) for item in (leased[0], leased[2])
    ]
    assert [(item.data, item.headers, item.keep > 0) for item in taken] == [
        (item.data, {"trace": "7f"}, item is leased[2]) for item in (leased[0], leased[2])
    ]
    assert process.reader.left() == ([], [])


@contextlib.contextmanager
def child_of(lease_secs: float = HOUR, estate: Estate | None = None) -> Iterator[tuple[Child, socket.socket]]:
    """A process, as its supervisor knows it, and the other end of its wire."""
    ours, theirs = socket.socketpair()
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as process, ours, theirs:
        try:
            yield Child(process.pid, ours, JournalReader(new_marks()), estate, lease_secs), theirs
        finally:
            process.kill()


def test_a_later_order_to_end_gives_a_process_no_more_time() -> None:
    with child_of() as (child, wire):
        child.stop(100.0, HOUR)
        child.stop_now(200.0)
        child.stop(300.0, HOUR)
        assert wire.recv(10) == b"sns"
        child.watch(200.0 + END_SECS - 0.001, 0.0, HOUR, HOUR)
        assert child.killed == ""
        child.watch(200.0 + END_SECS, 0.0, HOUR, HOUR)
        assert child.killed == "outlived its grace time and was killed"
        assert child.blameless


def test_a_process_that_leaves_has_its_grace_from_the_end_of_its_last_job() -> None:
    with child_of() as (child, wire):
        journal = LeaseJournal(wire.sendall, new_marks())
        journal.began("w")
        journal.over()
        assert child.listen()
        child.watch(100.0, 1.0, 2.0, 10.0)
        child.watch(100.0 + 10.0 + END_SECS - 0.001, 60.0, 2.0, 10.0)  # it gives no more signs of life
        assert child.killed == ""
        child.watch(100.0 + 10.0 + END_SECS, 0.0, 2.0, 10.0)
        assert child.blameless


def test_a_process_that_only_gives_back_ends_with_the_leases(items: list[Any]) -> None:
    process = Process()
    process.journal.leased(items)
    estate = process.estate()
    with child_of(30.0, estate) as (child, _):
        child.watch(child.born + 30.0, 0.0, HOUR, HOUR)
        assert child.killed == ""
        child.watch(child.born + 30.0 + END_SECS, 0.0, HOUR, HOUR)
        assert child.killed
    process.journal.begun(items[0])
    process.journal.begun(items[1])
    with child_of(30.0, process.estate()) as (child, _):  # it runs jobs, however long they take
        child.watch(child.born + HOUR, 0.0, 2 * HOUR, HOUR)
        assert child.killed == ""


def test_a_process_that_lived_long_starts_a_new_row_of_deaths(app: App) -> None:
    supervisor = Supervisor(app.program, 1, {})

    def die(lived: float, worker: str = "w") -> float:
        """Return in how many seconds the next process may start."""
        now = time.monotonic()
        reader: Any = SimpleNamespace(worker=worker)
        child: Any = SimpleNamespace(estate=None, reader=reader, born=now - lived)
        supervisor._start_at = 0.0
        supervisor._count_death(child, -9)
        return max(0.0, supervisor._start_at - now)

    row = [die(1.0) for _ in range(4)]
    assert row[0] == 0.0  # the next process starts at once
    assert 0.05 <= row[1] < 0.2 < row[3] < 1.0
    assert die(STEADY_SECS) == 0.0
    assert 0.05 <= die(1.0) < 0.2
    assert 0.05 <= die(STEADY_SECS, worker="") < 0.2  # it ended before it could work
