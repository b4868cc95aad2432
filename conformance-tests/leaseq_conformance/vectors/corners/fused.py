"""Calls of complete_and_lease where its two halves meet: what is looked at ahead of both, and what they need of each other."""

from __future__ import annotations

import struct
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance.model.calls import Add, Complete
from leaseq_conformance.model.codec import LEVEL, State
from leaseq_conformance.vectors import fixtures
from leaseq_conformance.vectors.build import as_bytes, refused, vector
from leaseq_conformance.vectors.builder import HOUR, NOW, START, World
from leaseq_conformance.vectors.corners.leasing import AGAIN, extras, leases
from leaseq_conformance.vectors.corners.making import edge, with_fields
from leaseq_conformance.vectors.malformed import BAD_RECORDS, record
from leaseq_conformance.vectors.samples import HEADERS, complete_and_lease
from leaseq_conformance.vectors.vector import Dump, Refused, Vector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from leaseq_conformance.vectors.samples import Sample

SCRIPT: Final = "complete_and_lease"
RECORD: Final = 22
"""Bytes of a record without a tail: version, options, attempt, and from the sixth on current and created."""
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


def short_way() -> Iterator[Vector]:
    """On queues where the call takes its short way, or just not: nothing is due, and its one entry is completed."""
    fused, kept = ("LQ-FUSED-1",), ("LQ-FUSED-1", "LQ-KEY-5")
    for title, options in AGAIN.items():
        yield _edge(f"one to complete, {title}", _with_next(options), kept)
        world = _held(b"c1", given=options, **options)
        world.give_back(b"c1")
        yield _edge(f"the next was leased too, {title}", world, kept)
        yield _edge(f"the next was never leased, {title}", _with_next({}, **options), kept)
        for item_id in (b"c1", b"h1"):
            world.queue.items[item_id].created = 0
        yield _edge(f"both were created at 0, {title}", world, fused)
    for where, options in ENDS.items():
        yield _edge(f"one that is {where}, behind the next", _with_next({}, given_back=options), fused)
    world = _held()
    world.give_back(b"h1")
    world.queue.add(START, [Add(b"r1")])
    yield _edge("one that is the next itself", world, fused)
    world = _with_next({}, given_back={})
    assert world.lease(2, 10 * HOUR)[2] == 2
    world.queue.add(START, [Add(b"r2")])
    older = Complete(b"h1", world.tokens[b"h1"][0])
    yield edge(SCRIPT, "one by an older lease", world.quiet(), _one(older), fused)
    yield from _to_settle()
    yield from _odd_places()
    yield from _bad_records()
    yield from _not_so_short()


def _to_settle() -> Iterator[Vector]:
    """Who is told of what is left, and of room."""
    settle = ("LQ-SETTLE-4",)
    for title, base, count in (
        ("within", fixtures.cap, 1),
        ("beyond", fixtures.beyond, 1),
        ("beyond", fixtures.beyond, 2),
    ):
        world = _held(base=base())
        world.queue.add(START, [Add(b"r%d" % number) for number in range(count)])
        yield _edge(f"{count} ready, what is due next {title} the cap", world, settle)
    for limit in (1, 2):
        world = _held()
        for item_id in (b"x1", b"x2"):
            world.leased(item_id, 10 * HOUR)
            world.give_back(item_id, dead=True)
        world.queue.add(START, [Add(b"r1")])
        world.queue.configure(max_items=limit)
        yield _edge(f"a limit of {limit}, dead ones", world, ("LQ-ROOM-1",))


def _odd_places() -> Iterator[Vector]:
    """The next has a place that tells: of a level without a record, of the clock ahead; or one that is an id."""
    world = _with_next({})
    world.queue.items[b"r1"].score -= 3 * LEVEL
    yield _edge("the next of level 3 without a record", world, ("LQ-LEASE-5",))
    world = _with_next({})
    assert world.queue.state
    world.queue.state.clock = NOW + 5
    yield _edge("the clock ahead", world, ("LQ-TIME-4",))
    world = _with_next({})
    world.queue.add(START, [Add(b"%d" % world.queue.items[b"r1"].score, b"its id is a place")])
    yield _edge("the next, whose place is an id", world, ("LQ-LEASE-1",))


