"""The jobs that were running when a process died, as a source of items for a worker that runs one at a time."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Iterable

from leaseq._aio import concurrency
from leaseq._aio.queue import LeasedItem
from leaseq.errors import LeaseqError
from leaseq.heartbeat_schedule import until_next
from leaseq.item import LeasedItemBase
from leaseq.jobs.store._aio.store import Store
from leaseq.jobs.worker.lease_journal import HeldLease, LeaseJournal
from leaseq.worker._aio.source import Source


class SuspectSource(Source):
    """Leases that a process which died has left, one by one; those that wait are extended.

    Attributes:
        untried: those that have not been taken.
    """

    def __init__(
        self, store: Store, journal: LeaseJournal, suspects: Iterable[HeldLease], lease_secs: float
    ) -> None:
        self.untried = deque(suspects)
        super().__init__([store.queue(name) for name in self._names()], lease_secs)
        self.one = None  # nothing is leased from a queue
        self._store = store
        self._journal = journal
        self._secs = lease_secs

    def _names(self) -> list[str]:
        return list(dict.fromkeys(held.queue for held in self.untried))

    async def take(self, count: int) -> list[LeasedItem]:  # noqa: ARG002 (one, whatever is asked for)
        """Return the next item that is still held."""
        while self.untried:
            item = await self._again(self.untried[0])
            self._journal.settled([self.untried.popleft()])
            if item is not None:
                return [item]
        return []

    async def wait(self, count: int) -> list[LeasedItem]:
        """Likewise: none comes later."""
        return await self.take(count)

    async def _again(self, held: HeldLease) -> LeasedItem | None:
        """Return the item of a lease, which starts again; None if the lease is lost."""
        queue = self._store.queue(held.queue)
        since = concurrency.now()
        record = (held.id, b"", held.token, held.attempt)
        item = LeasedItem(queue, queue.heartbeater, record, 0.0, self._secs, since)
        if not await queue.extend(item, self._secs):
            return None
        (data,) = await self._store.data(held.queue, [held.id])
        item.data = data or b""
        item.headers = held.headers
        item.keep = float(held.keep)
        return item

    async def keep(self) -> None:
        """Extend those that wait, until cancelled."""
        while True:
            await asyncio.sleep(until_next(self._secs))
            await self.extend()

    async def extend(self) -> None:
        """Extend those that wait."""
        for queue in self._names():
            waiting = [
                LeasedItemBase(held.id, b"", held.token, held.attempt, 0.0, self._secs)
                for held in self.untried
                if held.queue == queue
            ]
            with contextlib.suppress(LeaseqError):  # the next time, or they are lost
                await self._store.queue(queue).extend_items(waiting, self._secs)
