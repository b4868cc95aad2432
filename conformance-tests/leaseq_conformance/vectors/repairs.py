"""Every page of deep_clean on every damage, and what the reference model makes of it."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance.model.base import END, RefusedError
from leaseq_conformance.model.codec import EPOCH, LEVEL, Extra, Record, State, decode_record
from leaseq_conformance.model.deep_clean import KINDS, PHASES, deep_clean
from leaseq_conformance.vectors.builder import NOW, START, US_DAY, World, of_keyspace, stored
from leaseq_conformance.vectors.malformed import BAD_RECORDS, record, tail
from leaseq_conformance.vectors.rules import RULES
from leaseq_conformance.vectors.vector import Dump, Refused, Reply, Vector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from leaseq_conformance.model.keyspace import Keyspace


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
