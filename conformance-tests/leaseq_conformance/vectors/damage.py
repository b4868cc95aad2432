"""Queues as no script leaves them, but served: the rules say how."""

from __future__ import annotations

import copy
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance.model import several
from leaseq_conformance.model.base import Item
from leaseq_conformance.model.calls import Add, Complete, Extend, Finish, Release
from leaseq_conformance.model.codec import Outcome
from leaseq_conformance.vectors import fixtures, samples
from leaseq_conformance.vectors.builder import DAY, NOW, START, US_DAY, World, stored
from leaseq_conformance.vectors.malformed import BAD_OUTCOMES, COUNTERS, record
from leaseq_conformance.vectors.vector import Dump, Kept, Refused, Reply, Vector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from leaseq_conformance.vectors.samples import Sample


def nowhere() -> World:
    """The quiet queue with two items in no state, one of which had a lease."""
    world = fixtures.settled()
    world.queue.items[b"u1"] = Item(b"in no state", "none", 0, START + 50, True, 2, START + 60)
    world.queue.items[b"u2"] = Item(b"in no state", "none", 0, 0)
    world.tokens[b"u1"] = [START + 60]
    return world


def on_nowhere(_: World) -> dict[str, list[Sample]]:
    """Calls on the items that are in no state."""
    token = START + 60
    return {
        "remove": [samples.ids("in no state", "remove", b"u1", b"u2", b"r1")],
        "inspect": [samples.ids("in no state", "inspect", b"u1", b"u2")],
        "outcome": [samples.ids("in no state", "outcome", b"u1", b"u2", timed=True)],
        "complete": [
            samples.complete("in no state", Complete(b"u1", token)),
            samples.complete("in no state, only_current", Complete(b"u1", token, only_current=True)),
            samples.complete("in no state, two", Complete(b"u1", token), Complete(b"u2", token)),
        ],
        "complete_with": [
            samples.finish("in no state", Finish(b"u1", token, keep=5), Finish(b"u2", token)),
            samples.finish("in no state, only_current", Finish(b"u1", token, only_current=True)),
        ],
        "extend": [samples.extend("in no state", Extend(b"u1", token, 5))],
        "release": [samples.release("in no state", Release(b"u1", token), Release(b"u2", token))],
        "revive": [samples.ids("in no state", "revive", b"u1", timed=True)],
        "purge": [samples.purge("in no state", 0, b"u1")],
        "add": [samples.add("in no state", Add(b"u1"), Add(b"u2", priority=1))],
    }


def unrecorded() -> World:
    """Leases whose records are lost, one of them expired; and a dead item and a delayed one without."""
    world = fixtures.settled()
    at = {
        b"u1": ("leased", START),
        b"u2": ("leased", NOW + 1),
        b"u3": ("dead", START),
        b"u4": ("delayed", NOW),
    }
    for item_id, (where, score) in at.items():
        world.queue.items[item_id] = Item(b"lost its record", where, score, 0)
    assert world.queue.state
    world.queue.state.next_due = START
    return world


def leftover() -> World:
    """Outcomes of earlier items of ids that are there, an end without its list, and a dead item of another creation."""
    world = fixtures.rich()
    for item_id in (b"r1", b"c1", b"s1", b"x1", b"x3"):
        world.queue.results[item_id] = Outcome(1, 1, START + 1, START, START + 2, b"earlier")
        world.queue.ttls[item_id] = DAY
        world.queue.kept[item_id] = NOW + US_DAY
    del world.queue.results[b"k1"]
    world.queue.kept[b"none"] = NOW
    return world


def over() -> World:
    """Outcomes and expiries that end now, and a microsecond later."""
    world = fixtures.rich()
    world.queue.kept = {b"k1": NOW, b"k2": NOW + 1, b"t1": NOW - 1}
    for item_id, ends in ((b"r2", NOW), (b"r3", NOW + 1), (b"r5", NOW), (b"f1", NOW), (b"p1", NOW + 1)):
        world.queue.items[item_id].expires = ends
    return world


def forgotten() -> World:
    """The rich queue has lost its state."""
    world = fixtures.rich()
    world.queue.state = None
    return world


def unbounded() -> World:
    """The state is there again and the bound is not known."""
    world = fixtures.stateless()
    world.queue.add(START, [Add(b"r9")])
    world.queue.wake = 0
    return world


def punctual() -> World:
    """A deadline and a due time are now, others in a microsecond."""
    world = fixtures.full()
    for item_id, score in ((b"e1", NOW), (b"e3", NOW + 1), (b"p1", NOW), (b"p2", NOW + 1), (b"x1", NOW)):
        world.queue.items[item_id].score = score
    return world


def ancient() -> World:
    """Creations are 0 and tokens small, as if both clocks had begun with the queue."""
    world = fixtures.rich()
    for number, (item_id, item) in enumerate(world.queue.items.items(), 1):
        item.created = 0 if item.recorded else item.created
        if item.token:
            item.token = number
            item.attempt += number % 3
            world.tokens[item_id] = [number]
    return world


def lone() -> World:
    """One item, and the state is lost."""
    world = fixtures.single()
    world.queue.state = None
    return world


def lone_lease() -> World:
    """One lease that expired, and the state is lost."""
    world = World()
    world.leased(b"c1", 1000)
    world.queue.state = None
    return world.quiet()


def lone_dead() -> World:
    """One item, which is dead, and the state is lost."""
    world = World()
    world.leased(b"x1")
    world.give_back(b"x1", dead=True)
    world.queue.state = None
    return world.quiet()


