"""Middleware around jobs, in each place where they run, and the exceptions that hooks get."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
import traceback
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import pytest
from support.job_app import Hours, JobAppFlavour, until

from leaseq.errors import BadTypeError
from leaseq.jobs import (
    App,
    Backoff,
    Context,
    DeadLetter,
    JobCancelled,
    JobFailed,
    Retry,
)
from leaseq.jobs.testing import at_once
from leaseq.worker import Hooks

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from leaseq.jobs import JobFunction

HOUR = 3600.0
AT_ONCE = Backoff(0.001, 0.001)
PLACES = ["thread", "loop", "process", "loop of a process"]
tenant: ContextVar[str] = ContextVar("tenant", default="none")


@pytest.fixture
def flavour(url: str) -> Iterator[JobAppFlavour]:
    with JobAppFlavour(App(url), asynchronous=False) as made:
        yield made


@pytest.fixture
def hours(monkeypatch: pytest.MonkeyPatch) -> Hours:
    return Hours(monkeypatch)


class Notes:
    """Notes of any process, in order."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "notes"
        self._path.touch()

    def __call__(self, *words: object) -> None:
        with self._path.open("a") as file:
            file.write(" ".join(map(str, words)) + "\n")

    def read(self) -> list[str]:
        return self._path.read_text().splitlines()


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path)


def declare(app: App, place: str, work: Callable[[str], Any], **options: Any) -> JobFunction[[str], Any]:
    """A job "f" in one of PLACES that does this."""
    chosen: Any = {"name": "f", "fork": "process" in place, "backoff": AT_ONCE, **options}

    def f(what: str) -> Any:
        return work(what)

    async def g(what: str) -> Any:
        await asyncio.sleep(0)
        return work(what)

    return app.job(**chosen)(g if "loop" in place else f)


def where() -> str:
    return f"{os.getpid()} {threading.get_ident()}"


@pytest.mark.parametrize("place", PLACES)
def test_the_first_is_outermost_and_all_are_where_the_job_runs(
    flavour: JobAppFlavour, notes: Notes, place: str
) -> None:
    seen: list[Context] = []

    @flavour.app.middleware
    @contextlib.contextmanager
    def first(ctx: Context) -> Iterator[None]:
        notes("first", ctx.id, ctx.function, ctx.attempt, where())
        seen.append(ctx)
        token = tenant.set("acme")
        try:
            yield
        finally:
            tenant.reset(token)
            notes("first ends", where())

    @flavour.app.middleware
    class Second:
        def __init__(self, ctx: Context) -> None:
            self.id = ctx.id

        def __enter__(self) -> None:
            notes("second", tenant.get())

        def __exit__(self, *how: object) -> None:
            notes("second ends", how[0])

    def work(what: str) -> str:
        notes("job", tenant.get(), where())
        return what

    job = declare(flavour.app, place, work).with_options(id="a").enqueue("done")
    assert flavour.burst() == 1
    assert job.result(0) == "done"
    there = notes.read()[2].removeprefix("job acme ")
    assert notes.read() == [
        f"first a f 1 {there}",
        "second acme",
        f"job acme {there}",
        "second ends None",
        f"first ends {there}",
    ]
    assert (there.split()[0] == str(os.getpid())) == ("process" not in place)
    assert all(ctx.headers == {} for ctx in seen)


@pytest.mark.parametrize("place", PLACES)
def test_one_that_awaits_is_around_jobs_in_every_place(
    flavour: JobAppFlavour, notes: Notes, place: str
) -> None:
    @flavour.app.middleware
    @contextlib.contextmanager
    def inner(_: Context) -> Iterator[None]:
        notes("plain")
        yield
        notes("plain ends")

    @flavour.app.middleware
    @contextlib.asynccontextmanager
    async def outer(_: Context) -> AsyncIterator[None]:
        token = tenant.set("acme")
        await asyncio.sleep(0)
        notes("awaiting")
        try:
            yield
        finally:
            await asyncio.sleep(0)
            tenant.reset(token)
            notes("awaiting ends")

    def work(what: str) -> str:
        if place in {"thread", "process"}:  # it may have a loop
            asyncio.run(asyncio.sleep(0))
        notes("job", tenant.get())
        return what

    job = declare(flavour.app, place, work).enqueue("done")
    flavour.burst()
    assert job.result(0) == "done"
    ways = ["plain", "awaiting"] if place != "thread" else ["awaiting", "plain"]
    assert notes.read() == [*ways, "job acme", *(f"{each} ends" for each in reversed(ways))]


