"""The sample calls under clocks of every kind."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Final

from leaseq_conformance.model.base import END
from leaseq_conformance.model.codec import EPOCH
from leaseq_conformance.vectors import samples
from leaseq_conformance.vectors.build import refused as refused_vector
from leaseq_conformance.vectors.build import vector
from leaseq_conformance.vectors.builder import NOW, START, World
from leaseq_conformance.vectors.rules import RULES
from leaseq_conformance.vectors.shown import clock

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from leaseq_conformance.vectors.samples import Sample
    from leaseq_conformance.vectors.vector import Vector

TIMELESS: Final = {"complete", "remove", "inspect", "list", "configure"}
"""These work under any clock."""
CLOCKS: Final = (
    *(
        ("2024", EPOCH - 1),
        ("2025", EPOCH),
        ("2059", END - 9),
        ("the last", END - 1),
        ("2060", END),
        ("1970", 1_000_000),
    ),
    *(("a microsecond back", NOW - 1), ("set back by a day", START - 86_400_000_000)),
)


def of(script: str, world: World, made: Sequence[Sample]) -> Iterator[Vector]:
    """These calls of a script on the settled queue."""
    needs_time = script not in TIMELESS
    for title, now in CLOCKS:
        for sample in made[:2]:
            said = f"settled, clock {title}"
            if needs_time and not EPOCH <= now < END:
                more = list(sample.more)
                yield refused_vector(
                    script,
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
            each = vector(script, world, "settled", sample, ("LQ-TIME-3", "LQ-TIME-4"), now=now, title=said)
            if clock(each.then_again) < END:
                yield each
    yield from _last(script, world, made)
    if script == "purge":
        for older_than in (500, 501):
            sample = samples.purge(f"older than {older_than} ms", older_than, b"x1")
            half = START + 500_000
            title = "settled, half a second on"
            yield vector(script, world, "settled", sample, RULES[script], now=half, title=title)


def _last(script: str, world: World, made: Sequence[Sample]) -> Iterator[Vector]:
    """The hybrid clock has come as far as it may."""
    world = copy.deepcopy(world)
    assert world.queue.state
    world.queue.state.clock = END - 1
    for sample in made:
        each = vector(script, world, "settled", sample, ("LQ-TIME-4",), title="settled, the clock's end")
        if clock(each.then_again) < END:
            yield each
