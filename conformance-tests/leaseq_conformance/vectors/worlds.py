"""The queues that vectors start from, built by the reference model.

An id says what it is: r ready, f delayed, p due, c leased, e an expired lease, s an item that had a lease, x dead,
k completed with a result, t added again. So one call can be made on all of them.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance.model import several
from leaseq_conformance.model.calls import Add, Finish, Release
from leaseq_conformance.model.packed import State
from leaseq_conformance.model.queue import Queue
from leaseq_conformance.vectors.form import Dump, Kept

if TYPE_CHECKING:
    from collections.abc import Callable

    from leaseq_conformance.model.keyspace import Keyspace

START: Final = 1_767_225_600_000_000
"""When the queues begin: 2026-01-01."""
NOW: Final = START + 3_600_000_000
"""When the calls are made: an hour later."""
SECOND: Final = 1_000_000
HOUR: Final = 3_600_000
DAY: Final = 24 * HOUR
"""In milliseconds."""


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


def full() -> World:
    """Items in every state; some are due, some leases have expired, some have leases of the past."""
    world = World()
    world.leased(b"x1", max_attempts=1)
    for item_id in (b"s2", b"p3", b"s1"):
        world.leased(item_id)
    world.leased(b"e1", 1000)
    world.leased(b"e2", 2000, max_attempts=1)
    world.leased(b"e3", 3000, priority=2)
    world.leased(b"c1", 10 * HOUR)
    world.leased(b"c2", 10 * HOUR, priority=-7, max_attempts=1)
    world.give_back(b"x1")
    world.give_back(b"s2", delay=10 * HOUR)
    world.give_back(b"p3", delay=3000)
    world.give_back(b"s1")
    world.lease(1, 10 * HOUR)
    world.give_back(b"s1")
    items = [
        Add(b"r1", b"data of r1"),
        Add(b"r2", b"\0\xff\r\n"),
        Add(b"r3", b"data of r3", priority=3),
        Add(b"r4", b"", max_attempts=2),
        Add(b"f1", b"data of f1", delay=10 * HOUR),
        Add(b"p1", b"data of p1", delay=1000),
        Add(b"p2", b"data of p2", delay=2000, priority=-2, max_attempts=3),
        Add(b"1", b"its id is a count"),
    ]
    world.queue.add(START, items)
    return world.quiet()


def settled() -> World:
    """The same after a light clean: nothing is due, the bound is right."""
    world = full()
    world.queue.light_clean(NOW, 256)
    return world.quiet()


def awake() -> World:
    """The same with an element on wake."""
    world = settled()
    world.queue.wake = 1
    return world


def stale() -> World:
    """Nothing is ready or due, and the bound lies in the past."""
    world = World()
    world.leased(b"c1", 10 * HOUR)
    world.queue.add(START, [Add(b"p1", delay=1000), Add(b"f1", delay=10 * HOUR)])
    world.queue.remove([b"p1"])
    return world.quiet()


def stateless() -> World:
    """The state is lost."""
    world = full()
    world.queue.state = None
    return world


def crowded() -> World:
    """More is due and expired than one lease sweeps; one of the first of each can be completed."""
    world = World()
    world.leased(b"p1", 1000)
    world.leased(b"e1", 1000)
    world.give_back(b"p1", delay=1000)
    world.queue.add(START, [Add(b"p%d" % n, delay=2000) for n in range(2, 71)])
    world.queue.add(START, [Add(b"e%d" % n) for n in range(2, 71)])
    assert world.lease(69, 2000)[2] == 69
    world.leased(b"c1", 10 * HOUR)
    world.queue.add(START, [Add(b"r1"), Add(b"r2"), Add(b"r3")])
    return world.quiet()


def rich() -> World:
    """Items with options in every state, outcomes of those that are gone, and another queue with some of each."""
    world = World()
    world.leased(b"k1", keep=DAY)
    world.leased(b"k2", keep=DAY)
    world.leased(b"t1", headers=((b"a", b"1"),))
    for item_id, keep in ((b"k1", 0), (b"k2", 1000), (b"t1", DAY)):
        finish = Finish(item_id, world.token(item_id), keep=keep, result=b"result of " + item_id)
        assert several.complete_with(START, world.queue, [], [finish]) == [1]
    world.leased(b"x1", max_attempts=1, keep=DAY, headers=((b"a", b"1"),))
    world.leased(b"x2", keep=DAY, content_type=b"text/plain")
    world.leased(b"x3")
    world.leased(b"s2", keep=DAY, headers=((b"a", b"1"),))
    world.leased(b"p3", keep=DAY)
    world.leased(b"s1")
    world.leased(b"e1", 1000, expires_in=HOUR, dies=True, headers=((b"a", b"1"), (b"b.c", b"2")))
    world.leased(b"e2", 2000, max_attempts=1, keep=DAY, content_type=b"text/plain")
    world.leased(b"e3", 3000, priority=2, max_attempts=0, keep=DAY)
    world.leased(b"c1", 10 * HOUR, keep=DAY, headers=((b"a", b"1"),), expires_in=HOUR, dies=True)
    world.leased(b"c2", 10 * HOUR, priority=-7, max_attempts=1, content_type=b"text/plain")
    world.give_back(b"x1", error=b"why x1 failed")
    world.give_back(b"x2", error=b"why x2 failed", dead=True, keep=0)
    world.give_back(b"x3", dead=True)
    world.give_back(b"s2", delay=10 * HOUR)
    world.give_back(b"p3", delay=3000, error=b"why p3 waits")
    world.give_back(b"s1", error=b"why s1 was given back")
    items = [
        Add(b"r1", b"data of r1", expires_in=10 * HOUR, headers=((b"a", b"1"),)),
        Add(b"r2", b"\0\xff\r\n", expires_in=1000),
        Add(b"r3", b"data of r3", priority=3, expires_in=1000, dies=True, keep=DAY, headers=((b"a", b"1"),)),
        Add(b"r4", b"", max_attempts=2, keep=DAY, content_type=b""),
        Add(b"r5", b"data of r5", expires_in=2000, dies=True),
        Add(b"t1", b"added once more"),
        Add(b"f1", b"data of f1", delay=10 * HOUR, expires_in=20 * HOUR, keep=DAY),
        Add(b"p1", b"data of p1", delay=1000, expires_in=2000, headers=((b"a", b"1"),)),
        Add(b"p2", b"data of p2", delay=2000, priority=-2, max_attempts=3, headers=((b"a", b"1"),)),
        Add(b"1", b"its id is a count", priority=-1),
    ]
    world.queue.add(START, items)
    world.other.add(START, [Add(b"o2", b"data of o2", max_attempts=1, keep=DAY, headers=((b"a", b"1"),))])
    world.lease(1, 1000, other=True)
    others = [
        Add(b"o1", b"data of o1", headers=((b"a", b"1"),), keep=DAY),
        Add(b"o3", b"data of o3", delay=10 * HOUR),
        Add(b"o4", b"data of o4", expires_in=1000, priority=1),
    ]
    world.other.add(START, others)
    return world.quiet()


def spent() -> World:
    """All that is ready has expired or waits in another queue, whose next time is near; nothing else is due."""
    world = World()
    world.leased(b"c1", 10 * HOUR, keep=DAY)
    items = [
        Add(b"r2", expires_in=1000),
        Add(b"r5", expires_in=2000, dies=True, keep=DAY, max_attempts=3),
        Add(b"f1", delay=10 * HOUR),
    ]
    world.queue.add(START, items)
    world.other.add(START, [Add(b"o3", delay=3000), Add(b"o1")])
    return world.quiet()


def limited() -> World:
    """Full by its own limit, with a limit of attempts that an expired lease has used up; the other queue is paused."""
    world = World()
    world.leased(b"x1")
    world.leased(b"e1", 1000)
    world.leased(b"e2", 2000, max_attempts=0, headers=((b"a", b"1"),))
    world.leased(b"c1", 10 * HOUR)
    world.leased(b"c2", 10 * HOUR)
    world.queue.configure(max_data=100, max_items=7, max_attempts=1)
    world.give_back(b"x1")
    world.queue.add(START, [Add(b"r1"), Add(b"r2"), Add(b"r3", priority=3), Add(b"f1", delay=10 * HOUR)])
    world.other.configure(max_items=1, paused=1)
    world.other.add(START, [Add(b"o1"), Add(b"o2")])
    return world.quiet()


def roomy() -> World:
    """Has a limit, room, and nobody was told of it."""
    world = settled()
    world.queue.configure(max_items=1000, max_attempts=2)
    return world.quiet()


def brim() -> World:
    """Has room for one more."""
    world = World()
    world.leased(b"c1", 10 * HOUR)
    world.leased(b"x1")
    world.give_back(b"x1", dead=True)
    world.queue.add(START, [Add(b"r1")])
    world.queue.configure(max_items=3)
    return world.quiet()


def paused() -> World:
    """The rich queue paused, with room that was told of."""
    world = rich()
    world.queue.configure(max_items=1000, paused=1)
    world.queue.wake = 0
    return world


def halted() -> World:
    """The quiet queue paused; nothing of it keeps an outcome."""
    world = settled()
    world.queue.configure(paused=1)
    return world.quiet()


def tight() -> World:
    """Takes one item, has it, and somebody was told of room."""
    world = single()
    world.queue.configure(max_items=1)
    world.quiet().queue.room = 1
    return world


def spare() -> World:
    """Takes one item, has none, and nobody was told of room."""
    world = World()
    world.queue.configure(max_items=1)
    return world.quiet()


def ahead() -> World:
    """The hybrid clock runs a year ahead of the server's."""
    world = World()
    later = NOW + 31_536_000 * SECOND
    for item_id in (b"c1", b"s1", b"x1"):
        world.leased(item_id, 10 * HOUR, later)
    world.queue.release(
        later, [Release(b"s1", world.token(b"s1")), Release(b"x1", world.token(b"x1"), dead=True)]
    )
    world.queue.add(later, [Add(b"r1", b"one"), Add(b"r2", b"two", priority=1), Add(b"f1", delay=1000)])
    return world.quiet()