def _bad_records() -> Iterator[Vector]:
    """The record of what is to be completed is none, though its lease may complete it; or that of the next."""
    world = _with_next({})
    created = world.queue.items[b"h1"].created
    for title, packed in BAD_RECORDS.items():
        spoilt = packed
        if len(packed) >= RECORD and "current" not in title:
            token = struct.pack("<d", world.token(b"h1"))
            spoilt = (
                packed[:6]
                + token
                + (packed[14:22] if "created" in title else struct.pack("<d", created))
                + packed[22:]
            )
        for item_id, bad in ((b"h1", spoilt), (b"r1", packed)):
            given = with_fields(world.stored(), {"meta": {item_id: bad}})
            name = f"the short way, record of {item_id.decode()} {title}"
            yield refused(SCRIPT, name, "empty", given, _one_of(world).argv, "FORMAT", ("LQ-ERROR-1",))


def _not_so_short() -> Iterator[Vector]:
    """Calls that are one argument away from the short way, on queues where they would take it."""
    world = _with_next({})
    token = world.token(b"h1")
    for title, argv in (
        ("two entries, one there", [1, 30_000, 2, "h1", token, 0]),
        ("two entries, one there, for 1 ms", [1, 1, 2, "h1", token, 0]),
        ("an option, none there", [1, 30_000, 1, "h1", token, 1]),
        ("an argument too many", [1, 30_000, 1, "h1", token, 0, 0]),
        ("a token of 17 digits", [1, 30_000, 1, "h1", f"0{token}", 0]),
        ("a token in hexadecimal digits", [1, 30_000, 1, "h1", hex(token), 0]),
        ("a token of letters", [1, 30_000, 1, "h1", "abc", 0]),
    ):
        yield refused(
            SCRIPT, f"the short way, {title}", "empty", world.stored(), argv, "BAD_ARGUMENT", ("LQ-CALL-2",)
        )
    for title, other in (("1", b"1"), ("its token", b"%d" % _together(b"1").token(b"h1"))):
        world = _together(other)
        yield _edge(f"the next, and an item whose id is {title}", world, ("LQ-FUSED-1",))
        argv = [1, 30_000, 2, other, world.token(other), 0]
        name = f"the short way, two entries, one there, its id is {title}"
        yield refused(SCRIPT, name, "empty", world.stored(), argv, "BAD_ARGUMENT", ("LQ-CALL-2",))
    world = _with_next({"headers": HEADERS})
    extra = Complete(b"\0h1", world.token(b"h1"))
    yield edge(SCRIPT, "the short way, an extra's name", world, _one(extra), ("LQ-ITEM-1",))
    world = _with_next({}, priority=1)
    never = Complete(b"r1", 1)
    yield edge(SCRIPT, "the short way, one that was never leased", world, _one(never), ("LQ-COMPLETE-1",))


def _together(other: bytes) -> World:
    """Two items that were added, and then leased, together, and one to lease."""
    world = World()
    world.queue.add(START, [Add(b"h1"), Add(other)])
    assert world.lease(2, 10 * HOUR)[2] == 2
    world.queue.add(START, [Add(b"r1")])
    return world.quiet()


ENDS: Final[dict[str, dict[str, Any]]] = {"ready": {}, "delayed": {"delay": HOUR}, "dead": {"dead": True}}
"""Where an item is that is completed by a lease that it had, and how it came there."""


def _held(
    *others: bytes, base: World | None = None, given: Mapping[str, Any] = MappingProxyType({}), **options: Any
) -> World:
    """One item that is leased for long, and others that are, with options."""
    world = World() if base is None else base
    world.leased(b"h1", 10 * HOUR, **given)
    for item_id in others:
        world.leased(item_id, 10 * HOUR, **options)
    return world


