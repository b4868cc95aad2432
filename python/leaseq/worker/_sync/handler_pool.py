"""The handlers at work: so many threads, each with an item at a time.

Written by hand for threads and for asyncio. A thread cannot be ended from outside: what is to end is marked as lost,
which its handler may look at, and the slot is free when the handler returns.
"""

import contextlib
import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from contextvars import copy_context
from typing import Any

from leaseq._sync.concurrency import now
from leaseq._sync.queue import LeasedItem
from leaseq.callables import is_async, refuse_generators, refuse_other_arguments, refuse_unfinished
from leaseq.errors import BadTypeError
from leaseq.worker.in_flight import CancelReason, End, HandlerResult

Handler = Callable[[LeasedItem], object]

END_SECS = 5.0
"""Seconds that idle threads may take to end."""


def check_handler(handler: Any) -> None:
    """Refuse what is seen to be no handler for threads. Raises BadTypeError."""
    if not callable(handler):
        raise BadTypeError(f"a handler is called with an item; {type(handler).__name__} cannot be called")
    refuse_generators(handler, "a handler")
    if is_async(handler):
        raise BadTypeError(
            "a handler in threads is a def, not an async def, which no thread awaits: use leaseq.worker.aio.Worker"
            " with a leaseq.aio.WorkQueue"
        )
    refuse_other_arguments(handler, "a handler", "an item")


class Slot:
    """One thread, and what it works on."""

    def __init__(self) -> None:
        self.item: LeasedItem | None = None
        self.since = 0.0
        self.thread: threading.Thread | None = None


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
        self._handler = handler
        self._around = around
        self._on_result = on_result
        self._context = copy_context()
        self._stopping = False
        self._inbox: queue.SimpleQueue[LeasedItem | None] = queue.SimpleQueue()
        self._slots = [Slot() for _ in range(concurrency)]

    def start(self) -> None:
        """Begin to work."""
        for slot in self._slots:
            # daemons: a handler that hangs does not keep the program from ending
            slot.thread = threading.Thread(target=self._work, args=(slot,), name="leaseq worker", daemon=True)
            slot.thread.start()

    def stop(self) -> None:
        """Start no more handlers; items that wait for one are reported as withdrawn."""
        self._stopping = True

    def put(self, items: Sequence[LeasedItem]) -> None:
        """Hand over items; those that find no free thread wait."""
        for item in items:
            self._inbox.put(item)

    def waiting(self) -> int:
        """Return how many items no handler has begun."""
        return self._inbox.qsize()

    def withdraw(self) -> list[LeasedItem]:
        """Take back the items that no handler has begun."""
        items = []
        with contextlib.suppress(queue.Empty):
            while (item := self._inbox.get_nowait()) is not None:
                items.append(item)
        return items

    def running_since(self, moment: float) -> list[LeasedItem]:
        """The items whose handlers have run since before then and were not told to end."""
        return [item for item, since in self._running() if since <= moment]

    def oldest_start(self) -> float | None:
        """When the handler that has run longest began, of those that were not told to end."""
        return min((since for _, since in self._running()), default=None)

    def _running(self) -> list[tuple[LeasedItem, float]]:
        started = [(slot.item, slot.since) for slot in self._slots]
        return [(item, since) for item, since in started if item is not None and not item.lost]

    def cancel(self, item: LeasedItem, cancel_reason: CancelReason) -> None:
        """Tell a handler to stop by `item.lost`; an item whose time is over is given up at once, though its handler runs on."""
        for slot in self._slots:
            if slot.item is item and not item.lost:
                item.hold.stopped = True
                if cancel_reason == "late":
                    self._on_result((item, None, now() - slot.since, "late", False))

    def abandon(self) -> None:
        """Tell all handlers to stop by `item.lost`: they run on, and nobody listens to them any more."""
        self._stopping = True
        for slot in self._slots:
            if slot.item is not None:
                slot.item.hold.stopped = True

    def end(self) -> None:
        """End the threads that have nothing to do any more."""
        for _ in self._slots:
            self._inbox.put(None)
        for slot in self._slots:
            if slot.item is None and slot.thread is not None:
                slot.thread.join(END_SECS)

    def _work(self, slot: Slot) -> None:
        get = self._inbox.get
        while (item := get()) is not None:
            if item.lost or self._stopping:
                self._on_result((item, None, 0.0, "gone" if item.lost else "withdrawn", True))
            else:
                self._handle(slot, item)

    def _handle(self, slot: Slot, item: LeasedItem) -> None:
        slot.since = now()  # before the item: whoever looks at both never takes an older time for this item's
        slot.item = item
        how: End = "raised"
        error: BaseException | None = None
        try:
            self._context.copy().run(self._run, item)
            how = "returned"
        except BaseException as failure:  # noqa: BLE001 (told)
            error = failure
            if item.lost:  # a failure is no longer this worker's to tell
                how = "lost"
        slot.item = None
        self._on_result((item, error, now() - slot.since, how, True))

    def _run(self, item: LeasedItem) -> None:
        if self._around is not None:
            with self._around(item):
                refuse_unfinished(self._handler(item), "the handler")
        elif (value := self._handler(item)) is not None:
            refuse_unfinished(value, "the handler")
