"""Write the vectors: `python -m leaseq_conformance.vectors.generate`; with --check, say which files are stale."""

from __future__ import annotations

import argparse
import copy
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from leaseq import _scripts
from leaseq_conformance.model.base import END
from leaseq_conformance.model.packed import EPOCH, Extra, State, decode_state
from leaseq_conformance.model.reading import COUNTED
from leaseq_conformance.vectors import (
    corners,
    damage,
    edges,
    leasing,
    malformed,
    pages,
    refused,
    repairs,
    samples,
    worlds,
)
from leaseq_conformance.vectors.build import refused as refused_vector
from leaseq_conformance.vectors.build import vector
from leaseq_conformance.vectors.form import FOLDER, Dump, Refused, Vector, render
from leaseq_conformance.vectors.other_samples import BY_OTHERS
from leaseq_conformance.vectors.particular import LATE
from leaseq_conformance.vectors.rules import RULES
from leaseq_conformance.vectors.worker_samples import BY_WORKERS
from leaseq_conformance.vectors.world import NOW, START, World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from leaseq_conformance.vectors.samples import Sample

SAMPLES: Final = {**BY_WORKERS, **BY_OTHERS}
SCRIPTS: Final = {script.name: script for script in _scripts.SCRIPTS}
TIMELESS: Final = {"complete", "remove", "inspect", "list", "configure"}
"""These work under any clock."""
RECORDLESS: Final = {"add", "configure", "deep_clean", "list", "purge", "remove", "settle", "stats"}
"""These read no record, or repair it."""
READ_BY: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "inspect": {"r3 on full": ("items", "meta", "ready", "delayed", "leased", "dead", "state")},
    "list": {
        f"{name} 0 256 {order} on full": (name,)
        for name in ("ready", "delayed", "leased", "dead")
        for order in ("forward", "backward")
    },
    "outcome": {
        "r1 on rich": ("items", "meta", "ready", "delayed", "leased", "dead", "kept", "state", "result:r1")
    },
    "settle": {"settle on full": ("state", "wake"), "settle on roomy": ("items", "ready", "dead", "room")},
    "stats": {"stats on rich": ("items", "ready", "delayed", "leased", "dead", "kept", "state", "counters")},
}
"""The keys that calls which need not change them look at."""
ZEROES: Final = {
    **dict.fromkeys(
        ("complete_with", "configure", "extend", "inspect", "release", "remove", "revive"),
        (0,),
    ),
    **dict.fromkeys(("add", "complete"), (0, 3)),
    "complete_and_lease": (0, 1, 2),
    "lease": (0, 1),
    "lease_any": (0, 1, 2),
    "light_clean": (0,),
    "list": (1, 2),
    "outcome": (0,),
    "purge": (0, 1),
}
"""Arguments that may be written with leading zeroes, to 16 digits."""
UNLIKE: Final = {"ancient", "paused", "tight"}
"""On these a call has the same effect as on others for another reason, so that none is one too many."""
FEW: Final = {"lease", "lease_any", "light_clean", "settle", "stats"}
"""These have few samples, and all that they answer depends on the queue."""
ROOM: Final = {"lease", "lease_any", "complete_and_lease", "light_clean", "settle"}
"""These look whether there is room to tell of."""
ONLY_FOR: Final = {
    "crowded": {"lease", "complete_and_lease", "light_clean", "lease_any"},
    "heavy": {"lease", "complete_and_lease", "lease_any"},
    "alone": {"lease", "complete_and_lease", "lease_any"},
    "lone_dead": {"revive"},
    "least": {"stats"},
}
"""Kinds of queue that are large, or tell something of few scripts only, and what they are for."""


def signature(made: Vector) -> Any:
    """What kind of thing a vector shows: two of one sample that show the same are one too many."""
    effect = (changes(made.given, made.then), changes(made.then, made.then_again))
    return (places(made), shape(made.reply), shape(made.again), *effect)


def places(made: Vector) -> frozenset[tuple[str, bytes]]:
    """In which keys the ids among the arguments are."""
    hashes = {key: value for key, value in made.given.items() if isinstance(value, dict)}
    return frozenset((key, each) for each in made.argv for key, value in hashes.items() if each in value)


def shape(reply: Any) -> Any:
    """A reply without its numbers."""
    if isinstance(reply, list):
        return tuple(shape(each) for each in reply)
    return min(reply, 2) if isinstance(reply, int) else reply


