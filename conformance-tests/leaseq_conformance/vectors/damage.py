"""Keyspaces that no script leaves behind: refused where nothing can be made of them, served where the rules say how."""

from __future__ import annotations

import copy
import struct
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance.model import several
from leaseq_conformance.model.base import END, Item, RefusedError
from leaseq_conformance.model.calls import Add, Complete, Extend, Finish, Release
from leaseq_conformance.model.packed import EPOCH, LEVEL, Extra, Outcome, Record, State, decode_record
from leaseq_conformance.model.repair import KINDS, PHASES, deep_clean
from leaseq_conformance.vectors import samples, worlds
from leaseq_conformance.vectors.form import Dump, Kept, Refused, Reply, Vector
from leaseq_conformance.vectors.rules import RULES
from leaseq_conformance.vectors.world import DAY, NOW, START, World, of_keyspace, stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from leaseq_conformance.model.keyspace import Keyspace
    from leaseq_conformance.vectors.samples import Sample

US_DAY: Final = DAY * 1000
COUNTERS: Final = (
    *(b"promoted", b"reclaimed", b"released", b"died", b"removed"),
    *(b"dropped", b"expired", b"purged", b"revived"),
)


NO_COUNTS: Final = (
    *(
        b"x",
        b"",
        b"9223372036854775807",
        b"9223372036854775808",
        b"18446744073709551617",
        b"10000000000000000000",
    ),
    *(
        b"1.5",
        b"1.0",
        b"1e3",
        b"0x10",
        b"01",
        b"+1",
        b" 1",
        b"1 ",
        b"nan",
        b"inf",
        b"-0",
        b"-1",
        b"-9223372036854775808",
    ),
)
"""What `stats` reads as 0."""
COUNTS: Final = (1, 10, 2**53, 10**17, 10**18, 2**63 - 1025, 2**63 - 1024, 2**63 - 2)
"""What it reads as a number, more exactly than a double or not."""


def record(version: int = 1, options: int = 0, created: float = START - 1, current: float = START) -> bytes:
    """The first 22 bytes of a record."""
    return struct.pack("<BBIdd", version, options, 1, current, created)


def tail(expires: float = 0) -> bytes:
    """The last 17 bytes of a record."""
    return struct.pack("<bHHId", 0, 0, 0, 0, expires)


def state(version: int = 1, flags: int = 0, clock: float = START, next_due: float = 0) -> bytes:
    """44 bytes."""
    return struct.pack("<BBddI", version, flags, clock, next_due, 9) + bytes(22)


BAD_RECORDS: Final[dict[str, bytes]] = {
    "short": record()[:21],
    "empty": b"",
    "a byte too long": record() + b"\0",
    "a tail that is not said": record() + tail(),
    "a tail that is missing": record(options=1),
    "a tail that is short": record(options=1) + tail()[:-1],
    "of version 2": record(version=2),
    "of version 2 with a tail": record(version=2, options=1) + tail(),
    "of version 0": record(version=0),
    "options 2": record(options=2) + tail(),
    "options 4": record(options=4) + tail(),
    "options 8": record(options=8) + tail(),
    "options 9": record(options=9) + tail(),
    "created below 0": record(created=-1),
    "created no number": record(created=float("nan")),
    "current below 0": record(current=-1),
    "current no number": record(current=float("nan")),
    "with a tail, created below 0": record(options=1, created=-1) + tail(),
    "with a tail, current no number": record(options=1, current=float("nan")) + tail(),
}
TELLING: Final = (
    *(
        "short",
        "a byte too long",
        "a tail that is not said",
        "a tail that is missing",
        "a tail that is short",
        "of version 2",
    ),
    *(
        "of version 0",
        "of version 2 with a tail",
        "options 2",
        "options 9",
        "created below 0",
        "current below 0",
    ),
    *("with a tail, created below 0", "with a tail, current no number"),
)
"""One for each way in which a record can be wrong."""
BAD_STATES: Final[dict[str, bytes]] = {
    "short": state()[:43],
    "long": state() + b"\0",
    "empty": b"",
    "of version 2": state(version=2),
    "of version 0": state(version=0),
    "flag 4": state(flags=4),
    "flag 255": state(flags=255),
}
"""`deep_clean` refuses these too: they may be of a newer version."""
WRONG_STATES: Final[dict[str, bytes]] = {
    "clock of 2060": state(clock=END),
    "clock far ahead": state(clock=2.0**60),
    "clock no number": state(clock=float("nan")),
    "bound below 0": state(next_due=-1),
    "bound no number": state(next_due=float("nan")),
}
"""These it repairs."""
BAD_OUTCOMES: Final[dict[str, bytes]] = {
    "short": Outcome(1, 1, START, START - 1, START, b"").encode()[:29],
    "of version 2": b"\2" + Outcome(1, 1, START, START - 1, START, b"").encode()[1:],
    "of kind 3": Outcome(3, 1, START, START - 1, START, b"r").encode(),
    "of kind 0": Outcome(0, 1, START, START - 1, START, b"r").encode(),
}


