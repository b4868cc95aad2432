"""Calls of light_clean, deep_clean and settle on queues that were made for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from leaseq_conformance.model.base import END
from leaseq_conformance.model.calls import Add
from leaseq_conformance.model.codec import DIES, EPOCH, EXTRA, UNLIMITED, Extra, State
from leaseq_conformance.model.deep_clean import KINDS
from leaseq_conformance.vectors import fixtures, samples
from leaseq_conformance.vectors.build import as_bytes, refused, vector
from leaseq_conformance.vectors.builder import NOW, SECOND, START, World
from leaseq_conformance.vectors.corners.making import (
    always,
    bad_records,
    but,
    edge,
    lasting,
    with_fields,
)
from leaseq_conformance.vectors.malformed import BAD_RECORDS, STOPPING, record, tail
from leaseq_conformance.vectors.other_samples import settles as settle_calls
from leaseq_conformance.vectors.vector import Dump, Vector

if TYPE_CHECKING:
    from collections.abc import Iterator

    from leaseq_conformance.vectors.samples import Sample


def _clean(limit: int = 256) -> Sample:
    def run(world: World, now: int) -> Any:
        return world.queue.light_clean(now, limit)

    return samples.Sample(f"limit {limit}", [limit], run)


def light_cleans() -> Iterator[Vector]:
    """Of light_clean."""
    for title, world, limit, rule in to_clean():
        yield vector("light_clean", world, "empty", _clean(limit), (rule,), title=title)
    yield vector(
        "light_clean", World(), "empty", _clean(), ("LQ-TIME-3",), now=END - 1, title="nothing, at the last"
    )
    yield from _beside_expiry()
    yield _cleaned_without_state()
    world = fixtures.single()
    change = always({"dead": {b"g1": float(START), b"g2": float(START)}})
    yield vector(
        "light_clean",
        world,
        "single",
        _clean(),
        ("LQ-ROOM-1",),
        title="single, dead ids without data",
        change=change,
    )
    yield from bad_records("light_clean", [256], b"r2", expires=NOW)


def to_clean() -> Iterator[tuple[str, World, int, str]]:
    """What stands there, the limit, and the rule."""
    world = fixtures.tight()
    world.queue.room = 0
    yield "a queue without room that told nobody", world, 256, "LQ-ROOM-1"
    world = World()
    world.queue.configure(max_items=1)
    yield "an empty queue of one item", world.quiet(), 256, "LQ-ROOM-1"
    world = World()
    world.leased(b"e1", 1000, max_attempts=65_534)
    world.leased(b"e2", 1000, max_attempts=65_534)
    world.leased(b"e3", 1000, max_attempts=0)
    for item_id, attempt in ((b"e1", 65_533), (b"e2", 65_534), (b"e3", UNLIMITED + 1)):
        world.queue.items[item_id].attempt = attempt
    yield "leases at the highest limit of attempts", world.quiet(), 256, "LQ-LIGHT-2"
    world = World()
    world.leased(b"e1", 1000, keep=1, max_attempts=1)
    world.leased(b"e2", 1000, keep=2, max_attempts=1)
    yield "deaths that are kept for 1 ms", world.quiet(), 256, "LQ-LIGHT-3"
    world = World()
    for item_id, keep in ((b"r1", 1), (b"r2", 0)):
        world.queue.items[item_id] = item = lasting(item_id, 1 if keep else NOW)
        item.options |= DIES
        item.keep = keep
    yield "ends that are kept for 1 ms", world, 256, "LQ-LIGHT-4"
    world = World()
    world.queue.add(START, [Add(b"r1")])
    world.queue.items[b"r2"] = item = lasting(b"r2", NOW)
    item.options |= DIES | EXTRA
    item.extra = Extra(b"an error", samples.HEADERS)
    yield "an end of what has an error", world.quiet(), 256, "LQ-LIGHT-4"
    world = World()
    world.queue.add(START, [Add(b"p%d" % number, delay=1000) for number in range(3)])
    for number in range(3):
        world.queue.items[b"p%d" % number].score = number - 5
    yield "due times below 0", world.quiet(), 1, "LQ-LIGHT-1"
    world = fixtures.single()
    world.queue.kept[b"k9"] = 2**53 - 1
    yield "one kept for long", world, 256, "LQ-LIGHT-3"


def _beside_expiry() -> Iterator[Vector]:
    """Ids in `expiry` that are not to end: they are taken out of it, and nothing else."""
    title = "awake, in expiry what does not end"
    sound = vector("light_clean", fixtures.awake(), "awake", _clean(), ("LQ-LIGHT-4",), title=title)
    plain = {b"c1": NOW, b"r1": NOW, b"x1": NOW - 1, b"r4": NOW, b"g1": NOW}
    yield but(sound, with_fields(sound.given, {"expiry": plain}))
    for title, item_id, expires, packed in (
        ("one of an hour later", b"r1", NOW - 1, NOW + 3600 * SECOND),
        ("a leased one", b"c1", NOW, NOW - 1),
        ("a dead one", b"x1", NOW, NOW - 1),
        ("one without data", b"g1", NOW, NOW - 1),
    ):
        meta = {"meta": {item_id: record(options=1, current=0) + tail(packed)}}
        made = vector(
            "light_clean",
            fixtures.awake(),
            "awake",
            _clean(),
            ("LQ-LIGHT-4", "LQ-LEASE-10"),
            title=f"awake, in expiry {title}",
            change=always(meta),
        )
        yield but(made, with_fields(made.given, {"expiry": {item_id: float(expires)}}))
    world = fixtures.awake()
    world.queue.items[b"r9"] = item = lasting(b"r9", NOW)
    item.options |= DIES | EXTRA
    item.extra = Extra(b"expired")
    made = vector(
        "light_clean", world, "awake", _clean(), ("LQ-LIGHT-4",), title="awake, an extra of one byte"
    )
    yield but(made, with_fields(made.given, {"meta": {b"\0r9": b"\1"}}))


def _cleaned_without_state() -> Vector:
    """An id in `expiry`, no item, no state: it is made anew."""
    state = State(next_due=2**53).encode()
    return Vector(
        "no item, no state, an id in expiry",
        "light_clean",
        ("LQ-KEY-4", "LQ-LIGHT-4"),
        NOW,
        {"expiry": {b"g1": float(NOW)}},
        [b"256"],
        [0, 0, 0, 0, 0, -1],
        {"state": state},
        [0, 0, 0, 0, 0, -1],
        {"state": state},
        base="empty",
    )


def deep_cleans() -> Iterator[Vector]:
    """Of deep_clean."""
    for title, argv, now in (
        ("limit 1", ["0", 1, 0], NOW),
        ("at the first", ["0", 10, 0], EPOCH),
        ("at the last", ["0", 10, 0], END - 1),
        ("numbers of 16 digits", ["0", "0" * 14 + "10", "0" * 16], NOW),
        ("a cursor of one digit", ["1:9", 10, 0], NOW),
        ("the highest cursor", ["1:18446744073709551615", 10, 0], NOW),
    ):
        yield _nothing_found(title, [as_bytes(each) for each in argv], now)
    full = fixtures.full().stored()
    for title, now in (("2024", EPOCH - 1), ("1970", 1_000_000), ("2060", END)):
        name = f"clock {title}"
        yield refused("deep_clean", name, "full", full, ["0", 10, 0], "CLOCK", ("LQ-TIME-3",), now=now)
    for phase, key in enumerate(("items", "meta", "ready", "delayed", "leased", "dead", "expiry", "kept"), 1):
        given: Dump = {**full, key: [b"of another type"]}
        name = f"{key} of another type"
        yield refused("deep_clean", name, "full", given, [f"{phase}:0", 10, 0], "WRONG_TYPE", ("LQ-ERROR-3",))
    settled = fixtures.settled().stored()
    for title in STOPPING:
        given = with_fields(settled, {"meta": {b"c1": BAD_RECORDS[title]}})
        name = f"record {title}, a page of meta"
        yield refused("deep_clean", name, "settled", given, ["2:0", 256, 0], "FORMAT", ("LQ-ERROR-1",))
    for counters, counted in (({}, b"1"), ({b"dropped": b"x"}, b"1"), ({b"dropped": b"8"}, b"9")):
        yield _dropped(counters, counted)


def _found(cursor: bytes, **counts: int) -> list[int | bytes]:
    return [cursor, *(part for kind in KINDS for part in (kind.encode(), counts.get(kind, 0)))]


def _nothing_found(title: str, argv: list[bytes], now: int) -> Vector:
    reply: Any = _found(b"2:0")
    rules = ("LQ-DEEP-2", "LQ-TIME-3", "LQ-CALL-2")
    return Vector(title, "deep_clean", rules, now, {}, argv, reply, {}, reply, {}, base="empty")


def _dropped(counters: dict[bytes, bytes], counted: bytes) -> Vector:
    """An id in `ready`, no item, no state: it is made anew."""
    state = State(next_due=2**53).encode()
    then: Dump = {"state": state, "counters": {b"dropped": counted}}
    given: Dump = {"ready": {b"g1": 5.0}, **({"counters": counters} if counters else {})}
    return Vector(
        f"no item, no state, an id in ready, {len(counters)} counted {counted!r}",
        "deep_clean",
        ("LQ-DEEP-6", "LQ-KEY-4"),
        NOW,
        given,
        [b"3:0", b"10", b"0"],
        _found(b"4:0", dropped=1),
        then,
        _found(b"4:0"),
        then,
        base="empty",
    )


def settles() -> Iterator[Vector]:
    """What is due next comes within the cap in this microsecond."""
    for sample in settle_calls(fixtures.beyond()):
        yield edge(
            "settle", "beyond, a microsecond later", fixtures.beyond(), sample, ("LQ-SETTLE-1",), NOW + 1
        )
