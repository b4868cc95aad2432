"""Signals of jobs: when they come, where their receivers run, and what a receiver that fails changes."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import threading
import traceback
from typing import TYPE_CHECKING, Any

import pytest
from support import programs
from support.cli_runner import COMMAND
from support.job_app import TIMEOUT_SECS, JobAppFlavour, until

from leaseq._aio.queue import end_leases
from leaseq.errors import BadArgumentError, BadTypeError
from leaseq.jobs import App, Backoff, Context, JobEvent, JobFailed, Retry
from leaseq.jobs.testing import at_once
from leaseq.jobs.worker import signal_emitter
from leaseq.worker._aio import completer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import redis

AT_ONCE = Backoff(0.001, 0.001)
ALL: Any = ("enqueued", "started", "retried", "succeeded", "failed", "cancelled")


@pytest.fixture(params=[False, True], ids=["threads", "asyncio"])
def flavour(url: str, request: pytest.FixtureRequest) -> Iterator[JobAppFlavour]:
    with JobAppFlavour(App(url), asynchronous=request.param) as made:
        yield made


@pytest.fixture
def seen(flavour: JobAppFlavour) -> list[JobEvent]:
    events: list[JobEvent] = []
    flavour.app.on(*ALL)(events.append)
    return events


def signals(events: list[JobEvent]) -> list[str]:
    return [event.signal for event in events]


@pytest.mark.parametrize("kind", ["thread", "loop", "process"])
def test_a_job_from_enqueued_to_its_end(flavour: JobAppFlavour, seen: list[JobEvent], kind: str) -> None:
    def work(ctx: Context, number: int, *, label: str = "") -> int:
        if ctx.attempt == 1:
            raise ValueError("not yet")
        return number

    async def in_loop(ctx: Context, number: int, *, label: str = "") -> int:
        return work(ctx, number, label=label)

    function: Any = in_loop if kind == "loop" else work
    f = flavour.app.job(name="f", backoff=AT_ONCE, fork=kind == "process")(function)
    job = flavour(f.with_options(id="a", headers={"tenant": "7"}), "enqueue", 3, label="x")
    assert signals(seen) == ["enqueued"]
    with flavour.working():
        assert flavour(job, "result") == 3
        until(lambda: len(seen) == 5)
    assert signals(seen) == ["enqueued", "started", "retried", "started", "succeeded"]
    assert [event.attempt for event in seen] == [0, 1, 1, 2, 2]
    for event in seen:
        assert (event.id, event.queue, event.function) == ("a", "default", "f")
        assert (event.args, event.kwargs, event.headers) == ((3,), {"label": "x"}, {"tenant": "7"})
    retried, succeeded = seen[2], seen[4]
    assert (succeeded.result, succeeded.error, retried.delay is not None) == (3, None, True)
    assert succeeded.seconds is not None
    assert 0 <= succeeded.seconds < TIMEOUT_SECS
    if kind == "process":
        assert isinstance(retried.error, JobFailed)
        assert (retried.error.type, retried.error.message) == ("ValueError", "not yet")
        assert "in work" in retried.error.traceback
    else:
        assert isinstance(retried.error, ValueError)
        assert "work" in [frame.name for frame in traceback.extract_tb(retried.error.__traceback__)]


def test_a_job_that_cannot_be_called_counts_attempts_made_elsewhere(
    flavour: JobAppFlavour, seen: list[JobEvent], url: str
) -> None:
    """The number is that of the info and of the exception."""
    flavour.app.job(name="f")(lambda *, number: number)
    with App(url) as other, flavour.working():
        job = other.function("f").with_options(attempt=3).enqueue("no argument")
        with pytest.raises(JobFailed, match="after 3 attempts") as raised:
            job.result(TIMEOUT_SECS)
        until(lambda: len(seen) == 1)
        assert raised.value.attempt == job.info().attempt == 3
    assert (seen[0].signal, seen[0].attempt) == ("failed", 3)
    assert isinstance(seen[0].error, JobFailed)
    assert seen[0].error.attempt == 3


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_signal_waits_for_those_of_its_job_before_it(flavour: JobAppFlavour, *, asynchronous: bool) -> None:
    """A slow receiver of `started` ends before that of `succeeded` is called, and holds up no other job."""
    calls: list[str] = []
    others = threading.Event()

    def note(event: JobEvent) -> None:
        calls.append(f"{event.id} {event.signal}")
        if event.id == "other" and event.signal == "succeeded":
            others.set()

    def hold(event: JobEvent) -> None:
        note(event)
        if event.id == "slow" and event.signal == "started":
            others.wait(TIMEOUT_SECS)
            calls.append("slow has started")

    async def hold_async(event: JobEvent) -> None:
        note(event)
        if event.id == "slow" and event.signal == "started":
            await asyncio.to_thread(others.wait, TIMEOUT_SECS)
            calls.append("slow has started")

    flavour.app.on("started", "succeeded")(hold_async if asynchronous else hold)
    f = flavour.app.job(name="f")(lambda: None)
    flavour(f.with_options(id="slow"), "enqueue")
    with flavour.working():
        until(lambda: "slow started" in calls)
        flavour(f.with_options(id="other"), "enqueue")
        until(lambda: "slow succeeded" in calls)
    assert calls.index("other succeeded") < calls.index("slow has started") < calls.index("slow succeeded")


def test_signals_come_in_order_where_the_next_attempt_starts_before_the_end_is_reported(
    flavour: JobAppFlavour, seen: list[JobEvent], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reply to a release comes late: by then the item has waked the worker on another connection."""
    second = threading.Event()

    async def late(*given: Any) -> Any:
        answers = await end_leases(*given)
        await asyncio.to_thread(second.wait, TIMEOUT_SECS)
        return answers

    @flavour.app.job(name="f", backoff=AT_ONCE)
    def f(ctx: Context) -> None:
        if ctx.attempt == 1:
            raise ValueError
        second.set()

    monkeypatch.setattr(completer, "end_leases", late)
    job = flavour(f, "enqueue")
    with flavour.working():
        flavour(job, "result")
        until(lambda: "succeeded" in signals(seen))
    assert signals(seen) == ["enqueued", "started", "retried", "started", "succeeded"]


