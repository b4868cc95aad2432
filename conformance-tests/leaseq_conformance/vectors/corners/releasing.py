"""Calls of release on queues that were made for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from leaseq_conformance.model.calls import Release
from leaseq_conformance.model.codec import TAIL, UNLIMITED
from leaseq_conformance.vectors import fixtures
from leaseq_conformance.vectors.builder import DAY, HOUR, World
from leaseq_conformance.vectors.corners.making import (
    LAST_SECOND,
    edge,
    held,
)
from leaseq_conformance.vectors.samples import HEADERS, release

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from leaseq_conformance.model.base import Item
    from leaseq_conformance.vectors.vector import Dump, Vector


def vectors() -> Iterator[Vector]:
    """All of them."""
    settled, rich, paused = fixtures.settled(), fixtures.rich(), fixtures.halted()
    held = Release(b"c1", settled.token(b"c1"), delay=1000)
    yield edge("release", "settled", settled, release("due last", held), ("LQ-RELEASE-2",), LAST_SECOND)
    for item_id in (b"r1", b"r3"):
        never = release(f"never leased {item_id.decode()}", Release(item_id, 0))
        yield edge("release", "rich", rich, never, ("LQ-RELEASE-1",))
    for on, world in (("settled", settled), ("rich", rich)):
        brief = Release(b"c1", world.token(b"c1"), dead=True, keep=1)
        yield edge("release", on, world, release("dead keep 1", brief), ("LQ-OUTCOME-3",))
    last = release("keep", Release(b"c2", paused.token(b"c2"), keep=1000))
    yield edge("release", "a paused queue", paused, last, ("LQ-OUTCOME-3", "LQ-KEY-7"))
    yield from _failures()
    yield from _limits()


def _failures() -> Iterator[Vector]:
    """Of items that are dropped or die when they expire, that failed before, and whose extra is damaged."""
    for on, options in (
        ("an item that was to die", {"expires_in": HOUR, "dies": True}),
        ("an item that was to go", {"expires_in": HOUR}),
        ("one with headers that was to die", {"expires_in": HOUR, "dies": True, "headers": HEADERS}),
    ):
        yield from _failing(on, held(**options), "LQ-DEAD-2")
    failed = held(headers=HEADERS)
    failed.give_back(b"c1", error=b"the first time")
    failed.lease(1, 10 * HOUR)
    yield from _failing("an item that failed before", failed.quiet(), "LQ-DEAD-2")
    for damaged in (b"", b"\x01", b"\0\0"):
        on = f"an item whose extra is {damaged.hex() or 'empty'}"
        yield from _failing(on, held(headers=HEADERS), "LQ-DEAD-2", damaged)


def _failing(on: str, world: World, rule: str, damaged: bytes | None = None) -> Iterator[Vector]:
    token = world.token(b"c1")
    change = _with_extra(damaged)
    if damaged is not None:
        world.queue.items[b"c1"].extra = None
    for title, options in (
        ("plain", {}),
        ("error", {"error": b"why"}),
        ("uncounted", {"uncounted": True, "error": b"why"}),
        ("dead keep", {"dead": True, "keep": DAY}),
        ("dead keep and error", {"dead": True, "keep": DAY, "error": b"why"}),
    ):
        sample = release(title, Release(b"c1", token, **options))
        yield edge("release", on, world, sample, (rule, "LQ-OUTCOME-3"), change=change)


def _with_extra(damaged: bytes | None) -> Callable[[Dump], Dump]:
    """What puts a damaged extra where the model has none."""

    def change(dump: Dump) -> Dump:
        meta: Any = dump["meta"]
        if damaged is None or b"\0c1" in meta:
            return dump
        return {**dump, "meta": {**meta, b"\0c1": damaged}}

    return change


def _limits() -> Iterator[Vector]:
    """The highest limit of attempts, and none."""
    for limit in (65_534, UNLIMITED):
        for attempt in (limit - 1, limit):
            world = held()
            item: Item = world.queue.items[b"c1"]
            item.options, item.max_attempts, item.attempt = TAIL, limit, attempt
            sample = release("plain", Release(b"c1", world.token(b"c1")))
            on = f"attempt {attempt} of {'any number' if limit == UNLIMITED else limit}"
            yield edge("release", on, world, sample, ("LQ-RELEASE-3",))