def wrong_type(key: str) -> Any:
    """A value of another type than the key has."""
    return (
        b"of another type" if key in {"wake", "room"} or key.startswith("result:") else [b"of another type"]
    )


# -- served


def nowhere() -> World:
    """The quiet queue with two items in no state, one of which had a lease."""
    world = worlds.settled()
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
    world = worlds.settled()
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
    world = worlds.rich()
    for item_id in (b"r1", b"c1", b"s1", b"x1", b"x3"):
        world.queue.results[item_id] = Outcome(1, 1, START + 1, START, START + 2, b"earlier")
        world.queue.ttls[item_id] = DAY
        world.queue.kept[item_id] = NOW + US_DAY
    del world.queue.results[b"k1"]
    world.queue.kept[b"none"] = NOW
    return world


def over() -> World:
    """Outcomes and expiries that end now, and a microsecond later."""
    world = worlds.rich()
    world.queue.kept = {b"k1": NOW, b"k2": NOW + 1, b"t1": NOW - 1}
    for item_id, ends in ((b"r2", NOW), (b"r3", NOW + 1), (b"r5", NOW), (b"f1", NOW), (b"p1", NOW + 1)):
        world.queue.items[item_id].expires = ends
    return world


def forgotten() -> World:
    """The rich queue has lost its state."""
    world = worlds.rich()
    world.queue.state = None
    return world


def unbounded() -> World:
    """The state is there again and the bound is not known."""
    world = worlds.stateless()
    world.queue.add(START, [Add(b"r9")])
    world.queue.wake = 0
    return world


def punctual() -> World:
    """A deadline and a due time are now, others in a microsecond."""
    world = worlds.full()
    for item_id, score in ((b"e1", NOW), (b"e3", NOW + 1), (b"p1", NOW), (b"p2", NOW + 1), (b"x1", NOW)):
        world.queue.items[item_id].score = score
    return world


def ancient() -> World:
    """Creations are 0 and tokens small, as if both clocks had begun with the queue."""
    world = worlds.rich()
    for number, (item_id, item) in enumerate(world.queue.items.items(), 1):
        item.created = 0 if item.recorded else item.created
        if item.token:
            item.token = number
            item.attempt += number % 3
            world.tokens[item_id] = [number]
    return world


def lone() -> World:
    """One item, and the state is lost."""
    world = worlds.single()
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
    world = worlds.full()
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


BAD_EXTRAS: Final = (b"", b"\0", b"\1", b"\0\0", b"\0\0\0", b"\5\0why")
"""What an extra may have become; in the last one the error is shorter than it says."""


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


# -- deep_clean


def _replace_state(keys: Keyspace, **fields: Any) -> None:
    assert isinstance(keys.state, State)
    keys.state = replace(keys.state, **fields)


def _spoil(name: str, key: bytes, value: Any) -> Callable[[Keyspace], None]:
    def spoil(keys: Keyspace) -> None:
        getattr(keys, name)[key] = value

    return spoil


def _lose(name: str, key: bytes) -> Callable[[Keyspace], None]:
    def lose(keys: Keyspace) -> None:
        getattr(keys, name).pop(key, None)

    return lose


def _place(**places: float) -> Callable[[Keyspace], None]:
    def place(keys: Keyspace) -> None:
        for name, score in places.items():
            keys.zsets()[name][b"r1"] = score  # type: ignore[assignment]  # a place that is no whole number is damage

    return place


def _set_state(**fields: Any) -> Callable[[Keyspace], None]:
    return lambda keys: _replace_state(keys, **fields)


def _no_state(keys: Keyspace) -> None:
    keys.state = None


def _unplace(*names: bytes) -> Callable[[Keyspace], None]:
    def unplace(keys: Keyspace) -> None:
        for zset in keys.zsets().values():
            for name in names:
                zset.pop(name, None)

    return unplace


def _both(*spoils: Callable[[Keyspace], None]) -> Callable[[Keyspace], None]:
    def spoil(keys: Keyspace) -> None:
        for each in spoils:
            each(keys)

    return spoil


