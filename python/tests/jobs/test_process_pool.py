"""Jobs in separate processes: a job that crashes, hangs or leaks harms no other job."""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import os
import signal
import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from setproctitle import getproctitle
from support.job_app import TIMEOUT_SECS, Hours, JobAppFlavour, until

from leaseq.jobs import App, Backoff, Context, DeadLetter, JobCancelled, JobFailed, JobTimeout, Retry
from leaseq.jobs.envelope import Envelope
from leaseq.jobs.worker import forkserver
from leaseq.jobs.worker.execution import JobResult, PreparedJob
from leaseq.jobs.worker.framing import frame
from leaseq.jobs.worker.result_channel import ResultChannel

if TYPE_CHECKING:
    from collections.abc import Iterator

HOUR = 3600.0
AT_ONCE = Backoff(0.001, 0.001)


def report_now() -> None:
    """In a job: the hour that it has is over now."""
    left, _ = signal.getitimer(signal.ITIMER_REAL)
    assert 0 < left <= HOUR
    signal.setitimer(signal.ITIMER_REAL, 0.001)


@pytest.fixture
def flavour(url: str) -> Iterator[JobAppFlavour]:
    with JobAppFlavour(App(url), asynchronous=False) as made:
        yield made


def lives(pid: int) -> bool:
    """Return whether there is such a process, and it is none that only waits to be reaped."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:  # noqa: PTH123 (gone while it is opened)
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def pid_in(path: Path) -> int:
    until(lambda: path.exists() and path.read_text())
    return int(path.read_text())


def test_each_job_has_a_process_of_its_own(flavour: JobAppFlavour) -> None:
    @flavour.app.job(name="f", fork=True)
    def f(ctx: Context, number: int) -> tuple[int, int, int, str, str]:
        ctx.progress(1, 2)
        return number, os.getpid(), os.getppid(), ctx.id, getproctitle()

    @flavour.app.job(name="g", fork=True)
    async def g() -> int:
        await asyncio.sleep(0)
        return os.getpid()

    handles = [f.enqueue(n) for n in range(5)]
    other = g.enqueue()
    assert flavour.burst() == 6
    results = [handle.result(0) for handle in handles]
    assert [result[0] for result in results] == list(range(5))
    assert [result[3] for result in results] == [handle.id for handle in handles]
    assert [result[4] for result in results] == [f"leaseq job: f {handle.id}" for handle in handles]
    pids = {result[1] for result in results} | {other.result(0), os.getpid()}
    assert len(pids) == 7
    (forkserver_pid,) = {result[2] for result in results}
    assert forkserver_pid not in pids
    assert not lives(forkserver_pid)


def test_failures_are_told_as_in_any_place(flavour: JobAppFlavour) -> None:
    @flavour.app.job(name="f", fork=True, retries=0, retry_on=ValueError, backoff=Backoff(HOUR, HOUR))
    def f(how: str) -> Any:
        if how == "unwritable":
            return object()
        raise {
            "value": ValueError("no such order"),
            "key": KeyError("k"),
            "exit": SystemExit(3),
            "dead": DeadLetter("given up"),
            "retry": Retry("later", delay=HOUR),
        }[how]

    handles = {
        how: f.with_options(retries=1).enqueue(how)
        for how in ("value", "key", "exit", "dead", "retry", "unwritable")
    }
    assert flavour.burst() == 6
    assert {how: handle.status() for how, handle in handles.items()} == {
        "value": "retrying",
        "key": "failed",
        "exit": "failed",
        "dead": "failed",
        "retry": "retrying",
        "unwritable": "failed",
    }
    info = handles["value"].info()
    assert info.error == "ValueError: no such order"
    assert Path(__file__).name in info.traceback
    with pytest.raises(JobFailed, match="given up"):
        handles["dead"].result(0)


@pytest.mark.parametrize(
    ("end", "why"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "its process was ended by SIGKILL"),
        (lambda: os.kill(os.getpid(), signal.SIGSEGV), "its process was ended by SIGSEGV"),
        (lambda: os._exit(7), "its process ended with exit code 7"),
        (lambda: os._exit(0), "its process ended with exit code 0"),
    ],
)
def test_a_job_that_crashes_hurts_nobody(flavour: JobAppFlavour, end: Any, why: str) -> None:
    together = threading.Barrier(2)

    @flavour.app.job(name="crash", fork=True, retries=1, backoff=AT_ONCE)
    def crash() -> None:
        faulthandler.disable()
        end()

    @flavour.app.job(name="other")
    def other() -> str:
        together.wait(TIMEOUT_SECS)
        return "unharmed"

    handle, beside = crash.enqueue(), other.enqueue()
    with flavour.working():
        with pytest.raises(JobFailed, match=why) as raised:
            handle.result(TIMEOUT_SECS)
        together.wait(TIMEOUT_SECS)
        assert beside.result(TIMEOUT_SECS) == "unharmed"
    assert (raised.value.type, raised.value.attempt) == ("ProcessDied", 2)


def test_the_time_limit_can_be_caught_before_the_kill(flavour: JobAppFlavour) -> None:
    @flavour.app.job(name="f", fork=True, timeout=HOUR, retries=0)
    def f(catch: bool) -> str:
        try:
            report_now()
            time.sleep(HOUR)
        except JobTimeout:
            if catch:
                return "cleaned up"
            raise
        return "not ended"

    caught, raised = f.enqueue(catch=True), f.enqueue(catch=False)
    flavour.burst()
    assert caught.result(0) == "cleaned up"
    with pytest.raises(JobFailed, match=r"JobTimeout: took longer than 3600 seconds$"):
        raised.result(0)


def test_a_worker_that_forks_beside_threads_says_so(
    flavour: JobAppFlavour, caplog: pytest.LogCaptureFixture
) -> None:
    """Python's warning, which is an error here, comes when there is a child already: it must not end the worker."""

    @flavour.app.job(name="f", fork=True)
    def f() -> int:
        return os.getpid()

    handle = f.enqueue()
    over = threading.Event()
    other = threading.Thread(target=over.wait)
    other.start()
    try:
        assert flavour.burst() == 1
    finally:
        over.set()
        other.join()
    assert handle.result(0) != os.getpid()
    assert "other threads: what these had locked stays locked" in caplog.text


