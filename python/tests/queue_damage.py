"""What may happen to the keys of a queue behind the scripts' back, and traffic that goes on meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import keyspace as ks

if TYPE_CHECKING:
    from collections.abc import Callable

    from keyspace import Keyspace
    from queue_driver import QueueDriver

IDS: Final = (b"a", b"b", b"\xc3\xa9", b"{e}\r\n")
DAY: Final = 86_400_000_000
ODD: Final = {"leased without an attempt", "dead before", "waits in level"}
"""What repair cannot know of an item that it found in two states, or whose record was lost."""


def unplace(stored: Keyspace, item_id: bytes, _place: int, _now: int) -> None:
    """Out of every state."""
    for zset in stored.zsets().values():
        zset.pop(item_id, None)


def place_again(stored: Keyspace, item_id: bytes, place: int, now: int) -> None:
    """Into one more state."""
    stored.zsets()[ks.ZSETS[place]][item_id] = now - ks.EPOCH - 1000 if place == 0 else now + 1_000_000


def drop_data(stored: Keyspace, item_id: bytes, _place: int, _now: int) -> None:
    """The data is gone."""
    stored.items.pop(item_id, None)


def drop_record(stored: Keyspace, item_id: bytes, _place: int, _now: int) -> None:
    """The record is gone."""
    stored.meta.pop(item_id, None)


def spoil_record(stored: Keyspace, item_id: bytes, place: int, now: int) -> None:
    """Cut off, its options missing, of another kind, or with times that no clock gave."""
    whole = ks.Record(1, now, now - 5, 3).encode()
    far = ks.Record(1, 2**52 * 2 - 1, 2**52).encode()
    short = whole[:1] + b"\0" + whole[2:]
    stored.meta[item_id] = ks.decode_record((whole[:10], whole[:22], short, far)[place])


def orphan_record(stored: Keyspace, item_id: bytes, _place: int, now: int) -> None:
    """A record for an id that may not be there."""
    stored.meta.setdefault(item_id, ks.Record(1, now - 1, now - 5))


def drop_state(stored: Keyspace, _item_id: bytes, _place: int, _now: int) -> None:
    """The state is gone."""
    stored.state = None


def far_deadline(stored: Keyspace, item_id: bytes, place: int, now: int) -> None:
    """A deadline at or beyond the last that a lease can have."""
    if item_id in stored.leased:
        stored.leased[item_id] = now + 31 * DAY + (0, 1, DAY, 1000 * DAY)[place]


def bad_time(stored: Keyspace, item_id: bytes, place: int, _now: int) -> None:
    """A place, due time or time of death that no clock gave."""
    if item_id in stored.ready:
        stored.ready[item_id] = (-1, 8 * ks.LEVEL, -8 * ks.LEVEL, ks.LEVEL - 1)[place]
    for zset in (stored.delayed, stored.dead):
        if item_id in zset:
            zset[item_id] = (-1, 2_840_140_800_000_000, 2**52, -DAY)[place]


def spoil_state(stored: Keyspace, _item_id: bytes, place: int, now: int) -> None:
    """A clock that is behind or impossible, a bound that is late, a size that is too small."""
    if isinstance(stored.state, ks.State):
        changes: tuple[tuple[str, int], ...]
        changes = (("clock", 0), ("next_due", now + 3 * DAY), ("largest", 0), ("clock", 2**52))
        setattr(stored.state, *changes[place])


def drop_wake(stored: Keyspace, _item_id: bytes, _place: int, _now: int) -> None:
    """A wake-up is gone."""
    stored.wake = 0


DAMAGES: Final[list[Callable[[Keyspace, bytes, int, int], None]]] = [
    unplace,
    place_again,
    drop_data,
    drop_record,
    spoil_record,
    orphan_record,
    drop_state,
    far_deadline,
    bad_time,
    spoil_state,
    drop_wake,
]
"""Each does something to an id and, where there is a choice, one of four things; the last argument is the time."""


class Storm:
    """Traffic on a damaged queue. Replies are not predicted, but what exists is followed."""

    def __init__(self, driver: QueueDriver, items: dict[bytes, bytes]) -> None:
        self.q = driver
        self.items = dict(items)

    def call(self, choice: int) -> None:
        """One call, made from a number."""
        item_id, choice = IDS[choice % len(IDS)], choice // len(IDS)
        tokens = self.q.history[item_id]
        token = tokens[choice % len(tokens)] if tokens else 1
        name = ("add", "lease", "complete", "fused", "extend", "release", "remove", "light_clean", "settle")[
            choice % 9
        ]
        completes: list[int | bytes] = [1, item_id, token, 0]
        calls: dict[str, tuple[str, list[int | bytes]]] = {
            "add": ("add", [1, item_id, b"new", 0]),
            "lease": ("lease", [2, 30_000]),
            "complete": ("complete", completes),
            "fused": ("complete_and_lease", [1, 30_000, *completes]),
            "extend": ("extend", [1, item_id, token, 9_000]),
            "release": ("release", [1, item_id, token, 0]),
            "remove": ("remove", [1, item_id]),
            "light_clean": ("light_clean", [10]),
            "settle": ("settle", []),
        }
        reply = self.q.call(*calls[name])
        if isinstance(reply, str):
            assert reply == "LEASEQ_FORMAT" or (name == "add" and reply == "LEASEQ_TOO_LARGE"), reply
            return
        if name == "add" and reply:
            self.items[item_id] = b"new"
        if (
            (name == "complete" and reply)
            or (name == "fused" and reply[-1])
            or (name == "remove" and reply != b"absent")
        ):
            self.items.pop(item_id, None)
        if name in {"lease", "fused"}:
            for at in range(3, 3 + 4 * reply[2], 4):
                assert self.items[reply[at]] == reply[at + 1]
                self.q.history[reply[at]].append(reply[at + 2])
