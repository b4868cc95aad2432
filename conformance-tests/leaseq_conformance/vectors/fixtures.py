"""The queues that vectors start from, built by the reference model.

An id says what it is: r ready, f delayed, p due, c leased, e an expired lease, s an item that had a lease, x dead,
k completed with a result, t added again. So one call can be made on all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from leaseq_conformance.model import several
from leaseq_conformance.model.calls import Add, Finish, Release
from leaseq_conformance.vectors.builder import DAY, HOUR, NOW, SECOND, START, World

if TYPE_CHECKING:
    from collections.abc import Callable


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
