"""Calls of outcome on queues that were made for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leaseq_conformance.model.codec import EXTRA, LEVEL, TAIL, Extra, Outcome, State
from leaseq_conformance.model.outcomes import CONTENTS, RESULT
from leaseq_conformance.vectors import fixtures, samples
from leaseq_conformance.vectors.build import vector
from leaseq_conformance.vectors.builder import DAY, NOW, START, World
from leaseq_conformance.vectors.corners.making import (
    always,
    bad_records,
    crowded_call,
    one_dead,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from leaseq_conformance.vectors.samples import Sample
    from leaseq_conformance.vectors.vector import Vector


def _asked(*ids: bytes) -> Sample:
    return samples.ids(" ".join(item_id.decode() for item_id in ids), "outcome", *ids, timed=True)


def vectors() -> Iterator[Vector]:
    """All of them."""
    world = fixtures.rich()
    world.queue.items[b"x3"].keep = DAY
    made = _asked(b"x3")
    yield vector(
        "outcome", world, "rich", made, ("LQ-OUTCOME-6",), now=NOW + 500_123, title="rich, at odd µs"
    )
    yield vector(
        "outcome",
        one_dead(keep=5000, ago=0, state=None),
        "empty",
        _asked(b"x1"),
        ("LQ-OUTCOME-6",),
        title="one dead, no state",
    )
    yield vector(
        "outcome",
        one_dead(keep=5000, ago=0, state=State(flags=1)),
        "empty",
        _asked(b"x1"),
        ("LQ-KEY-7",),
        title="one dead, paused",
    )
    for keep, ago in ((1000, 1_000_000), (1000, 999_999), (1000, 999_000), (1, 0), (1, 1)):
        world = one_dead(keep=keep, ago=ago, state=State())
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
    world = fixtures.single()
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
    yield from bad_records("outcome", [1, "x1"], b"x1")
    yield from bad_records("outcome", [1, "r1"], b"r1")
    yield crowded_call("outcome", [1, "x1"])
    world = one_dead(keep=5000, ago=0, state=State())
    item = world.queue.items[b"x1"]
    item.options, item.extra = TAIL | EXTRA, Extra(b"")
    yield vector(
        "outcome",
        world,
        "empty",
        _asked(b"x1"),
        ("LQ-OUTCOME-6",),
        title="an extra of one byte",
        change=always({"meta": {b"\0x1": b"\1"}}),
    )