def test_the_last_attempt_has_failed_and_is_not_retried(flavour: JobAppFlavour, seen: list[JobEvent]) -> None:
    @flavour.app.job(name="f", retries=1, backoff=AT_ONCE)
    async def f() -> None:
        raise Retry("again")

    job = flavour(f, "enqueue")
    with flavour.working():
        with pytest.raises(JobFailed):
            flavour(job, "result")
        until(lambda: "failed" in signals(seen))
    assert signals(seen) == ["enqueued", "started", "retried", "started", "failed"]
    assert isinstance(seen[-1].error, Retry)


def test_a_job_that_goes_back_because_its_worker_stops_is_not_retried(
    flavour: JobAppFlavour, seen: list[JobEvent]
) -> None:
    started = threading.Event()

    @flavour.app.job(name="f")
    async def f(ctx: Context) -> None:
        if ctx.attempt == 1 and not started.is_set():
            started.set()
            await asyncio.Event().wait()

    job = flavour(f, "enqueue")
    with flavour.working(grace_secs=0) as working:
        assert started.wait(TIMEOUT_SECS)
        working.stop()
        working.ended()
    assert flavour(job, "status") == "ready"
    assert signals(seen) == ["enqueued", "started"]


def test_a_job_that_cannot_run_has_failed(flavour: JobAppFlavour, url: str, seen: list[JobEvent]) -> None:
    @flavour.app.job(name="f")
    def f(number: int) -> None: ...

    with App(url) as other:
        other.enqueue("f", "no number")
    flavour.burst()
    (event,) = seen
    assert (event.signal, event.function, event.args, event.seconds) == ("failed", "f", (), None)
    assert isinstance(event.error, JobFailed)
    assert "ValidationError" in event.error.type


