"""Calls on queues that were made for one of them: limits just reached, and damage that only one place comes upon."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance.model.base import END, Item
from leaseq_conformance.model.calls import Add, Complete, Finish
from leaseq_conformance.model.outcomes import CONTENTS, RESULT
from leaseq_conformance.model.packed import DIES, EPOCH, EXTRA, LEVEL, TAIL, UNLIMITED, Extra, Outcome, State
from leaseq_conformance.model.queue import Queue
from leaseq_conformance.model.repair import KINDS
from leaseq_conformance.vectors import samples, worlds
from leaseq_conformance.vectors.build import as_bytes, refused, vector
from leaseq_conformance.vectors.damage import second_damaged
from leaseq_conformance.vectors.form import Dump, Kept, Refused, Vector
from leaseq_conformance.vectors.malformed import BAD_RECORDS, BAD_STATES, STOPPING, WRONG_STATES, record, tail
from leaseq_conformance.vectors.particular import LATE, SPECIAL
from leaseq_conformance.vectors.refused import BAD_IDS, NUMBERS
from leaseq_conformance.vectors.world import DAY, NOW, SECOND, START, World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from leaseq_conformance.vectors.samples import Sample


def of(script: str) -> Iterator[Vector]:
    """The calls of a script on queues that were made for them."""
    return MAKERS.get(script, lambda: iter(()))()


def _clean(limit: int = 256) -> Sample:
    def run(world: World, now: int) -> Any:
        return world.queue.light_clean(now, limit)

    return samples.Sample(f"limit {limit}", [limit], run)


def _asked(*ids: bytes) -> Sample:
    return samples.ids(" ".join(item_id.decode() for item_id in ids), "outcome", *ids, timed=True)


def _with(dump: Dump, more: Mapping[str, Mapping[bytes, Any]]) -> Dump:
    """A keyspace with more fields in its hashes and sorted sets."""
    changed: dict[str, Any] = dict(dump)
    for key, fields in more.items():
        changed[key] = {**changed.get(key, {}), **fields}
    return changed


def _but(made: Vector, given: Dump) -> Vector:
    """The vector from another keyspace, after which all is as it was."""
    return Vector(**{**vars(made), "given": given})


def _always(more: Mapping[str, Mapping[bytes, Any]]) -> Callable[[Dump], Dump]:
    return lambda dump: _with(dump, more)


# -- light_clean


def _light_clean() -> Iterator[Vector]:
    for title, world, limit, rule in _to_clean():
        yield vector("light_clean", world, "empty", _clean(limit), (rule,), title=title)
    yield vector(
        "light_clean", World(), "empty", _clean(), ("LQ-TIME-3",), now=END - 1, title="nothing, at the last"
    )
    yield from _beside_expiry()
    yield _cleaned_without_state()
    world = worlds.single()
    change = _always({"dead": {b"g1": float(START), b"g2": float(START)}})
    yield vector(
        "light_clean",
        world,
        "single",
        _clean(),
        ("LQ-ROOM-1",),
        title="single, dead ids without data",
        change=change,
    )
    yield from _bad_records("light_clean", [256], b"r2", expires=NOW)


def _to_clean() -> Iterator[tuple[str, World, int, str]]:
    """What stands there, the limit, and the rule."""
    world = worlds.tight()
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
        world.queue.items[item_id] = item = _lasting(item_id, 1 if keep else NOW)
        item.options |= DIES
        item.keep = keep
    yield "ends that are kept for 1 ms", world, 256, "LQ-LIGHT-4"
    world = World()
    world.queue.add(START, [Add(b"r1")])
    world.queue.items[b"r2"] = item = _lasting(b"r2", NOW)
    item.options |= DIES | EXTRA
    item.extra = Extra(b"an error", samples.HEADERS)
    yield "an end of what has an error", world.quiet(), 256, "LQ-LIGHT-4"
    world = World()
    world.queue.add(START, [Add(b"p%d" % number, delay=1000) for number in range(3)])
    for number in range(3):
        world.queue.items[b"p%d" % number].score = number - 5
    yield "due times below 0", world.quiet(), 1, "LQ-LIGHT-1"
    world = worlds.single()
    world.queue.kept[b"k9"] = 2**53 - 1
    yield "one kept for long", world, 256, "LQ-LIGHT-3"


def _lasting(item_id: bytes, expires: int) -> Item:
    """A ready item that goes at a time."""
    item = Item(b"data of " + item_id, "ready", START - EPOCH + 1, START + 1, recorded=True)
    item.options, item.expires, item.indexed = TAIL, expires, True
    return item


def _beside_expiry() -> Iterator[Vector]:
    """Ids in `expiry` that are not to end: they are taken out of it, and nothing else."""
    title = "awake, in expiry what does not end"
    sound = vector("light_clean", worlds.awake(), "awake", _clean(), ("LQ-LIGHT-4",), title=title)
    plain = {b"c1": NOW, b"r1": NOW, b"x1": NOW - 1, b"r4": NOW, b"g1": NOW}
    yield _but(sound, _with(sound.given, {"expiry": plain}))
    for title, item_id, expires, packed in (
        ("one of an hour later", b"r1", NOW - 1, NOW + 3600 * SECOND),
        ("a leased one", b"c1", NOW, NOW - 1),
        ("a dead one", b"x1", NOW, NOW - 1),
        ("one without data", b"g1", NOW, NOW - 1),
    ):
        meta = {"meta": {item_id: record(options=1, current=0) + tail(packed)}}
        made = vector(
            "light_clean",
            worlds.awake(),
            "awake",
            _clean(),
            ("LQ-LIGHT-4", "LQ-LEASE-10"),
            title=f"awake, in expiry {title}",
            change=_always(meta),
        )
        yield _but(made, _with(made.given, {"expiry": {item_id: float(expires)}}))
    world = worlds.awake()
    world.queue.items[b"r9"] = item = _lasting(b"r9", NOW)
    item.options |= DIES | EXTRA
    item.extra = Extra(b"expired")
    made = vector(
        "light_clean", world, "awake", _clean(), ("LQ-LIGHT-4",), title="awake, an extra of one byte"
    )
    yield _but(made, _with(made.given, {"meta": {b"\0r9": b"\1"}}))


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


def _bad_records(script: str, argv: list[Any], item_id: bytes, expires: int = 0) -> Iterator[Vector]:
    """The record of an item that the call reads is none."""
    more = samples.result(item_id) if script == "outcome" else []
    for title, packed in BAD_RECORDS.items():
        fields: dict[str, dict[bytes, Any]] = {"meta": {item_id: packed}}
        if expires:
            fields["expiry"] = {item_id: float(expires)}
        given = _with(worlds.rich().stored(), fields)
        name = f"record of {item_id.decode()} {title}, read by itself"
        yield refused(script, name, "rich", given, argv, "FORMAT", ("LQ-ERROR-1",), more=more)


# -- outcome


def _outcome() -> Iterator[Vector]:
    world = worlds.rich()
    world.queue.items[b"x3"].keep = DAY
    made = _asked(b"x3")
    yield vector(
        "outcome", world, "rich", made, ("LQ-OUTCOME-6",), now=NOW + 500_123, title="rich, at odd µs"
    )
    yield vector(
        "outcome",
        _one_dead(keep=5000, ago=0, state=None),
        "empty",
        _asked(b"x1"),
        ("LQ-OUTCOME-6",),
        title="one dead, no state",
    )
    yield vector(
        "outcome",
        _one_dead(keep=5000, ago=0, state=State(flags=1)),
        "empty",
        _asked(b"x1"),
        ("LQ-KEY-7",),
        title="one dead, paused",
    )
    for keep, ago in ((1000, 1_000_000), (1000, 999_999), (1000, 999_000), (1, 0), (1, 1)):
        world = _one_dead(keep=keep, ago=ago, state=State())
        title = f"one that died {ago} µs ago and is kept for {keep} ms"
        yield vector("outcome", world, "empty", _asked(b"x1"), ("LQ-OUTCOME-6",), title=title)
    for size in (0, CONTENTS, CONTENTS + 1):
        world = World()
        for item_id, content in ((b"k1", b"r" * size), (b"k2", b"after it")):
            world.queue.results[item_id] = Outcome(RESULT, 1, START + 9, START, START + 99, content)
            world.queue.ttls[item_id] = DAY
            world.queue.kept[item_id] = NOW + DAY * 1000
        sample = _asked(b"k1", b"k2", b"none")
        yield vector("outcome", world, "empty", sample, ("LQ-OUTCOME-9",), title=f"a result of {size} bytes")
    world = worlds.single()
    item = world.queue.items[b"r1"]
    item.score -= 3 * LEVEL
    yield vector(
        "outcome",
        world,
        "single",
        _asked(b"r1"),
        ("LQ-OUTCOME-4",),
        title="an item of level 3 without a record",
    )
    yield from _bad_records("outcome", [1, "x1"], b"x1")
    yield from _bad_records("outcome", [1, "r1"], b"r1")
    yield _crowded_call("outcome", [1, "x1"])
    world = _one_dead(keep=5000, ago=0, state=State())
    item = world.queue.items[b"x1"]
    item.options, item.extra = TAIL | EXTRA, Extra(b"")
    yield vector(
        "outcome",
        world,
        "empty",
        _asked(b"x1"),
        ("LQ-OUTCOME-6",),
        title="an extra of one byte",
        change=_always({"meta": {b"\0x1": b"\1"}}),
    )


def _one_dead(*, keep: int, ago: int, state: State | None) -> World:
    """A dead item that keeps its failure, and of which nothing is kept yet."""
    world = World()
    world.queue.items[b"x1"] = item = Item(b"data of x1", "dead", NOW - ago, START, recorded=True)
    item.attempt, item.token, item.options, item.keep = 1, START + 1, TAIL, keep
    world.queue.state = state
    return world


# -- what leases


def _leases(script: str) -> Iterator[Vector]:
    """Of one queue, for `lease`, `lease_any` and `complete_and_lease`."""
    for title, world, count, rule in _to_lease():
        sample = _lease_one(script, count)
        yield vector(script, world, "empty", sample, (rule,), title=title)
        if "tells" in title:
            full = vector(script, world, "empty", sample, (rule,), title=f"{title}, full server")
            yield Vector(**{**vars(full), "full": True})
    sample = _lease_one(script, 1)
    yield vector(script, World(), "empty", sample, ("LQ-TIME-3",), now=END - 1, title="nothing, at the last")
    world = worlds.single()
    dead = _always({"dead": {b"g1": float(START), b"g2": float(START)}})
    yield vector(
        script, world, "single", sample, ("LQ-ROOM-1",), title="single, dead ids without data", change=dead
    )
    world = worlds.full()
    second = [item_id for item_id, _ in world.queue._in("ready")][1]
    behind = _always({"meta": {second: record(version=2)}})
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
        given = _with(worlds.WORLDS[base]().stored(), {"meta": {b"r3": record(version=0)}})
        name = f"first record of version 0 on {base}"
        yield refused(script, name, base, given, sample.argv, "FORMAT", ("LQ-ERROR-1",), more=sample.more)
    made = vector(script, _ending(), "empty", sample, ("LQ-LEASE-10",), title="an end, its extra of one byte")
    yield _but(made, _with(made.given, {"meta": {b"\0r9": b"\1"}}))
    for title, world, key in _mistyped():
        given = {**world.stored(), key: [b"of another type"]}
        name = f"{title}, {key} of another type"
        yield refused(
            script, name, "empty", given, sample.argv, "WRONG_TYPE", ("LQ-ERROR-3",), more=sample.more
        )


def _ending() -> World:
    """An item that ends now, whose extra is what it is then."""
    world = World()
    world.queue.items[b"r9"] = item = _lasting(b"r9", NOW)
    item.options |= DIES | EXTRA
    item.extra = Extra(b"expired")
    return world


def _lease_one(script: str, count: int) -> Sample:
    if script == "lease_any":
        return samples.lease_any(f"s {count}", "s", count, 30_000)
    if script == "lease":
        return samples.lease(f"{count}", count, 30_000)
    return samples.complete_and_lease(f"absent, {count}", count, 30_000, Complete(b"none", 1))


def _to_lease() -> Iterator[tuple[str, World, int, str]]:
    """What stands there, how many are leased, and the rule."""
    for title, world, _, _ in _to_clean():
        if title.startswith(("leases", "deaths")):
            yield title, world, 1, "LQ-LEASE-12"
        if title.startswith("an empty"):
            yield f"{title}, which tells of room", world, 1, "LQ-ROOM-1"
    world = World()
    for item_id, expires in ((b"r1", 1), (b"r2", NOW)):
        world.queue.items[item_id] = item = _lasting(item_id, expires)
        item.options |= DIES | EXTRA
        item.keep, item.extra = 1, Extra(b"an error", samples.HEADERS)
    world.queue.items[b"r3"] = _lasting(b"r3", 1)
    yield "ends that are kept for 1 ms", world, 256, "LQ-LEASE-10"
    world = World()
    world.queue.add(START, [Add(b"r%d" % n, keep=n + 1, headers=samples.HEADERS) for n in range(40)])
    yield "forty that are kept", world.quiet(), 37, "LQ-LEASE-11"
    world = World()
    world.queue.add(START, [Add(b"r%02d" % n, b"x" * 61_681) for n in range(17)])
    yield "a byte more than a mebibyte", world.quiet(), 17, "LQ-LEASE-6"
    world = worlds.single()
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
        world = _bounded(NOW + SECOND, NOW + 10 * SECOND, where)
        yield f"a bound that is early, the first is {where}", world, 1, "LQ-LEASE-7"
    yield "a bound that is late", _bounded(NOW + SECOND, NOW - SECOND), 1, "LQ-LEASE-7"
    yield "due in the last microsecond of all", _bounded(NOW + SECOND, 2**53 - 1), 1, "LQ-LEASE-7"
    world = _bounded(START, 1)
    world.queue.state = None
    world.queue.items[b"f1"].score = NOW + SECOND
    yield "one that is delayed, no state", world, 1, "LQ-LEASE-7"
    world = _bounded(NOW, NOW)
    world.queue.configure(paused=1)
    yield "one that is due, paused", world.quiet(), 1, "LQ-PAUSE-1"
    world = _bounded(NOW, NOW)
    world.queue.items[b"f2"] = Item(b"", "delayed", NOW + 2 * SECOND, START, recorded=True)
    world.queue.configure(paused=1)
    yield "one that is due and one within the cap, paused", world.quiet(), 1, "LQ-PAUSE-1"
    world = worlds.beyond()
    world.queue.add(START, [Add(b"r1")])
    yield "one, and what is due next is just beyond the cap", world.quiet(), 1, "LQ-LEASE-7"
    world = World()
    world.queue.state = State(clock=END - 1, next_due=2**53)
    yield "nothing, the clock's end", world, 1, "LQ-TIME-4"


def _bounded(bound: int, score: int, where: str = "delayed", *, max_items: int = 0) -> World:
    """One item in its time, and the bound that is told."""
    world = World()
    world.queue.items[b"f1"] = item = Item(b"data of f1", where, score, START, recorded=True)
    if where == "leased":
        item.attempt, item.token = 1, START + 1
    world.queue.state = State(clock=START + 1, next_due=bound, largest=10, added=1, max_items=max_items)
    return world


def _mistyped() -> Iterator[tuple[str, World, str]]:
    """A key is of another type that is needed only behind what is written first."""
    yield "a bound that is early, a limit", _bounded(NOW + SECOND, NOW + 10 * SECOND, max_items=9), "items"
    world = worlds.single()
    world.queue.configure(max_items=9)
    yield "one, a limit", world.quiet(), "dead"
    world = World()
    world.queue.items[b"r2"] = _lasting(b"r2", NOW)
    world.queue.state = State(clock=START + 1, next_due=2**53, largest=10, added=1)
    yield "one that ends", world, "delayed"


# -- lease_any


def _lease_any() -> Iterator[Vector]:
    yield from _leases("lease_any")
    yield _crowded_call("lease_any", [1, 1, 1000])
    given = worlds.full().stored()
    yield refused(
        "lease_any", "no queues", "full", given, [0, 1, 1000], "BAD_ARGUMENT", ("LQ-CALL-2",), keys=[]
    )
    sixteen = samples.lease_any("sixteen queues", "so" * 8, 1, 1000)
    yield vector("lease_any", World(), "empty", sixteen, ("LQ-ANY-3",))
    yield from _settled_beside()
    yield from _behind_the_first()
    yield _dropped_without_state()


def _beside(other: Queue) -> World:
    world = worlds.single()
    world.other = other
    return world


def _settled_beside() -> Iterator[Vector]:
    """The first queue gives an item, the second is settled, or stays as it is where it cannot be."""
    for title, queue in (
        ("one ready", worlds.single().queue),
        ("one delayed, no state", _bounded(NOW, NOW + 3600 * SECOND).queue),
        ("one just within the cap", worlds.cap().queue),
        ("one just beyond the cap", worlds.beyond().queue),
        ("one ready, the clock's end", worlds.single().queue),
    ):
        world = _beside(queue)
        if "end" in title:
            world.other.state = State(clock=END - 1, next_due=2**53, added=1, largest=99)
        if "no state" in title:
            world.other.state = None
        sample = samples.lease_any("so 1", "so", 1, 30_000)
        yield vector("lease_any", world, "single", sample, ("LQ-ANY-2",), title=f"single, beside {title}")
    plain = vector(
        "lease_any", worlds.single(), "single", samples.lease_any("so 1", "so", 1, 30_000), ("LQ-ANY-2",)
    )
    beside = {
        key: value for key, value in _beside(worlds.single().queue).stored().items() if key[:6] == "other:"
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
        ("due soon, then one ready", worlds.soon().queue, worlds.single().queue),
        (
            "a bound that is late, then one ready",
            _bounded(NOW + SECOND, NOW - SECOND).queue,
            worlds.single().queue,
        ),
        ("one waits for a microsecond", _bounded(NOW + 9, NOW + 9).queue, _bounded(NOW + 1, NOW + 1).queue),
        ("both wait for a microsecond", _bounded(NOW + 1, NOW + 1).queue, _bounded(NOW + 1, NOW + 1).queue),
    ):
        world = World(queue=queue, other=other)
        yield vector("lease_any", world, "empty", sample, ("LQ-ANY-3", "LQ-ANY-4"), title=title)
    world = World()
    world.queue.configure(max_items=1)
    yield second_damaged("empty", world.quiet(), 1)
    moved = second_damaged("empty", _bounded(NOW + SECOND, NOW + 10 * SECOND), 1)
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


def _crowded_call(script: str, argv: list[Any]) -> Vector:
    """More keys than Lua can take apart at once."""
    return refused(
        script, "9000 keys", "empty", {}, argv, "BAD_ARGUMENT", ("LQ-CALL-1",), keys=["items"] * 9000
    )


# -- complete_with


def _complete_with() -> Iterator[Vector]:
    yield _crowded_call("complete_with", [1, 0, "c1", 5, 0, 0])
    yield from _followed()
    yield from _followed_wrongly()
    yield from _finished()
    world = worlds.rich()
    token = world.token(b"c1")
    for version in (0, 2):
        given = _with(world.stored(), {"meta": {b"c1": record(version=version)}})
        said = f"record of version {version} behind another entry"
        argv = [2, 0, "c2", world.token(b"c2"), 0, 0, "c1", token, 0, 0]
        yield refused("complete_with", said, "rich", given, argv, "FORMAT", ("LQ-ERROR-1",))
    given = {**world.stored(), "result:k1": Kept((b"\1\3",), DAY)}
    argv = [2, 0, "c1", token, 0, 0, "k1", world.token(b"k1"), 1, "keep", 0, 0]
    more = samples.result(b"k1")
    yield refused(
        "complete_with",
        "an outcome behind another entry",
        "rich",
        given,
        argv,
        "FORMAT",
        ("LQ-OUTCOME-8",),
        more=more,
    )


FOLLOW_UPS: Final = (
    *(Add(b"n1", b"", delay=delay) for delay in (0, 1, 315_360_000_000)),
    *(Add(b"n1", b"", not_before=due) for due in (0, NOW // 1000 - 1, NOW // 1000, NOW // 1000 + 1)),
    Add(b"n1", b"", not_before=2_840_140_799_999),
    *(Add(b"n1", b"", priority=level) for level in (-7, 0, 1, 7)),
    *(Add(b"n1", b"", max_attempts=limit) for limit in (0, 1, 65_534)),
    *(Add(b"n1", b"", expires_in=span) for span in (1, 315_360_000_000)),
    Add(b"n1", b"", expires_in=1, dies=True),
    *(Add(b"n1", b"", keep=span) for span in (1, 315_360_000_000)),
    Add(b"n1", b"", content_type=b"text/plain"),
    Add(b"n1", b"", headers=((b"h", b"v" * 4088),)),
    Add(b"n1", b"", content_type=b"", headers=tuple((b"h%d" % n, b"%d" % n) for n in range(16))),
    Add(b"n1", b"", headers=((b"h" * 100, b"x"),)),
    Add(b"i" * 256, b""),
)
"""One of every option, at its limits."""


def _followed() -> Iterator[Vector]:
    """What a follow-up may be."""
    base = worlds.rich()
    token = base.token(b"c1")
    for number, entry in enumerate(FOLLOW_UPS):
        sample = samples.finish(f"follow-up {number}", Finish(b"c1", token, then=((1, entry),)), targets="o")
        yield vector("complete_with", base, "rich", sample, ("LQ-HANDOFF-2",))
    plain = samples.finish(
        "follow-up, 00 options", Finish(b"c1", token, then=((1, Add(b"n1")),)), targets="o"
    )
    made = vector("complete_with", base, "rich", plain, ("LQ-HANDOFF-2", "LQ-CALL-2"))
    made.argv[-1] = b"00"
    yield made
    many = tuple((1, Add(b"z%d" % number)) for number in range(256))
    sample = samples.finish("256 follow-ups", Finish(b"c1", token, then=many), targets="o")
    yield vector("complete_with", base, "rich", sample, ("LQ-HANDOFF-2",))
    sample = samples.finish(
        "sixteen targets", Finish(b"c1", token, then=((16, Add(b"n1")),)), targets="o" * 16
    )
    yield vector("complete_with", base, "rich", sample, ("LQ-HANDOFF-2",))
    last = END - 1 - 1000
    for title, entry in (
        ("due in the last microsecond", Add(b"n1", delay=1)),
        ("expires in the last microsecond", Add(b"n1", expires_in=1)),
    ):
        sample = samples.finish(title, Finish(b"c1", token, then=((1, entry),)), targets="o")
        yield vector(
            "complete_with", base, "rich", sample, ("LQ-ADD-4",), now=last, title="rich, at the last"
        )
    yield from _followed_at()


def _followed_at() -> Iterator[Vector]:
    """Target queues of which one thing is told."""
    world, token = worlds.rich(), worlds.rich().token(b"c1")
    plain = Finish(b"c1", token, then=((1, Add(b"n1", b"ab")),))
    late = Finish(b"c1", token, then=((1, Add(b"n1", delay=72_000_000)),))
    for title, target, entry in (
        ("paused, the bound not known", _bounded(0, NOW + SECOND), plain),
        ("nothing ready, due sooner", _bounded(NOW + SECOND, NOW + SECOND), late),
    ):
        world.other = target.queue
        if "paused" in title:
            assert world.other.state
            world.other.state.flags = 1
        yield vector(
            "complete_with",
            world,
            "rich",
            samples.finish("follow-up", entry, targets="o"),
            ("LQ-HANDOFF-2",),
            title=title,
        )
    world.other = Queue()
    kept = samples.finish(
        "follow-up, keep 1", Finish(b"c1", token, then=((1, Add(b"n1", keep=1)),)), targets="o"
    )
    yield vector("complete_with", world, "rich", kept, ("LQ-KEY-7",), title="an empty target")
    for size in (2, 1):
        world.other.configure(max_data=size)
        sample = samples.finish("follow-up of 2 bytes", plain, targets="o")
        yield vector(
            "complete_with", world, "rich", sample, ("LQ-ITEM-4",), title=f"a target that takes {size}"
        )


def _followed_wrongly() -> Iterator[Vector]:
    """What a follow-up may not be, as `add` refuses it."""
    world = worlds.rich()
    head = [1, 1, "c1", world.token(b"c1"), 0, 1, 1]
    keys = samples.keys_of(samples.TARGET, other=True)
    rows: list[tuple[str, list[Any], str, int]] = [
        (title, argv, code, NOW) for title, argv, code, _ in SPECIAL["add"] if argv[0] == 1
    ]
    rows += [(title, argv, "BAD_ARGUMENT", now) for title, argv, now in LATE["add"]]
    for argv, at, low, high in NUMBERS["add"][1:]:
        rows += [
            (f"{argv[-2]} is {value}", [*argv[:at], value, *argv[at + 1 :]], "BAD_ARGUMENT", NOW)
            for value in (low - 1, high + 1)
        ]
    rows += [(f"id: {title}", [1, item_id, "", 0], "BAD_ID", NOW) for title, item_id in BAD_IDS.items()]
    for title, argv, code, now in rows:
        name = f"follow-up refused as by add: {title}"
        rules = ("LQ-HANDOFF-2", "LQ-ERROR-1")
        yield refused(
            "complete_with", name, "rich", world.stored(), [*head, *argv[1:]], code, rules, now=now, more=keys
        )
    more = keys * 17
    yield refused(
        "complete_with",
        "17 targets",
        "rich",
        world.stored(),
        [1, 17, *head[2:5], 0],
        "BAD_ARGUMENT",
        ("LQ-CALL-2",),
        more=more,
    )


def _finished() -> Iterator[Vector]:
    """Results and outcomes at their limits."""
    world = worlds.rich()
    at = world.token
    item = world.queue.items[b"c1"]
    three = Finish(b"c1", at(b"c1"), only_current=True, keep=1, result=b"all options")
    for title, entry in (
        ("all options, keep 1 ms", three),
        ("token is its creation", Finish(b"c1", item.created, keep=5)),
        ("a failure that is kept, wrong token", Finish(b"x2", 1, keep=5)),
        ("a failure that is kept", Finish(b"x2", at(b"x2"), keep=5)),
        ("a result of a mebibyte", Finish(b"c1", at(b"c1"), keep=5, result=b"x" * 1_048_576)),
    ):
        sample = samples.finish(title, entry)
        yield vector(
            "complete_with",
            world,
            "rich",
            sample,
            ("LQ-OUTCOME-1", "LQ-OUTCOME-2"),
            now=NOW + 500_123,
            title="rich, at odd µs",
        )
    world.queue.items[b"c1"].keep = 1
    sample = samples.finish("its own keep of 1 ms", Finish(b"c1", at(b"c1"), keep=0))
    yield vector("complete_with", world, "rich", sample, ("LQ-OUTCOME-1",))
    world.queue.results[b"k1"] = world.queue.results[b"k1"]._replace(content=b"")
    sample = samples.finish("repeats an empty result", Finish(b"k1", at(b"k1"), keep=5))
    yield vector("complete_with", world, "rich", sample, ("LQ-OUTCOME-2",))
    world = worlds.halted()
    token = world.token(b"c1")
    yield vector(
        "complete_with",
        world,
        "halted",
        samples.finish("keep", Finish(b"c1", token, keep=5)),
        ("LQ-KEY-7",),
        title="paused, nothing was kept",
    )
    world = _one_dead(keep=5000, ago=9, state=None)
    world.queue.kept[b"x1"] = NOW + SECOND
    sample = samples.finish("its failure was kept", Finish(b"x1", START + 1))
    yield vector("complete_with", world, "empty", sample, ("LQ-KEY-7",), title="one dead, no state")
    world = worlds.rich()
    for size in (2, 1):
        world.queue.configure(max_data=size)
        entry = Finish(b"c1", at(b"c1"), keep=5, result=b"ab")
        sample = samples.finish("a result of 2 bytes", entry)
        yield vector(
            "complete_with", world, "rich", sample, ("LQ-OUTCOME-7",), title=f"a queue that takes {size}"
        )


# -- deep_clean


def _deep_clean() -> Iterator[Vector]:
    for title, argv, now in (
        ("limit 1", ["0", 1, 0], NOW),
        ("at the first", ["0", 10, 0], EPOCH),
        ("at the last", ["0", 10, 0], END - 1),
        ("numbers of 16 digits", ["0", "0" * 14 + "10", "0" * 16], NOW),
        ("a cursor of one digit", ["1:9", 10, 0], NOW),
        ("the highest cursor", ["1:18446744073709551615", 10, 0], NOW),
    ):
        yield _nothing_found(title, [as_bytes(each) for each in argv], now)
    full = worlds.full().stored()
    for title, now in (("2024", EPOCH - 1), ("1970", 1_000_000), ("2060", END)):
        name = f"clock {title}"
        yield refused("deep_clean", name, "full", full, ["0", 10, 0], "CLOCK", ("LQ-TIME-3",), now=now)
    for phase, key in enumerate(("items", "meta", "ready", "delayed", "leased", "dead", "expiry", "kept"), 1):
        given: Dump = {**full, key: [b"of another type"]}
        name = f"{key} of another type"
        yield refused("deep_clean", name, "full", given, [f"{phase}:0", 10, 0], "WRONG_TYPE", ("LQ-ERROR-3",))
    settled = worlds.settled().stored()
    for title in STOPPING:
        given = _with(settled, {"meta": {b"c1": BAD_RECORDS[title]}})
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


MAKERS: Final[dict[str, Callable[[], Iterator[Vector]]]] = {
    "lease": lambda: _leases("lease"),
    "complete_with": _complete_with,
    "complete_and_lease": lambda: _leases("complete_and_lease"),
    "deep_clean": _deep_clean,
    "lease_any": _lease_any,
    "light_clean": _light_clean,
    "outcome": _outcome,
}
