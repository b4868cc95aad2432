# Generated from _aio/heartbeater.py by tools/unasync.py: do not edit.
"""The heartbeat of the items that are worked on."""

from collections.abc import Iterable

from leaseq import commands, flows
from leaseq._sync import concurrency
from leaseq._sync.executor import Executor
from leaseq.errors import LeaseqError, QueueClosedError, ReplyLostError, ServerError, UnavailableError
from leaseq.heartbeat_schedule import HeartbeatSchedule, extending, extensions_failed, reply_timeout
from leaseq.item import LeasedItemBase
from leaseq.keys import QueueKeys
from leaseq.parts import Parts
from leaseq.process import THIS

Leases = list[tuple[LeasedItemBase, float]]

FOR_ALL = (QueueClosedError, ReplyLostError, ServerError, UnavailableError)
"""Errors that no single item is the cause of."""


class Heartbeater:
    """Extends the items that are worked on, all in one call, in the background while there are any."""

    def __init__(self, executor: Executor, keys: QueueKeys) -> None:
        self.executor = executor
        self.keys = keys
        self._over = False
        self._start_over()

    def _start_over(self) -> None:
        self._pid = THIS.number
        self._schedule = HeartbeatSchedule()
        self._wake_event = concurrency.WakeEvent()
        self._guard = concurrency.Guard()
        self._worker: concurrency.Worker | None = None
        self._wakes_at = 0.0
        """When the sleeping loop wakes."""

    def _after_fork(self) -> None:
        """The child of a fork has no heartbeat thread, and a thread that it lacks may hold the guard."""
        if self._pid != THIS.ask():
            self._start_over()

    def add(self, item: LeasedItemBase) -> None:
        """Start to extend an item."""
        self._after_fork()
        with self._guard:
            if self._over or item.hold.ended or item.lost:
                return
            first = self._schedule.add(item, concurrency.now())
            # a worker that was cancelled or failed is replaced
            if self._worker is None or not concurrency.is_alive(self._worker):
                self._wake_event = concurrency.WakeEvent()
                self._worker = self.executor.background.begin(self._run)
            elif first < self._wakes_at:
                self._wake_event.set()  # only then: to be woken for every item cost a thread half as much as its lease

    def reschedule(self) -> None:
        """Wake the loop if an extension by the user moved a beat forward. From then on, items are extended by the user's duration (LQ-CLIENT-13)."""
        self._after_fork()
        if self._schedule.any:
            with self._guard:
                pause = self._schedule.pause(concurrency.now())
                if pause is not None and concurrency.now() + pause < self._wakes_at:
                    self._wake_event.set()

    def drop(self, items: Iterable[LeasedItemBase]) -> None:
        """Extend items no longer."""
        self._after_fork()
        if self._schedule.any:  # what is added meanwhile and has ended is dropped before it is extended
            with self._guard:
                for item in items:
                    self._schedule.drop(item)

    def end(self) -> None:
        """Extend nothing any longer."""
        self._after_fork()
        with self._guard:
            self._over = True
        if self._worker is not None and concurrency.is_alive(self._worker):
            self._wake_event.set()

    def _run(self) -> None:
        while True:
            with self._guard:
                pause = self._schedule.pause(concurrency.now())
                # an idle heartbeater waits a little for the next item before it stops
                sleep = flows.WAIT_CAP if pause is None else pause
                self._wakes_at = concurrency.now() + sleep
            self._wake_event.wait(sleep)
            with self._guard:
                if self._over:
                    return
                leases = self._schedule.due(concurrency.now())
                if pause is None and self._schedule.pause(concurrency.now()) is None:
                    self._worker = None
                    return
            if leases:
                self._beat(leases)

    def _beat(self, leases: Leases) -> None:
        parts = Parts(leases)
        for part in parts:
            extensions = extending(part, concurrency.now(), asked=False)
            try:
                command = commands.extend(self.keys, part)
                answers = self.executor.run(command, reply_timeout(part))
            except LeaseqError as error:
                extensions_failed(part, extensions)
                # one bad record makes the server refuse all: the others are to be extended
                if isinstance(error, FOR_ALL) or not parts.halve(part):
                    with self._guard:
                        self._schedule.record_failure(part, concurrency.now())
                continue
            with self._guard:
                self._schedule.record_replies(part, extensions, answers, concurrency.now())
            for (item, _), deadline in zip(part, answers, strict=True):
                if deadline is None:
                    item.stop()