def test_cancelling_is_received_where_it_is_done(flavour: JobAppFlavour, seen: list[JobEvent]) -> None:
    started = threading.Event()

    @flavour.app.job(name="f")
    async def f() -> None:
        started.set()
        await asyncio.Event().wait()

    waiting = flavour(f.with_options(id="waiting", delay=3600), "enqueue")
    running = flavour(f.with_options(id="running"), "enqueue")
    with flavour.working() as worker:
        started.wait()
        assert flavour(waiting, "cancel")
        assert not flavour(waiting, "cancel")
        assert flavour(running, "cancel")
        worker.beat()
    cancelled = [(each.id, each.queue) for each in seen if each.signal == "cancelled"]
    assert cancelled == [("waiting", "default"), ("running", "default")]
    assert sorted(signals(seen)) == ["cancelled", "cancelled", "enqueued", "enqueued", "started"]


def test_many_and_chains_are_enqueued_once_each(flavour: JobAppFlavour, seen: list[JobEvent]) -> None:
    @flavour.app.job(name="f")
    def f(number: int) -> int:
        return number + 1

    for number in range(2):
        flavour(f.with_options(id="once"), "enqueue", number)
    assert [event.id for event in seen] == ["once"]
    calls = [f.with_options(id="once").call(1), f.with_options(id="other").call(2)]
    flavour(flavour.app, "enqueue_many", calls)
    assert [event.id for event in seen] == ["once", "other"]  # the second one of an id was not added
    seen.clear()
    chain = flavour.side(flavour.app).chain(f.call(1)).then(f.partial())
    flavour.run(chain.enqueue()) if flavour.asynchronous else chain.enqueue()
    flavour.burst(concurrency=1)
    assert [event.id for event in seen if event.signal == "enqueued"] != []
    succeeded = {event.id: (event.args, event.result) for event in seen if event.signal == "succeeded"}
    first = next(event.id for event in seen if event.signal == "enqueued")
    assert succeeded[first] == ((1,), 2)
    assert sorted(succeeded.values()) == [((0,), 1), ((1,), 2), ((2,), 3), ((2,), 3)]


def test_receivers_of_a_function_and_their_order(flavour: JobAppFlavour) -> None:
    done: list[str] = []

    def note(name: str) -> Any:
        def receive(event: JobEvent) -> None:
            done.append(f"{name} {event.signal} {event.function}")

        return receive

    async def awaited(event: JobEvent) -> None:
        await asyncio.sleep(0)
        done.append(f"awaited {event.signal} {event.function}")

    flavour.app.on("succeeded", "failed")(note("all"))

    @flavour.app.job(name="f", retries=0, on_success=[note("own"), awaited], on_failure=note("own"))
    def f(what: str) -> None:
        if what == "fails":
            raise ValueError(what)

    @flavour.app.job(name="g")
    def g() -> None: ...

    flavour(f, "enqueue", "works")
    flavour.burst()
    flavour(f, "enqueue", "fails")
    flavour.burst()
    flavour(g, "enqueue")
    flavour.burst()
    assert done == [
        "own succeeded f",
        "awaited succeeded f",
        "all succeeded f",
        "own failed f",
        "all failed f",
        "all succeeded g",
    ]


def test_plain_receivers_run_in_threads_and_others_in_the_loop(flavour: JobAppFlavour) -> None:
    threads: dict[str, str] = {}

    @flavour.app.on("succeeded")
    def plain(_: JobEvent) -> None:
        threads["plain"] = threading.current_thread().name

    @flavour.app.on("succeeded")
    async def waiting(_: JobEvent) -> None:
        threads["loop"] = threading.current_thread().name

    @flavour.app.job(name="f")
    async def f() -> str:
        return threading.current_thread().name

    job = flavour(f, "enqueue")
    flavour.burst()
    assert threads == {"plain": "leaseq job", "loop": flavour(job, "result")}


