"""What a worker's process reports to its supervisor: the leases that it holds, so that they can be released at once.

Each entry is written before the process can be killed in what it is about. The start of each job is a mark in memory that
both share.
"""

import contextlib
import mmap
from collections.abc import Sequence
from typing import Any

import msgspec

from leaseq.item import LeasedItemBase
from leaseq.jobs.worker.framing import frame, iter_frames
from leaseq.worker.hooks import Hooks

_ENCODER = msgspec.msgpack.Encoder()

PLACES = 1 << 16
"""How many jobs can be marked at a time: more than any process leases."""


def new_marks() -> mmap.mmap:
    """A byte for each place, which a process that is forked has in common with this one."""
    return mmap.mmap(-1, PLACES)


class HeldLease(msgspec.Struct, array_like=True, frozen=True):
    """What it takes to release a lease, and the place of its mark; a lease without a place counts as started."""

    queue: str
    id: str
    token: int
    attempt: int
    keep: bool
    place: int | None


class Entry(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What is said at one time. `ended` are tokens with their queues; `stopped` is that there may be more to do."""

    worker: str = ""
    leased: list[HeldLease] = []
    ended: list[tuple[str, int]] = []
    performed: int = 0
    stopped: bool = False


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
        """The worker has started and is about to lease."""
        self._append(Entry(worker=worker_id))

    def leased(self, items: Sequence[LeasedItemBase]) -> None:
        """These were leased."""
        for place in self._left:
            self._marks[place] = 0
        self._free += self._left
        self._left.clear()
        self._append(Entry(leased=[self._held(item) for item in items], ended=self._ended))
        self._ended.clear()

    def begun(self, item: LeasedItemBase) -> None:
        """A job starts: if the process dies, this may be why."""
        place = self._places.get(item)
        if place is not None:
            self._marks[place] = 1

    def completed(self, item: LeasedItemBase) -> None:
        """It is reported with the next lease: releasing an ended item changes nothing."""
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

    def over(self, performed: int, *, stopped: bool) -> None:
        """The worker has ended as it should: since it was stopped, or had done enough, or since nothing was left."""
        self._append(Entry(performed=performed, stopped=stopped))

    def _held(self, item: Any) -> HeldLease:
        place = self._places[item] = self._free.pop() if self._free else next(self._untouched, None)
        return HeldLease(item.queue.name, item.id, item.token, item.attempt, item.keep > 0, place)

    def _over(self, item: Any) -> None:
        """Its place is free for another once the entry is said that tells of both."""
        place = self._places.pop(item, None)
        if place is not None:
            self._left.append(place)
        self._ended.append((item.queue.name, item.token))

    def _append(self, entry: Entry) -> None:
        content = _ENCODER.encode(entry)
        with contextlib.suppress(OSError):  # the supervisor is gone, and this worker about to stop
            self._write(frame(content))


class JournalReader:
    """The side of the supervisor: what one process holds."""

    def __init__(self, marks: mmap.mmap) -> None:
        self._marks = marks
        self._buffer = bytearray()
        self._held: dict[tuple[str, int], HeldLease] = {}
        self.worker = ""
        self.performed = 0
        self.stopped = False

    def take(self, data: bytes) -> None:
        """Take in what was read."""
        self._buffer += data
        for content in iter_frames(self._buffer):
            self._apply(msgspec.msgpack.decode(content, type=Entry))

    def _apply(self, entry: Entry) -> None:
        for name in entry.ended:
            self._held.pop(name, None)
        self._held.update(((held.queue, held.token), held) for held in entry.leased)
        self.worker = entry.worker or self.worker
        self.performed += entry.performed
        self.stopped = entry.stopped

    def left(self) -> tuple[list[HeldLease], list[HeldLease]]:
        """The leases that it holds: those of started jobs, and the others."""
        begun: list[HeldLease] = []
        rest: list[HeldLease] = []
        for held in self._held.values():
            (begun if held.place is None or self._marks[held.place] else rest).append(held)
        return begun, rest
