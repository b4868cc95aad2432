"""Two queues of a group as vectors have them: how they are built, when, and the keys that they stand for."""

from __future__ import annotations

import copy
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance.model.calls import Add, Release
from leaseq_conformance.model.codec import State
from leaseq_conformance.model.queue import Queue
from leaseq_conformance.vectors.vector import Dump, Kept

if TYPE_CHECKING:
    from leaseq_conformance.model.keyspace import Keyspace

START: Final = 1_767_225_600_000_000
"""When the queues begin: 2026-01-01."""
NOW: Final = START + 3_600_000_000
"""When the calls are made: an hour later."""
SECOND: Final = 1_000_000
HOUR: Final = 3_600_000
DAY: Final = 24 * HOUR
"""In milliseconds."""
US_DAY: Final = DAY * 1000
"""In microseconds."""


def stored(queue: Queue, prefix: str = "") -> Dump:
    """The keys that a model's queue stands for. An item may be in no state: that is damage."""
    nowhere = [item_id for item_id, item in queue.items.items() if item.where == "none"]
    placed = copy.copy(queue)
    placed.items = {
        item_id: replace(item, where="ready") if item_id in nowhere else item
        for item_id, item in queue.items.items()
    }
    keys = placed.keyspace()
    for item_id in nowhere:
        del keys.ready[item_id]
    return of_keyspace(keys, prefix)


def of_keyspace(keys: Keyspace, prefix: str = "") -> Dump:
    """The keys as they are stored."""
    meta = {
        item_id: record if isinstance(record, bytes) else record.encode()
        for item_id, record in keys.meta.items()
    }
    for item_id, extra in keys.extras.items():
        meta[b"\0" + item_id] = extra if isinstance(extra, bytes) else extra.encode()
    dump: dict[str, Any] = {
        "items": keys.items,
        "meta": meta,
        "counters": {name: str(count).encode() for name, count in keys.counters.items()},
        **{name: _scores(zset) for name, zset in {**keys.zsets(), **keys.indexes()}.items()},
        "wake": [b"1"] * keys.wake,
        "room": [b"1"] * keys.room,
        "state": keys.state.encode() if isinstance(keys.state, State) else keys.state,
    }
    for item_id, outcome in keys.results.items():
        packed = outcome if isinstance(outcome, bytes) else outcome.encode()
        dump["result:" + item_id.decode("latin-1")] = Kept((packed,), keys.ttls[item_id])
    return {prefix + name: value for name, value in dump.items() if value}


def _scores(zset: dict[bytes, int]) -> dict[bytes, float]:
    return {item_id: float(score) for item_id, score in zset.items()}


@dataclass
class World:
    """Two queues of a group and the tokens that their items had."""

    queue: Queue = field(default_factory=Queue)
    other: Queue = field(default_factory=Queue)
    tokens: dict[bytes, list[int]] = field(default_factory=lambda: defaultdict(list))

    def stored(self) -> Dump:
        """All keys of both."""
        return stored(self.queue) | stored(self.other, "other:")

    def token(self, item_id: bytes) -> int:
        """The latest token of an id, 1 where it had none."""
        return self.tokens[item_id][-1] if self.tokens[item_id] else 1

    # -- building

    def lease(
        self, count: int = 1, duration: int = HOUR, now: int = START, *, other: bool = False
    ) -> list[Any]:
        """Lease, and keep the tokens."""
        reply: Any = (self.other if other else self.queue).lease(now, count, duration)
        for at in range(3, 3 + 4 * reply[2], 4):
            self.tokens[reply[at]].append(reply[at + 2])
        return list(reply)

    def leased(self, item_id: bytes, duration: int = HOUR, now: int = START, **options: Any) -> None:
        """Add an item while nothing is ready, and lease it."""
        self.queue.add(now, [Add(item_id, b"data of " + item_id, **options)])
        assert self.lease(1, duration, now)[3] == item_id

    def give_back(self, item_id: bytes, **options: Any) -> None:
        """Release an item at the beginning."""
        assert self.queue.release(START, [Release(item_id, self.token(item_id), **options)]) != b"lost"

    def quiet(self) -> World:
        """Nobody is awake."""
        self.queue.wake = self.queue.room = self.other.wake = self.other.room = 0
        return self