def changes(before: Dump, after: Dump) -> frozenset[Any]:
    """Which fields of which keys came, went or changed."""
    found: set[Any] = set()
    for key in before.keys() | after.keys():
        old, new = before.get(key), after.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            fields: set[Any] = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
            found |= {(key, name, name in old, name in new) for name in fields}
        elif old != new:
            found.add((key, old is None, new is None))
    return frozenset(found)


class Maker:
    """The vectors of one script, from every source."""

    def __init__(self, script: str, made: dict[str, World]) -> None:
        self.script, self.made = script, made
        self.rules = RULES[script]
        self._shown: set[Any] = set()

    def vectors(self) -> Iterator[Vector]:
        """All of them, by names of their own."""
        names: Counter[str] = Counter()
        for each in self._all():
            names[each.name] += 1
            each.name += f" ({names[each.name]})" * (names[each.name] > 1)
            yield each

    def _all(self) -> Iterator[Vector]:
        ordinary = list(self._ordinary())
        yield from ordinary
        yield from self._edges()
        yield from self._damaged_but_served()
        if self.script == "deep_clean":
            for base in ("settled", "rich"):
                yield from repairs.repairs(base, self.made[base])
            yield from pages.vectors()
        yield from self._refused_arguments()
        yield from self._clocks()
        yield from self._full(ordinary)
        yield from self._wrong_types(ordinary)
        yield from self._bad_records(ordinary)
        yield from self._bad_states()
        yield from corners.of(self.script)
        yield from leasing.of(self.script)

    def _samples(self, world: World) -> list[Sample]:
        return SAMPLES[self.script](world) if self.script in SAMPLES else []

    def _ordinary(self) -> Iterator[Vector]:
        for base, world in self.made.items():
            if base == "nowhere" or self.script not in ONLY_FOR.get(base, {self.script}):
                continue
            for sample in self._samples(world):
                made = vector(self.script, world, base, sample, sample.rules or self.rules)
                if self.script in FEW or base in UNLIKE or (sample.title, signature(made)) not in self._shown:
                    self._shown.add((sample.title, signature(made)))
                    yield made

    def _edges(self) -> Iterator[Vector]:
        for edge in edges.of(self.script, self.made):
            base = edge.on if edge.on in self.made else "empty"
            yield vector(
                self.script,
                edge.world,
                base,
                edge.sample,
                edge.rules,
                now=edge.now,
                title=edge.on,
                change=edge.change,
            )

    def _damaged_but_served(self) -> Iterator[Vector]:
        for sample in damage.on_nowhere(self.made["nowhere"]).get(self.script, []):
            yield vector(self.script, self.made["nowhere"], "nowhere", sample, self.rules)
        yield from self._counters()
        if self.script == "inspect":
            yield from self._extras()
        if self.script == "lease_any":
            yield from self._second_damaged()
        yield from self._ghosts()

    def _ghosts(self) -> Iterator[Vector]:
        """Ids without data in `dead` and in `ready`."""
        if self.script in ROOM:
            world, change = damage.haunted(self.made["single"])
            for sample in self._samples(world):
                yield vector(
                    self.script,
                    world,
                    "single",
                    sample,
                    ("LQ-ROOM-1",),
                    title="single, more ids dead than items",
                    change=change,
                )
        if self.script in {"lease", "complete_and_lease", "lease_any"}:
            for base in ("stale", "settled", "single"):
                world, change = damage.ghostly(self.made[base], (b"g1", b"g2"))
                for sample in self._samples(world):
                    yield vector(
                        self.script,
                        world,
                        base,
                        sample,
                        ("LQ-LEASE-8",),
                        title=f"{base} with ghosts",
                        change=change,
                    )

    def _counters(self) -> Iterator[Vector]:
        """A counter is no number or can grow no further; and what `stats` makes of those that are one."""
        numbers = malformed.NO_COUNTS if self.script == "stats" else (b"x", b"9223372036854775807", b"1.5")
        for number in numbers:
            for base in ("rich", "spent"):
                world, change = damage.miscounted(self.made[base], number)
                for sample in self._samples(world):
                    made = vector(
                        self.script,
                        world,
                        base,
                        sample,
                        ("LQ-READ-6",),
                        title=f"{base}, counters {number!r}",
                        change=change,
                    )
                    counted = frozenset(
                        change for change in changes(made.given, made.then) if change[0] == "counters"
                    )
                    if (counted or self.script == "stats") and (number, counted) not in self._shown:
                        self._shown.add((number, counted))
                        yield made
        if self.script == "stats":
            each = {name: number for number, name in enumerate(COUNTED, 1)}
            same = {str(number): dict.fromkeys(COUNTED, number) for number in malformed.COUNTS}
            for title, counts in {"of their own": each, **same}.items():
                world = damage.counted(self.made["settled"], counts)
                (sample,) = self._samples(world)
                rules = ("LQ-READ-3", "LQ-READ-6")
                yield vector(self.script, world, "settled", sample, rules, title=f"settled, counters {title}")

    def _extras(self) -> Iterator[Vector]:
        """Extras that are cut: what is there of the error is told."""
        for packed in malformed.BAD_EXTRAS:
            world = copy.deepcopy(self.made["rich"])
            world.queue.items[b"x1"].extra = Extra(packed[2:] if any(packed) else b"")
            sample = next(each for each in self._samples(world) if each.title == "x1")
            change = damage.with_extra(b"x1", packed)
            title = f"rich, extra {packed!r}"
            yield vector(self.script, world, "rich", sample, self.rules, title=title, change=change)

    def _second_damaged(self) -> Iterator[Vector]:
        """Where nothing was changed, the error of the second queue is the answer."""
        for base, world in self.made.items():
            for count in (1, 256) if base != "nowhere" and base not in ONLY_FOR else ():
                yield damage.second_damaged(base, world, count)

    def _refused_arguments(self) -> Iterator[Vector]:
        world = self.made["full"]
        dump = world.stored()
        for title, argv, code, more in refused.arguments(self.script, world):
            rules = {"BAD_ID": ("LQ-ITEM-1",), "CROSS_GROUP": ("LQ-HANDOFF-4",)}.get(
                code, ("LQ-CALL-2", "LQ-ERROR-1")
            )
            yield refused_vector(self.script, title, "full", dump, argv, code, rules, more=more)
        for title, argv, keys in refused.key_counts(self.script):
            yield refused_vector(
                self.script, title, "full", dump, argv, "BAD_ARGUMENT", ("LQ-CALL-1",), keys=keys
            )
        for title, argv, now in LATE.get(self.script, []):
            yield refused_vector(
                self.script, title, "full", dump, argv, "BAD_ARGUMENT", ("LQ-ADD-4",), now=now
            )

    def _clocks(self) -> Iterator[Vector]:
        world = self.made["settled"]
        needs_time = self.script not in TIMELESS
        for title, now in (
            *(
                ("2024", EPOCH - 1),
                ("2025", EPOCH),
                ("2059", END - 9),
                ("the last", END - 1),
                ("2060", END),
                ("1970", 1_000_000),
            ),
            *(("a microsecond back", NOW - 1), ("set back by a day", START - 86_400_000_000)),
        ):
            for sample in self._samples(world)[:2]:
                said = f"settled, clock {title}"
                if needs_time and not EPOCH <= now < END:
                    more = list(sample.more)
                    yield refused_vector(
                        self.script,
                        f"{sample.title} on {said}",
                        "settled",
                        world.stored(),
                        sample.argv,
                        "CLOCK",
                        ("LQ-TIME-3",),
                        now=now,
                        more=more,
                    )
                    continue
                made = vector(
                    self.script, world, "settled", sample, ("LQ-TIME-3", "LQ-TIME-4"), now=now, title=said
                )
                if _clock(made.then_again) < END:
                    yield made
        yield from self._last_clock()
        if self.script == "purge":
            for older_than in (500, 501):
                sample = samples.purge(f"older than {older_than} ms", older_than, b"x1")
                half = START + 500_000
                title = "settled, half a second on"
                yield vector(self.script, world, "settled", sample, self.rules, now=half, title=title)
        for at in ZEROES.get(self.script, ()):
            for sample in self._samples(world)[:1]:
                made = vector(self.script, world, "settled", sample, ("LQ-CALL-2",))
                argv = [*made.argv[:at], made.argv[at].zfill(16), *made.argv[at + 1 :]]
                yield _like(made, argv=argv, note=f"16 digits in argument {at}")

    def _last_clock(self) -> Iterator[Vector]:
        """The hybrid clock has come as far as it may."""
        world = copy.deepcopy(self.made["settled"])
        assert world.queue.state
        world.queue.state.clock = END - 1
        for sample in self._samples(world):
            made = vector(
                self.script, world, "settled", sample, ("LQ-TIME-4",), title="settled, the clock's end"
            )
            if _clock(made.then_again) < END:
                yield made

    def _full(self, ordinary: list[Vector]) -> Iterator[Vector]:
        """On a server that has reached its memory limit; one for each set of keys that a call changes."""
        for made in _varied(ordinary):
            rules = ("LQ-HANDOFF-5",) if self.script == "complete_with" else self.rules
            if self.script == "add":
                error = Refused("LEASEQ_OUT_OF_MEMORY")
                yield _like(
                    made,
                    reply=error,
                    then=made.given,
                    again=error,
                    then_again=made.given,
                    note="full server",
                    full=True,
                )
            else:
                yield _like(made, note="full server", full=True, rules=rules)

    def _wrong_types(self, ordinary: list[Vector]) -> Iterator[Vector]:
        """A key that a call would change has another type."""
        error = Refused("LEASEQ_WRONG_TYPE")
        for made in ordinary:
            for key in READ_BY.get(self.script, {}).get(made.name, ()):
                given = {**made.given, key: malformed.wrong_type(key)}
                note = f"{key} of another type"
                yield _like(
                    made,
                    given=given,
                    reply=error,
                    then=given,
                    again=error,
                    then_again=given,
                    note=note,
                    rules=("LQ-ERROR-3",),
                )
        for made in _varied(ordinary):
            changed = {
                key
                for key in made.given.keys() | made.then.keys()
                if made.given.get(key) != made.then.get(key)
            }
            for key in sorted(changed):
                bare = key.removeprefix("other:")
                given = {**made.given, key: malformed.wrong_type(bare)}
                if self.script == "lease_any" and bare == "wake" and not _leased_from(made, key):
                    # it would only be settled: that it cannot be harms nobody
                    then, again = ({**dump, key: given[key]} for dump in (made.then, made.then_again))
                    rules: tuple[str, ...] = ("LQ-ANY-2",)
                    if made.then[key] == made.then_again[key] and _gives_twice(made):
                        yield _like(
                            made,
                            given=given,
                            then=then,
                            then_again=again,
                            note=f"{key} of another type",
                            rules=rules,
                        )
                    continue
                yield _like(
                    made,
                    given=given,
                    reply=error,
                    then=given,
                    again=error,
                    then_again=given,
                    note=f"{key} of another type",
                    rules=("LQ-ERROR-3", "LQ-ERROR-1"),
                )

    def _bad_records(self, ordinary: list[Vector]) -> Iterator[Vector]:
        """The record of an item that a call would move is none."""
        if self.script in RECORDLESS:
            return
        ways = set()
        for made in ordinary:
            for item_id in _read(made) if self.script == "inspect" else _moved(made):
                if (way := _way(made, item_id)) not in ways:
                    ways.add(way)
                    chosen = malformed.BAD_RECORDS if len(ways) == 1 else malformed.TELLING
                    for title in chosen:
                        packed = malformed.BAD_RECORDS[title]
                        yield self._spoiled(made, item_id, title, packed)
        if self.script in {"outcome", "complete_with"}:
            for title, dump, script, argv, more in damage.spoiled_outcomes(self.made["rich"]):
                if script == self.script:
                    yield refused_vector(
                        script, f"outcome {title}", "rich", dump, argv, "FORMAT", ("LQ-OUTCOME-8",), more=more
                    )

    def _spoiled(self, made: Vector, item_id: bytes, title: str, packed: bytes) -> Vector:
        meta: Any = made.given.get("meta", {})
        given = {**made.given, "meta": {**meta, item_id: packed}}
        error = Refused("LEASEQ_FORMAT")
        note = f"record of {item_id.decode('latin-1')} {title}"
        return _like(
            made,
            given=given,
            reply=error,
            then=given,
            again=error,
            then_again=given,
            note=note,
            rules=("LQ-ERROR-1",),
        )

    def _bad_states(self) -> Iterator[Vector]:
        if (
            "state" not in [key.removeprefix("other:") for key in SCRIPTS[self.script].keys]
            and self.script != "lease_any"
        ):
            return
        worse = {} if self.script == "deep_clean" else malformed.WRONG_STATES
        argv = refused.PLAIN[self.script]
        more = refused.more_of(self.script, argv)
        for title, packed in {**malformed.BAD_STATES, **worse}.items():
            dump = {**self.made["settled"].stored(), "state": packed}
            yield refused_vector(
                self.script, f"state {title}", "settled", dump, argv, "FORMAT", ("LQ-ERROR-1",), more=more
            )


