"""Damage to the keys of a queue without the scripts, and traffic during it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from leaseq_conformance.model import codec
from leaseq_conformance.model import keyspace as ks

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.queue_driver import QueueDriver

    from leaseq_conformance.model.calls import Answer
    from leaseq_conformance.model.keyspace import Keyspace

IDS: Final = (b"a", b"b", b"\xc3\xa9", b"{e}\r\n")
DAY: Final = 86_400_000_000
HOUR_MS: Final = 3_600_000
ABNORMAL_KINDS: Final = {
    *("leased without an attempt", "dead without an attempt", "waits in level", "without a record"),
    *("it may expire though", "the index of it disagree"),
}
"""Violations that remain after a repair: it cannot know all of an item that was in two states or had lost its record."""


def unplace(stored: Keyspace, item_id: bytes, _place: int, _now: int) -> None:
    """Out of every state."""
    for zset in stored.zsets().values():
        zset.pop(item_id, None)


def place_again(stored: Keyspace, item_id: bytes, place: int, now: int) -> None:
    """Into one more state."""
    stored.zsets()[ks.ZSETS[place]][item_id] = now - codec.EPOCH - 1000 if place == 0 else now + 1_000_000


def drop_data(stored: Keyspace, item_id: bytes, _place: int, _now: int) -> None:
    """The data is gone."""
    stored.items.pop(item_id, None)


def drop_record(stored: Keyspace, item_id: bytes, _place: int, _now: int) -> None:
    """The record is gone."""
    stored.meta.pop(item_id, None)


def spoil_record(stored: Keyspace, item_id: bytes, place: int, now: int) -> None:
    """Cut off, its options missing, with times that no clock gave, or leased and may expire; the headers stay."""
    whole = codec.Record(1, now, now - 5, 3).encode()
    far = codec.Record(1, 2**52 * 2 - 1, 2**52).encode()
    short = whole[:1] + b"\0" + whole[2:]
    if now % 3 == 0:
        short = codec.Record(1, now, now - 5, expires=now + DAY).encode()
    stored.meta[item_id] = codec.decode_record((whole[:10], whole[:22], short, far)[place])


def orphan_record(stored: Keyspace, item_id: bytes, _place: int, now: int) -> None:
    """A record for an id that may not be there."""
    stored.meta.setdefault(item_id, codec.Record(1, now - 1, now - 5))


def drop_extra(stored: Keyspace, item_id: bytes, _place: int, _now: int) -> None:
    """The headers and the last error are gone."""
    stored.extras.pop(item_id, None)


def orphan_extra(stored: Keyspace, item_id: bytes, place: int, _now: int) -> None:
    """An extra for an id that may not be there, or have no bit for it."""
    stored.extras.setdefault(item_id, codec.Extra(b"odd" * place))


def spoil_index(stored: Keyspace, item_id: bytes, place: int, now: int) -> None:
    """An id in `expiry` that does not belong there, has another time, or is missing there."""
    if place == 0:
        stored.expiry.pop(item_id, None)
    else:
        stored.expiry[item_id] = (0, now - DAY, now + DAY, 2**60)[place]


def spoil_kept(stored: Keyspace, item_id: bytes, place: int, now: int) -> None:
    """An outcome that no list is there for, or an end that no clock gave."""
    stored.kept[item_id] = (-5, now - DAY, now + DAY, 2**60)[place]


def drop_state(stored: Keyspace, _item_id: bytes, _place: int, _now: int) -> None:
    """The state is gone."""
    stored.state = None


def far_deadline(stored: Keyspace, item_id: bytes, place: int, now: int) -> None:
    """A deadline at or beyond the last that a lease can have."""
    if item_id in stored.leased:
        stored.leased[item_id] = now + 31 * DAY + (0, 1, DAY, -2 * now)[place]


def bad_time(stored: Keyspace, item_id: bytes, place: int, _now: int) -> None:
    """A place, due time or time of death that no clock gave."""
    if item_id in stored.ready:
        stored.ready[item_id] = (-1, 8 * codec.LEVEL, -8 * codec.LEVEL, codec.LEVEL - 1)[place]
    for zset in (stored.delayed, stored.dead):
        if item_id in zset:
            zset[item_id] = (-1, 2_840_140_800_000_000, 2**52, -DAY)[place]


def spoil_state(stored: Keyspace, _item_id: bytes, place: int, now: int) -> None:
    """A clock that is behind or impossible, a bound that is late, a size that is too small."""
    if isinstance(stored.state, codec.State):
        changes: tuple[tuple[str, int], ...]
        changes = (("clock", 0), ("next_due", now + 3 * DAY), ("largest", 0), ("clock", 2**52))
        setattr(stored.state, *changes[place])
        if place == 2:
            stored.state.flags = 0
        if place == 3 and now % 2:
            stored.state.next_due = -5


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
    drop_extra,
    orphan_extra,
    spoil_index,
    spoil_kept,
    drop_state,
    far_deadline,
    bad_time,
    spoil_state,
    drop_wake,
]
"""Each does something to an id and, where there is a choice, one of four things; the last argument is the time."""


class RandomTraffic:
    """Traffic on a damaged queue. Replies are not predicted, but what exists is followed."""

    def __init__(self, driver: QueueDriver) -> None:
        self.q = driver
        self.items = driver.stored().items

    def call(self, choice: int) -> None:
        """One call, made from a number."""
        item_id, choice = IDS[choice % len(IDS)], choice // len(IDS)
        tokens = self.q.history[item_id]
        token = tokens[choice % len(tokens)] if tokens else 1
        completes: list[Answer] = [1, item_id, token, 0]
        with_result: list[Answer] = [1, 0, item_id, token, 2, b"keep", HOUR_MS, b"result", b"r", 0]
        calls: list[tuple[str, list[Answer], bool]] = [
            ("add", [1, item_id, b"new", 0], False),
            ("lease", [2, 30_000], False),
            ("complete", completes, False),
            ("complete_and_lease", [1, 30_000, *completes], False),
            ("complete_with", with_result, True),
            ("extend", [1, item_id, token, 9_000], False),
            ("release", [1, item_id, token, 0], False),
            ("release", [1, item_id, token, 2, b"dead", 1, b"keep", HOUR_MS], True),
            ("release", [1, item_id, token, 1, b"error", b"storm"], False),
            ("remove", [1, item_id], False),
            ("revive", [1, item_id], False),
            ("purge", [0, 1, item_id], False),
            ("outcome", [1, item_id], True),
            ("light_clean", [10], False),
            ("settle", [], False),
        ]
        name, argv, keeps = calls[choice % len(calls)]
        before = self.q.stored()
        reply = self.q.call(name, argv, more=self.q.results([item_id]) if keeps else ())
        if isinstance(reply, str):
            assert reply == "LEASEQ_FORMAT" or (name == "add" and reply == "LEASEQ_TOO_LARGE"), (name, reply)
            return
        if name == "add" and reply > 0:
            self.items[item_id] = b"new"
        answers = {"complete": reply, "complete_and_lease": reply, "complete_with": reply, "purge": reply}
        answer = answers.get(name, 0)
        answer = answer[-1] if isinstance(answer, list) else answer
        if (answer == 1 and item_id in before.items) or (name == "remove" and reply != b"absent"):
            self.items.pop(item_id)
        if name in {"lease", "complete_and_lease"}:
            for at in range(3, 3 + 4 * reply[2], 4):
                assert self.items[reply[at]] == reply[at + 1]
                self.q.history[reply[at]].append(reply[at + 2])
        if name in {"lease", "complete_and_lease", "light_clean"}:
            self._let_expire(before)

    def _let_expire(self, before: Keyspace) -> None:
        """Check that a call removed only items whose time was over, and counted each."""
        stored = self.q.stored()
        gone = self.items.keys() - stored.items.keys()
        for item_id in gone:
            record = before.record(item_id)
            assert record
            assert 0 < record.expires <= self.q.now
            del self.items[item_id]
        expired = [keyspace.counters.get(b"expired", 0) for keyspace in (before, stored)]
        assert len(gone) == expired[1] - expired[0]
