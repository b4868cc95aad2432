"""The packed values of a queue, each taken apart and put together again: record, extra, outcome, state.

What is not exactly what a script writes stays bytes, so that damage is seen as such.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Final, NamedTuple

EPOCH: Final = 1_735_689_600_000_000
"""2025-01-01, the zero of places."""
LEVEL: Final = 2**50
"""One level of priority in a place."""
TAIL: Final = 1
EXTRA: Final = 2
DIES: Final = 4
"""Bits of a record's options: it has a tail; it has an extra; it becomes dead when it expires."""
PAUSED: Final = 1
OUTCOMES: Final = 2
"""Bits of the state's flags."""
UNLIMITED: Final = 65_535
"""`max_attempts` of a record that says so itself."""


class Record(NamedTuple):
    """The record of an item in `meta`. Its tail, from `priority` on, is stored only if `options` is not 0."""

    attempt: int
    token: int
    created: int
    priority: int = 0
    max_attempts: int = 0
    keep: int = 0
    expires: int = 0
    options: int = 0

    def encode(self) -> bytes:
        """Pack: version, options, attempt, token, created, then the tail."""
        options = self.options or int(any(self[3:7]))
        head = struct.pack("<BBIdd", 1, options, self.attempt, self.token, self.created)
        tail = struct.pack("<bH", self.priority, self.max_attempts) + self.keep.to_bytes(6, "little")
        return head + (tail + struct.pack("<d", self.expires)) * bool(options)


def decode_record(packed: bytes) -> Record | bytes:
    """Unpack; what is not exactly what a script writes stays bytes."""
    if len(packed) not in {22, 39} or packed[1] not in {0, 1, 3, 5, 7}:
        return packed
    _, options, attempt, token, created = struct.unpack("<BBIdd", packed[:22])
    tail = packed[22:] or bytes(17)
    try:
        expires = int(struct.unpack("<d", tail[9:])[0])
        keep = int.from_bytes(tail[3:9], "little")
        level, limit = struct.unpack("<bH", tail[:3])
        record = Record(attempt, int(token), int(created), level, limit, keep, expires, options)
    except (ValueError, OverflowError):
        return packed
    return record if record.encode() == packed else packed


class Extra(NamedTuple):
    """The last error and the headers of an item, in `meta` under NUL and the id."""

    error: bytes = b""
    pairs: tuple[tuple[bytes, bytes], ...] = ()

    def encode(self) -> bytes:
        """Pack: each part behind its length."""
        parts = [self.error, *(part for pair in self.pairs for part in pair)]
        return b"".join(struct.pack("<H", len(part)) + part for part in parts)


def decode_extra(packed: bytes) -> Extra | bytes:
    """Unpack; what is not exactly what a script writes stays bytes."""
    parts = []
    at = 0
    while at + 2 <= len(packed):
        size = int.from_bytes(packed[at : at + 2], "little")
        parts.append(packed[at + 2 : at + 2 + size])
        at += 2 + size
    if at != len(packed) or len(parts) % 2 != 1:
        return packed
    return Extra(parts[0], tuple(zip(parts[1::2], parts[2::2], strict=True)))


class Outcome(NamedTuple):
    """An outcome, as the one element of `result:<id>`."""

    kind: int
    attempt: int
    token: int
    created: int
    ended: int
    content: bytes

    def encode(self) -> bytes:
        """Pack: version, kind, attempt, token, created, ended, then the content."""
        return struct.pack("<BBIddd", 1, *self[:5]) + self.content


def decode_outcome(packed: bytes) -> Outcome | bytes:
    """Unpack; what is not exactly what a script writes stays bytes."""
    if len(packed) < 30:
        return packed
    _, kind, attempt, *times = struct.unpack("<BBIddd", packed[:30])
    try:
        token, created, ended = map(int, times)
    except (ValueError, OverflowError):
        return packed
    outcome = Outcome(kind, attempt, token, created, ended, packed[30:])
    return outcome if outcome.encode() == packed and kind in {1, 2} else packed


@dataclass
class State:
    """The value of the key `state`."""

    clock: int = 0
    next_due: int = 0
    largest: int = 0
    added: int = 0
    leases: int = 0
    max_data: int = 0
    max_items: int = 0
    max_attempts: int = 0
    flags: int = 0

    @property
    def paused(self) -> bool:
        """True if nothing is leased."""
        return bool(self.flags & PAUSED)

    def encode(self) -> bytes:
        """Pack: format, flags, then the fields, then the limits."""
        head = struct.pack("<BBddI", 1, self.flags, self.clock, self.next_due, self.largest)
        counts = self.added.to_bytes(6, "little") + self.leases.to_bytes(6, "little")
        return head + counts + struct.pack("<IIH", self.max_data, self.max_items, self.max_attempts)


def decode_state(packed: bytes | None) -> State | bytes | None:
    """Unpack; what is not exactly what a script writes stays bytes."""
    if packed is None or len(packed) != 44:
        return packed
    _, flags, clock, next_due, largest = struct.unpack("<BBddI", packed[:22])
    added, leases = (int.from_bytes(packed[at : at + 6], "little") for at in (22, 28))
    max_data, max_items, max_attempts = struct.unpack("<IIH", packed[34:])
    if math.isnan(clock + next_due):
        return packed
    times = (int(clock), int(next_due))
    state = State(*times, largest, added, leases, max_data, max_items, max_attempts, flags)
    return state if state.encode() == packed else packed


def place_time(score: int) -> int:
    """The time of the clock at which a ready item took its place."""
    return EPOCH + score % LEVEL


def place_level(score: int) -> int:
    """The priority in a place."""
    return -(score // LEVEL)
