# Generated from _aio/heart.py by python/unasync.py: do not edit.
"""The heartbeat of the items that are worked on."""

from collections.abc import Iterable

from leaseq import commands, flows
from leaseq._sync import io
from leaseq._sync.transport import Transport
from leaseq.beats import Beats, patience
from leaseq.errors import LeaseqError, QueueClosedError, ReplyLostError, ServerError, UnavailableError
from leaseq.item import LeasedItemBase
from leaseq.keys import QueueKeys
from leaseq.parts import Parts
from leaseq.process import THIS

Leases = list[tuple[LeasedItemBase, float]]

FOR_ALL = (QueueClosedError, ReplyLostError, ServerError, UnavailableError)
"""Errors that no single item is the cause of."""


class Heart:
    """Extends the items that are worked on, all in one call, in the background while there are any."""

    def __init__(self, transport: Transport, keys: QueueKeys) -> None:
        self.transport = transport
        self.keys = keys
        self._over = False
        self._start_over()

    def _start_over(self) -> None:
        self._pid = THIS.number
        self._beats = Beats()
        self._bell = io.Bell()
        self._guard = io.Guard()
        self._worker: io.Worker | None = None
        self._looks_at = 0.0
        """When the worker that sleeps wakes by itself."""

    def _after_fork(self) -> None:
        """The child of a fork has no thread that beats, and the guard may be held by one that it does not have."""
        if self._pid != THIS.number:
            self._start_over()

    def add(self, item: LeasedItemBase) -> None:
        """Begin to extend an item."""
        self._after_fork()
        with self._guard:
            if self._over or item.hold.ended or item.hold.lost:
                return
            first = self._beats.add(item, io.now())
            # a worker that was cancelled or failed is replaced
            if self._worker is None or not io.is_alive(self._worker):
                self._bell = io.Bell()
                self._worker = self.transport.background.begin(self._run)
            elif first < self._looks_at:
                self._bell.ring()  # only then: to be woken for every item cost a thread half as much as its lease

    def look(self) -> None:
        """Their user has extended items: by as much, and from then on, are they extended here too (LQ-CLIENT-13)."""
        self._after_fork()
        if self._beats.any:
            with self._guard:
                pause = self._beats.pause(io.now())
                if pause is not None and io.now() + pause < self._looks_at:
                    self._bell.ring()

    def drop(self, items: Iterable[LeasedItemBase]) -> None:
        """Extend items no longer."""
        self._after_fork()
        if self._beats.any:  # what is added meanwhile and has ended is dropped before it is extended
            with self._guard:
                for item in items:
                    self._beats.drop(item)

    def end(self) -> None:
        """Extend nothing any longer."""
        self._after_fork()
        with self._guard:
            self._over = True
        self._bell.ring()

    def _run(self) -> None:
        while True:
            with self._guard:
                pause = self._beats.pause(io.now())
                # an idle heart waits a little for the next item before it stops
                sleep = flows.WAIT_CAP if pause is None else pause
                self._looks_at = io.now() + sleep
            self._bell.wait(sleep)
            with self._guard:
                if self._over:
                    return
                leases = self._beats.due(io.now())
                if pause is None and self._beats.pause(io.now()) is None:
                    self._worker = None
                    return
            if leases:
                self._beat(leases)

    def _beat(self, leases: Leases) -> None:
        parts = Parts(leases)
        for part in parts:
            try:
                command = commands.extend(self.keys, part)
                answers = self.transport.run(command, patience(part))
            except LeaseqError as error:
                # one bad record makes the server refuse all: the others are to be extended
                if isinstance(error, FOR_ALL) or not parts.halve(part):
                    with self._guard:
                        self._beats.failed(part, io.now())
                continue
            with self._guard:
                self._beats.heard(part, answers, io.now())
            for (item, _), deadline in zip(part, answers, strict=True):
                if deadline is None:
                    item.stop()
