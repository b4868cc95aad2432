"""Calls that lease, on queues that were made for them."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance.model.base import END, Item
from leaseq_conformance.model.calls import Add
from leaseq_conformance.model.codec import DIES, EXTRA, LEVEL, Extra, State
from leaseq_conformance.vectors import fixtures, samples
from leaseq_conformance.vectors.build import refused, vector
from leaseq_conformance.vectors.builder import HOUR, NOW, SECOND, START, World
from leaseq_conformance.vectors.corners.cleaning import to_clean
from leaseq_conformance.vectors.corners.making import (
    always,
    bounded,
    but,
    edge,
    held,
    lasting,
    lease_one,
    with_fields,
)
from leaseq_conformance.vectors.damage import with_extra
from leaseq_conformance.vectors.malformed import record
from leaseq_conformance.vectors.samples import HEADERS, lease
from leaseq_conformance.vectors.vector import Dump, Reply, Vector

if TYPE_CHECKING:
    from collections.abc import Iterator


def of_lease() -> Iterator[Vector]:
    """Of lease, on queues of all kinds."""
    yield from leases("lease")
    yield from extras("lease")
    yield from _swept()
    yield _dropped_without_state()
    world = fixtures.single()
    world.queue.items[b"r1"].score -= 3 * LEVEL
    two = samples.lease("2", 2, 30_000)
    title = "an item of level 3 without a record"
    yield vector("lease", world, "single", two, ("LQ-LEASE-1",), title=title)


def leases(script: str) -> Iterator[Vector]:
    """Of one queue, for `lease`, `lease_any` and `complete_and_lease`."""
    for title, world, count, rule in _to_lease():
        sample = lease_one(script, count)
        yield vector(script, world, "empty", sample, (rule,), title=title)
        if "tells" in title:
            full = vector(script, world, "empty", sample, (rule,), title=f"{title}, full server")
            yield Vector(**{**vars(full), "full": True})
    sample = lease_one(script, 1)
    yield vector(script, World(), "empty", sample, ("LQ-TIME-3",), now=END - 1, title="nothing, at the last")
    world = fixtures.single()
    dead = always({"dead": {b"g1": float(START), b"g2": float(START)}})
    yield vector(
        script, world, "single", sample, ("LQ-ROOM-1",), title="single, dead ids without data", change=dead
    )
    world = fixtures.full()
    second = [item_id for item_id, _ in world.queue._in("ready")][1]
    behind = always({"meta": {second: record(version=2)}})
    if script != "complete_and_lease":
        yield vector(
            script,
            world,
            "full",
            sample,
            ("LQ-LEASE-1",),
            title="full, a record behind is none",
            change=behind,
        )
    for base in ("full", "settled"):
        given = with_fields(fixtures.WORLDS[base]().stored(), {"meta": {b"r3": record(version=0)}})
        name = f"first record of version 0 on {base}"
        yield refused(script, name, base, given, sample.argv, "FORMAT", ("LQ-ERROR-1",), more=sample.more)
    made = vector(script, _ending(), "empty", sample, ("LQ-LEASE-10",), title="an end, its extra of one byte")
    yield but(made, with_fields(made.given, {"meta": {b"\0r9": b"\1"}}))
    for title, world, key in _mistyped():
        given = {**world.stored(), key: [b"of another type"]}
        name = f"{title}, {key} of another type"
        yield refused(
            script, name, "empty", given, sample.argv, "WRONG_TYPE", ("LQ-ERROR-3",), more=sample.more
        )


def _ending() -> World:
    """An item that ends now, whose extra is what it is then."""
    world = World()
    world.queue.items[b"r9"] = item = lasting(b"r9", NOW)
    item.options |= DIES | EXTRA
    item.extra = Extra(b"expired")
    return world


def _to_lease() -> Iterator[tuple[str, World, int, str]]:
    """What stands there, how many are leased, and the rule."""
    for title, world, _, _ in to_clean():
        if title.startswith(("leases", "deaths")):
            yield title, world, 1, "LQ-LEASE-12"
        if title.startswith("an empty"):
            yield f"{title}, which tells of room", world, 1, "LQ-ROOM-1"
    world = World()
    for item_id, expires in ((b"r1", 1), (b"r2", NOW)):
        world.queue.items[item_id] = item = lasting(item_id, expires)
        item.options |= DIES | EXTRA
        item.keep, item.extra = 1, Extra(b"an error", samples.HEADERS)
    world.queue.items[b"r3"] = lasting(b"r3", 1)
    yield "ends that are kept for 1 ms", world, 256, "LQ-LEASE-10"
    world = World()
    world.queue.add(START, [Add(b"r%d" % n, keep=n + 1, headers=samples.HEADERS) for n in range(40)])
    yield "forty that are kept", world.quiet(), 37, "LQ-LEASE-11"
    world = World()
    world.queue.add(START, [Add(b"r%02d" % n, b"x" * 61_681) for n in range(17)])
    yield "a byte more than a mebibyte", world.quiet(), 17, "LQ-LEASE-6"
    world = fixtures.single()
    world.queue.items[b"r1"].score -= 3 * LEVEL
    yield "an item of level 3 without a record", world, 1, "LQ-LEASE-5"
    for paused in (0, 1):
        world = World()
        world.queue.add(START, [Add(b"p%02d" % n, delay=1000) for n in range(70)])
        for number in range(70):
            world.queue.items[b"p%02d" % number].score = number - 100
        world.queue.configure(paused=paused)
        yield f"due times below 0{', paused' * paused}", world.quiet(), 1, "LQ-LEASE-4"
    yield from _to_wait()


def _to_wait() -> Iterator[tuple[str, World, int, str]]:
    """Queues that have nothing to give, or whose next time is near."""
    for where in ("delayed", "leased"):
        world = bounded(NOW + SECOND, NOW + 10 * SECOND, where)
        yield f"a bound that is early, the first is {where}", world, 1, "LQ-LEASE-7"
    yield "a bound that is late", bounded(NOW + SECOND, NOW - SECOND), 1, "LQ-LEASE-7"
    yield "due in the last microsecond of all", bounded(NOW + SECOND, 2**53 - 1), 1, "LQ-LEASE-7"
    world = bounded(START, 1)
    world.queue.state = None
    world.queue.items[b"f1"].score = NOW + SECOND
    yield "one that is delayed, no state", world, 1, "LQ-LEASE-7"
    world = bounded(NOW, NOW)
    world.queue.configure(paused=1)
    yield "one that is due, paused", world.quiet(), 1, "LQ-PAUSE-1"
    world = bounded(NOW, NOW)
    world.queue.items[b"f2"] = Item(b"", "delayed", NOW + 2 * SECOND, START, recorded=True)
    world.queue.configure(paused=1)
    yield "one that is due and one within the cap, paused", world.quiet(), 1, "LQ-PAUSE-1"
    world = fixtures.beyond()
    world.queue.add(START, [Add(b"r1")])
    yield "one, and what is due next is just beyond the cap", world.quiet(), 1, "LQ-LEASE-7"
    world = World()
    world.queue.state = State(clock=END - 1, next_due=2**53)
    yield "nothing, the clock's end", world, 1, "LQ-TIME-4"


def _mistyped() -> Iterator[tuple[str, World, str]]:
    """A key is of another type that is needed only behind what is written first."""
    yield "a bound that is early, a limit", bounded(NOW + SECOND, NOW + 10 * SECOND, max_items=9), "items"
    world = fixtures.single()
    world.queue.configure(max_items=9)
    yield "one, a limit", world.quiet(), "dead"
    world = World()
    world.queue.items[b"r2"] = lasting(b"r2", NOW)
    world.queue.state = State(clock=START + 1, next_due=2**53, largest=10, added=1)
    yield "one that ends", world, "delayed"


def short_way() -> Iterator[Vector]:
    """Of lease, on queues where it takes its short way, or just not."""
    one, two = lease("1", 1, 30_000), lease("2", 2, 30_000)
    for title, options in AGAIN.items():
        world = held(**options)
        world.give_back(b"c1")
        yield edge("lease", f"one that was leased, {title}", world.quiet(), one, ("LQ-LEASE-3", "LQ-KEY-5"))
        world.queue.items[b"c1"].created = 0
        yield edge("lease", f"one that was created at 0, {title}", world, one, ("LQ-LEASE-3",))
    world = fixtures.cap()
    yield edge("lease", "what is due next within the cap", _with_one(world), one, ("LQ-SETTLE-4",))
    yield edge("lease", "what is due next within the cap, two", _with_one(world), two, ("LQ-SETTLE-4",))
    yield edge(
        "lease", "what is due next beyond the cap, two", _with_one(fixtures.beyond()), two, ("LQ-SETTLE-4",)
    )
    place = World()
    place.queue.add(START, [Add(b"r1")])
    place.queue.add(START, [Add(b"%d" % place.queue.items[b"r1"].score, b"its id is a place")])
    yield edge("lease", "an item whose id is a place", place.quiet(), one, ("LQ-LEASE-1",))
    brief = lease("2 for 1 ms", 2, 1)
    yield edge("lease", "settled", fixtures.settled(), brief, ("LQ-LEASE-1", "LQ-LEASE-4"))
    for ready, limit in ((1, 1), (1, 2)):
        for sample in (one, two):
            yield edge(
                "lease", f"a limit of {limit}, dead ones", _with_dead(ready, limit), sample, ("LQ-ROOM-1",)
            )


AGAIN: Final[dict[str, dict[str, Any]]] = {
    "plain": {},
    "priority": {"priority": 3},
    "limit": {"max_attempts": 5},
    "keep 1": {"keep": 1},
    "headers": {"headers": HEADERS},
    "was to die": {"expires_in": HOUR, "dies": True},
    "was to die, headers": {"expires_in": HOUR, "dies": True, "headers": HEADERS},
}


def _with_one(world: World) -> World:
    world = copy.deepcopy(world)
    world.queue.add(START, [Add(b"r1")])
    return world.quiet()


def _with_dead(held: int, limit: int) -> World:
    world = World()
    for item_id in (b"x1", b"x2"):
        world.leased(item_id, 10 * HOUR)
        world.give_back(item_id, dead=True)
    world.queue.add(START, [Add(b"r%d" % number) for number in range(held)])
    world.queue.configure(max_items=limit)
    return world.quiet()


WHOLE: Final = Extra(b"", ((b"content_type", b"text/plain"), (b"header:a", b"1")))
CUT: Final[dict[str, tuple[Extra, bytes]]] = {
    "of no byte": (Extra(), b""),
    "of one byte": (Extra(), b"\1"),
    "whose error is longer than it": (Extra(), b"\5\0why"),
    "that ends within the length of a name": (WHOLE, WHOLE.encode() + b"\1"),
    "that ends within a name": (WHOLE, WHOLE.encode() + b"\5\0name"),
    "that ends behind a name": (WHOLE, WHOLE.encode() + b"\4\0name"),
    "that ends within the length of a value": (WHOLE, WHOLE.encode() + b"\4\0name\1"),
}
"""What is to be told of an extra whose lengths are wrong, and that extra: headers up to the damage (spec 8.4)."""


def extras(script: str) -> Iterator[Vector]:
    """Extras of which one thing is told, or nothing."""
    for title, (told, packed) in CUT.items():
        change = with_extra(b"r1", packed)
        on = f"an extra {title}"
        yield vector(
            script, _extended(told), "empty", lease_one(script, 1), ("LQ-LEASE-11",), title=on, change=change
        )
    nameless = _extended(Extra(b"", (*WHOLE.pairs, (b"", b""))))
    on = "an extra whose last name is empty"
    yield vector(script, nameless, "empty", lease_one(script, 1), ("LQ-LEASE-11",), title=on)


def _extended(extra: Extra) -> World:
    """One ready item with an extra."""
    world = World()
    world.queue.add(START, [Add(b"r1", b"data of r1", content_type=b"")])
    world.queue.items[b"r1"].extra = extra
    return world.quiet()


def _swept() -> Iterator[Vector]:
    """More than one call sweeps, at one time: the bound stays, the places that were taken are kept in the clock."""
    names = [b"r%02d" % number for number in range(65)]
    due = World()
    due.queue.add(START, [Add(name, delay=1000) for name in names])
    late = World()
    late.queue.add(START, [Add(name) for name in names])
    late.lease(len(names), 1000)
    for title, world in (("due", due), ("expired", late)):
        world.queue.configure(paused=1)
        said = f"a paused queue, 65 {title} at one time"
        yield vector(
            "lease", world.quiet(), "empty", lease_one("lease", 1), ("LQ-LEASE-5", "LQ-TIME-4"), title=said
        )


def _dropped_without_state() -> Vector:
    """An id in `ready` without data, no item, no state: it is made anew."""
    nothing: Reply = [-1, 0, 0]
    then: Dump = {"state": State(next_due=2**53).encode(), "counters": {b"dropped": b"1"}}
    return Vector(
        name="no item, no state, an id in ready",
        script="lease",
        rules=("LQ-LEASE-8", "LQ-KEY-4"),
        now=NOW,
        given={"ready": {b"g1": 5.0}, "expiry": {b"g1": float(NOW)}},
        argv=[b"1", b"30000"],
        reply=nothing,
        then=then,
        again=nothing,
        then_again=then,
        base="empty",
    )
