"""Several queues as one, for workers."""

import itertools
import math
from collections.abc import AsyncIterator, Hashable, Iterable, Iterator, Sequence
from functools import partial

from leaseq import commands, flows
from leaseq._aio import concurrency
from leaseq._aio.executor import Executor
from leaseq._aio.lifecycle import LifecycleGroup
from leaseq._aio.queue import LeasedItem, WorkQueue, leased_items
from leaseq._aio.race import race
from leaseq._scripts import MAX_QUEUES
from leaseq.commands import LeaseReply
from leaseq.durations import Duration, seconds
from leaseq.errors import BadArgumentError, BadTypeError


class QueueGroup:
    """Queues that one call asks: of one group, on one server."""

    def __init__(self, queues: Sequence[WorkQueue]) -> None:
        self.queues = queues
        executors = [queue.executor for queue in queues]
        self.executor = executors[0]
        if len(queues) > 1:
            registrations = [each.queues[0] for each in executors]
            life = LifecycleGroup([each.life for each in executors])
            self.executor = Executor(self.executor.client, self.executor.key, registrations, life)

    async def lease(
        self,
        count: int,
        lease_secs: float,
        *,
        wait_until: float | None,
        last_reply: LeaseReply | None = None,
        pipelined: bool = False,
    ) -> LeaseReply:
        """Lease from the first queue that has items; wait for one until `wait_until` (None: not at all)."""
        keys = [queue.keys for queue in self.queues]
        flow = flows.lease_any(
            keys,
            count,
            lease_secs,
            wait_until=wait_until,
            clock=concurrency.now,
            last_reply=last_reply,
            pipelined=pipelined,
        )
        return await self.executor.drive(flow)

    def release(self, reply: LeaseReply) -> None:
        """Release the items of a reply that arrived too late, uncounted, then settle their queue (LQ-BLOCK-15)."""
        keys = self.queues[reply.queue].keys
        self.executor.run_later([*commands.release_uncounted(keys, reply), commands.settle(keys)])


