"""Workers as programs: several processes, signals, deaths, recycling."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support import servers
from support.job_app import TIMEOUT_SECS, until
from support.job_program import Program, values_of

from leaseq.errors import BadArgumentError, BadTypeError
from leaseq.jobs import App, JobFailed
from leaseq.jobs.worker import lease_journal
from leaseq.jobs.worker.child import Child
from leaseq.jobs.worker.estate import Estate
from leaseq.jobs.worker.lease_journal import ALIVE, JournalReader, LeaseJournal, new_marks
from leaseq.jobs.worker.settlement import Settlement
from leaseq.jobs.worker.supervisor import MIN_STILL_SECS, Supervisor
from leaseq.worker.registry import live_workers

if TYPE_CHECKING:
    from collections.abc import Iterator

    import redis

pytestmark = pytest.mark.slow

HOUR = 3600.0


@pytest.fixture
def app(url: str) -> Iterator[App]:
    with App(url) as made:
        yield made


def title(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").decode()
    return ""


def test_a_process_that_gave_a_sign_of_life_does_not_stand_still() -> None:
    """Time before a sign of life is not counted with time after it: with leases of 3 s both were."""
    ours, theirs = socket.socketpair()
    marks = new_marks()
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as process, ours, theirs:
        try:
            child = Child(process.pid, ours, JournalReader(marks), None, lease_secs=3.0)
            LeaseJournal(theirs.sendall, marks).began("w")
            for _ in range(5):
                theirs.sendall(ALIVE)
                child.listen()
                child.watch(time.monotonic(), 1.0, MIN_STILL_SECS, HOUR)
                child.watch(time.monotonic(), 1.0, MIN_STILL_SECS, HOUR)
                assert child.killed == ""
            child.watch(time.monotonic(), 1.0, MIN_STILL_SECS, HOUR)
            assert child.killed.startswith("stood still for 2 s")
        finally:
            process.kill()


def test_burst_runs_what_is_ready_and_says_how_much(app: App, url: str, redis_client: redis.Redis) -> None:
    handles = [app.enqueue("effect", number) for number in range(30)]
    with Program(url, processes=2, burst=True) as program:
        code, out, err = program.end()
    assert (code, out.strip()) == (0, "30"), err
    assert sorted(handle.result(0) for handle in handles) == list(range(30))
    assert len(values_of(redis_client, "begun")) == len(values_of(redis_client, "ended")) == 2


def test_as_many_processes_as_asked_for_and_their_titles(
    app: App, url: str, redis_client: redis.Redis
) -> None:
    redis_client.set("wait-at-start", 1)
    with Program(url, processes=2) as program:
        until(lambda: len(values_of(redis_client, "begun")) == 2)
        until(lambda: {worker.state for worker in live_workers(url)} == {"starting"})
        until(lambda: [title(pid) for pid in program.children()] == ["leaseq worker: starting, default"] * 2)
        redis_client.delete("wait-at-start")
        until(lambda: [title(pid) for pid in program.children()] == ["leaseq worker: idle, default"] * 2)
        until(lambda: {worker.state for worker in live_workers(url)} == {"idle"})
        assert title(program.pid) == "leaseq worker: supervises 2"
        app.enqueue("hold", "go")
        until(lambda: values_of(redis_client, "holding"))
        busy = int(values_of(redis_client, "holding")[0].split(":")[0])
        until(lambda: title(busy) == "leaseq worker: busy, default")
        redis_client.set("go", 1)
        until(lambda: title(busy) == "leaseq worker: idle, default")
        program.signal()
        code, out, err = program.end()
    assert (code, out.strip()) == (0, "1"), err


def test_the_first_signal_lets_jobs_end(app: App, url: str, redis_client: redis.Redis) -> None:
    handle = app.enqueue("hold", "go")
    with Program(url, processes=2, grace_secs=HOUR) as program:
        until(lambda: values_of(redis_client, "holding"))
        # as a terminal and a service manager do: to all processes at once
        os.killpg(program.pid, signal.SIGTERM)
        until(lambda: len(program.children()) == 1)
        later = app.enqueue("pid")
        redis_client.set("go", 1)
        code, out, err = program.end()
    assert (code, out.strip()) == (0, "1"), err
    assert handle.result(0) == "whole"
    assert later.status() == "ready"
    assert len(values_of(redis_client, "ended")) == 2


def test_a_signal_does_not_end_a_process_that_cannot_listen_yet(
    app: App, url: str, redis_client: redis.Redis
) -> None:
    redis_client.set("strike", 1)
    app.enqueue("pid")
    with Program(url, processes=2, burst=True) as program:
        code, out, err = program.end()
    assert (code, out.strip()) == (0, "1"), err
    assert len(values_of(redis_client, "struck")) == 2
    assert "signal" not in err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_second_signal_gives_jobs_back_uncounted(
    app: App, url: str, redis_client: redis.Redis, number: int
) -> None:
    handle = app.enqueue("ahold")
    with Program(url, grace_secs=HOUR) as program:
        until(lambda: values_of(redis_client, "holding"))
        program.signal(number)
        until(lambda: any(worker.state == "stopping" for worker in live_workers(url)))
        program.signal(number)
        code, _, err = program.end()
    assert code == 0, err
    assert handle.status() == "ready"
    redis_client.set("go", 1)
    with Program(url, burst=True) as program:
        assert program.end()[0] == 0
    assert handle.result(0) == 1


def test_a_process_that_dies_is_replaced_and_its_job_leased_again_at_once(
    app: App, url: str, redis_client: redis.Redis
) -> None:
    handle = app.enqueue("hold", "go")
    with Program(url, processes=1, lease_secs=HOUR) as program:
        until(lambda: values_of(redis_client, "holding"))
        os.kill(program.children()[0], signal.SIGKILL)
        until(lambda: len(values_of(redis_client, "holding")) == 2)  # its lease would have lasted an hour
        first, second = (each.split(":") for each in values_of(redis_client, "holding"))
        assert first[0] != second[0]
        assert (first[1], second[1]) == ("1", "2")  # a job that had started counts
        info = handle.info()
        assert info.error == "ProcessDied: its process was ended by SIGKILL"
        redis_client.set("go", 1)
        assert handle.result(TIMEOUT_SECS) == "whole"
        program.signal()
        assert program.end()[0] == 0


def test_what_a_job_leaves_running_does_not_keep_its_worker_from_being_replaced(
    app: App, url: str, redis_client: redis.Redis
) -> None:
    with Program(url, processes=1, lease_secs=HOUR) as program:
        left = app.enqueue("leave").result(TIMEOUT_SECS)
        try:
            handle = app.enqueue("hold", "go")
            until(lambda: values_of(redis_client, "holding"))
            os.kill(program.children()[0], signal.SIGKILL)
            until(lambda: len(values_of(redis_client, "holding")) == 2)
        finally:
            with contextlib.suppress(ProcessLookupError):  # it goes with the group of its worker
                os.kill(left, signal.SIGKILL)
        redis_client.set("go", 1)
        assert handle.result(TIMEOUT_SECS) == "whole"
        program.signal()
        assert program.end()[0] == 0


def test_a_process_begins_when_it_is_time_however_late_it_is_then(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The supervisor looks at the clock just before a process is to start, and stands still until it is time."""
    moments = iter([99.99])
    begun: list[float] = []

    class Once(Supervisor):
        def _fork(self, _estate: Estate | None) -> bool:
            begun.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGTERM)
            return True

    supervisor = Once(app.program, 1, {})
    supervisor._start_at = 100.0
    monkeypatch.setattr("leaseq.jobs.worker.supervisor.time.monotonic", lambda: next(moments, 200.0))
    alarm = threading.Timer(TIMEOUT_SECS, os.kill, (os.getpid(), signal.SIGTERM))
    alarm.start()
    try:
        supervisor.run()
    finally:
        alarm.cancel()
        alarm.join()
    assert begun == [200.0]


