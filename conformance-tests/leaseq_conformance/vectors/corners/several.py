"""Calls of lease_any on queues that were made for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leaseq_conformance.model.base import END
from leaseq_conformance.model.codec import State
from leaseq_conformance.vectors import fixtures, samples
from leaseq_conformance.vectors.build import as_bytes, refused, vector
from leaseq_conformance.vectors.builder import NOW, SECOND, World
from leaseq_conformance.vectors.corners.leasing import extras, leases
from leaseq_conformance.vectors.corners.making import (
    bounded,
    crowded_call,
)
from leaseq_conformance.vectors.damage import second_damaged
from leaseq_conformance.vectors.malformed import BAD_STATES, WRONG_STATES
from leaseq_conformance.vectors.vector import Dump, Refused, Vector

if TYPE_CHECKING:
    from collections.abc import Iterator

    from leaseq_conformance.model.queue import Queue


def vectors() -> Iterator[Vector]:
    """All of them."""
    yield from leases("lease_any")
    yield crowded_call("lease_any", [1, 1, 1000])
    given = fixtures.full().stored()
    yield refused(
        "lease_any", "no queues", "full", given, [0, 1, 1000], "BAD_ARGUMENT", ("LQ-CALL-2",), keys=[]
    )
    sixteen = samples.lease_any("sixteen queues", "so" * 8, 1, 1000)
    yield vector("lease_any", World(), "empty", sixteen, ("LQ-ANY-3",))
    yield from _settled_beside()
    yield from _behind_the_first()
    yield _dropped_without_state()
    yield from extras("lease_any")


def _beside(other: Queue) -> World:
    world = fixtures.single()
    world.other = other
    return world


def _settled_beside() -> Iterator[Vector]:
    """The first queue gives an item, the second is settled, or stays as it is where it cannot be."""
    for title, queue in (
        ("one ready", fixtures.single().queue),
        ("one delayed, no state", bounded(NOW, NOW + 3600 * SECOND).queue),
        ("one just within the cap", fixtures.cap().queue),
        ("one just beyond the cap", fixtures.beyond().queue),
        ("one ready, the clock's end", fixtures.single().queue),
    ):
        world = _beside(queue)
        if "end" in title:
            world.other.state = State(clock=END - 1, next_due=2**53, added=1, largest=99)
        if "no state" in title:
            world.other.state = None
        sample = samples.lease_any("so 1", "so", 1, 30_000)
        yield vector("lease_any", world, "single", sample, ("LQ-ANY-2",), title=f"single, beside {title}")
    plain = vector(
        "lease_any", fixtures.single(), "single", samples.lease_any("so 1", "so", 1, 30_000), ("LQ-ANY-2",)
    )
    beside = {
        key: value for key, value in _beside(fixtures.single().queue).stored().items() if key[:6] == "other:"
    }
    for title, packed in {**BAD_STATES, **WRONG_STATES}.items():
        wrong: Dump = {**beside, "other:state": packed}
        dumps = {name: {**getattr(plain, name), **wrong} for name in ("given", "then", "then_again")}
        yield Vector(
            **{
                **vars(plain),
                **dumps,
                "again": Refused("LEASEQ_FORMAT"),
                "name": f"so 1, state of the second {title}",
            }
        )


def _behind_the_first() -> Iterator[Vector]:
    """The first queue gives nothing."""
    sample = samples.lease_any("so 1", "so", 1, 30_000)
    for title, queue, other in (
        ("due soon, then one ready", fixtures.soon().queue, fixtures.single().queue),
        (
            "a bound that is late, then one ready",
            bounded(NOW + SECOND, NOW - SECOND).queue,
            fixtures.single().queue,
        ),
        ("one waits for a microsecond", bounded(NOW + 9, NOW + 9).queue, bounded(NOW + 1, NOW + 1).queue),
        ("both wait for a microsecond", bounded(NOW + 1, NOW + 1).queue, bounded(NOW + 1, NOW + 1).queue),
    ):
        world = World(queue=queue, other=other)
        yield vector("lease_any", world, "empty", sample, ("LQ-ANY-3", "LQ-ANY-4"), title=title)
    world = World()
    world.queue.configure(max_items=1)
    yield second_damaged("empty", world.quiet(), 1)
    moved = second_damaged("empty", bounded(NOW + SECOND, NOW + 10 * SECOND), 1)
    keys = samples.keys_of(samples.LEASE)
    three = {
        "argv": [b"3", *moved.argv[1:]],
        "more": [*keys, *moved.more],
        "name": f"s{moved.name}, a bound that is early",
    }
    yield Vector(**{**vars(moved), **three})


def _dropped_without_state() -> Vector:
    """An id in `ready` without data, no item, no state: it is made anew."""
    state = State(next_due=2**53).encode()
    then: Dump = {"state": state, "counters": {b"dropped": b"1"}}
    sample = samples.lease_any("s 1", "s", 1, 30_000)
    given: Dump = {"ready": {b"g1": 5.0}, "expiry": {b"g1": float(NOW)}}
    reply: list[int | bytes] = [0, 0, 0, 0]
    again: list[int | bytes] = [0, -1, 0, 0]
    return Vector(
        "no item, no state, an id in ready",
        "lease_any",
        ("LQ-LEASE-8", "LQ-KEY-4"),
        NOW,
        given,
        [as_bytes(each) for each in sample.argv],
        reply,
        then,
        again,
        then,
        more=list(sample.more),
        base="empty",
    )
