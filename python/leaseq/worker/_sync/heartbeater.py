# Generated from _aio/heartbeater.py by tools/unasync.py: do not edit.
"""Heartbeats of a worker: they extend its leases, and end handlers whose time is over."""

import math
from collections.abc import Callable

from leaseq import commands, flows
from leaseq._sync import concurrency
from leaseq._sync.queue import LeasedItem, WorkQueue
from leaseq.errors import FormatError, LeaseqError
from leaseq.heartbeat_schedule import extending, extensions_failed, reply_timeout, until_again, until_next
from leaseq.parts import Parts
from leaseq.worker._sync.handler_pool import HandlerPool
from leaseq.worker._sync.side_loop import SideLoop
from leaseq.worker.hooks import SafeHooks
from leaseq.worker.in_flight import InFlight
from leaseq.worker.settings import Settings


class ItemHeartbeater(SideLoop):
    """Extends the leases of one worker's items, and ends handlers whose time is over."""

    def __init__(
        self,
        settings: Settings,
        in_flight: InFlight,
        pool: HandlerPool,
        hooks: SafeHooks,
        on_result: Callable[[LeaseqError | None], None],
    ) -> None:
        super().__init__()
        self._lease_secs = settings.lease_secs
        self._time_limit = settings.time_limit
        self._in_flight = in_flight
        self._pool = pool
        self._hooks = hooks
        self._on_result = on_result
        self._next_beat = concurrency.now() + until_next(settings.lease_secs)
        self._failed_at: dict[WorkQueue, float] = {}

    def run(self) -> None:
        """Sleep until something is due, and do it."""
        while not self._over:
            self._wake_event.wait(self._pause(concurrency.now()))
            if self._time_limit is not None and not self._over:
                for item in self._pool.running_since(concurrency.now() - self._time_limit):
                    self._pool.cancel(item, "late")
            if concurrency.now() >= self._next_beat and not self._over:
                self.beat()

    def _pause(self, now: float) -> float:
        """Seconds to the next beat, or to the end of the time of a handler: a handler that starts later ends later."""
        pause = self._next_beat - now
        if self._time_limit is not None:
            first = self._pool.oldest_start()
            pause = min(pause, self._time_limit if first is None else first + self._time_limit - now)
        return max(0.0, pause)

    def beat(self) -> None:
        """Extend all that is held, in one call for each queue (and 256 items).

        Where a queue fails, the others go on, and are first in the next beat. If that took long, they wait for it.
        """
        started = concurrency.now()
        pause, failure = until_next(self._lease_secs), None
        groups = self._by_queue()
        for queue, items in groups:
            try:
                for chunk in flows.chunks(items):
                    self._extend(queue, chunk)
                self._failed_at.pop(queue, None)
            except LeaseqError as error:
                failure, pause = error, until_again(self._lease_secs)
                self._failed_at[queue] = concurrency.now()
                if self._failed_at[queue] - started >= pause:
                    break
        if groups:
            self._on_result(failure)
        if any(item.hold.in_doubt for item in self._in_flight.running()):  # its handler extended it meanwhile
            pause = 0.0
        self._next_beat = concurrency.now() + pause

    def _by_queue(self) -> list[tuple[WorkQueue, list[LeasedItem]]]:
        """Return what is held by queue; those that failed are last, the latest failure at the end."""
        groups: dict[WorkQueue, list[LeasedItem]] = {}
        for item in self._in_flight.running():
            if not item.hold.lost:
                groups.setdefault(item.queue, []).append(item)
        failed_at = self._failed_at = {
            queue: self._failed_at[queue] for queue in groups if queue in self._failed_at
        }
        return sorted(groups.items(), key=lambda group: failed_at.get(group[0], -math.inf))

    def _extend(self, queue: WorkQueue, items: list[LeasedItem]) -> None:
        parts = Parts(items)
        for part in parts:
            # a handler may have extended its item by more; by less than the time between two beats would lose it
            leases = [(item, max(item.hold.secs, self._lease_secs)) for item in part]
            command = commands.extend(queue.keys, leases)
            extensions = extending(leases, concurrency.now(), asked=False)
            try:
                answers = queue.executor.run(command, reply_timeout(leases))
            except FormatError:  # of one bad record, which what ends the item will tell
                extensions_failed(leases, extensions)
                parts.halve(part)
                continue
            except BaseException:
                extensions_failed(leases, extensions)
                raise
            for item, extension, deadline in zip(part, extensions, answers, strict=True):
                if deadline is not None:
                    item.hold.extended(extension, deadline)
                    continue
                item.hold.extension_ended(extension)
                if self._in_flight.is_held(item):  # else it crossed the item's own end
                    self._pool.cancel(item, "lost")
                    item.hold.lost = True
                    self._hooks.emit("lost", item)
