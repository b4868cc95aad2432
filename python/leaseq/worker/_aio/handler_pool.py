"""The handlers: `concurrency` tasks, each with an item at a time.

Written by hand for threads and for asyncio.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from contextvars import copy_context
from typing import Any

from leaseq._aio.concurrency import now
from leaseq._aio.queue import LeasedItem
from leaseq.callables import refuse_generators, refuse_other_arguments, refuse_unfinished, returns_nothing
from leaseq.errors import BadTypeError
from leaseq.worker.in_flight import CancelReason, End, HandlerResult

Handler = Callable[[LeasedItem], Awaitable[object]]

UNWIND_SECS = 1.0
"""Seconds that handlers that are cancelled at the end may take to unwind."""

TURN_SECS = 0.005
"""Seconds that handlers that never wait may keep the event loop to themselves."""

USE_ASYNC_DEF = "This worker awaits its handler: make it an `async def`, or use leaseq.worker.Worker"


def check_handler(handler: Any) -> None:
    """Refuse what is seen to be no handler for asyncio. Raises BadTypeError."""
    if not callable(handler):
        raise BadTypeError(f"a handler is called with an item; {type(handler).__name__} cannot be called")
    refuse_generators(handler, "a handler")
    if returns_nothing(handler):
        raise BadTypeError(f"the handler returns nothing to await. {USE_ASYNC_DEF}")
    refuse_other_arguments(handler, "a handler", "an item")


class Slot:
    """One task, and what it works on."""

    def __init__(self) -> None:
        self.item: LeasedItem | None = None
        self.since = 0.0
        self.cancel_reason: CancelReason | None = None
        self.task: asyncio.Task[None] | None = None


class HandlerPool:
    """Runs a handler for each item that it is given, `concurrency` at a time, and tells how each ended."""

    def __init__(
        self,
        handler: Handler,
        concurrency: int,
        on_result: Callable[[HandlerResult], None],
        around: Callable[[LeasedItem], AbstractContextManager[Any]] | None = None,
    ) -> None:
        """Take the handler, how many run at a time, what receives each end, and a context to run each handler in."""
        self._handler = handler if around is None else _within(around, handler)
        self._on_result = on_result
        self._context = copy_context()
        self._variables = list(self._context.items())
        self._inbox: deque[LeasedItem] = deque()
        self._idle: deque[asyncio.Future[None]] = deque()
        self._slots = [Slot() for _ in range(concurrency)]
        self._turn = 0.0
        self._ticks = 0
        self._ticking = False
        self._witness: asyncio.Task[None] | None = None
        self._stopping = False
        self._over = False

    def start(self) -> None:
        """Start the tasks of the pool."""
        self._witness = asyncio.get_running_loop().create_task(
            _stay(), name="leaseq worker: end of the program"
        )
        for slot in self._slots:
            self._begin(slot)

    def stop(self) -> None:
        """Start no more handlers; items that wait for one are reported as withdrawn."""
        self._stopping = True

    def _begin(self, slot: Slot) -> None:
        """Start a task for the next items, which sees nothing of the items before: neither context nor cancellation."""
        loop = asyncio.get_running_loop()
        slot.task = loop.create_task(self._work(slot), name="leaseq worker", context=self._context.copy())

    async def _work(self, slot: Slot) -> None:
        try:
            await self._handle_until_changed(slot)
        except asyncio.CancelledError:
            # an item that is over can have left something that cancels this task
            if self._over or self._ended_by_program():
                raise
        if not self._over:
            self._begin(slot)

    def _ended_by_program(self) -> bool:
        """Return whether the program has cancelled all tasks of its loop: then also the witness, which has no work."""
        return self._witness is not None and (self._witness.done() or self._witness.cancelling() > 0)

    def put(self, items: Sequence[LeasedItem]) -> None:
        """Hand over items. Items for which no task is free wait."""
        self._inbox.extend(items)
        missing = len(items)
        while missing and self._idle:
            waiter = self._idle.popleft()
            if not waiter.done():
                waiter.set_result(None)
                missing -= 1

    def waiting(self) -> int:
        """Return how many items no handler has started."""
        return len(self._inbox)

    def withdraw(self) -> list[LeasedItem]:
        """Take back the items that no handler has started."""
        items = list(self._inbox)
        self._inbox.clear()
        return items

    def running_since(self, moment: float) -> list[LeasedItem]:
        """Return the items whose handlers started at `moment` or before, and were not asked to end."""
        return [
            slot.item
            for slot in self._slots
            if slot.item is not None and not slot.cancel_reason and slot.since <= moment
        ]

    def oldest_start(self) -> float | None:
        """Return the time at which the longest running handler started, of those that were not asked to end; None without one."""
        return min(
            (slot.since for slot in self._slots if slot.item is not None and not slot.cancel_reason),
            default=None,
        )

    def cancel(self, item: LeasedItem, cancel_reason: CancelReason) -> None:
        """End the handler of an item, if it runs."""
        for slot in self._slots:
            if slot.item is item and not slot.cancel_reason and slot.task is not None:
                slot.cancel_reason = cancel_reason
                slot.task.cancel(f"leaseq: {cancel_reason}")

    async def abandon(self) -> None:
        """End all handlers, and wait a little for them to unwind."""
        self._over = self._stopping = True
        running = [slot for slot in self._slots if slot.item is not None and slot.task is not None]
        for slot in running:
            slot.cancel_reason = "stop"
        await self._end_tasks([slot.task for slot in running if slot.task is not None])

    async def end(self) -> None:
        """End idle tasks."""
        self._over = self._stopping = True
        tasks = [slot.task for slot in self._slots]
        await self._end_tasks([task for task in (*tasks, self._witness) if task is not None])

    async def _end_tasks(self, tasks: list[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=UNWIND_SECS)

    async def _handle_until_changed(self, slot: Slot) -> None:
        """Handle one item after the other, until an item may have left something in this task."""
        inbox, variables, count, task = (
            self._inbox,
            self._variables,
            len(self._variables),
            asyncio.current_task(),
        )
        moment = now()
        while True:
            if not inbox:
                await self._wait()
                moment = self._turn = now()
            elif moment - self._turn > TURN_SECS:
                await asyncio.sleep(0)
                moment = self._turn = now()
            else:
                item = inbox.popleft()
                if item.hold.lost or self._stopping:
                    self._on_result((item, None, 0.0, "gone" if item.hold.lost else "withdrawn", True))
                    continue
                if not self._ticking:
                    self._ticking = True
                    asyncio.get_running_loop().call_soon(self._tick)
                ticks = self._ticks
                # nothing comes between the end of one and the beginning of the next: one look at the clock for both
                moment = await self._handle(slot, item, moment)
                context = copy_context()
                if (
                    ticks != self._ticks
                    or (task is not None and task.cancelling())
                    or len(context) != count
                    or (variables and any(context[name] is not value for name, value in variables))
                ):
                    return

    def _tick(self) -> None:
        self._ticking = False
        self._ticks += 1

    async def _wait(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._idle.append(waiter)
        await waiter

    async def _handle(self, slot: Slot, item: LeasedItem, moment: float) -> float:
        """Run a handler, from this moment on. Return the moment of its end."""
        slot.item, slot.since = item, moment
        how: End = "raised"
        error: BaseException | None = None
        awaitable: Any = ...
        try:
            awaitable = self._handler(item)
            value = await awaitable
            if value is not None:
                refuse_unfinished(value, "the handler")
            how = "returned"
        except BaseException as failure:
            error = _explained(failure, awaitable)
            if isinstance(failure, GeneratorExit) and not _runs(slot):
                raise  # the event loop is gone
            interrupted = isinstance(failure, asyncio.CancelledError) and self._ended_by_program()
            how = slot.cancel_reason or ("stop" if interrupted else "raised")
        slot.item = slot.cancel_reason = None
        ended = now()
        self._on_result((item, error, ended - moment, how, True))
        if how == "stop" and isinstance(error, asyncio.CancelledError):
            raise error
        return ended


async def _stay() -> None:
    await asyncio.get_running_loop().create_future()


def _runs(slot: Slot) -> bool:
    """Return whether the task of a slot is running, and not being closed by the end of its loop."""
    try:
        return asyncio.current_task() is slot.task
    except RuntimeError:
        return False


def _explained(failure: BaseException, awaitable: Any) -> BaseException:
    """Return the error to report: that the handler's result cannot be awaited, if that is the cause of the failure."""
    if awaitable is ... or not isinstance(failure, TypeError) or hasattr(awaitable, "__await__"):
        return failure
    try:
        _awaitable(awaitable)
    except BadTypeError as error:
        return error
    return failure


def _awaitable(value: Any) -> Any:
    """Return what a handler returned, if it can be awaited. Raises BadTypeError."""
    if hasattr(value, "__await__"):
        return value
    refuse_unfinished(value, "the handler")
    raise BadTypeError(f"the handler returned {type(value).__name__}. {USE_ASYNC_DEF}")


def _within(around: Callable[[LeasedItem], AbstractContextManager[Any]], handler: Handler) -> Handler:
    async def handle(item: LeasedItem) -> None:
        with around(item):
            refuse_unfinished(await _awaitable(handler(item)), "the handler")

    return handle