@pytest.mark.parametrize("place", PLACES)
def test_it_sees_what_the_function_raised_with_its_traceback(
    flavour: JobAppFlavour, notes: Notes, place: str
) -> None:
    @flavour.app.middleware
    @contextlib.contextmanager
    def watch(_: Context) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            frames = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
            notes(repr(error), "work" in frames)
            raise

    def work(what: str) -> None:
        raise {"value": ValueError, "later": Retry, "dead": DeadLetter}[what](what)

    f = declare(flavour.app, place, work, retries=0)
    jobs = [f.enqueue(what) for what in ("value", "later", "dead")]
    flavour.burst()
    assert sorted(notes.read()) == [
        "DeadLetter('dead') True",
        "Retry('later') True",
        "ValueError('value') True",
    ]
    with pytest.raises(JobFailed, match="ValueError: value") as failed:
        jobs[0].result(0)
    first_line = failed.value.traceback.splitlines()[1]
    assert "test_middleware.py" in first_line  # what leaseq does between is left out


@pytest.mark.parametrize("place", PLACES)
def test_what_it_raises_fails_the_attempt_and_what_it_suppresses_still_counts(
    flavour: JobAppFlavour, notes: Notes, place: str
) -> None:
    @flavour.app.middleware
    @contextlib.contextmanager
    def outer(_: Context) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            notes("outer", repr(error))
            raise

    @flavour.app.middleware
    @contextlib.contextmanager
    def faulty(ctx: Context) -> Iterator[None]:
        if ctx.id == "before" and ctx.attempt == 1:
            raise Retry("not yet")
        if ctx.id == "dead":
            raise DeadLetter("never")
        with contextlib.suppress(ValueError):
            yield
        if ctx.id == "after":
            raise OSError("cannot commit")

    def work(what: str) -> str:
        notes("job", what)
        if what == "suppressed":
            raise ValueError(what)
        return what

    f = declare(flavour.app, place, work, retries=0)
    once_more = f.with_options(id="before", retries=1).enqueue("before")
    others = [f.with_options(id=each).enqueue(each) for each in ("after", "suppressed", "dead")]
    with flavour.working():
        assert once_more.result() == "before"
        for job, message in zip(
            others, ("OSError: cannot commit", "ValueError: suppressed", "DeadLetter: never"), strict=True
        ):
            with pytest.raises(JobFailed, match=message):
                job.result()
    assert sorted(notes.read()) == [
        "job after",
        "job before",
        "job suppressed",
        "outer DeadLetter('never')",
        "outer OSError('cannot commit')",
        "outer Retry('not yet')",
        "outer ValueError('suppressed')",
    ]


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_the_time_limit_and_a_cancellation_pass_through_it(
    flavour: JobAppFlavour, hours: Hours, notes: Notes, kind: str
) -> None:
    started = threading.Event()

    @flavour.app.middleware
    @contextlib.contextmanager
    def watch(ctx: Context) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            notes(ctx.id, type(error).__name__)
            raise

    @flavour.app.job(name="def", timeout=HOUR, retries=0)
    def f() -> None:
        started.set()
        while True:
            time.sleep(0.001)

    @flavour.app.job(name="async def", timeout=HOUR, retries=0)
    async def g() -> None:
        started.set()
        await asyncio.Event().wait()

    late = flavour.app.function(kind).with_options(id="late").enqueue()
    with flavour.working() as worker:
        started.wait()
        hours.pass_by(flavour)
        with pytest.raises(JobFailed, match="JobTimeout: took longer than 3600 seconds"):
            late.result()
        started.clear()
        unwanted = flavour.app.function(kind).with_options(id="unwanted").enqueue()
        started.wait()
        assert unwanted.cancel()
        worker.beat()
        until(lambda: len(notes.read()) == 2)
        with pytest.raises(JobCancelled):
            unwanted.result()
    inside = ["JobTimeout", "JobInterrupted"] if kind == "def" else ["CancelledError"] * 2
    assert notes.read() == [f"late {inside[0]}", f"unwanted {inside[1]}"]


def test_the_time_limit_holds_for_the_middleware_too(flavour: JobAppFlavour, hours: Hours) -> None:
    started = threading.Event()

    @flavour.app.middleware
    @contextlib.asynccontextmanager
    async def slow(_: Context) -> AsyncIterator[None]:
        started.set()
        await asyncio.Event().wait()
        yield

    @flavour.app.job(name="f", timeout=HOUR, retries=0)
    def f() -> None: ...

    job = f.enqueue()
    with flavour.working():
        started.wait()
        hours.pass_by(flavour)
        with pytest.raises(JobFailed, match="JobTimeout"):
            job.result()


@pytest.mark.parametrize("fork", [False, True])
def test_an_awaitable_that_a_def_returns_is_awaited_in_it_again(
    flavour: JobAppFlavour, notes: Notes, *, fork: bool
) -> None:
    @flavour.app.middleware
    @contextlib.contextmanager
    def watch(_: Context) -> Iterator[None]:
        try:
            yield
        except ValueError as error:
            notes(error)
            raise

    async def fail() -> None:
        await asyncio.sleep(0)
        raise ValueError("awaited")

    @flavour.app.job(name="f", retries=0, fork=fork)
    def f() -> Any:
        return fail()

    f.enqueue()
    flavour.burst()
    assert notes.read() == ["awaited"]


