# Generated from _aio/source.py by tools/unasync.py: do not edit.
"""Where a worker's items come from: one queue, or several."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from leaseq._sync.multi_queue import WorkQueues
from leaseq._sync.queue import LeasedItem, WorkQueue
from leaseq.errors import BadTypeError

if TYPE_CHECKING:
    from leaseq.commands import LeaseReply

Queues = WorkQueue | WorkQueues | Iterable[WorkQueue]


PROBE_SECS = 1.0
"""Seconds of a wait that shows whether the server answers and takes writes again.

A server that refuses writes refuses the block, not the lease of an empty queue: the time must leave some for the block when
connections are new and the server is far.
"""


class Source:
    """Leases from the queues that a worker was given. Raises BadTypeError, BadArgumentError."""

    def __init__(self, queues: Queues, lease_secs: float) -> None:
        self._lease_secs = lease_secs
        if isinstance(queues, WorkQueue):
            self.queues = [queues]
        elif isinstance(queues, WorkQueues):
            self.queues = queues.queues
        else:
            self.queues = _several(queues)
        self._from = queues if isinstance(queues, WorkQueues) else WorkQueues(self.queues)
        self.one = self.queues[0] if len(self.queues) == 1 else None
        self._last_reply: LeaseReply | None = None

    def take(self, count: int) -> list[LeasedItem]:
        """Lease what there is."""
        return self._from.lease_items(count, self._lease_secs, block=False)

    def probe(self, count: int) -> list[LeasedItem]:
        """Lease what there is within a second. If the server refuses to write, the wait fails, where a lease of nothing only reads."""
        return self._from.lease_items(count, self._lease_secs, timeout=PROBE_SECS)

    def wait(self, count: int) -> list[LeasedItem]:
        """Lease when there is something."""
        last_reply, self._last_reply = self._last_reply, None
        items, self._last_reply = self._from._lease_next(count, self._lease_secs, last_reply)  # noqa: SLF001 (for workers alone, so no method for all)
        return items


def _several(queues: Any) -> list[WorkQueue]:
    if isinstance(queues, str) or not isinstance(queues, Iterable):
        raise BadTypeError(
            f"a worker takes a WorkQueue, a list of them or a WorkQueues, not this {type(queues).__name__}."
            " leaseq.worker.Worker takes those of leaseq, leaseq.worker.aio.Worker those of leaseq.aio"
        )
    return list(queues)
