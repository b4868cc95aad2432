"""The time limit of an attempt ends it as a JobTimeout, whatever the function was doing (LQ-JOB-20)."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import queue
import re
import socket
import subprocess
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
import redis
import redis.asyncio
import redis.backoff
import redis.retry
from redis.connection import PythonRespSerializer
from support.job_app import TIMEOUT_SECS, JobAppFlavour

import leaseq
import leaseq.aio
from leaseq.jobs import App, Backoff, DeadLetter, JobFailed, JobInterrupted, JobTimeout, Retry
from leaseq.jobs.worker import thread_pool, time_limit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HOUR = 3600.0
AT_ONCE = Backoff(0.001, 0.001)
LIMIT_SECS = 0.05

# a thread that is interrupted as it opens something leaves that to the garbage collector
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture
def flavour(url: str) -> Iterator[JobAppFlavour]:
    RUNNING.set()
    with JobAppFlavour(App(url), asynchronous=False) as made:
        yield made
    RUNNING.clear()
    gc.collect()  # what interrupted threads left is this test's, not a later one's


RUNNING = threading.Event()
"""Set during a test. An abandoned thread ends behind it, or it would take the interpreter all the time, and hang forks by C in later tests."""


def forever(step: Callable[[], object]) -> None:
    """Do something again and again, and go on after its errors, to the end of the test."""
    while RUNNING.is_set():
        with contextlib.suppress(Exception):
            step()


def ways(app: App, url: str) -> dict[str, Callable[[], object]]:
    """Do as functions do when their time is over. Each step is short: a thread is interrupted between two of them."""
    empty: queue.Queue[None] = queue.Queue()
    taken = threading.Lock()
    taken.acquire()

    def ask() -> None:
        # hiredis' packer crashes the interpreter now and then where its call back into Python is interrupted
        packer = PythonRespSerializer(
            6000, lambda value: value if isinstance(value, bytes) else str(value).encode()
        )
        patiently = redis.retry.Retry(redis.backoff.NoBackoff(), 100)
        with redis.Redis.from_url(url, retry=patiently, command_packer=packer) as patient:
            forever(lambda: patient.hgetall("none"))

    def listen() -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.settimeout(0.001)
            forever(lambda: ours.recv(1))

    def other_error() -> None:
        try:
            forever(lambda: time.sleep(0.001))
        except BaseException as error:
            message = "caused by the limit"
            raise leaseq.errors.ReplyLostError(message) from error

    def error_in_cleanup() -> None:
        try:
            forever(lambda: time.sleep(0.001))
        finally:
            raise OSError

    return {
        "leaseq": lambda: forever(app.queue().stats),
        "redis-py": ask,
        "socket": listen,
        "queue": lambda: forever(lambda: empty.get(timeout=0.001)),
        "lock": lambda: forever(lambda: taken.acquire(timeout=0.001)),
        "program": lambda: forever(lambda: subprocess.run(["true"], check=True)),
        "another error": other_error,
        "an error of the clean-up": error_in_cleanup,
    }


def errors_of(flavour: JobAppFlavour, name: str, how: str, count: int) -> set[tuple[str, int]]:
    """The types of the errors of jobs, and the attempts that they had."""
    calls = [flavour.app.function(name).call(how) for _ in range(count)]
    handles = flavour.app.enqueue_many(calls)
    found = set()
    with flavour.working(concurrency=16):
        for handle in handles:
            with pytest.raises(
                JobFailed, match=re.escape(f"took longer than {LIMIT_SECS:g} seconds")
            ) as raised:
                handle.result(TIMEOUT_SECS)
            found.add((raised.value.type.rpartition(".")[2], raised.value.attempt))
    return found


WAYS = list(ways(App("redis://localhost"), "redis://localhost"))


# redis-py leaves a socket to the garbage collector if it is interrupted while it connects: pytest would collect that in the job's thread
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.parametrize("how", WAYS)
def test_a_thread_ends_in_the_middle_of_anything(flavour: JobAppFlavour, url: str, how: str) -> None:
    step = ways(flavour.app, url)[how]

    @flavour.app.job(name="f", timeout=LIMIT_SECS, retries=1, retry_on=ValueError, backoff=AT_ONCE)
    def f(how: str) -> None:
        step()

    assert errors_of(flavour, "f", how, 16) == {("JobTimeout", 2)}
    for number in range(20):  # no reply of an interrupted call is another call's
        assert flavour.app.queue("after").add_item(leaseq.Item(b"x", id=str(number)))
        assert flavour.app.queue("after").stats().items == number + 1
        assert flavour.app.handle(str(number), "after").status() == "ready"


def test_a_thread_that_waits_in_c_is_abandoned(
    flavour: JobAppFlavour, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_pool, "LAST_SECS", 0.05)
    over = threading.Event()

    @flavour.app.job(name="f", timeout=LIMIT_SECS, retries=1, retry_on=ValueError, backoff=AT_ONCE)
    def f(how: str) -> None:
        over.wait(TIMEOUT_SECS)
        raise ValueError

    try:
        assert errors_of(flavour, "f", "", 8) == {("JobTimeout", 2)}
    finally:
        over.set()


@pytest.mark.parametrize("how", ["redis-py", "leaseq", "another error", "queue"])
def test_a_forked_process_ends_in_the_middle_of_anything(flavour: JobAppFlavour, url: str, how: str) -> None:
    @flavour.app.job(name="f", timeout=LIMIT_SECS, retries=1, retry_on=ValueError, backoff=AT_ONCE, fork=True)
    def f(how: str) -> None:
        ways(App(url), url)[how]()

    assert errors_of(flavour, "f", how, 4) == {("JobTimeout", 2)}


@pytest.mark.parametrize("fork", [False, True])
@pytest.mark.parametrize("how", ["sleep", "redis-py", "leaseq", "inner limit", "another error", "group"])
def test_an_asynchronous_job_is_cancelled_in_the_middle_of_anything(
    flavour: JobAppFlavour, url: str, monkeypatch: pytest.MonkeyPatch, how: str, fork: bool
) -> None:
    monkeypatch.setattr(time_limit, "AGAIN_SECS", LIMIT_SECS)  # redis-py can forget the first cancellation

    async def another_error() -> None:
        try:
            await asyncio.sleep(HOUR)
        except asyncio.CancelledError:
            raise OSError from None

    async def inner_limit() -> None:
        async with asyncio.timeout(HOUR):
            await asyncio.sleep(HOUR)

    async def group() -> None:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(3):
                tasks.create_task(another_error())
            await asyncio.sleep(HOUR)

    @flavour.app.job(name="f", timeout=LIMIT_SECS, retries=1, retry_on=ValueError, backoff=AT_ONCE, fork=fork)
    async def f(how: str) -> None:
        retry: Any = redis.asyncio.retry.Retry(redis.backoff.NoBackoff(), 100)
        async with (
            redis.asyncio.Redis.from_url(url, retry=retry) as client,
            leaseq.aio.WorkQueue("q", url) as q,
        ):
            steps = {
                "sleep": lambda: asyncio.sleep(HOUR),
                "redis-py": lambda: client.hgetall("none"),
                "leaseq": q.stats,
                "inner limit": inner_limit,
                "another error": another_error,
                "group": group,
            }
            while True:
                try:
                    await steps[how]()
                except (TimeoutError, redis.RedisError, leaseq.LeaseqError):
                    await asyncio.sleep(0)

    assert errors_of(flavour, "f", how, 4) == {("JobTimeout", 2)}


@pytest.mark.parametrize("fork", [False, True])
def test_a_time_limit_of_the_jobs_own_is_any_other_failure(flavour: JobAppFlavour, fork: bool) -> None:
    @flavour.app.job(name="loop", timeout=HOUR, retries=1, retry_on=ValueError, fork=fork)
    async def loop() -> None:
        async with asyncio.timeout(0.001):
            await asyncio.sleep(HOUR)

    @flavour.app.job(name="thread", timeout=HOUR, retries=1, retry_on=ValueError, fork=fork)
    def thread() -> None:
        raise TimeoutError

    handles = [loop.enqueue(), thread.enqueue()]
    assert flavour.burst() == 2
    for handle in handles:
        with pytest.raises(JobFailed, match="TimeoutError") as raised:
            handle.result(0)
        assert (raised.value.type, raised.value.attempt) == ("TimeoutError", 1)


@pytest.mark.parametrize("fork", [False, True])
def test_what_a_job_decides_past_its_time_stands(flavour: JobAppFlavour, fork: bool) -> None:
    @flavour.app.job(name="loop", timeout=LIMIT_SECS, fork=fork)
    async def loop(kind: str) -> str:
        try:
            await asyncio.sleep(HOUR)
        except asyncio.CancelledError:
            return decide(kind)
        return "not ended"

    @flavour.app.job(name="thread", timeout=LIMIT_SECS, fork=fork)
    def thread(kind: str) -> str:
        try:
            forever(lambda: time.sleep(0.001))
        except JobTimeout:
            return decide(kind)
        return "not ended"

    def decide(kind: str) -> str:
        if kind == "dead":
            raise DeadLetter("enough")
        if kind == "retry":
            raise Retry("later", delay=HOUR)
        return "what there was"

    handles = [(fn.enqueue(kind), kind) for fn in (loop, thread) for kind in ("dead", "retry", "result")]
    assert flavour.burst() == 6
    for handle, kind in handles:
        assert (kind, handle.status()) in {("dead", "failed"), ("retry", "retrying"), ("result", "succeeded")}
        error = {"dead": "DeadLetter: enough", "retry": "Retry: later", "result": ""}[kind]
        assert handle.info().error.rpartition("errors.")[2] == error


@pytest.mark.parametrize("how", ["cancelled", "raises", "returns"])
async def test_whoever_cancels_a_job_past_its_time_is_heeded(how: str) -> None:
    """A worker that stops: the job goes back uncounted. Nothing of the limit is left in the task then."""
    late = asyncio.Event()

    async def job() -> str:
        try:
            await asyncio.sleep(HOUR)
        except asyncio.CancelledError:
            late.set()
        if how == "raises":
            raise OSError
        if how == "cancelled":
            await asyncio.sleep(HOUR)
        return "done"

    async def run() -> tuple[Any, int]:
        task = asyncio.current_task()
        assert task is not None
        try:
            answer: Any = await time_limit.within(0.001, job())
        except BaseException as error:  # noqa: BLE001 (returned)
            answer = error
        return answer, task.cancelling()

    task = asyncio.create_task(run())
    await late.wait()
    if how == "cancelled":
        await asyncio.sleep(0)
        task.cancel()
    answer, cancelling = await task
    kinds: dict[str, type] = {"cancelled": asyncio.CancelledError, "raises": JobTimeout, "returns": str}
    assert (type(answer), cancelling) == (kinds[how], int(how == "cancelled"))


def test_what_interrupts_a_job_is_no_exception_that_code_goes_on_after() -> None:
    assert not issubclass(JobInterrupted, Exception)
    assert issubclass(JobTimeout, JobInterrupted)
