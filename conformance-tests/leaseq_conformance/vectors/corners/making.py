"""What the calls on queues that were made for them are made of."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance.model.base import END, Item
from leaseq_conformance.model.calls import Complete
from leaseq_conformance.model.codec import EPOCH, TAIL, State
from leaseq_conformance.vectors import fixtures, samples
from leaseq_conformance.vectors.build import refused, vector
from leaseq_conformance.vectors.builder import HOUR, NOW, START, World
from leaseq_conformance.vectors.malformed import BAD_RECORDS
from leaseq_conformance.vectors.vector import Dump, Vector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from leaseq_conformance.vectors.samples import Sample

LAST_SECOND: Final = END - 1 - 1_000_000
"""A second before the last microsecond of 2059."""


def edge(
    script: str,
    on: str,
    world: World,
    sample: Sample,
    rules: tuple[str, ...],
    now: int = NOW,
    *,
    change: Callable[[Dump], Dump] = lambda dump: dump,
) -> Vector:
    """A call on a queue, named for what is special about that; `change` is as in `build.vector`."""
    base = on if on in fixtures.WORLDS else "empty"
    return vector(script, world, base, sample, rules, now=now, title=on, change=change)


def with_fields(dump: Dump, more: Mapping[str, Mapping[bytes, Any]]) -> Dump:
    """A keyspace with more fields in its hashes and sorted sets."""
    changed: dict[str, Any] = dict(dump)
    for key, fields in more.items():
        changed[key] = {**changed.get(key, {}), **fields}
    return changed


def but(made: Vector, given: Dump) -> Vector:
    """The vector from another keyspace, after which all is as it was."""
    return Vector(**{**vars(made), "given": given})


def always(more: Mapping[str, Mapping[bytes, Any]]) -> Callable[[Dump], Dump]:
    """What makes any keyspace one with more fields."""
    return lambda dump: with_fields(dump, more)


def lasting(item_id: bytes, expires: int) -> Item:
    """A ready item that goes at a time."""
    item = Item(b"data of " + item_id, "ready", START - EPOCH + 1, START + 1, recorded=True)
    item.options, item.expires, item.indexed = TAIL, expires, True
    return item


def bad_records(script: str, argv: list[Any], item_id: bytes, expires: int = 0) -> Iterator[Vector]:
    """The record of an item that the call reads is none."""
    more = samples.result(item_id) if script == "outcome" else []
    for title, packed in BAD_RECORDS.items():
        fields: dict[str, dict[bytes, Any]] = {"meta": {item_id: packed}}
        if expires:
            fields["expiry"] = {item_id: float(expires)}
        given = with_fields(fixtures.rich().stored(), fields)
        name = f"record of {item_id.decode()} {title}, read by itself"
        yield refused(script, name, "rich", given, argv, "FORMAT", ("LQ-ERROR-1",), more=more)


def lease_one(script: str, count: int) -> Sample:
    """A call that leases so many items of the queue."""
    if script == "lease_any":
        return samples.lease_any(f"s {count}", "s", count, 30_000)
    if script == "lease":
        return samples.lease(f"{count}", count, 30_000)
    return samples.complete_and_lease(f"absent, {count}", count, 30_000, Complete(b"none", 1))


def bounded(bound: int, score: int, where: str = "delayed", *, max_items: int = 0) -> World:
    """One item in its time, and the bound that is told."""
    world = World()
    world.queue.items[b"f1"] = item = Item(b"data of f1", where, score, START, recorded=True)
    if where == "leased":
        item.attempt, item.token = 1, START + 1
    world.queue.state = State(clock=START + 1, next_due=bound, largest=10, added=1, max_items=max_items)
    return world


def crowded_call(script: str, argv: list[Any]) -> Vector:
    """More keys than Lua can take apart at once."""
    return refused(
        script, "9000 keys", "empty", {}, argv, "BAD_ARGUMENT", ("LQ-CALL-1",), keys=["items"] * 9000
    )


def held(**options: Any) -> World:
    """One item that is leased."""
    world = World()
    world.leased(b"c1", 10 * HOUR, **options)
    return copy.deepcopy(world).quiet()


def one_dead(*, keep: int, ago: int, state: State | None) -> World:
    """A dead item that keeps its failure, and of which nothing is kept yet."""
    world = World()
    world.queue.items[b"x1"] = item = Item(b"data of x1", "dead", NOW - ago, START, recorded=True)
    item.attempt, item.token, item.options, item.keep = 1, START + 1, TAIL, keep
    world.queue.state = state
    return world
