"""The handlers: `concurrency` tasks, each with an item at a time.

Written by hand for threads and for asyncio.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from leaseq._aio.concurrency import now
from leaseq._aio.queue import LeasedItem
from leaseq.callables import refuse_unfinished
from leaseq.worker.in_flight import CancelReason, HandlerResult

Handler = Callable[[LeasedItem], Awaitable[object]]

UNWIND_SECS = 1.0
"""How long handlers that are cancelled at the end may take to unwind."""

TURN_SECS = 0.005
"""How long handlers that never wait may keep the event loop to themselves."""


class Slot:
    """One task, and what it works on."""

    def __init__(self) -> None:
        self.item: LeasedItem | None = None
        self.since = 0.0
        self.cancel_reason: CancelReason = ""
        self.task: asyncio.Task[None] | None = None


class HandlerPool:
    """Runs a handler for each item that it is given, `concurrency` at a time, and tells how each ended."""

    def __init__(
        self, handler: Handler, concurrency: int, on_result: Callable[[HandlerResult], None]
    ) -> None:
        self._handler = handler
        self._on_result = on_result
        self._inbox: deque[LeasedItem] = deque()
        self._idle: deque[asyncio.Future[None]] = deque()
        self._slots = [Slot() for _ in range(concurrency)]
        self._turn = 0.0

    def start(self) -> None:
        """Start."""
        loop = asyncio.get_running_loop()
        for slot in self._slots:
            slot.task = loop.create_task(self._work(slot), name="leaseq worker")

    def put(self, items: Sequence[LeasedItem]) -> None:
        """Hand over items; those that find no free task wait."""
        self._inbox.extend(items)
        for _ in range(min(len(items), len(self._idle))):
            waiter = self._idle.popleft()
            if not waiter.done():
                waiter.set_result(None)

    def waiting(self) -> int:
        """How many items no handler has started."""
        return len(self._inbox)

    def withdraw(self) -> list[LeasedItem]:
        """Take back the items that no handler has started."""
        items = list(self._inbox)
        self._inbox.clear()
        return items

    def running_since(self, moment: float) -> list[LeasedItem]:
        """The items whose handlers have run since before then and were not told to end."""
        return [
            slot.item
            for slot in self._slots
            if slot.item is not None and not slot.cancel_reason and slot.since <= moment
        ]

    def oldest_start(self) -> float | None:
        """When the longest running handler started, of those that were not asked to end."""
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
        running = [slot for slot in self._slots if slot.item is not None and slot.task is not None]
        for slot in running:
            slot.cancel_reason = "stop"
        await self._end_tasks([slot.task for slot in running if slot.task is not None])

    async def end(self) -> None:
        """End idle tasks."""
        await self._end_tasks([slot.task for slot in self._slots if slot.task is not None])

    async def _end_tasks(self, tasks: list[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=UNWIND_SECS)

    async def _work(self, slot: Slot) -> None:
        inbox, moment = self._inbox, 0.0
        while True:
            if not inbox:
                await self._wait()
                moment = self._turn = now()
            elif moment - self._turn > TURN_SECS:
                await asyncio.sleep(0)
                moment = self._turn = now()
            else:
                item = inbox.popleft()
                if item.hold.lost:
                    self._on_result((item, None, 0.0, "gone", True))
                else:
                    # nothing comes between the end of one and the beginning of the next: one look at the clock for both
                    moment = await self._handle(slot, item, moment)

    async def _wait(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._idle.append(waiter)
        await waiter

    async def _handle(self, slot: Slot, item: LeasedItem, moment: float) -> float:
        """Run a handler, from this moment on; answers the moment of its end."""
        slot.item, slot.since, slot.cancel_reason = item, moment, ""
        error: BaseException | None = None
        try:
            if (answer := await self._handler(item)) is not None:
                refuse_unfinished(answer, "the handler")
        except asyncio.CancelledError as failure:
            error = failure
            if not _ends_the_item_alone(slot):
                raise
        except (Exception, SystemExit) as failure:  # noqa: BLE001 (told)
            error = failure
        except BaseException:
            slot.cancel_reason = "stop"
            raise
        finally:
            slot.item = None
            ended = now()
            self._on_result((item, error, ended - moment, slot.cancel_reason, True))
        if slot.cancel_reason and slot.task is not None:
            slot.task.uncancel()
        return ended


def _ends_the_item_alone(slot: Slot) -> bool:
    """Whether a cancellation is for this item: of its handler, or of something that the handler waited for."""
    if slot.cancel_reason in {"lost", "late"}:
        return True
    if slot.task is not None and slot.task.cancelling():
        slot.cancel_reason = "stop"
        return False
    return True