def test_the_alarm_is_taken_back_when_the_function_has_ended(flavour: JobAppFlavour) -> None:
    left: list[float] = []

    @flavour.app.job(name="f", timeout=HOUR)
    def f() -> None:
        left.append(signal.getitimer(signal.ITIMER_REAL)[0])
        raise ValueError

    job = Envelope(v=1, function="f")
    before, running = signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)
    try:
        with pytest.raises(ValueError, match=r"^$"):
            forkserver._called(
                PreparedJob(flavour.app.program.clients.settings.functions["f"], (), {}, HOUR, 1, job, {})
            )
    finally:
        over, _ = signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *running)  # that of pytest, which ends tests that hang
    assert 0 < left[0] <= HOUR
    assert over == 0


def test_an_asynchronous_function_is_cancelled_in_its_process_when_its_time_is_over(
    flavour: JobAppFlavour, tmp_path: Path
) -> None:
    @flavour.app.job(name="f", fork=True, timeout=0.05, retries=0)
    async def f() -> None:
        try:
            await asyncio.sleep(HOUR)
        finally:
            (tmp_path / "cleaned").touch()

    handle = f.enqueue()
    flavour.burst()
    with pytest.raises(JobFailed, match=r"JobTimeout: took longer than 0\.05 seconds$"):
        handle.result(0)
    assert (tmp_path / "cleaned").exists()


