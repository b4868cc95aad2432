"""Jobs run by a worker on its loop and in threads, with their time limits, failures and cancellations."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from support.background_worker import RecordingHooks
from support.job_app import TIMEOUT_SECS, Hours, JobAppFlavour, until
from support.redis_probe import count_blocked

import leaseq
from leaseq.errors import BadArgumentError, BadTypeError
from leaseq.jobs import (
    App,
    Backoff,
    Context,
    DeadLetter,
    JobCancelled,
    JobFailed,
    JobInterrupted,
    JobTimeout,
    Retry,
)
from leaseq.jobs.worker import thread_pool
from leaseq.worker import presence
from leaseq.worker.registry import live_workers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import redis

HOUR = 3600.0
AT_ONCE = Backoff(0.001, 0.001)


@pytest.fixture
def flavour(url: str) -> Iterator[JobAppFlavour]:
    with JobAppFlavour(App(url), asynchronous=False) as made:
        yield made


@pytest.fixture
def hours(monkeypatch: pytest.MonkeyPatch) -> Hours:
    return Hours(monkeypatch)


def states(flavour: JobAppFlavour, queue: str = "default") -> tuple[int, int, int, int]:
    """Ready, delayed, leased, dead."""
    stats = flavour.app.queue(queue).stats()
    return stats.ready, stats.delayed, stats.leased, stats.dead


def test_a_job_learns_what_it_is(flavour: JobAppFlavour) -> None:
    seen: list[Context] = []

    @flavour.app.job(name="f")
    def f(ctx: Context, number: int) -> None:
        seen.append(ctx)

    before = time.time()
    handle = f.with_options(headers={"trace": "7f"}, attempt=3, id="a").enqueue(1)
    later = f.with_options(at=before - 50).enqueue(2)
    flavour.burst()
    first, second = seen
    assert (first.id, first.function, first.queue, first.attempt) == ("a", "f", "default", 3)
    assert first.headers == {"trace": "7f"}
    assert before - 1 <= first.enqueued <= time.time()
    assert first.due == first.enqueued
    assert second.due == second.enqueued  # it was due before it was enqueued
    assert first.token < second.token
    assert first.worker == second.worker != ""
    assert flavour.app.handle(later.id).result(0) is None
    assert handle.info().attempt == 3


def test_delayed_jobs_know_when_they_were_due(flavour: JobAppFlavour) -> None:
    seen: list[Context] = []

    @flavour.app.job(name="f")
    def f(ctx: Context) -> None:
        seen.append(ctx)

    f.with_options(delay=0.05).enqueue()
    with flavour.working():
        until(lambda: seen)
    assert abs(seen[0].due - seen[0].enqueued - 0.05) < 0.002


def test_asynchronous_functions_share_a_loop_and_others_have_threads(flavour: JobAppFlavour) -> None:
    on_the_loop, in_threads = asyncio.Barrier(4), threading.Barrier(4)
    seen: set[str] = set()

    @flavour.app.job(name="on-loop")
    async def on_loop() -> None:
        await on_the_loop.wait()
        seen.add(threading.current_thread().name)

    @flavour.app.job(name="in-thread")
    def in_thread() -> None:
        in_threads.wait(TIMEOUT_SECS)
        seen.add(threading.current_thread().name)

    for _ in range(4):
        on_loop.enqueue()
        in_thread.enqueue()
    # eight of them meet, four and four: as many run at a time as the default says
    assert flavour.burst() == 8
    assert "leaseq job" in seen
    assert len(seen) == 2


def test_no_more_jobs_run_at_a_time_than_asked_for(flavour: JobAppFlavour) -> None:
    running = [0, 0]
    three = asyncio.Barrier(3)  # none ends before three run: fewer would wait without end

    @flavour.app.job(name="f")
    async def f() -> None:
        running[0] += 1
        running[1] = max(running)
        await three.wait()
        running[0] -= 1

    flavour.app.enqueue_many([f.call() for _ in range(51)])
    assert flavour.burst(concurrency=3) == 51
    assert running == [0, 3]


def test_a_failed_job_is_tried_again_until_it_is_dead(flavour: JobAppFlavour) -> None:
    attempts: list[int] = []

    @flavour.app.job(name="f", retries=2, backoff=AT_ONCE)
    async def f(ctx: Context) -> None:
        attempts.append(ctx.attempt)
        message = f"attempt {ctx.attempt}"
        raise RuntimeError(message)

    handle = f.enqueue()
    with flavour.working(), pytest.raises(JobFailed, match="RuntimeError: attempt 3") as raised:
        handle.result(TIMEOUT_SECS)
    assert attempts == [1, 2, 3]  # LQ-JOB-5, LQ-JOB-21
    assert raised.value.attempt == 3
    assert states(flavour) == (0, 0, 0, 1)


def test_the_log_tells_of_a_failure_what_the_jobs_author_needs(
    flavour: JobAppFlavour, caplog: pytest.LogCaptureFixture
) -> None:
    @flavour.app.job(name="f", retries=1, backoff=AT_ONCE)
    def f() -> None:
        message = "a bug"
        raise ValueError(message)

    @flavour.app.job(name="g")
    def g() -> None:
        raise DeadLetter("no such customer")

    caplog.set_level("INFO", logger="leaseq.worker")
    f.with_options(id="a").enqueue()
    g.with_options(id="b").enqueue()
    with flavour.working():
        until(lambda: states(flavour) == (0, 0, 0, 2))
    assert "job 'a' of f failed, attempt 1: ValueError: a bug\n" in caplog.text
    assert caplog.text.count("item 'a' can be leased again in 0.0 s") == 1  # and not after its last attempt
    assert "item 'a' dies: that was the last of its attempts" in caplog.text
    assert "job 'b' of g dies, attempt 1: DeadLetter: no such customer\n" in caplog.text
    assert caplog.text.count("raise ValueError(message)") == 2
    assert "crew.py" not in caplog.text


def test_a_job_is_tried_until_it_succeeds(flavour: JobAppFlavour) -> None:
    @flavour.app.job(name="f", retries=None, backoff=AT_ONCE)
    async def f(ctx: Context) -> int:
        if ctx.attempt < 40:
            raise ValueError
        return ctx.attempt

    handle = f.enqueue()
    with flavour.working():
        assert handle.result(TIMEOUT_SECS) == 40


@pytest.mark.parametrize("fork", [False, True])
@pytest.mark.parametrize(
    "backoff",
    [60, timedelta(minutes=1), [60, HOUR], "1m", lambda attempt: attempt * 60],
    ids=["number", "timedelta", "list", "text", "function"],
)
def test_a_failed_job_waits_as_its_function_says(flavour: JobAppFlavour, backoff: Any, *, fork: bool) -> None:
    @flavour.app.job(name="f", backoff=backoff, fork=fork)
    def f() -> None:
        raise ValueError("not yet")

    @flavour.app.job(name="g", fork=fork)
    def g() -> None:
        raise Retry(delay=timedelta(minutes=1))

    jobs = [f.enqueue(), g.enqueue()]
    if not callable(backoff):
        jobs.append(g.with_options(backoff=backoff).enqueue())
    before = flavour.app.queue().stats().now
    flavour.burst()
    after = flavour.app.queue().stats().now
    for job in jobs:
        assert before + 60 <= flavour.app.queue().inspect(job.id).time <= after + 60


def test_an_envelope_with_delays_that_cannot_be_is_a_dead_letter(flavour: JobAppFlavour) -> None:
    for number, delays in enumerate(([], [-1], [10**13], "1", ["1"])):
        data = json.dumps({"v": 1, "function": "f", "delays": delays})
        flavour.app.queue().add_item(leaseq.Item(data, id=str(number)))
    flavour.burst()
    dead = flavour.app.queue().dead_letters()
    assert len(dead) == 5
    assert all("BadEnvelopeError" in each.error for each in dead)


def test_between_two_attempts_a_job_is_retrying(flavour: JobAppFlavour) -> None:
    @flavour.app.job(name="f", backoff=Backoff(HOUR, HOUR))
    async def f() -> None:
        raise ValueError("not yet")

    handle = f.enqueue()
    quick = f.with_options(backoff=Backoff(100, 100)).enqueue()
    flavour.burst()
    assert handle.status() == "retrying"
    info = handle.info()
    assert (info.attempt, info.error) == (1, "ValueError: not yet")
    assert info.worker
    now = flavour.app.queue().stats().now
    assert HOUR / 2 - 600 < flavour.app.queue().inspect(handle.id).time - now <= HOUR
    assert (
        flavour.app.queue().inspect(quick.id).time - now <= 100
    )  # what the call said goes before the function's


def test_only_chosen_exceptions_are_tried_again(flavour: JobAppFlavour) -> None:
    @flavour.app.job(name="f", retry_on=(ConnectionError, LookupError), backoff=Backoff(HOUR, HOUR))
    async def f(kind: str) -> None:
        raise {"key": KeyError, "value": ValueError, "refused": ConnectionRefusedError}[kind](kind)

    key, value, refused = f.enqueue("key"), f.enqueue("value"), f.enqueue("refused")
    flavour.burst()
    assert (key.status(), value.status(), refused.status()) == ("retrying", "failed", "retrying")  # LQ-JOB-6


def test_a_job_asks_to_be_run_again(flavour: JobAppFlavour) -> None:
    ran: list[int] = []

    @flavour.app.job(name="f", retry_on=(), retries=1)
    async def f(ctx: Context, delay: float | None) -> str:
        ran.append(ctx.attempt)
        if ctx.attempt == 1:
            raise Retry("the file is not there yet", delay=delay)
        return "done"

    later, again = f.enqueue(HOUR), f.enqueue(0.001)
    with flavour.working():
        assert again.result(TIMEOUT_SECS) == "done"
        until(lambda: later.status() == "retrying")
    assert later.info().error == "leaseq.jobs.errors.Retry: the file is not there yet"
    now = flavour.app.queue().stats().now
    assert HOUR - 600 < flavour.app.queue().inspect(later.id).time - now <= HOUR


@pytest.mark.parametrize("fork", [False, True])
def test_the_delay_of_a_retry_goes_before_the_backoff_also_where_it_is_none(
    flavour: JobAppFlavour, *, fork: bool
) -> None:
    @flavour.app.job(name="f", backoff=[1, HOUR, 5 * HOUR], attempt=2, retry_on=(), fork=fork)
    def f(how: str) -> None:
        if how == "dies":
            os._exit(3)
        raise {"at once": Retry(delay=0), "by backoff": Retry(), "late": Retry(delay=60)}[how]

    queue = flavour.app.queue()
    hows = {"by backoff": HOUR, "late": 60.0} | ({"dies": HOUR} if fork else {})
    handles = {how: f.with_options(id=how).enqueue(how) for how in hows}
    last = f.with_options(id="at once", retries=1).enqueue("at once")
    before = queue.stats().now
    flavour.burst()
    after = queue.stats().now
    for how, delay in hows.items():
        assert before + delay - 0.001 <= queue.inspect(how).time <= after + delay
        assert handles[how].info().attempt == 2
    assert last.status() == "failed"  # and where it has an attempt, the burst runs it at once
    again = f.with_options(id="again", retries=3).enqueue("at once")
    flavour.burst()
    assert (again.status(), again.info().attempt) == ("failed", 4)


def test_a_job_that_asks_again_in_its_last_attempt_is_dead(flavour: JobAppFlavour) -> None:
    @flavour.app.job(name="f", retries=1)
    async def f() -> None:
        raise Retry(delay=0)

    handle = f.enqueue()
    with flavour.working(), pytest.raises(JobFailed, match="Retry"):
        handle.result(TIMEOUT_SECS)


def test_a_job_decides_that_it_is_dead(flavour: JobAppFlavour) -> None:
    @flavour.app.job(name="f")
    def f() -> None:
        raise DeadLetter("the customer does not exist")

    handle = f.enqueue()
    flavour.burst()
    with pytest.raises(JobFailed, match="DeadLetter: the customer does not exist") as raised:
        handle.result(0)
    assert raised.value.attempt == 1  # LQ-JOB-6


def test_what_no_worker_can_run_is_a_dead_letter_with_the_reason(flavour: JobAppFlavour) -> None:
    @flavour.app.job(name="f")
    def f(number: int) -> int:
        return number

    queue = flavour.app.queue()
    queue.add_item(leaseq.Item(b"rubbish", id="rubbish"), max_attempts=5)
    queue.add_item(leaseq.Item(b'{"v":9,"function":"f"}', id="newer"), max_attempts=5)
    queue.add_item(leaseq.Item(b'{"v":1,"function":"f","args":[1,2]}', id="many"), max_attempts=5)
    queue.add_item(leaseq.Item(b'{"v":1,"function":"f","kwargs":{"x":2}}', id="named"), max_attempts=5)
    queue.add_item(leaseq.Item(b'{"v":1,"function":"f","args":["one"]}', id="type"), max_attempts=5)
    good = f.enqueue(3)
    assert flavour.burst() == 6
    assert good.result(0) == 3
    dead = {info.id: info for info in queue.dead_letters()}
    assert {info.attempt for info in dead.values()} == {1}  # LQ-JOB-7: no crash loop
    assert "no job that can be read" in dead["rubbish"].error
    assert "of version 9" in dead["newer"].error
    assert "too many positional arguments" in dead["many"].error
    assert "missing a required argument: 'number'" in dead["named"].error
    assert "argument 'number': Expected `int`, got `str`" in dead["type"].error
    assert [info.function for info in flavour.app.jobs("failed")].count("f") == 3


def test_the_dead_are_replayed_and_purged(flavour: JobAppFlavour) -> None:
    fixed: list[bool] = []

    @flavour.app.job(name="f", retries=0)
    def f() -> str:
        if not fixed:
            raise ValueError("a bug")
        return "ok"

    first, second = f.enqueue(), f.enqueue()
    flavour.burst()
    assert [info.error for info in flavour.app.jobs("failed")] == ["ValueError: a bug"] * 2
    fixed.append(True)
    before = first.info()
    assert flavour.app.queue().revive(first.id)
    after = first.info()
    assert (after.status, after.queue, after.enqueued) == ("ready", before.queue, before.enqueued)
    assert flavour.app.queue().purge_all() == 1
    assert flavour.burst() == 1
    assert first.result(0) == "ok"
    assert second.status() != "succeeded"


def test_an_asynchronous_job_past_its_time_is_cancelled_and_tried_again(flavour: JobAppFlavour) -> None:
    seen: list[str] = []

    @flavour.app.job(name="f", timeout=0.05, retries=1, backoff=AT_ONCE)
    async def f() -> None:
        try:
            await asyncio.sleep(HOUR)
        except asyncio.CancelledError:
            seen.append("cleaned up")
            raise

    handle = f.enqueue()
    with (
        flavour.working(),
        pytest.raises(JobFailed, match=r"JobTimeout: took longer than 0\.05 seconds") as raised,
    ):
        handle.result(TIMEOUT_SECS)
    assert seen == ["cleaned up"] * 2
    assert raised.value.attempt == 2  # LQ-JOB-4, LQ-JOB-20


def test_a_timeout_of_the_jobs_own_is_any_other_failure(flavour: JobAppFlavour) -> None:
    @flavour.app.job(name="f", retries=0)
    async def f() -> None:
        raise TimeoutError("of the database")

    handle = f.enqueue()
    flavour.burst()
    with pytest.raises(JobFailed, match="TimeoutError: of the database"):
        handle.result(0)


def test_in_a_thread_the_time_limit_can_be_caught(
    flavour: JobAppFlavour, monkeypatch: pytest.MonkeyPatch, hours: Hours
) -> None:
    seen: list[str] = []
    begun = threading.Barrier(3)
    monkeypatch.setattr(thread_pool, "LAST_SECS", 24 * HOUR)  # nothing is given up here

    @flavour.app.job(name="f", timeout=HOUR, retries=0)
    def f(catch: bool) -> str:
        try:
            begun.wait(TIMEOUT_SECS)
            end = time.monotonic() + TIMEOUT_SECS
            while time.monotonic() < end:
                time.sleep(0.001)
        except JobTimeout:
            seen.append("cleaned up")
            if catch:
                return "what there was"
            raise
        return "not ended"

    caught, raised = f.enqueue(catch=True), f.enqueue(catch=False)
    with flavour.working():
        begun.wait(TIMEOUT_SECS)
        hours.pass_by(flavour)
        assert caught.result(TIMEOUT_SECS) == "what there was"
        with pytest.raises(JobFailed, match=r"JobTimeout: took longer than 3600 seconds"):
            raised.result(TIMEOUT_SECS)
    assert seen == ["cleaned up"] * 2


def test_a_thread_that_goes_on_past_its_time_is_given_up(
    flavour: JobAppFlavour, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_pool, "LAST_SECS", 0.2)
    over = threading.Event()

    @flavour.app.job(name="f", timeout=0.2, retries=0)
    def f() -> None:
        while not over.is_set():
            with contextlib.suppress(JobTimeout):
                over.wait(0.01)

    handle = f.enqueue()
    try:
        assert flavour.burst() == 1
        with pytest.raises(JobFailed, match=r"JobTimeout: took longer than 0\.2 seconds"):
            handle.result(0)
    finally:
        over.set()
    until(lambda: not any(thread.name == "leaseq job" for thread in threading.enumerate()))


@pytest.mark.parametrize("kind", [JobTimeout, JobInterrupted])
def test_what_was_told_to_end_before_its_thread_had_it_does_not_begin(kind: type[BaseException]) -> None:
    began: list[bool] = []

    async def outcome_before_the_end() -> tuple[Any, BaseException | None]:
        run = thread_pool._Run(lambda: began.append(True), asyncio.get_running_loop().create_future())
        run.interrupt(kind)
        return thread_pool._perform(run)

    value, error = asyncio.run(outcome_before_the_end())
    assert (value, type(error), began) == (None, kind, [])


def test_a_call_may_lift_the_time_limit(flavour: JobAppFlavour) -> None:
    @flavour.app.job(name="f", timeout=0.001)
    async def f() -> str:
        await asyncio.sleep(0.1)
        return "done"

    handle = f.with_options(timeout=None).enqueue()
    flavour.burst()
    assert handle.result(0) == "done"


@pytest.mark.parametrize("where", ["loop", "thread"])
def test_cancelling_ends_a_job_that_runs(flavour: JobAppFlavour, where: str) -> None:
    begun = threading.Event()
    seen: list[str] = []

    @flavour.app.job(name="loop")
    async def loop() -> None:
        begun.set()
        try:
            await asyncio.sleep(HOUR)
        except asyncio.CancelledError:
            seen.append("ended")
            raise

    @flavour.app.job(name="thread")
    def thread() -> None:
        try:
            begun.set()
            while True:
                time.sleep(0.001)
        except JobInterrupted:
            seen.append("ended")
            raise

    handle = flavour.app.enqueue(where)
    with flavour.working(lease_secs=600) as worker:
        assert begun.wait(TIMEOUT_SECS)
        assert handle.status() == "running"
        assert handle.cancel()
        worker.beat()
        until(lambda: seen == ["ended"])
        with pytest.raises(JobCancelled):
            handle.result()
    assert handle.status() == "cancelled"
    assert states(flavour) == (0, 0, 0, 0)


def test_the_lease_of_a_job_is_extended_while_it_runs(flavour: JobAppFlavour) -> None:
    begun, end = threading.Event(), threading.Event()

    @flavour.app.job(name="f")
    def f() -> int:
        begun.set()
        end.wait(TIMEOUT_SECS)
        return 1

    handle = f.enqueue()
    with flavour.working() as worker:
        assert begun.wait(TIMEOUT_SECS)
        first = flavour.app.queue().inspect(handle.id)
        worker.beat()
        second = flavour.app.queue().inspect(handle.id)
        assert second.state == "leased"
        assert second.time > first.time
        end.set()
        assert handle.result(TIMEOUT_SECS) == 1


def test_the_job_of_a_worker_that_is_gone_is_run_by_another(flavour: JobAppFlavour) -> None:
    @flavour.app.job(name="f")
    def f(ctx: Context) -> int:
        return ctx.attempt

    handle = f.enqueue()
    queue = flavour.app.queue()
    held = queue.lease(600)  # by a worker that was killed, and its supervisor with it
    assert held is not None
    assert flavour.burst() == 0
    queue.extend(held, 0.001)
    until(lambda: queue.stats().overdue == 1)
    assert flavour.burst() == 1
    assert handle.result(0) == 2


def test_an_idle_worker_is_woken_and_does_not_poll(
    flavour: JobAppFlavour, redis_client: redis.Redis, cap_of_an_hour: None
) -> None:
    @flavour.app.job(name="f")
    async def f() -> int:
        return 1

    with flavour.working():
        for _ in range(3):
            until(lambda: count_blocked(redis_client) == 1)  # until an hour has passed
            assert f.enqueue().result(TIMEOUT_SECS) == 1


def test_a_running_job_tells_who_runs_it_and_how_far_it_is(
    flavour: JobAppFlavour, redis_client: redis.Redis
) -> None:
    begun, end = threading.Event(), threading.Event()

    @flavour.app.job(name="f")
    def f(ctx: Context) -> None:
        for wrong in (
            ("half", 2),
            (1, "two"),
            (True, 2),
            (object(), None),
            ({"n": 2**70}, None),
            (2**70, None),
            (1, 2**70),
        ):
            with pytest.raises(BadTypeError, match="progress takes numbers"):
                ctx.progress(*wrong)
        with pytest.raises(BadArgumentError, match="at most 4096 bytes as JSON, not 5002"):
            ctx.progress("x" * 5000)
        ctx.progress(3, 10)
        begun.set()
        end.wait(TIMEOUT_SECS)

    handle = f.enqueue()
    with flavour.working() as worker:
        assert begun.wait(TIMEOUT_SECS)
        until(lambda: handle.info().progress == (3, 10))
        worker.flush()  # nothing is left to be written over what follows
        info = handle.info()
        assert (info.status, info.worker, info.attempt) == ("running", worker.service.id, 1)
        assert 0 < info.started <= time.time()
        (listed,) = flavour.app.jobs("running")
        assert listed == info
        key = f"leaseq:{{jobs}}:default:job:{handle.id}"
        assert 0 < redis_client.pttl(key) <= 600_000  # LQ-JOB-10
        # LQ-JOB-24: what an earlier lease left behind is nothing
        redis_client.set(key, '{"v":1,"token":5,"worker":"old","started":1,"done":1}')
        assert (handle.info().worker, handle.info().progress, handle.info().started) == ("", None, 0.0)
        redis_client.set(key, "rubbish")
        assert handle.info().worker == ""
        end.set()
        until(lambda: not redis_client.exists(key))
    assert handle.info().worker == info.worker


@pytest.mark.parametrize("fork", [False, True], ids=["thread", "process"])
def test_a_job_reports_any_value_of_json(flavour: JobAppFlavour, tmp_path: Path, *, fork: bool) -> None:
    steps: list[Any] = [{"step": "upload", "files": [1, 2.5]}, "half", True, [1], (7, 8), 7, None]

    @flavour.app.job(name="f", fork=fork)
    def f(ctx: Context) -> None:
        for number, step in enumerate(steps):
            if step == steps[-2]:
                ctx.progress(step, 8)
            else:
                ctx.progress(step)
                if isinstance(step, dict):
                    step["step"] = "changed later"
            until(lambda number=number: (tmp_path / str(number)).exists())  # type: ignore[misc]

    handle = f.enqueue()
    shown: list[str] = []
    with flavour.working():
        for number, value in enumerate([steps[0], "half", True, [1], [7, 8], (7, 8), None]):
            wanted = {"step": "upload", "files": [1, 2.5]} if number == 0 else value
            until(lambda wanted=wanted: handle.info().progress == wanted)  # type: ignore[misc]
            shown.append(handle.info().progress_text)
            (tmp_path / str(number)).touch()
        assert handle.result(TIMEOUT_SECS) is None
    assert shown == ['{"step":"upload","files":[1,2.5]}', '"half"', "true", "[1]", "[7,8]", "7 of 8", ""]


def test_the_trace_of_a_cancellation_outlives_the_notes_of_the_worker(
    flavour: JobAppFlavour, redis_client: redis.Redis
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    @flavour.app.job(name="f")
    def f(ctx: Context) -> None:
        begun.set()
        go_on.wait(TIMEOUT_SECS)
        ctx.progress(1)
        while True:
            time.sleep(0.001)

    handle = f.enqueue()
    with flavour.working() as worker:
        assert begun.wait(TIMEOUT_SECS)
        worker.flush()
        assert handle.info().worker == worker.service.id
        assert handle.cancel()
        go_on.set()  # its worker does not know yet
        until(lambda: [note.done for note in worker.service._progress._states.values()] == [1])
        worker.flush()
        assert handle.status() == "cancelled"
        worker.beat()
        until(lambda: worker.service._progress.performed == 1)
        worker.flush()
        assert handle.status() == "cancelled"
        assert handle.info().function == "f"
    assert not [key for key in redis_client.scan_iter() if b":job:" in key]


def test_jobs_that_have_ended_leave_no_notes(flavour: JobAppFlavour, redis_client: redis.Redis) -> None:
    together = threading.Barrier(5)

    @flavour.app.job(name="f")
    def f() -> None:
        together.wait(TIMEOUT_SECS)

    flavour.app.enqueue_many([f.call() for _ in range(4)])
    with flavour.working() as worker:
        until(lambda: together.n_waiting == 4)
        worker.flush()
        noted = [key for key in redis_client.scan_iter() if b":job:" in key]
        together.wait(TIMEOUT_SECS)
        until(lambda: worker.service._progress.performed == 4)
        worker.flush()
    assert len(noted) == 4
    assert not [key for key in redis_client.scan_iter() if b":job:" in key]


def test_of_a_job_that_has_ended_the_outcome_alone_is_left(
    flavour: JobAppFlavour, redis_client: redis.Redis
) -> None:
    @flavour.app.job(name="f")
    def f() -> int:
        return 1

    kept = f.with_options(headers={"a": "b"}).enqueue()
    gone = f.with_options(headers={"a": "b"}, keep=None).enqueue()
    flavour.burst()
    assert kept.result(0) == 1
    queue = "leaseq:{jobs}:default:"
    for name in ("items", "meta", "extra", "ready", "delayed", "leased", "dead", "expiry"):
        assert not redis_client.exists(queue + name), name
    left = {
        key.decode() for key in redis_client.scan_iter() if kept.id.encode() in key or gone.id.encode() in key
    }
    assert left == {f"{queue}result:{kept.id}"}
    assert 0 < redis_client.pttl(f"{queue}result:{kept.id}") <= 24 * HOUR * 1000


def test_apps_of_several_groups_have_nothing_in_common(flavour: JobAppFlavour, url: str) -> None:
    ran: list[str] = []
    with JobAppFlavour(App(url, group="other"), asynchronous=False) as other:
        for each in (flavour, other):
            each.app.job(name="f")(lambda group=each.app.group: ran.append(group))
            each.app.enqueue("f")
        assert flavour.burst() == 1
        assert ran == ["jobs"]
        assert other.burst() == 1
    assert ran == ["jobs", "other"]


def test_several_queues_in_order(flavour: JobAppFlavour) -> None:
    ran: list[str] = []

    @flavour.app.job(name="f")
    async def f(ctx: Context) -> None:
        ran.append(ctx.queue)

    for queue in ("low", "high", "low", "high", "unheard"):
        f.with_options(queue=queue).enqueue()
    assert flavour.burst(queues=["high", "low"], concurrency=1) == 4
    assert ran == ["high", "high", "low", "low"]
    assert states(flavour, "unheard") == (1, 0, 0, 0)


def test_a_worker_listens_to_the_queues_of_its_functions(flavour: JobAppFlavour) -> None:
    @flavour.app.job(name="f", queue="mail")
    async def f() -> None: ...

    handle = f.enqueue()
    assert handle.queue == "mail"
    assert flavour.app.queues == ["default", "mail"]
    assert flavour.burst() == 1


def test_higher_priority_first(flavour: JobAppFlavour) -> None:
    ran: list[int] = []

    @flavour.app.job(name="f")
    async def f(number: int) -> None:
        ran.append(number)

    for number in (0, 5, -3, 7):
        f.with_options(priority=number).enqueue(number)
    flavour.burst(concurrency=1)
    assert ran == [7, 5, 0, -3]


def test_burst_says_how_much_it_did(flavour: JobAppFlavour) -> None:
    @flavour.app.job(name="f", retries=0)
    async def f(good: bool) -> None:
        if not good:
            raise ValueError

    assert flavour.burst() == 0
    f.enqueue(good=True)
    f.enqueue(good=False)
    assert flavour.burst() == 2  # also what failed was done
    assert flavour.burst() == 0


def test_a_warm_shutdown_lets_jobs_end(flavour: JobAppFlavour) -> None:
    begun, end = threading.Event(), threading.Event()

    @flavour.app.job(name="f")
    def f() -> str:
        begun.set()
        end.wait(TIMEOUT_SECS)
        return "whole"

    handle, waiting = f.enqueue(), f.enqueue()
    with flavour.working(concurrency=1, grace_secs=HOUR) as worker:
        assert begun.wait(TIMEOUT_SECS)
        worker.stop()
        until(lambda: worker.service._worker._run is None or worker.service._worker._run.stopping)
        assert handle.status() == "running"
        end.set()
        assert worker.ended() == 1
    assert handle.result(0) == "whole"
    assert waiting.status() == "ready"


def test_a_cold_shutdown_gives_jobs_back_uncounted(flavour: JobAppFlavour) -> None:
    begun = threading.Event()
    seen: list[int] = []

    @flavour.app.job(name="f", retries=1)
    async def f(ctx: Context) -> int:
        begun.set()
        if not seen:
            try:
                await asyncio.sleep(HOUR)
            finally:
                seen.append(ctx.attempt)
        return ctx.attempt

    handle = f.enqueue()
    with flavour.working(grace_secs=HOUR) as worker:
        assert begun.wait(TIMEOUT_SECS)
        worker.stop(at_once=True)
        worker.ended()
    assert seen == [1]
    assert handle.status() == "ready"
    flavour.burst()
    assert handle.result(0) == 1  # the attempt that was cut short does not count


def test_hooks_around_the_life_of_a_worker(flavour: JobAppFlavour) -> None:
    events: list[str] = []

    @flavour.app.on_startup
    async def begin() -> None:
        events.append("open")

    @flavour.app.on_startup
    def open_more() -> None:
        events.append("open more")

    @flavour.app.on_shutdown
    def end() -> None:
        events.append("end")

    @flavour.app.on_shutdown
    async def end_more() -> None:
        events.append("end more")

    @flavour.app.job(name="f")
    async def f() -> None:
        events.append("f")

    f.enqueue()
    flavour.burst()
    assert events == ["open", "open more", "f", "end more", "end"]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_worker_is_announced_again_while_a_startup_hook_runs(
    flavour: JobAppFlavour, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch, *, asynchronous: bool
) -> None:
    """LQ-WORKER-1: also if the hook holds up the event loop. `started` stays what was announced first (LQ-WORKER-5)."""
    monkeypatch.setattr(presence, "REPORT_INTERVAL_SECS", 0.02)
    seen: list[dict[str, Any]] = []

    def announced() -> dict[str, Any]:
        (key,) = redis_client.keys("leaseq:worker:*")
        found: dict[str, Any] = json.loads(redis_client.get(key))  # type: ignore[arg-type]
        return found

    def load() -> None:
        seen.append(announced())
        until(lambda: announced()["reported"] > seen[0]["reported"] + 50)

    async def load_async() -> None:
        await asyncio.to_thread(load)

    def work() -> None:
        until(lambda: announced()["concurrency"] > 0)
        seen.append(announced())

    flavour.app.on_startup(load_async if asynchronous else load)
    flavour.app.job(name="f")(work).enqueue()
    flavour.burst()
    assert [each["concurrency"] > 0 for each in seen] == [False, True]
    assert seen[1]["started"] == seen[0]["started"]
    assert redis_client.keys("leaseq:worker*") == []


def test_a_worker_whose_startup_hook_raises_ends_with_that_and_is_not_listed(
    flavour: JobAppFlavour, url: str
) -> None:
    seen: list[str] = []

    @flavour.app.on_startup
    def first() -> None:
        (worker,) = live_workers(url)
        seen.append(f"{worker.state} {worker.queues}")

    @flavour.app.on_startup
    async def second() -> None:
        raise ConnectionRefusedError("no database")

    @flavour.app.on_shutdown
    def closes() -> None:
        seen.append("closes")

    with pytest.raises(ConnectionRefusedError, match="no database"):
        flavour.burst(queues=["a", "b"])
    assert seen == ["starting (('jobs', 'a'), ('jobs', 'b'))", "closes"]
    assert live_workers(url) == []


def test_the_hooks_of_a_worker_are_called_for_jobs(flavour: JobAppFlavour) -> None:
    @flavour.app.job(name="f", retries=0)
    def f(number: int) -> int:
        if number < 0:
            raise ValueError(number)
        return number

    f.with_options(id="good").enqueue(1)
    f.with_options(id="bad").enqueue(-1)
    recorded = RecordingHooks()
    assert flavour.burst(hooks=recorded) == 2
    assert sorted(recorded.of("started")) == ["bad", "good"]
    assert recorded.of("completed") == ["good"]
    ((dead, error),) = recorded.of("dead_lettered")
    assert (dead, error.partition("\n")[0]) == ("bad", "ValueError: -1")


def test_a_hook_that_raises_keeps_no_other_from_its_turn(
    flavour: JobAppFlavour, caplog: pytest.LogCaptureFixture
) -> None:
    """The worker has ended well: in a process, an error here had it started again and again."""
    events: list[str] = []

    class Panic(BaseException): ...

    @flavour.app.on_shutdown
    def breaks() -> None:
        raise ValueError("breaks")

    @flavour.app.on_shutdown
    def panics() -> None:
        raise Panic

    @flavour.app.on_shutdown
    async def closes() -> None:
        events.append("closes")

    flavour.app.job(name="f")(lambda: 1).enqueue()
    assert flavour.burst() == 1
    assert events == ["closes"]
    failed = [each.getMessage() for each in caplog.records if each.exc_info]
    assert [each.rsplit(".", 1)[-1] for each in failed] == ["panics failed", "breaks failed"]


def test_a_result_that_is_too_large_kills_the_job_with_the_reason(flavour: JobAppFlavour) -> None:
    @flavour.app.job(name="f")
    async def f() -> str:
        return "x" * 2_000_000

    handle = f.enqueue()
    flavour.burst()
    with pytest.raises(JobFailed, match=r"TooLarge|longer|too large"):
        handle.result(0)
    assert states(flavour) == (0, 0, 0, 1)


def test_a_job_that_ends_its_program_is_a_failure(flavour: JobAppFlavour) -> None:
    @flavour.app.job(name="exits", retries=0)
    def exits() -> None:
        raise SystemExit(3)

    @flavour.app.job(name="aexits", retries=0)
    async def aexits() -> None:
        raise SystemExit(3)

    @flavour.app.job(name="stops", retries=0)
    def stops() -> None:
        raise StopIteration

    handles = [exits.enqueue(), aexits.enqueue(), stops.enqueue()]
    assert flavour.burst() == 3
    assert [handle.status() for handle in handles] == ["failed"] * 3
