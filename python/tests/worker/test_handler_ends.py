"""Ends of a handler: only a handler that returned completes its item, and every slot goes on to its next item."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import warnings
from concurrent.futures import Future
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import pytest
from support import servers
from support.background_worker import (
    TIMEOUT_SECS,
    BackgroundWorker,
    Latch,
    RecordingHooks,
    background_worker,
)

import leaseq
import leaseq.worker
import leaseq.worker.aio
from leaseq import Item
from leaseq.worker import Hooks

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from support.client_flavours import ClientFlavour

    from leaseq_conformance.fault_proxy import Listener

HOUR = 3600.0


class Panic(BaseException):
    """As PyO3 raises for a panic of Rust."""


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise Panic


RAISED: dict[str, Callable[[], BaseException]] = {
    "panic": lambda: Panic("at the disco"),
    "interrupt": KeyboardInterrupt,
    "generator exit": GeneratorExit,
    "system exit": lambda: SystemExit(0),
    "cancelled": asyncio.CancelledError,
    "stop": StopIteration,
    "async stop": StopAsyncIteration,
    "group": lambda: BaseExceptionGroup("several", [Panic(), KeyboardInterrupt()]),
    "class": lambda: Panic,  # type: ignore[return-value, dict-item] # `raise Panic` is as good
    "unprintable": UnprintableError,
    "syntax": lambda: SyntaxError("m", ("f", 1, "no number", "text")),  # type: ignore[arg-type]
    "surrogate": lambda: ValueError("\ud83d"),
    "release after what is no time": lambda: leaseq.worker.Release(delay="soon"),  # type: ignore[arg-type]
    "release before now": lambda: leaseq.worker.Release(delay=-1),
    "release after the longest delay": lambda: leaseq.worker.Release(delay=4e8),
    "release at the end of time": lambda: leaseq.worker.Release(delay=1e300),
    "release for a reason that is no text": lambda: leaseq.worker.Release(3, delay=HOUR),  # type: ignore[arg-type]
}


@pytest.mark.promise("G12")
@pytest.mark.parametrize("concurrency", [1, 3])
def test_whatever_a_handler_raises_is_a_failed_attempt(
    queue: Any, flavour: ClientFlavour, caplog: pytest.LogCaptureFixture, concurrency: int
) -> None:
    """More of them than slots, and good ones behind: each is logged with its traceback, and no slot is lost."""
    bad = [f"{name} {n}" for n in range(3) for name in RAISED]
    queue.add_items([*(Item(b"", id=name) for name in bad), *(Item(b"", id=f"good {n}") for n in range(10))])

    def handle(item: Any) -> None:
        if not item.id.startswith("good"):
            raised = RAISED[item.id[:-2]]()
            raise raised

    options: Any = {"burst": True, "concurrency": concurrency, "backoff": lambda _: HOUR}
    assert BackgroundWorker(flavour, queue, handle, **options).result() == 10
    assert queue.stats().completed == 10
    for name in bad:
        info = queue.inspect(name)
        assert (info.state, info.attempt) == ("delayed", 1), name
        assert info.error or name.startswith("release"), name
    failed = [each for each in caplog.records if "failed, attempt 1" in each.getMessage()]
    assert {each.item for each in failed} == set(bad)  # type: ignore[attr-defined]
    assert all(each.exc_info or each.item.startswith("release") for each in failed)  # type: ignore[attr-defined]


@pytest.mark.parametrize("wait", [-1.0, float("nan"), 1e300, "soon", ZeroDivisionError])
def test_a_backoff_that_fails_ends_no_worker(queue: Any, flavour: ClientFlavour, wait: Any) -> None:
    queue.add_items([Item(b"", id="bad"), Item(b"", id="good")])

    def backoff(_: int) -> float:
        if wait is ZeroDivisionError:
            raise ZeroDivisionError
        return wait  # type: ignore[no-any-return]

    def handle(item: Any) -> None:
        if item.id == "bad":
            raise ValueError("no")

    assert BackgroundWorker(flavour, queue, handle, burst=True, backoff=backoff, max_attempts=1).result() == 1
    assert queue.inspect("bad").state == "dead"
    queue.revive("bad")
    with background_worker(flavour, queue, handle, backoff=backoff) as work:
        servers.wait_until(lambda: queue.inspect("bad").state == "delayed", TIMEOUT_SECS)
        work.stop()
    assert queue.inspect("bad").error == "ValueError: no"


class Swallowing(Hooks):
    """A context manager that lets nothing pass; and hooks that raise what is no Exception."""

    class Context:
        def __enter__(self) -> None:
            return None

        def __exit__(self, *_: object) -> bool:
            return True

    def around(self, item: Any) -> contextlib.AbstractContextManager[Any]:
        return self.Context()

    def started(self, item: Any) -> None:
        raise Panic

    def ended(self, item: Any, seconds: float, error: BaseException | None) -> None:
        raise Panic

    def completed(self, item: Any) -> None:
        raise SystemExit(1)


def test_hooks_do_not_change_how_an_item_ends(queue: Any, flavour: ClientFlavour) -> None:
    queue.add_items([Item(b"", id="bad"), Item(b"", id="good")])

    def handle(item: Any) -> None:
        if item.id == "bad":
            raise ValueError("no")

    options: Any = {"burst": True, "hooks": Swallowing(), "backoff": lambda _: HOUR}
    assert BackgroundWorker(flavour, queue, handle, **options).result() == 1
    assert queue.inspect("bad").error == "ValueError: no"


async def work(_: Any) -> None:
    """A coroutine function."""


def pieces(_: Any) -> Generator[None]:
    yield


async def async_pieces(_: Any) -> Any:
    yield


class Object:
    async def __call__(self, item: Any) -> None:
        """An object with an async `__call__`."""

    async def method(self, item: Any) -> None:
        """A method."""


def decorated(function: Any) -> Any:
    @functools.wraps(function)
    async def wrapper(item: Any) -> Any:
        return await function(item)

    return wrapper


@pytest.mark.parametrize(
    "handler",
    [
        work,
        functools.partial(work),
        functools.partial(functools.partial(work)),
        Object(),
        functools.partial(Object()),
        Object().method,
        decorated(work),
    ],
)
def test_threads_refuse_a_coroutine_function(handler: Any) -> None:
    with (
        leaseq.WorkQueue("q", "redis://127.0.0.1:1") as queue,
        pytest.raises(leaseq.BadTypeError, match=r"leaseq\.worker\.aio"),
    ):
        leaseq.worker.Worker(queue, handler)


class Mailer:
    def send(self, item: Any) -> None: ...

    def send_none(self) -> object: ...


async def handle(_: Any) -> None: ...


@pytest.mark.parametrize("worker", [leaseq.worker.Worker, leaseq.worker.aio.Worker])
@pytest.mark.parametrize("handler", [lambda: None, lambda item, more: None, Mailer().send_none])
def test_handlers_that_take_no_single_item_are_refused(worker: Any, handler: Any) -> None:
    with (
        leaseq.WorkQueue("q", "redis://127.0.0.1:1") as queue,
        pytest.raises(leaseq.BadTypeError, match="called with an item alone, and this one cannot be: "),
    ):
        worker(queue, handler)


@pytest.mark.parametrize("handler", [print, lambda *items: None, lambda item, more=1: None, Mailer().send])
def test_handlers_that_take_an_item_are_taken(handler: Any) -> None:
    with leaseq.WorkQueue("q", "redis://127.0.0.1:1") as queue:
        leaseq.worker.Worker(queue, handler)


def test_a_queue_of_the_other_kind_is_refused_by_name() -> None:
    with leaseq.WorkQueue("q", "redis://127.0.0.1:1") as queue:
        for wrong in (queue, [queue]):
            with pytest.raises(leaseq.BadTypeError, match=r"leaseq\.worker\.aio.* leaseq\.aio$"):
                leaseq.worker.aio.Worker(wrong, handle)  # type: ignore[arg-type]
    with pytest.raises(leaseq.BadTypeError, match=r"a worker takes a WorkQueue, .* not this str"):
        leaseq.worker.Worker("q", print)  # type: ignore[arg-type]


@pytest.mark.parametrize("handler", [pieces, async_pieces, functools.partial(pieces)])
@pytest.mark.parametrize("worker", [leaseq.worker.Worker, leaseq.worker.aio.Worker])
def test_generator_functions_are_refused(worker: Any, handler: Any) -> None:
    with (
        leaseq.WorkQueue("q", "redis://127.0.0.1:1") as queue,
        pytest.raises(leaseq.BadTypeError, match="generator"),
    ):
        worker(queue, handler)


def test_asyncio_refuses_a_function_that_says_it_returns_nothing() -> None:
    def handle(_: Any) -> None: ...

    queue = leaseq.aio.WorkQueue("q", "redis://127.0.0.1:1")
    with pytest.raises(leaseq.BadTypeError, match="async def"):
        leaseq.worker.aio.Worker(queue, handle)  # type: ignore[arg-type]
    leaseq.worker.aio.Worker(queue, lambda item: work([item]))


UNFINISHED = [
    work,
    pieces,
    async_pieces,
    lambda _: map(print, [1]),
    lambda _: filter(print, [1]),
    lambda _: Future(),
    lambda items: [None, work(items), work(items)],
    lambda items: (work(items),),
    lambda items: {"work": work(items)},
    lambda items: [pieces(items)],
    lambda _: [Future()],
]


@pytest.mark.promise("G12")
@pytest.mark.parametrize("returned", UNFINISHED)
def test_what_nobody_awaits_is_no_success(
    queue: Any, flavour: ClientFlavour, returned: Callable[[Any], Any]
) -> None:
    """A coroutine that is returned and never awaited, by a lambda or by an `async def`: the signature does not show it."""
    queue.add_item(Item(b"", id="a"))

    async def handle_async(item: Any) -> Any:
        return returned(item)

    handler = handle_async if flavour.name == "asyncio" else lambda item: returned([item])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        options: Any = {"burst": True, "backoff": lambda _: HOUR}
        assert BackgroundWorker(flavour, queue, handler, **options).result() == 0
    info = queue.inspect("a")
    assert (info.state, info.attempt) == ("delayed", 1)
    assert "nothing" in info.error


@pytest.mark.parametrize(("returned", "text"), [(3, "returned int"), (pieces(0), "a generator")])
@pytest.mark.parametrize("hooks", [None, RecordingHooks()])
async def test_asyncio_says_what_cannot_be_awaited(
    url: str, returned: Any, text: str, hooks: Any, queue: Any
) -> None:
    async with leaseq.aio.WorkQueue("plain", url) as plain:
        await plain.add_item(Item(b"", id="a"))
        handler: Any = lambda _: returned  # noqa: E731
        options: Any = {"burst": True, "backoff": lambda _: HOUR, "hooks": hooks}
        assert await leaseq.worker.aio.Worker(plain, handler, **options).run() == 0
        info = await plain.inspect("a")
        assert info is not None
        assert text in str(info.error)


VARIABLE: ContextVar[str] = ContextVar("VARIABLE", default="unset")
GIVEN: ContextVar[str] = ContextVar("GIVEN", default="unset")


class Setting(Hooks):
    def around(self, item: Any) -> contextlib.AbstractContextManager[Any]:
        GIVEN.set(item.id)
        return contextlib.nullcontext()


@pytest.mark.promise("G17")
@pytest.mark.parametrize("hooks", [None, Setting()])
@pytest.mark.parametrize("waits", [False, True])
def test_each_item_has_a_context(queue: Any, flavour: ClientFlavour, hooks: Any, *, waits: bool) -> None:
    """No handler sees what that of another item left (LQ-WORK-4)."""
    queue.add_items(Item(b"", id=str(n)) for n in range(20))
    seen: list[tuple[str, str, str]] = []

    def note(item: Any) -> None:
        seen.append((item.id, VARIABLE.get(), GIVEN.get()))
        VARIABLE.set(item.id)

    async def handle_async(item: Any) -> None:
        if waits:
            await asyncio.sleep(0)
        note(item)
        if waits:
            await asyncio.sleep(0)

    handler = handle_async if flavour.name == "asyncio" else note
    options: Any = {"burst": True, "concurrency": 2, "hooks": hooks}
    assert BackgroundWorker(flavour, queue, handler, **options).result() == 20
    assert {variable for _, variable, _ in seen} == {"unset"}
    assert all(given == (item if hooks else "unset") for item, _, given in seen)


@pytest.mark.promise("G17")
@pytest.mark.parametrize("waits", [False, True])
async def test_each_item_has_the_context_of_the_call_to_run(queue: Any, url: str, *, waits: bool) -> None:
    """LQ-WORK-4: also a variable that had a value then."""
    VARIABLE.set("of run")
    seen: list[str] = []
    async with leaseq.aio.WorkQueue(queue.name, url) as own:
        await own.add_items(Item(b"", id=str(n)) for n in range(10))

        async def handle(item: Any) -> None:
            seen.append(VARIABLE.get())
            VARIABLE.set(item.id)
            if waits:
                await asyncio.sleep(0)

        assert await leaseq.worker.aio.Worker(own, handle, burst=True, concurrency=2).run() == 10
    assert seen == ["of run"] * 10


@pytest.mark.promise("G17")
async def test_a_task_that_has_waited_is_of_one_item(queue: Any, url: str) -> None:
    """A session or a timer that belongs to the task of one item is not seen by another."""
    tasks: list[Any] = []
    async with leaseq.aio.WorkQueue(queue.name, url) as own:
        await own.add_items(Item(b"", id=str(n)) for n in range(10))

        async def handle(_: Any) -> None:
            task: Any = asyncio.current_task()
            tasks.append(task)
            await asyncio.sleep(0)
            asyncio.get_running_loop().call_soon(task.cancel)

        worker = leaseq.worker.aio.Worker(own, handle, burst=True, concurrency=2)
        assert await worker.run() == 10
    assert len({id(each) for each in tasks}) == 10


@pytest.mark.parametrize("waits", [False, True])
async def test_a_handler_that_cancels_its_task_fails_and_its_slot_goes_on(
    queue: Any, url: str, *, waits: bool
) -> None:
    """Told apart from a cancellation that leaseq asked for (B19)."""
    async with leaseq.aio.WorkQueue(queue.name, url) as own:
        await own.add_items(Item(b"", id=str(n)) for n in range(6))

        async def handle(item: Any) -> None:
            if int(item.id) < 3:
                task: Any = asyncio.current_task()
                task.cancel()
                if waits:
                    await asyncio.sleep(0)

        options: Any = {"burst": True, "concurrency": 1, "backoff": lambda _: HOUR}
        worker = leaseq.worker.aio.Worker(own, handle, **options)
        assert await worker.run() == (3 if waits else 6)
        if waits:
            info = await own.inspect("0")
            assert info is not None
            assert (info.state, info.attempt, info.error) == (
                "delayed",
                1,
                "asyncio.exceptions.CancelledError",
            )


@pytest.mark.promise("G15")
def test_stop_starts_nothing_that_was_leased(queue: Any, flavour: ClientFlavour) -> None:
    """LQ W4: what waits for a slot when a handler stops the worker goes back uncounted, at once."""
    queue.add_items(Item(b"", id=f"{n:03}") for n in range(400))
    handled: list[str] = []
    works: list[BackgroundWorker] = []

    def handle(item: Any) -> None:
        handled.append(item.id)
        if item.id == "300":
            works[0].worker.stop()

    works.append(BackgroundWorker(flavour, queue, handle, concurrency=1))
    assert works[0].result() == 301
    assert handled[-1] == "300"
    assert (queue.stats().ready, queue.stats().leased) == (99, 0)
    assert queue.inspect("301").attempt == 0


@pytest.mark.promise("G13")
def test_what_cannot_be_reported_while_its_lease_is_held_runs_again(
    flavour: ClientFlavour, proxy: Listener, caplog: pytest.LogCaptureFixture
) -> None:
    """LQ-WORK-5, LQ-WORK-6: the lease is not extended once the handler has ended, and a late completion is not sent."""
    queue, latch, handled = flavour.queue("q", proxy.url), Latch(), list[int]()
    queue.add_item(Item(b"", id="a"))
    options: Any = {"lease_secs": 0.5, "hooks": RecordingHooks()}
    with background_worker(
        flavour, queue, latch.handler(flavour, lambda item: handled.append(item.attempt)), **options
    ) as work:
        latch.reached()
        proxy.refuse = True
        proxy.reset()
        latch.open()
        servers.wait_until(lambda: handled == [1], TIMEOUT_SECS)
        in_flight = work.run.in_flight
        assert (in_flight.running(), in_flight.count) == ([], 1)
        servers.wait_until(lambda: in_flight.count == 0, TIMEOUT_SECS)
        assert "its lease ended before its end could be reported" in caplog.text
        proxy.refuse = False
        servers.wait_until(lambda: options["hooks"].of("completed") == ["a"], TIMEOUT_SECS)
        work.stop()
        assert work.result() == 1
    assert handled == [1, 2]