def test_what_does_not_end_in_time_is_killed(
    flavour: JobAppFlavour, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hours = Hours(monkeypatch)
    pid_file = tmp_path / "pid"

    @flavour.app.job(name="f", fork=True, timeout=HOUR, retries=0)
    def f() -> None:
        with contextlib.suppress(JobTimeout):
            report_now()
            time.sleep(HOUR)
        pid_file.write_text(str(os.getpid()))
        time.sleep(HOUR)

    handle = f.enqueue()
    with flavour.working():
        pid = pid_in(pid_file)
        hours.pass_by(flavour)
        with pytest.raises(
            JobFailed, match=r"JobTimeout: took longer than 3600 seconds, and was killed 5 later"
        ):
            handle.result(TIMEOUT_SECS)
        until(lambda: not lives(pid))


def test_cancelling_kills_the_process(flavour: JobAppFlavour, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"

    @flavour.app.job(name="f", fork=True)
    def f() -> None:
        pid_file.write_text(str(os.getpid()))
        time.sleep(HOUR)

    handle = f.enqueue()
    with flavour.working(lease_secs=600) as worker:
        pid = pid_in(pid_file)
        assert handle.cancel()
        worker.beat()
        until(lambda: not lives(pid))
        with pytest.raises(JobCancelled):
            handle.result()


def test_a_cold_shutdown_kills_the_process_and_does_not_count(flavour: JobAppFlavour, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"

    @flavour.app.job(name="f", fork=True, retries=0)
    def f(ctx: Context) -> int:
        if not pid_file.exists():
            pid_file.write_text(str(os.getpid()))
            time.sleep(HOUR)
        return ctx.attempt

    handle = f.enqueue()
    with flavour.working(grace_secs=HOUR) as worker:
        pid = pid_in(pid_file)
        worker.stop(at_once=True)
        worker.ended()
    until(lambda: not lives(pid))
    assert handle.status() == "ready"
    flavour.burst()
    assert handle.result(0) == 1


def test_a_process_reports_how_far_it_is(flavour: JobAppFlavour, tmp_path: Path) -> None:
    go = tmp_path / "go"

    @flavour.app.job(name="f", fork=True)
    def f(ctx: Context) -> None:
        ctx.progress(3, 10)
        end = time.monotonic() + TIMEOUT_SECS
        while not go.exists() and time.monotonic() < end:
            time.sleep(0.01)

    handle = f.enqueue()
    with flavour.working():
        until(lambda: handle.info().progress == (3, 10))
        go.touch()
        assert handle.result(TIMEOUT_SECS) is None


def test_signals_for_the_worker_do_not_end_a_job(flavour: JobAppFlavour, tmp_path: Path) -> None:
    pid_file, go = tmp_path / "pid", tmp_path / "go"

    @flavour.app.job(name="f", fork=True)
    def f() -> str:
        pid_file.write_text(f"{os.getpid()}")
        end = time.monotonic() + TIMEOUT_SECS
        while not go.exists() and time.monotonic() < end:
            time.sleep(0.01)
        return "whole"

    handle = f.enqueue()
    with flavour.working():
        for number in (
            signal.SIGINT,
            signal.SIGTERM,
        ):  # as a terminal, and a service manager, send them to all
            os.kill(pid_in(pid_file), number)
        go.touch()
        assert handle.result(TIMEOUT_SECS) == "whole"


def test_what_a_job_leaves_running_does_not_hold_up_its_end(flavour: JobAppFlavour, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"

    @flavour.app.job(name="f", fork=True, retries=0)
    def f() -> None:
        pid = os.fork()
        if pid == 0:
            time.sleep(HOUR)
        pid_file.write_text(str(pid))
        os._exit(3)

    handle = f.enqueue()
    try:
        flavour.burst()
        with pytest.raises(JobFailed, match="exit code 3"):
            handle.result(0)
    finally:
        with contextlib.suppress(ProcessLookupError):  # it was killed with its group
            os.kill(pid_in(pid_file), signal.SIGKILL)


def test_what_a_job_leaves_running_and_ignores_sigterm_is_killed(
    flavour: JobAppFlavour, tmp_path: Path
) -> None:
    """However the process of the job ends, a second later and while the worker goes on."""

    @flavour.app.job(name="f", fork=True, retries=0)
    def f(end: str) -> None:
        pid_file = tmp_path / end
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            pid_file.write_text(str(os.getpid()))
            time.sleep(HOUR)
        pid_in(pid_file)
        if end == "exits":
            os._exit(3)
        if end == "is killed":
            os.kill(os.getpid(), signal.SIGKILL)

    ends = ("returns", "exits", "is killed")
    flavour.app.enqueue_many([f.call(end) for end in ends])
    with flavour.working():
        pids = [pid_in(tmp_path / end) for end in ends]
        try:
            until(lambda: not any(map(lives, pids)))
        finally:
            for pid in filter(lives, pids):
                os.kill(pid, signal.SIGKILL)


def test_what_a_process_said_counts_also_where_its_end_is_heard_first() -> None:
    progress: list[tuple[float, float | None]] = []
    words = [forkserver.Progress(1, 2), forkserver.Ended(JobResult(b"result"))]
    frames = b"".join(frame(msgspec.msgpack.encode(word)) for word in words)

    async def receive(frames: bytes) -> JobResult | None:
        ours, theirs = socket.socketpair()
        theirs.sendall(frames)
        channel = ResultChannel(ours, lambda *pid_file: progress.append(pid_file))
        with theirs:  # another holder never releases it, and the event loop has not looked yet
            last = channel.drain()
        channel.close()
        return last

    assert asyncio.run(receive(frames)) == JobResult(b"result")
    assert progress == [(1, 2)]
    assert asyncio.run(receive(frames[:-1])) is None
    assert asyncio.run(receive(b"")) is None


def test_what_a_process_says_that_nobody_understands_is_an_error_and_no_hang() -> None:
    async def receive() -> None:
        ours, theirs = socket.socketpair()
        channel = ResultChannel(ours, lambda *_: None)
        with theirs:
            theirs.sendall(frame(b"\xc1"))
            try:
                await asyncio.wait_for(channel.ending, TIMEOUT_SECS)
            finally:
                channel.close()

    with pytest.raises(msgspec.DecodeError):
        asyncio.run(receive())


def test_orders_wait_while_the_forking_process_has_no_time_for_them(flavour: JobAppFlavour) -> None:
    @flavour.app.job(name="f", fork=True)
    def f() -> str:
        return "done"

    with flavour.working() as worker:
        process_pool = worker.service._forks
        os.kill(process_pool._pid, signal.SIGSTOP)

        async def order_much() -> int:
            for _ in range(100_000):
                process_pool._order(forkserver.KILL, 0)
                if process_pool._outbox:
                    break
            return len(process_pool._outbox)

        assert flavour.run(order_much())
        handle = f.enqueue()
        until(lambda: process_pool._ends)
        os.kill(process_pool._pid, signal.SIGCONT)
        assert handle.result(TIMEOUT_SECS) == "done"
        assert not process_pool._outbox


def test_a_function_that_comes_when_the_worker_has_begun_is_told_why_it_does_not_run(
    flavour: JobAppFlavour,
) -> None:
    with flavour.working():

        @flavour.app.job(name="f", fork=True, retries=0)
        def f() -> None: ...

        with pytest.raises(JobFailed, match="started before there was a function with fork=True"):
            f.enqueue().result(TIMEOUT_SECS)


def test_a_large_job_and_a_large_result(flavour: JobAppFlavour) -> None:
    @flavour.app.job(name="f", fork=True)
    def f(text: str) -> str:
        return text[::-1]

    handle = f.enqueue("ab" * 400_000)
    flavour.burst()
    assert handle.result(0) == "ba" * 400_000


def test_when_the_forking_process_is_gone_jobs_fail_and_are_tried_elsewhere(
    flavour: JobAppFlavour, tmp_path: Path
) -> None:
    pid_file = tmp_path / "pid"

    @flavour.app.job(name="f", fork=True, retries=4, backoff=AT_ONCE)
    def f() -> str:
        if pid_file.exists():
            return "done"
        pid_file.write_text(f"{os.getpid()}")
        time.sleep(HOUR)
        return "not ended"

    handle = f.enqueue()
    with flavour.working() as worker:
        pid = pid_in(pid_file)
        os.kill(worker.service._forks._pid, signal.SIGKILL)
        until(lambda: not lives(pid))  # a process whose job may be leased again must not go on
        assert worker.ended() >= 1  # a worker that cannot fork ends; its supervisor starts another
    with flavour.working():
        assert handle.result(TIMEOUT_SECS) == "done"
