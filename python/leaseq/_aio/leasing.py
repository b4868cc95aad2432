"""Leasing items, and keeping them."""

import math
from collections.abc import AsyncIterator, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

from leaseq import commands, flows
from leaseq._aio import io
from leaseq._aio.calls import pack
from leaseq._aio.finishing import Finishing
from leaseq._aio.leased import LeasedItem
from leaseq.commands import Command, LeaseReply
from leaseq.errors import LeaseqError
from leaseq.item import LeasedItemBase

if TYPE_CHECKING:
    from leaseq._aio.queue import WorkQueue


class Leasing(Finishing):
    """The part of a queue that gives items to workers."""

    _last_take: tuple[object, Command[LeaseReply] | None] = (None, None)
    """The last lease: how many for how long, and its command."""

    async def lease(
        self, lease_secs: float, *, block: bool = True, timeout: float | None = 0
    ) -> LeasedItem | None:
        """Lease the next item for `lease_secs` seconds (0.001 to 30 days).

        Waits for one up to `timeout` seconds without polling, and for as long as it takes with None, or with 0, which
        in other calls is not at all: so it is in redis-work-queue. With `block=False` it does not wait. None when there was
        none. After ReplyLostError an item may stay leased until its deadline: a lost attempt, no lost item.
        """
        items = await self.lease_items(1, lease_secs, block=block, timeout=timeout)
        return items[0] if items else None

    async def lease_items(
        self, count: int, lease_secs: float, *, block: bool = True, timeout: float | None = 0
    ) -> list[LeasedItem]:
        """Lease up to `count` items (1..256) in one call, at most about 1 MiB of data; waits for the first one only."""
        asked = (type(count), count, type(lease_secs), lease_secs)
        before, take = self._last_take
        if asked != before or take is None:  # most workers lease again and again in the same way
            take = commands.lease(self._keys, count, lease_secs)
            take = take._replace(packed=pack(take.evalsha()))
            self._last_take = asked, take
        over = flows.give_up_leasing(timeout, io.now, block=block) if timeout != 0 or not block else math.inf
        # most calls end here, and need none of what a wait needs
        reply = await self._transport.take(take)
        if reply.died:
            self._heard(reply)
        if not reply.items:
            reply = await self._drive(flows.lease_on(take, [self._keys], over, io.now, reply))
        if io.now() >= self._registration.due:
            await self._enter(reply)
        return self._leased(reply, lease_secs)

    async def items(self, lease_secs: float = 30, *, timeout: float | None = 0) -> AsyncIterator[LeasedItem]:
        """Lease one item after the other; ends when there is none for `timeout` seconds (0 or None: never)."""
        while item := await self.lease(lease_secs, timeout=timeout):
            yield item

    async def complete_and_lease(
        self, item: LeasedItemBase, lease_secs: float, *, only_current: bool = False
    ) -> tuple[bool, LeasedItem | None]:
        """Finish an item and lease the next in one round trip; does not wait. Answers both.

        An item that keeps its outcome takes two round trips; if the second fails, `answers` of the error has the
        answer of the first.
        """
        if getattr(item, "keep", 0):  # what is no item is refused below
            return await self._complete_then_lease(item, lease_secs, only_current=only_current)
        command = commands.complete_and_lease(self._keys, [item], 1, lease_secs, only_current=only_current)
        reply = await self._ending([item], partial(self._transport.take, command))
        self._publish_later(reply.died.get(0, ()))
        await self._enter(reply)
        if not reply.items and reply.wait == 0 and not self._transport.life.closed:
            return await self._then_lease(reply.completed[0], lease_secs)  # more was due than one call takes
        items = self._leased(reply, lease_secs)
        return reply.completed[0], items[0] if items else None

    async def _complete_then_lease(
        self, item: LeasedItemBase, lease_secs: float, *, only_current: bool
    ) -> tuple[bool, LeasedItem | None]:
        commands.check_lease_secs(lease_secs)
        done = (await self.complete_items([item], only_current=only_current))[0]
        return await self._then_lease(done, lease_secs)

    async def _then_lease(self, done: bool, lease_secs: float) -> tuple[bool, LeasedItem | None]:
        """Lease behind a completion: an error has the answer of that."""
        try:
            return done, await self.lease(lease_secs, block=False)
        except LeaseqError as error:
            error.answers = [done]
            raise

    async def extend(self, item: LeasedItemBase, lease_secs: float) -> bool:
        """Move the deadline to `lease_secs` seconds from now; false, and `item.lost`, if the lease is lost.

        Works after the deadline too, as long as nobody has reclaimed the item. Safe to repeat.
        """
        return (await self.extend_items([item], lease_secs))[0]

    async def extend_items(self, items: Iterable[LeasedItemBase], lease_secs: float) -> list[bool]:
        """Move the deadlines of many items; answers for each, in order. See `extend`."""
        leases = [(item, lease_secs) for item in flows.many(items, "items")]
        return await self._in_chunks(
            flows.chunks(leases),
            lambda chunk: commands.extend(self._keys, chunk).told(partial(self._hear, chunk, io.now())),
        )

    def _hear(
        self, leases: Sequence[tuple[LeasedItemBase, float]], asked: float, deadlines: Sequence[float | None]
    ) -> list[bool]:
        """Tell the items what became of their leases; answers for each whether it is held."""
        for (item, lease_secs), deadline in zip(leases, deadlines, strict=True):
            item._heard(deadline, lease_secs, asked)
        self._heart.look()
        return [deadline is not None for deadline in deadlines]

    def _leased(self, reply: LeaseReply, lease_secs: float) -> list[LeasedItem]:
        """The items of a reply, which this queue and its heart look after."""
        queue = cast("WorkQueue", self)
        heart, deadline, since = self._heart, reply.deadline, reply.asked or io.now()
        items = [LeasedItem(queue, heart, taken, deadline, lease_secs, since) for taken in reply.items]
        for number, extra in reply.extras.items():
            item = items[number]
            item.keep, item.content_type, item.headers = extra.keep, extra.content_type, extra.headers
        return items
