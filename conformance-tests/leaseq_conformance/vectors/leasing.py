"""Calls that lease, on queues that were made for one of them: extras that are cut, what is swept, and what is found no item."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from leaseq_conformance.model.calls import Add, Complete
from leaseq_conformance.model.packed import LEVEL, Extra, State
from leaseq_conformance.vectors import samples, worlds
from leaseq_conformance.vectors.build import vector
from leaseq_conformance.vectors.damage import with_extra
from leaseq_conformance.vectors.form import Dump, Reply, Vector
from leaseq_conformance.vectors.world import NOW, START, World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from leaseq_conformance.vectors.samples import Sample

ONE: Final[dict[str, Sample]] = {
    "lease": samples.lease("1", 1, 30_000),
    "lease_any": samples.lease_any("s 1", "s", 1, 30_000),
    "complete_and_lease": samples.complete_and_lease("absent, 1", 1, 30_000, Complete(b"none", 1)),
}
"""A call that leases one item of the first queue."""


def of(script: str) -> Iterator[Vector]:
    """These calls of a script."""
    if script in ONE:
        yield from _extras(script)
    if script == "lease":
        yield from _swept()
        yield _dropped_without_state()
        world = worlds.single()
        world.queue.items[b"r1"].score -= 3 * LEVEL
        two = samples.lease("2", 2, 30_000)
        title = "an item of level 3 without a record"
        yield vector("lease", world, "single", two, ("LQ-LEASE-1",), title=title)


WHOLE: Final = Extra(b"", ((b"content_type", b"text/plain"), (b"header:a", b"1")))
CUT: Final[dict[str, tuple[Extra, bytes]]] = {
    "of no byte": (Extra(), b""),
    "of one byte": (Extra(), b"\1"),
    "whose error is longer than it": (Extra(), b"\5\0why"),
    "that ends within the length of a name": (WHOLE, WHOLE.encode() + b"\1"),
    "that ends within a name": (WHOLE, WHOLE.encode() + b"\5\0name"),
    "that ends behind a name": (WHOLE, WHOLE.encode() + b"\4\0name"),
    "that ends within the length of a value": (WHOLE, WHOLE.encode() + b"\4\0name\1"),
}
"""What is to be told of an extra whose lengths are wrong, and that extra: headers up to the damage (spec 8.4)."""


def _extras(script: str) -> Iterator[Vector]:
    """Extras of which one thing is told, or nothing."""
    for title, (told, packed) in CUT.items():
        change = with_extra(b"r1", packed)
        on = f"an extra {title}"
        yield vector(script, _extended(told), "empty", ONE[script], ("LQ-LEASE-11",), title=on, change=change)
    nameless = _extended(Extra(b"", (*WHOLE.pairs, (b"", b""))))
    on = "an extra whose last name is empty"
    yield vector(script, nameless, "empty", ONE[script], ("LQ-LEASE-11",), title=on)


def _extended(extra: Extra) -> World:
    """One ready item with an extra."""
    world = World()
    world.queue.add(START, [Add(b"r1", b"data of r1", content_type=b"")])
    world.queue.items[b"r1"].extra = extra
    return world.quiet()


def _swept() -> Iterator[Vector]:
    """More than one call sweeps, at one time: the bound stays, the places that were taken are kept in the clock."""
    names = [b"r%02d" % number for number in range(65)]
    due = World()
    due.queue.add(START, [Add(name, delay=1000) for name in names])
    late = World()
    late.queue.add(START, [Add(name) for name in names])
    late.lease(len(names), 1000)
    for title, world in (("due", due), ("expired", late)):
        world.queue.configure(paused=1)
        said = f"a paused queue, 65 {title} at one time"
        yield vector("lease", world.quiet(), "empty", ONE["lease"], ("LQ-LEASE-5", "LQ-TIME-4"), title=said)


def _dropped_without_state() -> Vector:
    """An id in `ready` without data, no item, no state: it is made anew."""
    nothing: Reply = [-1, 0, 0]
    then: Dump = {"state": State(next_due=2**53).encode(), "counters": {b"dropped": b"1"}}
    return Vector(
        name="no item, no state, an id in ready",
        script="lease",
        rules=("LQ-LEASE-8", "LQ-KEY-4"),
        now=NOW,
        given={"ready": {b"g1": 5.0}, "expiry": {b"g1": float(NOW)}},
        argv=[b"1", b"30000"],
        reply=nothing,
        then=then,
        again=nothing,
        then_again=then,
        base="empty",
    )