def test_a_receiver_that_fails_is_logged_by_name_and_changes_nothing(
    flavour: JobAppFlavour, caplog: pytest.LogCaptureFixture
) -> None:
    after: list[str] = []

    def broken(_: JobEvent) -> None:
        raise OSError("no mail today")

    for each in (broken, lambda event: after.append(event.signal)):
        flavour.app.on("enqueued", "started", "succeeded")(each)

    @flavour.app.job(name="f")
    def f() -> int:
        return 7

    with caplog.at_level(logging.ERROR, "leaseq.jobs"):
        job = flavour(f.with_options(id="a"), "enqueue")
        flavour.burst()
    assert flavour(job, "result") == 7
    assert after == ["enqueued", "started", "succeeded"]
    assert len(caplog.records) == 3
    for record, name in zip(caplog.records, after, strict=True):
        assert record.exc_info is not None
        assert isinstance(record.exc_info[1], OSError)
        assert record.getMessage().endswith(f"broken failed with '{name}' of job 'a' of f")


def test_a_receiver_that_takes_too_long_is_ended(
    flavour: JobAppFlavour, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signal_emitter, "RECEIVER_SECS", 0.01)

    @flavour.app.on("succeeded")
    async def slow(_: JobEvent) -> None:
        await asyncio.Event().wait()

    @flavour.app.job(name="f")
    def f() -> None: ...

    flavour(f, "enqueue")
    flavour.burst()
    assert "JobTimeout: took longer than 0.01 seconds" in caplog.text


def test_a_worker_waits_for_receivers_that_are_behind(
    flavour: JobAppFlavour, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signal_emitter, "MOST_WAITING", 1)
    go_on, ran, delivered = threading.Event(), [], []

    @flavour.app.on("succeeded")
    def slow(event: JobEvent) -> None:
        go_on.wait(TIMEOUT_SECS)
        delivered.append(event.result)

    @flavour.app.job(name="f")
    async def f(number: int) -> int:
        ran.append(number)
        return number

    for number in range(3):
        flavour(f, "enqueue", number)
    with flavour.working(concurrency=1):
        until(lambda: ran)
        flavour.run(asyncio.sleep(0))
        assert ran == [0]
        go_on.set()
        until(lambda: len(delivered) == 3)
    assert ran == delivered == [0, 1, 2]


def test_signals_come_with_jobs_at_once(url: str) -> None:
    app = App(url)
    seen: list[JobEvent] = []
    app.on(*ALL)(seen.append)

    @app.job(name="f", on_success=seen.append)
    def f() -> None: ...

    with at_once(app):
        f.enqueue()
        assert signals(seen) == ["enqueued", "started", "succeeded", "succeeded"]


def test_what_receives_nothing_is_refused(flavour: JobAppFlavour) -> None:
    refused: Any = flavour.app.on
    job: Any = flavour.app.job

    async def waiting(_: JobEvent) -> None: ...

    with pytest.raises(BadArgumentError, match="there is no signal 'done'; there are enqueued, started"):
        refused("done")(print)
    with pytest.raises(BadTypeError, match="a receiver of 'cancelled' is called in the call"):
        refused("succeeded", "cancelled")(waiting)
    with pytest.raises(BadTypeError, match="int cannot be called"):
        refused("failed")(7)
    with pytest.raises(BadTypeError, match="called with a JobEvent alone"):
        job(name="f", on_failure=lambda: None)
    assert not flavour.app.program.clients.settings.receivers.by_signal


def test_without_receivers_nothing_is_asked_of_the_server(
    flavour: JobAppFlavour, redis_client: redis.Redis
) -> None:
    def calls() -> int:
        stats: Any = redis_client.info("commandstats")
        return sum(each["calls"] for name, each in stats.items() if "info" not in name)

    @flavour.app.job(name="f")
    def f() -> None: ...

    def counted() -> int:
        before = calls()
        flavour(f, "enqueue")
        return calls() - before

    counted()
    plain = counted()
    flavour.app.on(*ALL)(lambda _: None)
    assert counted() == plain


