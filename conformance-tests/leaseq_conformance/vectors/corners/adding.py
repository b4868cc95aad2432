"""Calls of add on queues that were made for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from leaseq_conformance.model.calls import Add
from leaseq_conformance.model.codec import Outcome
from leaseq_conformance.vectors import fixtures
from leaseq_conformance.vectors.builder import DAY, NOW, START, World
from leaseq_conformance.vectors.corners import adding_one
from leaseq_conformance.vectors.corners.making import (
    LAST_SECOND,
    edge,
)
from leaseq_conformance.vectors.samples import add

if TYPE_CHECKING:
    from collections.abc import Iterator

    from leaseq_conformance.vectors.vector import Vector


MEBIBYTE: Final = 1_048_576


def vectors() -> Iterator[Vector]:
    """All of them."""
    one = Add(b"n1", b"new")
    paused = fixtures.halted()
    yield edge("add", "a paused queue", paused, add("plain", one), ("LQ-PAUSE-3",))
    yield edge("add", "a paused queue", paused, add("keep", Add(b"n1", keep=DAY)), ("LQ-KEY-7", "LQ-PAUSE-3"))
    yield edge(
        "add", "a lost state and one outcome", _one_outcome(), add("plain", one), ("LQ-ADD-8", "LQ-KEY-7")
    )
    limits: tuple[dict[str, int], ...] = ({}, {"max_items": 9}, {"max_data": 1})
    for limit in limits:
        world = _configured(**limit)
        longest = world.queue.state.max_data if world.queue.state else 0
        for size in (longest or MEBIBYTE, (longest or MEBIBYTE) + 1):
            said = " ".join(f"{name} {value}" for name, value in limit.items()) or "no limits"
            rules = ("LQ-ITEM-4", "LQ-CONFIG-1")
            yield edge("add", said, world, add(f"{size} bytes", Add(b"n1", b"d" * size)), rules)
    most = tuple((b"h%d" % number, b"") for number in range(16))
    typed = add("a content type and 16 headers", Add(b"n1", content_type=b"t", headers=most))
    yield edge("add", "an empty queue", World(), typed, ("LQ-ITEM-6",))
    for title, entry in (("due", Add(b"n1", delay=1000)), ("expires", Add(b"n1", expires_in=1000))):
        yield edge("add", "an empty queue", World(), add(f"{title} last", entry), ("LQ-ADD-4",), LAST_SECOND)
    three = add("three", one, Add(b"n2"), Add(b"n3"))
    yield edge("add", "a queue with room for two", _room_for_two(), three, ("LQ-ADD-7",))
    later = add("one there, one delayed", Add(b"c1"), Add(b"n1", delay=1000))
    yield edge("add", "a lost state and one leased", _lost(), later, ("LQ-KEY-4", "LQ-SETTLE-5"))
    many = add("ninety", *(Add(b"n%d" % number) for number in range(90)))
    yield edge("add", "a clock that was ahead", _ahead(37), many, ("LQ-ADD-2", "LQ-ORDER-2"))
    again = add("twice in a call, with another's id as data", Add(b"n1", b"0"), Add(b"n2"), Add(b"n1", b"x"))
    yield edge("add", "an item 0", _called_0(), again, ("LQ-ADD-1",))
    two = add("two, each with data of its own", Add(b"n1", b"x"), Add(b"n2", b"y"))
    yield edge("add", "an item 0", _called_0(), two, ("LQ-ADD-2",))
    yield from adding_one.vectors()


def _ahead(by: int) -> World:
    world = World()
    world.queue.add(NOW + by, [Add(b"r1")])
    return world.quiet()


def _called_0() -> World:
    world = World()
    world.queue.add(START, [Add(b"0", b"zero")])
    return world.quiet()


def _one_outcome() -> World:
    world = World()
    world.queue.kept[b"n1"] = NOW + DAY
    world.queue.results[b"n1"] = Outcome(1, 1, START + 1, START, START + 2, b"earlier")
    world.queue.ttls[b"n1"] = DAY
    return world


def _lost() -> World:
    world = World()
    world.leased(b"c1", DAY)
    world.queue.state = None
    return world.quiet()


def _configured(**limits: int) -> World:
    world = World()
    if limits:
        world.queue.configure(**limits)
    return world.quiet()


def _room_for_two() -> World:
    world = World()
    world.queue.add(START, [Add(b"r1")])
    world.queue.configure(max_items=3)
    return world.quiet()