def _clock(dump: Dump) -> int:
    """The clock of the first queue."""
    state = decode_state(dump.get("state"))  # type: ignore[arg-type]  # it is a string or not there
    return state.clock if isinstance(state, State) else 0


def _varied(vectors: list[Vector]) -> list[Vector]:
    """One vector for each set of keys that a call changes."""
    found: dict[Any, Vector] = {}
    for each in vectors:
        changed = frozenset(
            key for key in each.given.keys() | each.then.keys() if each.given.get(key) != each.then.get(key)
        )
        if changed and not isinstance(each.reply, Refused):
            found.setdefault(changed, each)
    return list(found.values())


def _moved(made: Vector) -> list[bytes]:
    """Ids of the first queue whose place, data or record changes."""
    found: set[bytes] = set()
    for key in ("meta", "ready", "delayed", "leased", "dead"):
        old: Any = made.given.get(key, {})
        new: Any = made.then.get(key, {})
        found |= {name for name in old if old.get(name) != new.get(name) and name[:1] != b"\0"}
    records: Any = made.given.get("meta", {})
    return sorted(name for name in found if name in records)


def _read(made: Vector) -> list[bytes]:
    """Ids among the arguments that have a record."""
    records: Any = made.given.get("meta", {})
    return [each for each in made.argv if each in records]