class WorkQueues:
    """Several queues to lease from, in the order given: a call leases from the first that has an item.

    With `fair` each call starts with another queue, so that a queue that is never empty does not block the others. To add,
    complete, extend or release, use the queue of the item: `item.queue.complete(item)`, or `async with item:`.

    One call leases from up to 16 queues of one group on one server (create them with the same `group`), and one connection
    waits for them. Each further group or server takes another call and connection, so list the queues of a group together.
    Close the queues yourself: if one is closed, all waits end, and a call that reaches it raises QueueClosedError.

    Raises BadTypeError for anything but queues of this kind, BadArgumentError for none or for a queue given twice.
    """

    def __init__(self, queues: Iterable[WorkQueue], *, fair: bool = False) -> None:
        self.queues = list(flows.require_iterable(queues, "queues"))
        for queue in self.queues:
            if not isinstance(queue, WorkQueue):
                raise BadTypeError(
                    f"not a queue of this kind: {type(queue).__name__}. WorkQueues of leaseq and leaseq.worker.Worker take the"
                    " WorkQueue of leaseq; those of leaseq.aio and leaseq.worker.aio take that of leaseq.aio"
                )
        if not self.queues:
            raise BadArgumentError("WorkQueues needs a queue to lease from")
        if len({(_server(queue), queue.name) for queue in self.queues}) < len(self.queues):
            raise BadArgumentError("WorkQueues takes each queue once")
        self._fair = fair
        self._turns = itertools.count()
        self._orders: dict[int, list[QueueGroup]] = {}

    async def lease(
        self, lease_secs: Duration, *, block: bool = True, timeout: Duration | None = 0
    ) -> LeasedItem | None:
        """Lease the next item of any of the queues; `item.queue` is its queue. See `WorkQueue.lease`."""
        items = await self.lease_items(1, lease_secs, block=block, timeout=timeout)
        return items[0] if items else None

    async def lease_items(
        self, count: int, lease_secs: Duration, *, block: bool = True, timeout: Duration | None = 0
    ) -> list[LeasedItem]:
        """Lease up to `count` items (1..256), all of one queue. See `WorkQueue.lease_items`."""
        wait_until = flows.lease_deadline(timeout, concurrency.now, block=block)
        secs = seconds(lease_secs, "lease_secs")
        groups = self._in_turn()
        if len(groups) == 1:
            reply = await groups[0].lease(count, secs, wait_until=wait_until)
            return _leased(groups[0], reply, secs)
        found = await self._lease_of_several(groups, count, secs, wait_until)
        return _leased(*found, secs) if found else []

    async def _lease_next(
        self, count: int, lease_secs: float, last_reply: LeaseReply | None
    ) -> tuple[list[LeasedItem], LeaseReply | None]:
        """Wait for items for a worker, which takes any item; `last_reply` is the reply before this one.

        A call that leased leaves a wake-up for what is ready and for what is due within the wait cap (LQ-SETTLE-3 and 4),
        so a caller that got items can wait without another call.
        """
        groups = self._in_turn()
        if len(groups) > 1:
            group, reply = await self._lease_of_several(groups, count, lease_secs, math.inf) or (
                groups[0],
                None,
            )
        else:
            group = groups[0]
            reply = await group.lease(
                count, lease_secs, wait_until=math.inf, last_reply=last_reply, pipelined=True
            )
        if reply is None:
            return [], None
        items = _leased(group, reply, lease_secs)
        return items, LeaseReply(None, reply.deadline, [], reply.sent_at) if len(groups) == 1 else None

    async def _lease_of_several(
        self, groups: Sequence[QueueGroup], count: int, lease_secs: float, wait_until: float | None
    ) -> tuple[QueueGroup, LeaseReply] | None:
        """Return the first reply with items, and the group that it is of; None if the time is over."""
        first_replies = []
        for group in groups:
            reply = await group.lease(count, lease_secs, wait_until=None)
            if reply.items:
                return group, reply
            first_replies.append(reply)
        if wait_until is None or wait_until < concurrency.now():
            return None
        waits = [
            partial(group.lease, count, lease_secs, wait_until=wait_until, last_reply=last_reply)
            for group, last_reply in zip(groups, first_replies, strict=True)
        ]
        won = await race(
            waits, lambda reply: bool(reply.items), lambda index, reply: groups[index].release(reply)
        )
        return (groups[won[0]], won[1]) if won else None

    async def items(
        self, lease_secs: Duration = 30, *, timeout: Duration | None = 0
    ) -> AsyncIterator[LeasedItem]:
        """Lease one item after the other, each for `lease_secs` seconds.

        Ends if there is none in any queue for `timeout` seconds (0 or None: never).
        """
        while item := await self.lease(lease_secs, timeout=timeout):
            yield item

    def _in_turn(self) -> list[QueueGroup]:
        """Whom to ask, in order."""
        turn = next(self._turns) % len(self.queues) if self._fair else 0
        groups = self._orders.get(turn)
        if groups is None:
            queues = self.queues[turn:] + self.queues[:turn]
            alike = _together(queues) if self._fair else _in_order(queues)
            groups = self._orders[turn] = [
                QueueGroup(queues[at : at + MAX_QUEUES])
                for queues in alike
                for at in range(0, len(queues), MAX_QUEUES)
            ]
        return groups

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.WorkQueues {[queue.name for queue in self.queues]!r}>"


def _server(queue: WorkQueue) -> tuple[Hashable, str]:
    """Equal for queues that one call can ask."""
    return queue.place, queue.group


def _in_order(queues: Sequence[WorkQueue]) -> Iterator[list[WorkQueue]]:
    """Queues that follow each other and can be asked together."""
    return (list(alike) for _, alike in itertools.groupby(queues, _server))


def _together(queues: Sequence[WorkQueue]) -> Iterator[list[WorkQueue]]:
    """All queues that can be asked together, where their order among the others does not matter."""
    alike: dict[Hashable, list[WorkQueue]] = {}
    for queue in queues:
        alike.setdefault(_server(queue), []).append(queue)
    return iter(alike.values())


def _leased(group: QueueGroup, reply: LeaseReply, lease_secs: float) -> list[LeasedItem]:
    return leased_items(group.queues[reply.queue], reply, lease_secs)