@pytest.mark.promise("G16")
def test_what_was_leased_and_not_begun_is_given_back_uncounted(app: App) -> None:
    """LQ-WORK-11."""
    handles = [
        app.function("f").with_options(queue=queue, keep=keep).enqueue()
        for queue in "ab"
        for keep in (60, None) * 2
    ]
    marks = new_marks()
    reader = JournalReader(marks)
    journal = LeaseJournal(reader.take, marks)
    journal.began("host:1:a")
    items = [item for queue in "ab" for item in app.queue(queue).lease_items(4, 600)]
    journal.leased(items)
    for item in items[:2]:
        journal.begun(item)
    for item in (items[0], items[7]):
        item.queue.complete(item)
        journal.completed(item)
    estate = Estate.of_worker(reader, "was ended by SIGKILL", blameless=False)
    assert len(estate) == 8  # an end is reported with the next message

    async def settle() -> None:
        async with app.aio:
            await Settlement(app.program, journal, estate, {}).run()

    asyncio.run(settle())
    infos = [handle.info() for handle in handles]
    assert [info.attempt for info in infos] == [1, 1, 0, 0, 0, 0, 0, 0]
    assert [info.status for info in infos] == ["succeeded", "retrying", *["ready"] * 5, "unknown"]
    assert infos[1].error == "ProcessDied: its process was ended by SIGKILL"
    assert infos[1].worker == "host:1:a"