def _with_next(
    given: Mapping[str, Any], *, given_back: Mapping[str, Any] | None = None, **options: Any
) -> World:
    """One item that is leased or was given back, and one to lease, with options, ahead of it."""
    world = _held(given=given)
    world.queue.add(START, [Add(b"r1", b"data of r1", **options)])
    if given_back is not None:
        world.give_back(b"h1", **given_back)
    return world


def _one_of(world: World) -> Sample:
    return _one(Complete(b"h1", world.token(b"h1")))


def _one(entry: Complete) -> Sample:
    return complete_and_lease("one", 1, 30_000, entry)


def _edge(title: str, world: World, rules: tuple[str, ...]) -> Vector:
    return edge(SCRIPT, f"the short way, {title}", world.quiet(), _one_of(world), rules)


def _spoil(item_id: bytes) -> Callable[[Dump], Dump]:
    """What makes the record of an item one of another version."""

    def change(dump: Dump) -> Dump:
        meta: Any = dump["meta"]
        return {**dump, "meta": {**meta, item_id: record(version=2)}}

    return change


def _arguments() -> Iterator[Vector]:
    """Numbers at the ends of their ranges, one too large, and in another than their shortest form."""
    world = fixtures.settled()
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
    rich, settled = fixtures.rich(), fixtures.settled()
    extra = complete_and_lease("an extra's name", 1, 1000, Complete(b"\0c1", rich.token(b"c1")))
    yield vector(SCRIPT, rich, "rich", extra, ("LQ-ITEM-1",))
    created = settled.queue.items[b"c1"].created
    creation = complete_and_lease("token is its creation", 1, 1000, Complete(b"c1", created))
    yield vector(SCRIPT, settled, "settled", creation, ("LQ-COMPLETE-1",))


def _no_room() -> Iterator[Vector]:
    """A queue is as full as it may be, and nobody was told of room: nobody is now."""
    world = fixtures.tight()
    world.queue.room = 0
    sample = complete_and_lease("absent", 1, 1000, ABSENT)
    title = "a full queue that told nobody"
    yield vector(SCRIPT, world, "tight", sample, ("LQ-ROOM-1",), title=title)


def _beyond_the_heads() -> Iterator[Vector]:
    """A record is wrong that neither half comes to: behind one to lease and one in the place of what is completed."""
    world = fixtures.halted()
    third = [item_id for item_id, _ in world.queue._in("ready")][2]
    sample = complete_and_lease("absent", 1, 1000, ABSENT)
    title = "halted, a record behind is none"
    yield vector(SCRIPT, world, "halted", sample, ("LQ-FUSED-1",), title=title, change=_spoil(third))
    world = World()
    world.queue.add(START, [Add(b"r1", keep=1000), Add(b"r2")])
    title = "one with an option, the record behind is none"
    made = edge(SCRIPT, title, world.quiet(), sample, ("LQ-FUSED-1",), change=_spoil(b"r2"))
    yield replace(made, again=Refused("LEASEQ_FORMAT"), then_again=made.then)
    for earliest in (False, True):
        world = _held()
        world.give_back(b"h1")
        world.queue.add(START, [Add(b"r1")])
        first = world.queue.items[b"h1"]
        if earliest:
            first.created, first.token = 0, 1
        given = _spoil(b"r1")(world.quiet().stored())
        title = "the next is completed, its token is 1," if earliest else "the next is completed,"
        argv = [1, 30_000, 1, "h1", first.token, 0]
        name = f"{title} the record of the one behind is none"
        yield refused(SCRIPT, name, "empty", given, argv, "FORMAT", ("LQ-FUSED-1", "LQ-ERROR-1"))


def _beyond_the_sweep() -> Iterator[Vector]:
    """More have expired than one call reclaims, and the first of them is completed, which makes room for one more.

    The record of the last one to reclaim is wrong, so that neither half takes place; or that of the next, to which only
    the second call comes.
    """
    world = fixtures.crowded()
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