def soon() -> World:
    """A deadline and a due time lie within the cap; nothing is ready."""
    world = World()
    world.leased(b"c1", HOUR + 3000)
    world.queue.add(START, [Add(b"f1", delay=HOUR + 2000)])
    return world.quiet()


def _within(wait: int) -> World:
    world = World()
    world.queue.add(START, [Add(b"f1", not_before=(NOW + 30 * SECOND) // 1000)])
    world.queue.items[b"f1"].score = NOW + wait
    assert world.queue.state
    world.queue.state.next_due = NOW + wait
    return world.quiet()


def cap() -> World:
    """What is due next lies just within the cap."""
    return _within(4 * SECOND)


def beyond() -> World:
    """What is due next lies just beyond the cap."""
    return _within(4 * SECOND + 1)


def single() -> World:
    """One plain item is ready."""
    world = World()
    world.queue.add(START, [Add(b"r1", b"data of r1")])
    return world.quiet()


def waiting() -> World:
    """Both queues wait, the other one for less long."""
    world = World()
    world.queue.add(START, [Add(b"f1", delay=20 * HOUR)])
    world.other.add(START, [Add(b"o3", delay=10 * HOUR)])
    return world.quiet()


def later() -> World:
    """The rich queue after a light clean, with items removed, purged and revived: everything was counted."""
    world = rich()
    world.queue.light_clean(NOW - SECOND, 256)
    world.queue.purge(NOW, 0, [b"x3"])
    world.queue.remove([b"p2"])
    world.queue.revive(NOW, [b"x2"])
    return world.quiet()


def narrow() -> World:
    """Takes data of nine bytes."""
    world = World()
    world.queue.configure(max_data=9)
    world.other.configure(max_data=2)
    return world.quiet()


def heavy() -> World:
    """More data than one lease may carry: of 600000, 448576 and 1 byte."""
    world = World()
    items = [Add(b"r1", b"x" * 600_000), Add(b"r2", b"y" * 448_576), Add(b"r3", b"z"), Add(b"r4", b"")]
    world.queue.add(START, items)
    return world.quiet()


def alone() -> World:
    """The first item alone is more data than one lease may carry."""
    world = World()
    world.queue.configure(max_data=2_000_000)
    world.queue.add(START, [Add(b"r1", b"x" * 1_048_577), Add(b"r2", b"y")])
    return world.quiet()


WORLDS: Final[dict[str, Callable[[], World]]] = {
    "empty": World,
    **{
        made.__name__: made
        for made in (
            *(
                full,
                settled,
                awake,
                stale,
                stateless,
                crowded,
                rich,
                spent,
                limited,
                roomy,
                brim,
                paused,
                halted,
                tight,
                ahead,
            ),
            *(soon, cap, beyond, single, waiting, later, narrow, heavy, alone, spare),
        )
    },
}
"""What each kind of queue is called, and what builds it."""