def test_a_place_of_which_a_job_has_ended_says_nothing_of_the_next_one(app: App) -> None:
    app.enqueue_many([app.function("f").call() for _ in range(4)])
    marks = new_marks()
    reader = JournalReader(marks)
    journal = LeaseJournal(reader.take, marks)
    queue = app.queue()
    for _ in range(3):
        first, second = queue.lease_items(2, 600)
        journal.leased([first, second])
        journal.begun(first)
        begun, rest = reader.left()
        assert ([each.id for each in begun], [each.id for each in rest]) == ([first.id], [second.id])
        for item in (first, second):
            queue.release(item, uncounted=True)
            journal.released(item, 0, None)
    assert len(set(journal._untouched)) == lease_journal.PLACES - 2


def test_a_job_for_which_there_is_no_place_counts_as_begun(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    app.enqueue_many([app.function("f").call() for _ in range(4)])
    monkeypatch.setattr(lease_journal, "PLACES", 2)
    marks = new_marks()
    reader = JournalReader(marks)
    journal = LeaseJournal(reader.take, marks)
    *items, last = app.queue().lease_items(4, 600)
    journal.leased(items)
    for item in items[1:]:
        journal.begun(item)
    begun, rest = reader.left()
    assert [each.id for each in begun] == [items[1].id, items[2].id]
    assert [each.id for each in rest] == [items[0].id]
    journal.lost(items[2])  # it had none, and leaves none
    journal.completed(items[0])
    journal.leased([last])
    begun, rest = reader.left()
    assert [each.id for each in begun] == [items[1].id]
    assert [(each.id, each.place) for each in rest] == [(last.id, 0)]


def test_a_job_that_kills_its_process_dies_after_its_attempts(
    app: App, url: str, redis_client: redis.Redis
) -> None:
    handle = app.function("poison").with_options(retries=2).enqueue()
    other = app.enqueue("pid")
    with Program(url, lease_secs=HOUR) as program:
        with pytest.raises(JobFailed, match="ProcessDied: its process was ended by SIGKILL") as raised:
            handle.result(TIMEOUT_SECS)
        assert other.result(TIMEOUT_SECS)
        program.signal()
        assert program.end()[0] == 0
    assert raised.value.attempt == 3
    assert values_of(redis_client, "poisoned") == ["1", "2", "3"]


def test_a_process_is_replaced_after_so_many_jobs(app: App, url: str) -> None:
    handles = [app.enqueue("pid") for _ in range(12)]
    with Program(url, max_jobs=4, concurrency=1) as program:
        pids = [handle.result(TIMEOUT_SECS) for handle in handles]
        program.signal()
        code, _, err = program.end()
    assert code == 0
    assert "Traceback" not in err
    assert [pids.count(pid) for pid in set(pids)] == [4, 4, 4]


def test_a_burst_goes_on_where_a_process_has_had_its_jobs(app: App, url: str) -> None:
    handles = [app.enqueue("pid") for _ in range(12)]
    with Program(url, max_jobs=4, concurrency=1, burst=True) as program:
        code, out, err = program.end()
    assert (code, out.strip()) == (0, "12"), err
    pids = [handle.result(0) for handle in handles]
    assert [pids.count(pid) for pid in set(pids)] == [4, 4, 4]


def test_a_process_is_replaced_once_it_has_had_so_much_memory(app: App, url: str) -> None:
    handles = [app.enqueue("pid") for _ in range(3)]
    with Program(url, max_memory=1, concurrency=1) as program:
        pids = {handle.result(TIMEOUT_SECS) for handle in handles}
        program.signal()
        program.end()
    assert len(pids) >= 2


def test_a_worker_that_cannot_begin_says_so_and_ends(url: str, redis_client: redis.Redis) -> None:
    redis_client.set("fail-at-start", 1)
    with Program(url) as program:
        code, _, err = program.end()
    assert code == 1
    assert "ConnectionError: no database" in err
    assert "5 processes of this worker ended before they could work" in err


def test_processes_stop_when_their_supervisor_is_gone(app: App, url: str, redis_client: redis.Redis) -> None:
    handle = app.enqueue("hold", "go")
    with Program(url, processes=2, grace_secs=HOUR) as program:
        until(lambda: values_of(redis_client, "holding"))
        pids = program.children()
        program.signal(signal.SIGKILL)
        redis_client.set("go", 1)
        until(lambda: not any(title(pid).startswith("leaseq") for pid in pids))
        program.process.communicate(timeout=TIMEOUT_SECS)
    assert handle.result(0) == "whole"


def test_forked_jobs_under_a_supervisor(app: App, url: str, redis_client: redis.Redis) -> None:
    handles = [app.enqueue("forked", number) for number in range(6)]
    with Program(url, processes=2, burst=True) as program:
        code, _, err = program.end()
    assert code == 0, err
    assert [handle.result(0) for handle in handles] == list(range(6))
    assert len(set(values_of(redis_client, "pids"))) == 6


def test_there_is_a_process_for_each_cpu_unless_asked_otherwise(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    class Counting(Supervisor):
        def run(self) -> int:
            asked.append(self._processes)
            return 0

    monkeypatch.setattr("leaseq.jobs.app.Supervisor", Counting)
    app.run_worker()
    app.run_worker(processes=3)
    assert asked == [len(os.sched_getaffinity(0)), 3]


def test_options_that_cannot_be_are_refused(app: App) -> None:
    with pytest.raises(BadArgumentError, match="processes must be at least 1"):
        app.run_worker(processes=0)
    with pytest.raises(BadTypeError, match="processes"):
        app.run_worker(processes=1.5)  # type: ignore[arg-type]


def test_a_worker_of_several_processes_needs_the_main_thread(app: App) -> None:
    with ThreadPoolExecutor(1) as pool, pytest.raises(BadArgumentError, match="only the main thread can"):
        pool.submit(app.run_worker, processes=1).result(TIMEOUT_SECS)


def test_a_worker_of_several_processes_takes_no_client(url: str) -> None:
    with servers.plain_client(url) as client, pytest.raises(BadTypeError, match="give the App its URL"):
        App(client).run_worker(processes=1)


@pytest.mark.parametrize(
    ("limits", "kind", "why"),
    [
        ({"max_jobs": 0}, BadArgumentError, "max_jobs must be at least 1"),
        ({"max_memory": 0}, BadArgumentError, "max_memory must be above 0 MiB"),
        ({"max_memory": float("nan")}, BadArgumentError, "max_memory must be above 0 MiB"),
        ({"max_memory": "1g"}, BadTypeError, "max_memory is a number of MiB, not str"),
    ],
)
def test_limits_that_cannot_be_are_refused(app: App, limits: Any, kind: type[Exception], why: str) -> None:
    with pytest.raises(kind, match=why):
        asyncio.run(app.aio.run_worker(**limits))
