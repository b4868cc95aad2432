"""What a worker's process tells the one that supervises it: what it holds, so that it can be given back at once.

Each word is written before what it is about can go wrong: a process that is killed in the next moment has said it.
"""

import contextlib
import struct
from collections.abc import Sequence
from typing import Any

import msgspec

from leaseq.item import LeasedItemBase
from leaseq.worker.hooks import Hooks

_ENCODER = msgspec.msgpack.Encoder()


class Held(msgspec.Struct, array_like=True, frozen=True):
    """A lease, as much of it as giving it back takes."""

    queue: str
    id: str
    token: int
    attempt: int
    keep: bool


class Word(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What is said at one time. `ended` and `begun` are tokens with their queues."""

    worker: str = ""
    leased: list[Held] = []
    begun: list[tuple[str, int]] = []
    ended: list[tuple[str, int]] = []
    performed: int = 0


class Journal(Hooks):
    """The side of the worker. `write` is called with bytes, and sends all of them."""

    def __init__(self, write: Any) -> None:
        self._write = write
        self._ended: list[tuple[str, int]] = []

    def began(self, worker_id: str) -> None:
        """The worker has started and is about to lease."""
        self._say(Word(worker=worker_id))

    def leased(self, items: Sequence[LeasedItemBase]) -> None:
        """These were leased."""
        self._say(Word(leased=[_held(item) for item in items]))

    def begun(self, item: LeasedItemBase) -> None:
        """A job begins: should the process die, this may be why."""
        self._say(Word(begun=[_place(item)]))

    def completed(self, item: LeasedItemBase) -> None:
        """It is told with the next word: to give back what has ended changes nothing."""
        self._ended.append(_place(item))

    def released(self, item: LeasedItemBase, delay: float, error: str | None) -> None:  # noqa: ARG002
        """Likewise."""
        self._ended.append(_place(item))

    def dead_lettered(self, item: LeasedItemBase, error: str | None) -> None:  # noqa: ARG002
        """Likewise."""
        self._ended.append(_place(item))

    def lost(self, item: LeasedItemBase) -> None:
        """Likewise."""
        self._ended.append(_place(item))

    def over(self, performed: int) -> None:
        """The worker has ended as it should."""
        self._say(Word(performed=performed))

    def _say(self, word: Word) -> None:
        word.ended, self._ended = self._ended, []
        content = _ENCODER.encode(word)
        with contextlib.suppress(OSError):  # the supervisor is gone, and this worker about to stop
            self._write(struct.pack(">I", len(content)) + content)


class Reader:
    """The side of the supervisor: what one process holds."""

    def __init__(self) -> None:
        self._buffer = b""
        self._held: dict[tuple[str, int], Held] = {}
        self._begun: set[tuple[str, int]] = set()
        self.worker = ""
        self.performed = 0

    def take(self, data: bytes) -> None:
        """Take in what was read."""
        self._buffer += data
        at = 0
        while len(self._buffer) - at >= 4:
            (length,) = struct.unpack_from(">I", self._buffer, at)
            if len(self._buffer) - at - 4 < length:
                break
            at += 4 + length
            self._hear(msgspec.msgpack.decode(self._buffer[at - length : at], type=Word))
        self._buffer = self._buffer[at:]

    def _hear(self, word: Word) -> None:
        for place in word.ended:
            self._held.pop(place, None)
            self._begun.discard(place)
        self._held.update(((held.queue, held.token), held) for held in word.leased)
        self._begun.update(word.begun)
        self.worker = word.worker or self.worker
        self.performed += word.performed

    def left(self) -> tuple[list[Held], list[Held]]:
        """What it holds: that which it had begun, and the rest."""
        begun = [held for place, held in self._held.items() if place in self._begun]
        rest = [held for place, held in self._held.items() if place not in self._begun]
        return begun, rest


def _held(item: Any) -> Held:
    return Held(item.queue.name, item.id, item.token, item.attempt, item.keep > 0)


def _place(item: Any) -> tuple[str, int]:
    return item.queue.name, item.token