SHOP = """
import contextlib
import os
import signal
import sys
from leaseq.jobs import App, Backoff

sys.path.append({tests!r})
from support.job_app import extend_program_timeouts

extend_program_timeouts()
app = App()

def note(*words):
    with open("notes", "a") as file:
        file.write(" ".join(map(str, words)) + chr(10))

@app.middleware
@contextlib.contextmanager
def around(ctx):
    note("around", ctx.function)
    yield

@app.on("started", "retried", "succeeded", "failed")
def receive(event):
    note(event.signal, event.function, *event.args, getattr(event.error, "type", ""))

@app.job(name="double")
async def double(number):
    return 2 * number

@app.job(name="crash", retries=1, backoff=Backoff(0.001, 0.001), on_failure=lambda event: note("own", event.error.message))
def crash():
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_all_of_it_works_from_the_command(tmp_path: Path, url: str) -> None:
    (tmp_path / "shop.py").write_text(SHOP.format(tests=str(programs.TESTS)))
    with App(url) as app:
        handles = [app.enqueue("double", 7)]
        command = [*COMMAND, "worker", "shop:app", "-p", "2", "-c", "1"]
        with subprocess.Popen(command, cwd=tmp_path, env={**os.environ, "REDIS_URL": url}) as worker:
            try:
                assert handles[0].result(TIMEOUT_SECS) == 14
                notes = tmp_path / "notes"
                until(lambda: "succeeded" in notes.read_text())  # a crash of the process would lose it
                with pytest.raises(JobFailed, match="ProcessDied"):
                    app.function("crash").with_options(retries=1).enqueue().result(TIMEOUT_SECS)
                until(lambda: "own" in notes.read_text())
            finally:
                worker.terminate()
    assert worker.returncode == 0
    lines = notes.read_text().splitlines()
    doubled = [line.strip() for line in lines if "double" in line]
    assert sorted(doubled) == ["around double", "started double 7", "succeeded double 7"]
    assert doubled[-1] == "succeeded double 7"
    assert [line for line in lines if line.startswith(("retried", "failed", "own"))] == [
        "retried crash ProcessDied",
        "own its process was ended by SIGKILL",
        "failed crash ProcessDied",
    ]


class NoReader:
    """A serializer that cannot read some of what it writes."""

    name = "no reader"

    def dumps(self, value: Any) -> bytes:
        return json.dumps(value).encode()

    def loads(self, data: bytes) -> Any:
        if b"unreadable" in data:
            raise ValueError("unreadable")
        return json.loads(data)


def test_a_result_that_only_its_process_can_read_is_a_success(url: str) -> None:
    seen: list[JobEvent] = []
    with JobAppFlavour(App(url, serializer=NoReader()), asynchronous=False) as flavour:
        flavour.app.on("succeeded", "failed", "retried")(seen.append)
        flavour.app.job(name="f", fork=True, keep=60, retries=0)(work_unreadably)
        job = flavour.app.function("f").enqueue()
        flavour.burst()
        assert job.status() == "succeeded"
    assert [(event.signal, event.result) for event in seen] == [("succeeded", None)]


def work_unreadably() -> str:
    return "unreadable"


def test_a_stage_that_was_cancelled_as_it_ended_has_not_succeeded(
    flavour: JobAppFlavour, seen: list[JobEvent]
) -> None:
    @flavour.app.job(name="f")
    def f(number: int) -> int:
        assert flavour.app.handle("first").cancel()
        return number

    chain = flavour.side(flavour.app).chain(f.with_options(id="first").call(1)).then(f.partial())
    flavour.run(chain.enqueue()) if flavour.asynchronous else chain.enqueue()
    flavour.burst()
    assert sorted(signals(seen)) == ["cancelled", "enqueued", "started"]
