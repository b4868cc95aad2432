"""Makes vectors of sample calls on worlds: the reference model says what must come of each."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from leaseq_conformance.model.base import RefusedError
from leaseq_conformance.vectors.builder import NOW, World
from leaseq_conformance.vectors.vector import Dump, Refused, Reply, Vector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from leaseq_conformance.vectors.samples import Sample


def as_bytes(argument: Any) -> bytes:
    """An argument as it is sent."""
    return argument if isinstance(argument, bytes) else str(argument).encode("latin-1")


def run(world: World, sample: Sample, now: int) -> Reply | Refused:
    """Call the model, which a refused call leaves as it was."""
    before = copy.deepcopy(world)
    try:
        return sample.run(world, now)
    except RefusedError as refused:
        world.queue, world.other = before.queue, before.other
        return Refused(str(refused))


def vector(
    script: str,
    world: World,
    base: str,
    sample: Sample,
    rules: Sequence[str],
    *,
    now: int = NOW,
    title: str = "",
    full: bool = False,
    change: Callable[[Dump], Dump] = lambda dump: dump,
) -> Vector:
    """The vector of a sample call; `change` does to every keyspace what the model knows nothing of."""
    world = copy.deepcopy(world)
    given = change(world.stored())
    reply = run(world, sample, now)
    then = change(world.stored())
    again = run(world, sample, now)
    return Vector(
        name=f"{sample.title} on {title or base}",
        script=script,
        rules=tuple(rules),
        now=now,
        given=given,
        argv=[as_bytes(each) for each in sample.argv],
        reply=reply,
        then=then,
        again=again,
        then_again=change(world.stored()),
        more=list(sample.more),
        full=full,
        base=base,
    )


def refused(
    script: str,
    name: str,
    base: str,
    given: Dump,
    argv: Iterable[Any],
    code: str,
    rules: Sequence[str],
    *,
    now: int = NOW,
    more: Sequence[str] = (),
    keys: list[str] | None = None,
) -> Vector:
    """A call that gets an error and changes nothing."""
    error = Refused("LEASEQ_" + code)
    sent = [as_bytes(each) for each in argv]
    return Vector(
        name, script, tuple(rules), now, given, sent, error, given, error, given, list(more), keys, base=base
    )


def like(made: Vector, *, note: str, **fields: Any) -> Vector:
    """A vector that differs in some fields."""
    return Vector(**{**vars(made), **fields, "name": f"{made.name}, {note}"})