def least() -> World:
    """Takes data of one byte."""
    world = World()
    world.queue.configure(max_data=1)
    return world.quiet()


def rewound() -> World:
    """The server's clock was set back: deadlines and due times are further ahead than any may be."""
    world = fixtures.full()
    world.queue.items[b"c1"].score = NOW + 31 * US_DAY
    return world


SERVED: Final[dict[str, Callable[[], World]]] = {
    made.__name__: made
    for made in (
        unrecorded,
        leftover,
        over,
        forgotten,
        unbounded,
        punctual,
        ancient,
        lone,
        lone_lease,
        lone_dead,
        least,
        rewound,
    )
}
"""More kinds of queue; the sample calls are made on these too."""


def miscounted(world: World, damaged: bytes) -> tuple[World, Callable[[Dump], Dump]]:
    """The world with no counts, and what makes every counter one that is none or can grow no further."""
    world = copy.deepcopy(world)
    world.queue.counters.clear()

    def change(dump: Dump) -> Dump:
        counted: Any = dump.get("counters", {})
        return {**dump, "counters": {**dict.fromkeys(COUNTERS, damaged), **counted}}

    return world, change


def with_extra(item_id: bytes, packed: bytes) -> Callable[[Dump], Dump]:
    """What makes this the extra of an item."""

    def change(dump: Dump) -> Dump:
        meta: Any = dump["meta"]
        return {**dump, "meta": {**meta, b"\0" + item_id: packed}}

    return change


def counted(world: World, counts: dict[str, int]) -> World:
    """The world with these counts, and so much added that they leave something completed."""
    world = copy.deepcopy(world)
    assert world.queue.state
    world.queue.state.added = 1000
    world.queue.counters = Counter(counts)
    return world


def ghostly(world: World, ghosts: tuple[bytes, ...]) -> tuple[World, Callable[[Dump], Dump]]:
    """Ids in `ready` without data. The model has them as items that expired, for which the same is done."""
    world = copy.deepcopy(world)
    for number, item_id in enumerate(ghosts):
        world.queue.items[item_id] = Item(b"", "ready", number, START, True)
        item = world.queue.items[item_id]
        item.options, item.expires = 1, START

    def change(dump: Dump) -> Dump:
        changed: dict[str, Any] = dict(dump)
        for key in ("items", "meta"):
            changed[key] = {name: value for name, value in changed.get(key, {}).items() if name not in ghosts}
            if not changed[key]:
                del changed[key]
        if b"g1" in changed.get("ready", {}):
            changed["meta"] = {**changed.get("meta", {}), b"g1": record(), b"\0g1": b"\0\0"}
        counters = dict(changed.get("counters", {}))
        if b"expired" in counters:
            counters[b"dropped"] = counters.pop(b"expired")
            changed["counters"] = counters
        return changed

    return world, change


def haunted(world: World) -> tuple[World, Callable[[Dump], Dump]]:
    """More ids in `dead` than there are items, all without data. The model has them as dead items."""
    world = copy.deepcopy(world)
    ghosts = [b"g%d" % number for number in range(len(world.queue.items) + 1)]
    for item_id in ghosts:
        world.queue.items[item_id] = Item(b"", "dead", START, START)

    def change(dump: Dump) -> Dump:
        items: Any = dump["items"]
        left = {name: value for name, value in items.items() if name not in ghosts}
        without = {key: value for key, value in dump.items() if key != "items"}
        return {**without, "items": left} if left else without

    return world, change


def second_damaged(base: str, world: World, count: int) -> Vector:
    """lease_any on a queue and a second one whose state is none."""
    after = copy.deepcopy(world)
    other = {**stored(world.other, "other:"), "other:state": b"none"}
    given = stored(after.queue) | other
    results: list[tuple[Reply | Refused, Dump]] = []
    for _ in range(2):
        before = stored(after.queue)
        reply: Any = several.lease_any(NOW, [after.queue], count, 30_000)
        then = stored(after.queue)
        if (
            reply[0] == 0 and reply[1] != 0
        ):  # the second one is asked: an error where nothing was changed before
            reply = [0, 0, 0, 0, *reply[4:]] if then != before else Refused("LEASEQ_FORMAT")
        results.append((reply, then | other))
    (reply_1, then_1), (reply_2, then_2) = results
    return Vector(
        name=f"so {count}, the second queue damaged, on {base}",
        script="lease_any",
        rules=("LQ-ANY-2", "LQ-ANY-5"),
        now=NOW,
        given=given,
        argv=[b"2", str(count).encode(), b"30000"],
        reply=reply_1,
        then=then_1,
        again=reply_2,
        then_again=then_2,
        more=[*samples.LEASE, *samples.keys_of(samples.LEASE, other=True)],
        base=base,
    )


def spoiled_outcomes(world: World) -> Iterator[tuple[str, Dump, str, list[Any], list[str]]]:
    """Outcomes that count and are none: title, keyspace, script, arguments, keys behind the fixed ones."""
    finish: list[Any] = [1, 0, "k1", world.token(b"k1"), 1, "keep", 0, 0]
    for title, packed in BAD_OUTCOMES.items():
        spoiled = {**world.stored(), "result:k1": Kept((packed,), DAY)}
        yield title, spoiled, "outcome", [1, "k1"], ["result:k1"]
        yield title, spoiled, "outcome", [2, "c1", "k1"], ["result:c1", "result:k1"]
        yield title, spoiled, "complete_with", finish, ["result:k1"]
