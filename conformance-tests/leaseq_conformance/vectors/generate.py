"""Write the vectors: `python -m leaseq_conformance.vectors.generate`; with --check, say which files are stale."""

from __future__ import annotations

import argparse
import copy
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance.manifest import SCRIPTS
from leaseq_conformance.model.codec import Extra
from leaseq_conformance.model.reading import COUNTED
from leaseq_conformance.vectors import (
    clocks,
    corners,
    damage,
    fixtures,
    malformed,
    pages,
    refused,
    repairs,
    variations,
)
from leaseq_conformance.vectors.build import refused as refused_vector
from leaseq_conformance.vectors.build import vector
from leaseq_conformance.vectors.corners import strays
from leaseq_conformance.vectors.other_samples import BY_OTHERS
from leaseq_conformance.vectors.particular import LATE
from leaseq_conformance.vectors.rules import RULES
from leaseq_conformance.vectors.shown import changes, signature
from leaseq_conformance.vectors.vector import FOLDER, Vector, render
from leaseq_conformance.vectors.worker_samples import BY_WORKERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from leaseq_conformance.vectors.builder import World
    from leaseq_conformance.vectors.samples import Sample

SAMPLES: Final = {**BY_WORKERS, **BY_OTHERS}
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
        yield from corners.FIRST.get(self.script, list)()
        yield from self._damaged_but_served()
        if self.script == "deep_clean":
            for base in ("settled", "rich"):
                yield from repairs.repairs(base, self.made[base])
            yield from pages.vectors()
        yield from self._refused_arguments()
        settled = self.made["settled"]
        called = self._samples(settled)
        yield from clocks.of(self.script, settled, called)
        if called:
            yield from variations.digits(self.script, settled, called[0])
        yield from variations.full(self.script, ordinary)
        yield from variations.wrong_types(self.script, ordinary)
        yield from variations.bad_records(self.script, ordinary, self.made["rich"])
        yield from variations.bad_states(self.script, settled)
        yield from corners.LAST.get(self.script, list)()
        yield from strays.of(self.script)

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


def files() -> dict[str, str]:
    """Every file by its name."""
    made = {
        name: build()
        for name, build in {**fixtures.WORLDS, **damage.SERVED, "nowhere": damage.nowhere}.items()
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