def _ghosts(keys: Keyspace) -> None:
    for name, zset in keys.zsets().items():
        zset[b"g-" + name.encode()] = START
    keys.expiry[b"g-expiry"] = keys.kept[b"g-kept"] = NOW + US_DAY
    keys.meta[b"g-meta"] = Record(1, START, START - 1)
    keys.extras[b"g-extra"] = Extra(b"odd")


def _whole(**fields: Any) -> Record:
    return Record(**{"attempt": 1, "token": START + 5, "created": START + 1, **fields})


DAMAGES: Final[dict[str, Callable[[Keyspace], None]]] = {
    "nothing": lambda _: None,
    "wake lost": lambda keys: setattr(keys, "wake", 0),
    "ghosts": _ghosts,
    "unplaced": _unplace(b"r1"),
    "unplaced with a priority": _unplace(b"r3"),
    "unplaced, two": _unplace(b"r3", b"c1"),
    "ready and leased": _place(ready=5, leased=NOW + 5),
    "ready and dead": _place(ready=5, dead=START),
    "ready and delayed": _place(ready=5, delayed=NOW + US_DAY),
    "dead and delayed": _both(_unplace(b"r1"), _place(dead=START, delayed=NOW)),
    "everywhere": _place(ready=5, delayed=NOW, leased=NOW + 9, dead=START),
    "deadline 31 days ahead": _spoil("leased", b"c1", NOW + 31 * US_DAY),
    "deadline beyond 31 days": _spoil("leased", b"c1", NOW + 31 * US_DAY + 1),
    "deadline of 0": _spoil("leased", b"c1", 0),
    "deadline below 0": _spoil("leased", b"c1", -1),
    "due in 2059": _spoil("delayed", b"f1", END - 1),
    "due in 2060": _spoil("delayed", b"f1", END),
    "due below 0": _spoil("delayed", b"f1", -1),
    "due at 0": _spoil("delayed", b"f1", 0),
    "died below 0": _spoil("dead", b"x1", -1),
    "died in 2060": _spoil("dead", b"x1", END),
    "place of level 7": _spoil("ready", b"r1", 5 - 7 * LEVEL),
    "place of level -7": _spoil("ready", b"r1", 5 + 7 * LEVEL),
    "place of level 8": _spoil("ready", b"r1", 5 - 8 * LEVEL),
    "place of level -8": _spoil("ready", b"r1", 5 + 8 * LEVEL),
    "place after 2059": _spoil("ready", b"r1", END - EPOCH),
    "place in 2059": _spoil("ready", b"r1", END - EPOCH - 1),
    "place of a priority after 2059": _spoil("ready", b"r3", END - EPOCH + LEVEL),
    "too large": _spoil("items", b"r1", b"x" * 60),
    "largest forgotten": _set_state(largest=0),
    "record lost": _lose("meta", b"c1"),
    "record of a newer token": _spoil("meta", b"c1", _whole(token=NOW + 7)),
    "record of a newer creation": _spoil("meta", b"f1", _whole(token=0, attempt=0, created=NOW + 7)),
    "record, token of 2059": _spoil("meta", b"c1", _whole(token=END - 1)),
    "record, token of 2060": _spoil("meta", b"c1", _whole(token=END)),
    "record, creation of 2060": _spoil("meta", b"c1", _whole(token=0, created=END)),
    "record, creation of 0": _spoil("meta", b"c1", _whole(created=0)),
    "record of priority 7": _spoil("meta", b"r1", _whole(priority=7)),
    "record of priority 8": _spoil("meta", b"r1", _whole(priority=8)),
    "record of priority -8": _spoil("meta", b"r1", _whole(priority=-8)),
    "record of priority -7": _spoil("meta", b"r1", _whole(priority=-7)),
    "record, expires in 2060": _spoil("meta", b"r1", _whole(token=0, attempt=0, expires=END)),
    "record, expires in 2059": _spoil("meta", b"r1", _whole(token=0, attempt=0, expires=END - 1)),
    "record, expires below 0": _spoil("meta", b"r1", _whole(token=0, attempt=0, expires=-5)),
    "record, expires and a token": _spoil("meta", b"r1", _whole(expires=NOW + US_DAY)),
    "record, expires between two times": _spoil(
        "meta", b"r1", record(options=1, current=0) + tail(NOW + 0.5)
    ),
    "record says an extra that is not there": _spoil("meta", b"r1", _whole(options=3)),
    "extra that no record says": _spoil("extras", b"r2", Extra(b"odd")),
    "extra lost": _lose("extras", b"r1"),
    "not in expiry": _lose("expiry", b"r1"),
    "in expiry at another time": lambda keys: keys.expiry.update({b"r1": NOW + 3}),
    "in expiry and has none": lambda keys: keys.expiry.update({b"c2": NOW + 3}),
    "kept and there": lambda keys: keys.kept.update({b"r1": NOW + 3}),
    "kept and dead": lambda keys: keys.kept.update({b"x1": NOW + 3}),
    "kept below 0": lambda keys: keys.kept.update({b"k9": -1}),
    "kept at 0": lambda keys: keys.kept.update({b"k9": 0}),
    "kept for ever": lambda keys: keys.kept.update({b"k9": 2**53}),
    "kept for long": lambda keys: keys.kept.update({b"k9": 2**53 - 1}),
    "flag 2 lost": _both(_set_state(flags=0), _spoil("kept", b"k9", NOW)),
    "state lost": _no_state,
    "clock forgotten": _set_state(clock=0),
    "clock of 2059": _set_state(clock=END - 1),
    "clock of 2060": _set_state(clock=END),
    "clock far ahead": _set_state(clock=2**60),
    "bound late": _set_state(next_due=2**53),
    "bound early": _set_state(next_due=5),
    "bound 0": _set_state(next_due=0),
    "bound below 0": _set_state(next_due=-1),
    "paused, wake lost": _both(_set_state(flags=1), lambda keys: setattr(keys, "wake", 0)),
    **{
        f"record {title}": _spoil("meta", b"c1", packed)
        for title, packed in BAD_RECORDS.items()
        if decode_record(packed) == packed and packed[:1] in {b"\1", b""} and packed[1:2] in {b"\0", b"\1"}
    },
}
"""What may happen to the keys of a queue behind the scripts' back."""
STOPPING: Final = (
    "of version 2",
    "of version 2 with a tail",
    "of version 0",
    "options 2",
    "options 4",
    "options 8",
)
"""Records that may be of a newer version: a pass ends there."""


