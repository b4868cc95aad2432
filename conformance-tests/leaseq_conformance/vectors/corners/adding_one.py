"""Calls of add that have one entry, and what is next to them: options, queues and keys that each take a way of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance.model.base import Item
from leaseq_conformance.model.calls import Add
from leaseq_conformance.model.codec import PAUSED, State
from leaseq_conformance.vectors.build import refused
from leaseq_conformance.vectors.builder import DAY, HOUR, NOW, START, World
from leaseq_conformance.vectors.corners.making import edge
from leaseq_conformance.vectors.malformed import wrong_type
from leaseq_conformance.vectors.samples import Sample, add

if TYPE_CHECKING:
    from collections.abc import Iterator

    from leaseq_conformance.vectors.vector import Vector

NEXT: Final = NOW + HOUR * 1000
"""When the next item is due."""
OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "no option": {},
    "attempts and an expiry": {"max_attempts": 3, "expires_in": HOUR},
    "an outcome to keep": {"keep": DAY},
    "a header": {"headers": ((b"trace", b"7f"),)},
    "every option": {
        "priority": 2,
        "max_attempts": 3,
        "expires_in": 3 * HOUR,
        "dies": True,
        "keep": DAY,
        "content_type": b"t",
        "headers": ((b"a", b"1"), (b"b", b"2")),
    },
    "a delay until the next is due": {"delay": HOUR},
    "a delay until just before": {"delay": HOUR - 1},
    "a delay and every option": {"delay": 2 * HOUR, "priority": -2, "expires_in": 3 * HOUR, "keep": 1},
    "options that change nothing": {"priority": 0, "delay": 0},
}
"""What one entry may say."""


def vectors() -> Iterator[Vector]:
    """All of them."""
    for on, world in _queues().items():
        for title, options in OPTIONS.items():
            one = add(f"one with {title}", Add(b"n1", b"data of n1", **options))
            two = add(f"two with {title}", Add(b"n1", b"data of n1", **options), Add(b"n2", b"", **options))
            for sample in (one, two):
                made = edge("add", on, world, sample, ("LQ-ADD-2", "LQ-ADD-3"))
                yield made
                if on in {"a queue that waits", "a queue that keeps outcomes"}:
                    yield from _wrong_types(made, sample)
    yield from _existing()
    names = Add(b"n1", headers=((b"a", b"header:c"), (b"b", b"header:a"), (b"c", b"header:c")))
    yield edge("add", "an empty queue", World(), add("values that are names", names), ("LQ-ITEM-6",))
    longest = Add("é".encode() * 128, priority=1)
    yield edge("add", "an empty queue", World(), add("a long id and an option", longest), ("LQ-ITEM-1",))


def _queues() -> dict[str, World]:
    """Nobody is awake on any of them; on some, something is ready."""
    return {
        "a queue that waits": _waiting(),
        "a queue that waits, something ready": _waiting(ready=True),
        "a queue that keeps outcomes": _with_outcomes(_waiting()),
        "a paused queue": _with_state(_waiting(ready=True), flags=PAUSED),
        "a paused queue of which no time is known": _with_state(_waiting(), flags=PAUSED, next_due=0),
        "a queue with room for one": _with_state(_waiting(), max_items=2),
        "a queue without room": _with_state(_waiting(dead=True), max_items=1),
    }


def _waiting(*, ready: bool = False, dead: bool = False) -> World:
    """One item that is due later."""
    world = World()
    world.queue.items[b"d1"] = Item(b"data of d1", "delayed", NEXT, START, recorded=True)
    if ready:
        world.queue.add(START, [Add(b"r1")])
    if dead:
        world.queue.items[b"x1"] = Item(b"data of x1", "dead", START + 1, START, recorded=True)
    return _with_state(world, clock=START + 2, next_due=NEXT, largest=10, added=2)


def _with_state(world: World, **changes: int) -> World:
    state = world.queue.state or State()
    world.queue.state = state
    for name, value in changes.items():
        setattr(state, name, value)
    return world.quiet()


def _with_outcomes(world: World) -> World:
    """Of two ids an earlier item has an outcome."""
    world.queue.kept |= {b"n1": NOW + DAY, b"n2": NOW + DAY, b"k1": NOW + DAY}
    return _with_state(world, flags=2)


def _wrong_types(made: Vector, sample: Sample) -> Iterator[Vector]:
    """Each key that the call changes is of another type."""
    for key in sorted({*made.given, *made.then}):
        if made.given.get(key) != made.then.get(key):
            given = {**made.given, key: wrong_type(key)}
            name = f"{made.name}, {key} of another type"
            rules = ("LQ-ERROR-1", "LQ-ERROR-3")
            yield refused("add", name, made.base, given, sample.argv, "WRONG_TYPE", rules)


def _existing() -> Iterator[Vector]:
    """Two entries, one or both of which exist: what follows from items that are added follows from one."""
    unknown = _with_state(_waiting(), flags=PAUSED, next_due=0)
    for on, world in (
        ("a queue that keeps outcomes", _with_outcomes(_waiting())),
        ("a paused queue", unknown),
    ):
        for title, ids in (
            ("the first", (b"n1", b"d1")),
            ("the last", (b"d1", b"n1")),
            ("none", (b"d1", b"d1")),
        ):
            sample = add(f"two, {title} of which is new", *map(Add, ids))
            yield edge("add", on, world, sample, ("LQ-ADD-1", "LQ-ADD-8"))