def _leased_from(made: Vector, key: str) -> bool:
    """Whether the key is one of the queue that gave the items."""
    assert isinstance(made.reply, list)
    number = made.reply[0]
    assert isinstance(number, int)
    return number > 0 and made.more[11 * (number - 1)].startswith("other:") == key.startswith("other:")


def _gives_twice(made: Vector) -> bool:
    """Whether both calls get items of the same queue."""
    both = isinstance(made.reply, list) and isinstance(made.again, list) and made.reply[0] == made.again[0]
    return both and isinstance(made.reply, list) and made.reply[0] != 0


def _way(made: Vector, item_id: bytes) -> Any:
    """How a call comes upon an item: where it is before and after, whether something is due, and whether it is one of several."""
    state = decode_state(made.given.get("state"))  # type: ignore[arg-type]  # it is a string or not there
    due = not isinstance(state, State) or state.next_due <= made.now
    before, after = (
        frozenset(
            key
            for key, value in dump.items()
            if isinstance(value, dict) and item_id in value and key != "expiry"
        )
        for dump in (made.given, made.then)
    )
    return before, after, due, made.argv[:1] == [b"1"], isinstance(made.reply, Refused)


def _like(made: Vector, *, note: str, **fields: Any) -> Vector:
    """A vector that differs in some fields."""
    return Vector(**{**vars(made), **fields, "name": f"{made.name}, {note}"})