def page_of(keys: Keyspace, phase: str) -> list[bytes]:
    """The ids that one page shows while a key is small: a hash in the order in which it was written."""
    if phase == "items":
        return sorted(keys.items)
    if phase == "meta":
        return sorted([*keys.meta, *(b"\0" + name for name in keys.extras)])
    zset: dict[bytes, int] = {**keys.zsets(), **keys.indexes()}[phase]
    return sorted(zset, key=lambda name: (zset[name], name))


def repairs(base: str, world: World) -> Iterator[Vector]:
    """Every page of deep_clean on every damage, dry and not; where a page finds nothing, once for each phase is enough."""
    sound = of_keyspace(world.queue.keyspace())
    for title, spoil in DAMAGES.items():
        keys = world.queue.keyspace()
        keys.wake = 1
        spoil(keys)
        spoiled = of_keyspace(keys)
        for number, phase in enumerate(PHASES, 1):
            made = [
                page(f"{title}, {phase}{', dry' * dry}", base, keys, world, number, dry_run=dry)
                for dry in ((True, False) if base == "settled" else (False,))
            ]
            if any(each.then != each.given for each in made) or title == "nothing":
                yield from made
            elif spoiled.get(phase) != sound.get(phase):
                yield made[-1]


def page(
    title: str, base: str, keys: Keyspace, world: World, number: int, *, dry_run: bool, now: int = NOW
) -> Vector:
    """One page of deep_clean, as the reference model does it."""
    phase = PHASES[number - 1]
    other = stored(world.other, "other:")
    given = of_keyspace(keys) | other
    results: list[tuple[Reply | Refused, Dump]] = []
    after = copy.deepcopy(keys)
    for _ in range(2):
        looked = copy.deepcopy(after)
        try:
            counts = deep_clean(looked, now, phase, page_of(looked, phase))
        except RefusedError as refused:
            results.append((Refused(str(refused)), of_keyspace(after) | other))
            continue
        cursor = b"%d:0" % (number + 1) if number < len(PHASES) else b"0"
        reply: Reply = [cursor, *(part for kind in KINDS for part in (kind.encode(), counts[kind]))]
        after = after if dry_run else looked
        results.append((reply, of_keyspace(after) | other))
    (reply_1, then), (reply_2, then_again) = results
    return Vector(
        name=f"{title} on {base}",
        script="deep_clean",
        rules=("LQ-DEEP-3",) if dry_run else RULES["deep_clean"],
        now=now,
        given=given,
        argv=[b"%d:0" % number if number > 1 else b"0", b"256", b"1" if dry_run else b"0"],
        reply=reply_1,
        then=then,
        again=reply_2,
        then_again=then_again,
        base=base,
    )


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
