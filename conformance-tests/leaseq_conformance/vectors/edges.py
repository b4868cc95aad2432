"""Calls that each need a queue of their own to show where a rule begins and ends."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance.model.base import END, Item
from leaseq_conformance.model.calls import Add, Complete, Release
from leaseq_conformance.model.packed import TAIL, UNLIMITED, Outcome
from leaseq_conformance.vectors.other_samples import settles
from leaseq_conformance.vectors.samples import HEADERS, Sample, add, complete, lease, release
from leaseq_conformance.vectors.world import DAY, HOUR, NOW, START, World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from leaseq_conformance.vectors.form import Dump

MEBIBYTE: Final = 1_048_576
LAST_SECOND: Final = END - 1 - 1_000_000
"""A second before the last microsecond of 2059."""


@dataclass(frozen=True)
class Edge:
    """A call on a queue, named for what is special about that; `change` is as in `build.vector`."""

    on: str
    world: World
    sample: Sample
    rules: tuple[str, ...]
    now: int = NOW
    change: Callable[[Dump], Dump] = lambda dump: dump


def of(script: str, made: Mapping[str, World]) -> Iterator[Edge]:
    """The edges of a script."""
    if script in EDGES:
        yield from EDGES[script](made)


# -- add


def _adds(made: Mapping[str, World]) -> Iterator[Edge]:
    one = Add(b"n1", b"new")
    paused = made["halted"]
    yield Edge("a paused queue", paused, add("plain", one), ("LQ-PAUSE-3",))
    yield Edge("a paused queue", paused, add("keep", Add(b"n1", keep=DAY)), ("LQ-KEY-7", "LQ-PAUSE-3"))
    yield Edge("a lost state and one outcome", _one_outcome(), add("plain", one), ("LQ-ADD-8", "LQ-KEY-7"))
    limits: tuple[dict[str, int], ...] = ({}, {"max_items": 9}, {"max_data": 1})
    for limit in limits:
        world = _configured(**limit)
        longest = world.queue.state.max_data if world.queue.state else 0
        for size in (longest or MEBIBYTE, (longest or MEBIBYTE) + 1):
            said = " ".join(f"{name} {value}" for name, value in limit.items()) or "no limits"
            rules = ("LQ-ITEM-4", "LQ-CONFIG-1")
            yield Edge(said, world, add(f"{size} bytes", Add(b"n1", b"d" * size)), rules)
    most = tuple((b"h%d" % number, b"") for number in range(16))
    typed = add("a content type and 16 headers", Add(b"n1", content_type=b"t", headers=most))
    yield Edge("an empty queue", World(), typed, ("LQ-ITEM-6",))
    for title, entry in (("due", Add(b"n1", delay=1000)), ("expires", Add(b"n1", expires_in=1000))):
        yield Edge("an empty queue", World(), add(f"{title} last", entry), ("LQ-ADD-4",), LAST_SECOND)
    three = add("three", one, Add(b"n2"), Add(b"n3"))
    yield Edge("a queue with room for two", _room_for_two(), three, ("LQ-ADD-7",))


def _one_outcome() -> World:
    world = World()
    world.queue.kept[b"n1"] = NOW + DAY
    world.queue.results[b"n1"] = Outcome(1, 1, START + 1, START, START + 2, b"earlier")
    world.queue.ttls[b"n1"] = DAY
    return world


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


# -- complete


def _completes(made: Mapping[str, World]) -> Iterator[Edge]:
    settled, rich = made["settled"], made["rich"]
    at = settled.token(b"c1")
    long = "é".encode() * 128
    yield Edge("settled", settled, complete("absent, 256 bytes of UTF-8", Complete(long, 1)), ("LQ-ITEM-1",))
    created = settled.queue.items[b"c1"].created
    pair = complete("token is its creation, of two", Complete(b"c1", created), Complete(b"c2", created))
    yield Edge("settled", settled, pair, ("LQ-COMPLETE-1",))
    extra = Complete(b"\0c1", at)
    for title, entries in (("one", [extra]), ("two", [extra, Complete(b"none", 1)])):
        sample = complete(f"an extra's name, {title}", *entries)
        yield Edge("rich", rich, sample, ("LQ-ITEM-1",))


# -- lease


def _leases(made: Mapping[str, World]) -> Iterator[Edge]:
    one, two = lease("1", 1, 30_000), lease("2", 2, 30_000)
    for title, options in AGAIN.items():
        world = _held(**options)
        world.give_back(b"c1")
        yield Edge(f"one that was leased, {title}", world.quiet(), one, ("LQ-LEASE-3", "LQ-KEY-5"))
        world.queue.items[b"c1"].created = 0
        yield Edge(f"one that was created at 0, {title}", world, one, ("LQ-LEASE-3",))
    world = made["cap"]
    yield Edge("what is due next within the cap", _with_one(world), one, ("LQ-SETTLE-4",))
    yield Edge("what is due next within the cap, two", _with_one(world), two, ("LQ-SETTLE-4",))
    yield Edge("what is due next beyond the cap, two", _with_one(made["beyond"]), two, ("LQ-SETTLE-4",))
    place = World()
    place.queue.add(START, [Add(b"r1")])
    place.queue.add(START, [Add(b"%d" % place.queue.items[b"r1"].score, b"its id is a place")])
    yield Edge("an item whose id is a place", place.quiet(), one, ("LQ-LEASE-1",))
    brief = lease("2 for 1 ms", 2, 1)
    yield Edge("settled", made["settled"], brief, ("LQ-LEASE-1", "LQ-LEASE-4"))
    for held, limit in ((1, 1), (1, 2)):
        for sample in (one, two):
            yield Edge(f"a limit of {limit}, dead ones", _with_dead(held, limit), sample, ("LQ-ROOM-1",))


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


# -- release


def _releases(made: Mapping[str, World]) -> Iterator[Edge]:
    settled, rich, paused = made["settled"], made["rich"], made["halted"]
    held = Release(b"c1", settled.token(b"c1"), delay=1000)
    yield Edge("settled", settled, release("due last", held), ("LQ-RELEASE-2",), LAST_SECOND)
    for item_id in (b"r1", b"r3"):
        never = release(f"never leased {item_id.decode()}", Release(item_id, 0))
        yield Edge("rich", rich, never, ("LQ-RELEASE-1",))
    for on, world in (("settled", settled), ("rich", rich)):
        brief = Release(b"c1", world.token(b"c1"), dead=True, keep=1)
        yield Edge(on, world, release("dead keep 1", brief), ("LQ-OUTCOME-3",))
    last = release("keep", Release(b"c2", paused.token(b"c2"), keep=1000))
    yield Edge("a paused queue", paused, last, ("LQ-OUTCOME-3", "LQ-KEY-7"))
    yield from _failures()
    yield from _limits()


def _failures() -> Iterator[Edge]:
    """Of items that are dropped or die when they expire, that failed before, and whose extra is damaged."""
    for on, options in (
        ("an item that was to die", {"expires_in": HOUR, "dies": True}),
        ("an item that was to go", {"expires_in": HOUR}),
        ("one with headers that was to die", {"expires_in": HOUR, "dies": True, "headers": HEADERS}),
    ):
        yield from _failing(on, _held(**options), "LQ-DEAD-2")
    failed = _held(headers=HEADERS)
    failed.give_back(b"c1", error=b"the first time")
    failed.lease(1, 10 * HOUR)
    yield from _failing("an item that failed before", failed.quiet(), "LQ-DEAD-2")
    for damaged in (b"", b"\x01", b"\0\0"):
        on = f"an item whose extra is {damaged.hex() or 'empty'}"
        yield from _failing(on, _held(headers=HEADERS), "LQ-DEAD-2", damaged)


def _failing(on: str, world: World, rule: str, damaged: bytes | None = None) -> Iterator[Edge]:
    token = world.token(b"c1")
    change = _with_extra(damaged)
    if damaged is not None:
        world.queue.items[b"c1"].extra = None
    for title, options in (
        ("plain", {}),
        ("error", {"error": b"why"}),
        ("uncounted", {"uncounted": True, "error": b"why"}),
        ("dead keep", {"dead": True, "keep": DAY}),
        ("dead keep and error", {"dead": True, "keep": DAY, "error": b"why"}),
    ):
        sample = release(title, Release(b"c1", token, **options))
        yield Edge(on, world, sample, (rule, "LQ-OUTCOME-3"), change=change)


def _with_extra(damaged: bytes | None) -> Callable[[Dump], Dump]:
    """What puts a damaged extra where the model has none."""

    def change(dump: Dump) -> Dump:
        meta: Any = dump["meta"]
        if damaged is None or b"\0c1" in meta:
            return dump
        return {**dump, "meta": {**meta, b"\0c1": damaged}}

    return change


def _limits() -> Iterator[Edge]:
    """The highest limit of attempts, and none."""
    for limit in (65_534, UNLIMITED):
        for attempt in (limit - 1, limit):
            world = _held()
            item: Item = world.queue.items[b"c1"]
            item.options, item.max_attempts, item.attempt = TAIL, limit, attempt
            sample = release("plain", Release(b"c1", world.token(b"c1")))
            on = f"attempt {attempt} of {'any number' if limit == UNLIMITED else limit}"
            yield Edge(on, world, sample, ("LQ-RELEASE-3",))


def _held(**options: Any) -> World:
    world = World()
    world.leased(b"c1", 10 * HOUR, **options)
    return copy.deepcopy(world).quiet()


# -- settle


def _settles(made: Mapping[str, World]) -> Iterator[Edge]:
    """What is due next comes within the cap in this microsecond."""
    for sample in settles(made["beyond"]):
        yield Edge("beyond, a microsecond later", made["beyond"], sample, ("LQ-SETTLE-1",), NOW + 1)


EDGES: Final[dict[str, Callable[[Mapping[str, World]], Iterator[Edge]]]] = {
    "add": _adds,
    "complete": _completes,
    "lease": _leases,
    "release": _releases,
    "settle": _settles,
}
"""What makes the edges of a script of the queues that there are."""