def test_an_awaitable_that_a_def_returns_has_what_is_left_of_the_time(flavour: JobAppFlavour) -> None:
    @flavour.app.middleware
    @contextlib.contextmanager
    def watch(_: Context) -> Iterator[None]:
        yield

    async def wait() -> None:
        await asyncio.sleep(1.5)

    @flavour.app.job(name="f", retries=0, timeout=2)
    def f() -> Any:
        ends = time.monotonic() + 1
        while time.monotonic() < ends:
            time.sleep(0.01)
        return wait()

    job = f.enqueue()
    flavour.burst()
    with pytest.raises(JobFailed, match="JobTimeout"):
        job.result(timeout=0)


def test_a_manager_for_both_is_awaited_in_the_loop_alone(flavour: JobAppFlavour, notes: Notes) -> None:
    @flavour.app.middleware
    class Both:
        def __init__(self, ctx: Context) -> None:
            self.function = ctx.function

        def __enter__(self) -> None:
            notes(self.function, "with")

        def __exit__(self, *_: object) -> None: ...

        async def __aenter__(self) -> None:
            notes(self.function, "async with")

        async def __aexit__(self, *_: object) -> None: ...

    @flavour.app.job(name="f")
    def f() -> None: ...

    @flavour.app.job(name="g")
    async def g() -> None: ...

    f.enqueue()
    g.enqueue()
    flavour.burst()
    assert sorted(notes.read()) == ["f with", "g async with"]


def test_it_runs_with_jobs_at_once(url: str, notes: Notes) -> None:
    app = App(url)

    @app.middleware
    @contextlib.contextmanager
    def watch(ctx: Context) -> Iterator[None]:
        notes(ctx.function)
        yield

    @app.job(name="f")
    def f() -> None: ...

    with at_once(app):
        f.enqueue()
    assert notes.read() == ["f"]


def test_what_is_no_middleware_is_refused(flavour: JobAppFlavour) -> None:
    refused: Any = flavour.app.middleware

    def bare(ctx: Context) -> Iterator[None]:
        yield

    async def bare_too(ctx: Context) -> AsyncIterator[None]:
        yield

    @contextlib.contextmanager
    def without_context() -> Iterator[None]:
        yield

    with pytest.raises(BadTypeError, match=r"put @contextlib\.contextmanager between"):
        refused(bare)
    with pytest.raises(BadTypeError, match=r"put @contextlib\.asynccontextmanager between"):
        refused(bare_too)
    with pytest.raises(BadTypeError, match="called with the Context of a job alone"):
        refused(without_context)
    with pytest.raises(BadTypeError, match="int cannot be called"):
        refused(7)


@pytest.mark.parametrize("place", ["thread", "loop"])
def test_what_returns_no_context_manager_fails_the_job_by_name(flavour: JobAppFlavour, place: str) -> None:
    @flavour.app.middleware  # type: ignore[type-var]
    def nothing(_: Context) -> None: ...

    job = declare(flavour.app, place, str, retries=0).enqueue("a")
    flavour.burst()
    with pytest.raises(JobFailed, match=r"the middleware .*nothing returned NoneType"):
        job.result(0)


class Watching(Hooks):
    """Notes the errors that hooks get."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, BaseException | None]] = []

    @contextlib.contextmanager
    def around(self, item: Any) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            self.seen.append(("around", error))
            raise

    def ended(self, item: Any, seconds: float, error: BaseException | None) -> None:
        self.seen.append(("ended", error))


@pytest.mark.parametrize("place", PLACES)
def test_hooks_get_the_exception_of_the_function(flavour: JobAppFlavour, url: str, place: str) -> None:
    class ShopError(Exception): ...

    def work(what: str) -> Any:
        if what == "unwritable":
            return object()
        raise ShopError(what)

    hooks = Watching()
    f = declare(flavour.app, place, work, retries=0)
    f.with_options(attempt=3, retries=2).enqueue("closed")
    flavour.burst(hooks=hooks)
    assert [name for name, _ in hooks.seen] == ["around", "ended"]
    for _, error in hooks.seen:
        if "process" in place:
            assert isinstance(error, JobFailed)
            assert (error.type.rpartition(".")[2], error.message) == ("ShopError", "closed")
            assert "in work" in error.traceback
            assert error.attempt == 3
        else:
            assert isinstance(error, ShopError)
            assert "work" in [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    hooks.seen.clear()
    f.enqueue("unwritable")
    with App(url) as other:
        other.enqueue("f", 1, 2, 3)  # arguments that it does not take
    flavour.burst(hooks=hooks, concurrency=1)
    kinds = {getattr(error, "type", type(error).__name__) for _, error in hooks.seen}
    assert {kind.rpartition(".")[2] for kind in kinds} == {"SerializationError", "TypeError"}
