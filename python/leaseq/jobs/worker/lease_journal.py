"""The reports of a worker's process to its supervisor: the leases that it holds, so that they can be released at once.

Each entry is written before the process can be killed in what it is about. The start of each job is a mark in memory that
both share.
"""

import contextlib
import mmap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from leaseq.item import LeasedItemBase
from leaseq.jobs.worker.framing import frame, iter_frames
from leaseq.worker.hooks import Hooks
from leaseq.worker.work_counts import WorkCounts, WorkKind

_ENCODER = msgspec.msgpack.Encoder()

PLACES = 1 << 16
"""Jobs that can be marked at a time: more than any process leases."""


def new_marks() -> mmap.mmap:
    """A byte for each place, which a process that is forked has in common with this one."""
    return mmap.mmap(-1, PLACES)


class HeldLease(msgspec.Struct, array_like=True, frozen=True):
    """A lease that can be released or whose job can be run; one without a place for its mark counts as started."""

    queue: str
    id: str
    token: int
    attempt: int
    keep: bool
    place: int | None
    headers: Mapping[str, str] = {}

    @property
    def key(self) -> tuple[str, int]:
        """The key of a lease: its queue and token."""
        return self.queue, self.token


class Entry(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One message to the supervisor. An empty one is a sign of life.

    Attributes:
        worker: its id, once it has started.
        leased: what it holds from now on.
        ended: tokens with their queues that it holds no longer.
        drains: it has done enough, and lets its running jobs end.
        over: its last job has ended.
        performed: how many jobs have ended.
        stopped: there may be more to do.
        kind: work that it counts from now on: group, queue and function.
    """

    worker: str = ""
    leased: list[HeldLease] = []
    ended: list[tuple[str, int]] = []
    drains: bool = False
    over: bool = False
    performed: int = 0
    stopped: bool = False
    kind: tuple[str, str, str] | None = None


ALIVE: Final = frame(_ENCODER.encode(Entry()))
"""A sign of life, as it is sent."""


class LeaseJournal(Hooks):
    """The side of the worker. `write` is called with bytes, and sends all of them."""

    def __init__(self, write: Any, marks: mmap.mmap) -> None:
        self._write = write
        self._marks = marks
        self._free: list[int] = []
        self._untouched = iter(range(PLACES))
        self._places: dict[LeasedItemBase, int | None] = {}
        self._left: list[int] = []
        self._ended: list[tuple[str, int]] = []

    def began(self, worker_id: str) -> None:
        """Report that the worker has started and is about to lease."""
        self._append(Entry(worker=worker_id))

    def leased(self, items: Sequence[LeasedItemBase]) -> None:
        """Report leased items."""
        self._free += self._left
        self._left.clear()
        self._append(Entry(leased=[self._held(item) for item in items], ended=self._ended))
        self._ended.clear()

    def begun(self, item: LeasedItemBase) -> None:
        """Mark a job as started: if the process dies, the job may be the cause."""
        self._mark(item, 1)

    def moved(self, item: LeasedItemBase) -> None:
        """A job goes on in a separate process: if this one dies, the job is not why."""
        self._mark(item, 0)

    def _mark(self, item: LeasedItemBase, value: int) -> None:
        place = self._places.get(item)
        if place is not None:
            self._marks[place] = value

    def drains(self) -> None:
        """Report that the worker has reached its limit of jobs or memory, and lets its running jobs end."""
        self._append(Entry(drains=True))

    def counts(self, kind: WorkKind) -> None:
        """Report a kind of work that is counted from now on."""
        self._append(Entry(kind=(kind.group, kind.queue, kind.function)))

    def settled(self, leases: Iterable[HeldLease]) -> None:
        """Report settled leases of a process that died."""
        self._append(Entry(ended=[held.key for held in leases]))

    def completed(self, item: LeasedItemBase) -> None:
        """Report a completed item, with the next lease: releasing an ended item changes nothing."""
        self._over(item)

    def released(self, item: LeasedItemBase, delay: float, error: str | None) -> None:  # noqa: ARG002
        """Likewise."""
        self._over(item)

    def dead_lettered(self, item: LeasedItemBase, error: str | None) -> None:  # noqa: ARG002
        """Likewise."""
        self._over(item)

    def lost(self, item: LeasedItemBase) -> None:
        """Likewise."""
        self._over(item)

    def over(self) -> None:
        """Report that the last job has ended. Hooks may still run."""
        self._append(Entry(over=True))

    def left(self, performed: int, *, stopped: bool) -> None:
        """The worker has ended as it should: since it was stopped, or had done enough, or since nothing was left."""
        self._append(Entry(performed=performed, stopped=stopped))

    def _held(self, item: Any) -> HeldLease:
        place = self._places[item] = self._free.pop() if self._free else next(self._untouched, None)
        return HeldLease(
            item.queue.name, item.id, item.token, item.attempt, item.keep > 0, place, item.headers
        )

    def _over(self, item: Any) -> None:
        """Its place is free for another once the entry is said that tells of both."""
        place = self._places.pop(item, None)
        if place is not None:
            self._marks[place] = 0
            self._left.append(place)
        self._ended.append((item.queue.name, item.token))

    def _append(self, entry: Entry) -> None:
        content = _ENCODER.encode(entry)
        with contextlib.suppress(OSError):  # the supervisor is gone, and this worker about to stop
            self._write(frame(content))


class JournalReader:
    """The side of the supervisor: what one process holds, and how far it is.

    Attributes:
        worker: its id, "" before it has started.
        drains: whether it has done enough, and lets its running jobs end.
        over: whether its last job has ended.
        performed: how many jobs have ended, once it has.
        stopped: whether it ended though there may be more to do.
        counts: the counts of its work; None if it does not count.
    """

    def __init__(
        self, marks: mmap.mmap, given: Iterable[HeldLease] = (), counts: WorkCounts | None = None
    ) -> None:
        """`given` are leases of a process that died, which this one settles."""
        self._marks = marks
        self._buffer = bytearray()
        self._held: dict[tuple[str, int], HeldLease] = {}
        self._unsettled = {held.key for held in given}
        self.worker = ""
        self.drains = False
        self.over = False
        self.performed = 0
        self.stopped = False
        self.counts = counts

    def take(self, data: bytes) -> None:
        """Record the messages in the bytes that were read."""
        self._buffer += data
        for content in iter_frames(self._buffer):
            self._apply(msgspec.msgpack.decode(content, type=Entry))

    def _apply(self, entry: Entry) -> None:
        for key in entry.ended:
            self._held.pop(key, None)
            self._unsettled.discard(key)
        self._held.update((held.key, held) for held in entry.leased)
        self.worker = entry.worker or self.worker
        self.drains |= entry.drains
        self.over |= entry.over
        self.performed += entry.performed
        self.stopped |= entry.stopped
        if entry.kind is not None and self.counts is not None:
            self.counts.kinds.append(WorkKind(*entry.kind))

    def left(self) -> tuple[list[HeldLease], list[HeldLease]]:
        """The leases that it holds: those of started jobs, and the others."""
        begun: list[HeldLease] = []
        rest: list[HeldLease] = []
        for held in self._held.values():
            (begun if held.place is None or self._marks[held.place] else rest).append(held)
        return begun, rest

    def unsettled(self, given: Iterable[HeldLease]) -> list[HeldLease]:
        """Return those of the leases that it was given and has not settled."""
        return [held for held in given if held.key in self._unsettled]