def files() -> dict[str, str]:
    """Every file by its name."""
    made = {
        name: build() for name, build in {**worlds.WORLDS, **damage.SERVED, "nowhere": damage.nowhere}.items()
    }
    queues = {name: world.stored() for name, world in made.items()}
    content = {}
    for script in sorted(SCRIPTS):
        vectors = list(Maker(script, made).vectors())
        used = {each.base for each in vectors}
        content[f"{script}.json"] = render(script, {name: queues[name] for name in used}, vectors)
    return content


def main() -> None:
    """Write or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare whole files and write nothing")
    check = parser.parse_args().check
    folder = Path(str(FOLDER))
    content = files()
    present = {path.name for path in folder.glob("*.json")}
    stale = [
        name for name, said in content.items() if name not in present or (folder / name).read_text() != said
    ]
    stale += sorted(present - content.keys())
    if check and stale:
        sys.exit(f"stale, run python -m leaseq_conformance.vectors.generate: {', '.join(stale)}")
    if not check:
        folder.mkdir(exist_ok=True)
        for name in present - content.keys():
            (folder / name).unlink()
        for name, said in content.items():
            (folder / name).write_text(said)
    vectors = sum(said.count('\n{"name"') for said in content.values())
    print(f"{vectors} vectors of {len(content)} scripts, {sum(map(len, content.values())) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
