"""The handlers at work: so many threads, each with an item at a time.

Written by hand for threads and for asyncio. A thread cannot be ended from outside: what is to end is marked as lost,
which its handler may look at, and the slot is free when the handler returns.
"""

import contextlib
import queue
import threading
from collections.abc import Callable, Sequence

from leaseq._sync.concurrency import now
from leaseq._sync.queue import LeasedItem
from leaseq.callables import refuse_unfinished
from leaseq.worker.in_flight import CancelReason, HandlerResult

Handler = Callable[[LeasedItem], object]

END_SECS = 5.0
"""How long idle threads may take to end."""


class Slot:
    """One thread, and what it works on."""

    def __init__(self) -> None:
        self.item: LeasedItem | None = None
        self.since = 0.0
        self.thread: threading.Thread | None = None


class HandlerPool:
    """Runs a handler for each item that it is given, `concurrency` at a time, and tells how each ended."""

    def __init__(
        self, handler: Handler, concurrency: int, on_result: Callable[[HandlerResult], None]
    ) -> None:
        self._handler = handler
        self._on_result = on_result
        self._inbox: queue.SimpleQueue[LeasedItem | None] = queue.SimpleQueue()
        self._slots = [Slot() for _ in range(concurrency)]

    def start(self) -> None:
        """Begin to work."""
        for slot in self._slots:
            # daemons: a handler that hangs does not keep the program from ending
            slot.thread = threading.Thread(target=self._work, args=(slot,), name="leaseq worker", daemon=True)
            slot.thread.start()

    def put(self, items: Sequence[LeasedItem]) -> None:
        """Hand over items; those that find no free thread wait."""
        for item in items:
            self._inbox.put(item)

    def waiting(self) -> int:
        """How many items no handler has begun."""
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
        return [(item, since) for item, since in started if item is not None and not item.hold.lost]

    def cancel(self, item: LeasedItem, cancel_reason: CancelReason) -> None:
        """Mark an item as lost; one whose time is over is given up at once, though its handler runs on."""
        for slot in self._slots:
            if slot.item is item and not item.hold.lost:
                item.hold.lost = True
                if cancel_reason == "late":
                    self._on_result((item, None, now() - slot.since, cancel_reason, False))

    def abandon(self) -> None:
        """Mark all items as lost: the handlers run on, and nobody listens to them any more."""
        for slot in self._slots:
            if slot.item is not None:
                slot.item.hold.lost = True

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
            if item.hold.lost:
                self._on_result((item, None, 0.0, "gone", True))
            else:
                self._handle(slot, item)

    def _handle(self, slot: Slot, item: LeasedItem) -> None:
        slot.since = now()  # before the item: whoever looks at both never takes an older time for this item's
        slot.item = item
        error: BaseException | None = None
        try:
            if (answer := self._handler(item)) is not None:
                refuse_unfinished(answer, "the handler")
        except BaseException as failure:  # noqa: BLE001 (told)
            error = failure
        slot.item = None
        # work that is done is done, whoever has the item by now; a failure is no longer this worker's to tell
        cancel_reason: CancelReason = "lost" if error is not None and item.hold.lost else ""
        self._on_result((item, error, now() - slot.since, cancel_reason, True))
