"""Looking at a queue without changing it."""

from collections.abc import Iterable
from typing import Literal

from leaseq import commands, flows
from leaseq._aio.base import QueueBase
from leaseq.results import ItemInfo, Page, QueueStats


class Looking(QueueBase):
    """The part of a queue that tells what is there."""

    async def queue_len(self) -> int:
        """How many items wait: ready and delayed. With `processing` these are all that are not finished or dead."""
        stats = await self.stats()
        return stats.ready + stats.delayed

    async def processing(self) -> int:
        """How many items are leased, expired leases that nobody has reclaimed yet included."""
        return (await self.stats()).leased

    async def stats(self) -> QueueStats:
        """Counts by state, cumulative counters, and limits."""
        return await self._transport.run(commands.stats(self._keys))

    async def inspect(self, item_id: str) -> ItemInfo:
        """What is known of an item: state, attempt, token, times, size, last error. "absent" if there is none."""
        return (await self.inspect_items([item_id]))[0]

    async def inspect_items(self, ids: Iterable[str]) -> list[ItemInfo]:
        """What is known of many items; answers for each, in order."""
        return await self._in_chunks(
            flows.chunks(flows.many(ids, "ids")), lambda chunk: commands.inspect(self._keys, chunk)
        )

    async def list_items(
        self,
        state: Literal["ready", "delayed", "leased", "dead", "kept"],
        *,
        offset: int = 0,
        limit: int = 100,
        backward: bool = False,
    ) -> Page:
        """One page of the items in a state, next first; `limit` is 1..256.

        "kept" lists the ids whose outcome is kept, that which ends first first.
        """
        return await self._transport.run(
            commands.list_items(self._keys, state, offset, limit, backward=backward)
        )
