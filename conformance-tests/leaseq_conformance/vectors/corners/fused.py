"""Calls of complete_and_lease where its two halves meet: what is looked at ahead of both, and what they need of each other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance.model.calls import Complete
from leaseq_conformance.model.packed import State
from leaseq_conformance.vectors import worlds
from leaseq_conformance.vectors.build import as_bytes, refused, vector
from leaseq_conformance.vectors.corners.leasing import extras, leases
from leaseq_conformance.vectors.form import Dump, Refused, Vector
from leaseq_conformance.vectors.malformed import record
from leaseq_conformance.vectors.samples import complete_and_lease
from leaseq_conformance.vectors.world import NOW

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SCRIPT: Final = "complete_and_lease"
ABSENT: Final = Complete(b"none", 1)


def vectors() -> Iterator[Vector]:
    """All of them."""
    yield from leases(SCRIPT)
    yield from extras(SCRIPT)
    yield from _arguments()
    yield from _entries()
    yield from _no_room()
    yield from _beyond_the_heads()
    yield from _beyond_the_sweep()
    yield _dropped_without_state()


def _spoil(item_id: bytes) -> Callable[[Dump], Dump]:
    """What makes the record of an item one of another version."""

    def change(dump: Dump) -> Dump:
        meta: Any = dump["meta"]
        return {**dump, "meta": {**meta, item_id: record(version=2)}}

    return change


def _arguments() -> Iterator[Vector]:
    """Numbers at the ends of their ranges, one too large, and in another than their shortest form."""
    world = worlds.settled()
    held = Complete(b"c1", world.token(b"c1"))
    brief = complete_and_lease("two for 1 ms", 2, 1, held)
    yield vector(SCRIPT, world, "settled", brief, ("LQ-LEASE-1", "LQ-LEASE-4"))
    plain = complete_and_lease("options of 16 zeroes", 1, 1000, held)
    zeroes = replace(plain, argv=[*plain.argv[:-1], "0" * 16])
    yield vector(SCRIPT, world, "settled", zeroes, ("LQ-CALL-2",))
    for title, argv in (
        ("257 entries", [1, 1000, 257, *["none", 1, 0] * 257]),
        ("two options, one there", [1, 1000, 1, "c1", held.token, 2, "only_current", 1]),
    ):
        yield refused(SCRIPT, title, "settled", world.stored(), argv, "BAD_ARGUMENT", ("LQ-CALL-2",))


def _entries() -> Iterator[Vector]:
    """An id that is the name of an extra, and a token that the item never had."""
    rich, settled = worlds.rich(), worlds.settled()
    extra = complete_and_lease("an extra's name", 1, 1000, Complete(b"\0c1", rich.token(b"c1")))
    yield vector(SCRIPT, rich, "rich", extra, ("LQ-ITEM-1",))
    created = settled.queue.items[b"c1"].created
    creation = complete_and_lease("token is its creation", 1, 1000, Complete(b"c1", created))
    yield vector(SCRIPT, settled, "settled", creation, ("LQ-COMPLETE-1",))


def _no_room() -> Iterator[Vector]:
    """A queue is as full as it may be, and nobody was told of room: nobody is now."""
    world = worlds.tight()
    world.queue.room = 0
    sample = complete_and_lease("absent", 1, 1000, ABSENT)
    title = "a full queue that told nobody"
    yield vector(SCRIPT, world, "tight", sample, ("LQ-ROOM-1",), title=title)


def _beyond_the_heads() -> Iterator[Vector]:
    """A record is wrong that neither half comes to: behind one to lease and one in the place of what is completed."""
    world = worlds.halted()
    third = [item_id for item_id, _ in world.queue._in("ready")][2]
    sample = complete_and_lease("absent", 1, 1000, ABSENT)
    title = "halted, a record behind is none"
    yield vector(SCRIPT, world, "halted", sample, ("LQ-FUSED-1",), title=title, change=_spoil(third))


def _beyond_the_sweep() -> Iterator[Vector]:
    """More have expired than one call reclaims, and the first of them is completed, which makes room for one more.

    The record of the last one to reclaim is wrong, so that neither half takes place; or that of the next, to which only
    the second call comes.
    """
    world = worlds.crowded()
    late = [item_id for item_id, item in world.queue._in("leased") if item.score <= NOW]
    sample = complete_and_lease("the first that expired", 1, 1000, Complete(late[0], world.token(late[0])))
    last, behind = _spoil(late[64]), _spoil(late[65])
    name = f"{sample.title} on crowded, the record of the 65th is none"
    rules = ("LQ-FUSED-1", "LQ-ERROR-1")
    yield refused(SCRIPT, name, "crowded", last(world.stored()), sample.argv, "FORMAT", rules)
    title = "crowded, the record of the 66th is none"
    rules = ("LQ-FUSED-1", "LQ-LEASE-5")
    made = vector(SCRIPT, world, "crowded", sample, rules, title=title, change=behind)
    yield replace(made, again=Refused("LEASEQ_FORMAT"), then_again=made.then)


def _dropped_without_state() -> Vector:
    """An id in `ready` without data, no item, no state: that is made anew, of no items."""
    sample = complete_and_lease("absent", 1, 1000, ABSENT)
    then: Dump = {"state": State(next_due=2**53).encode(), "counters": {b"dropped": b"1"}}
    nothing: list[int | bytes] = [-1, 0, 0, 0]
    return Vector(
        "no item, no state, an id in ready",
        SCRIPT,
        ("LQ-LEASE-8", "LQ-KEY-4"),
        NOW,
        {"ready": {b"g1": 5.0}, "expiry": {b"g1": float(NOW)}},
        [as_bytes(each) for each in sample.argv],
        nothing,
        then,
        nothing,
        then,
        base="empty",
    )
