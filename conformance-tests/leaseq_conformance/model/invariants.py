"""Checks of the specification's invariants, on the keys of a queue at rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from leaseq_conformance.model.codec import (
    DIES,
    EXTRA,
    OUTCOMES,
    Extra,
    Record,
    State,
    place_level,
    place_time,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from leaseq_conformance.model.keyspace import Keyspace

GONE: Final = (b"removed", b"dropped", b"expired", b"purged")
"""The counters of items that are gone without having been completed."""


def violations(keyspace: Keyspace, *, completed: int | None = None) -> list[str]:
    """The promises that a queue at rest breaks: none, unless it was damaged.

    `completed` is how many items the caller saw completed.
    """
    found = [
        f"{item_id!r} is in {keyspace.where(item_id) or 'no state'}"
        for item_id in keyspace.items
        if len(keyspace.where(item_id)) != 1
    ]
    places: dict[str, Iterable[bytes]] = {
        **keyspace.zsets(),
        "meta": keyspace.meta,
        "extras": keyspace.extras,
        "expiry": keyspace.expiry,
    }
    for name, ids in places.items():
        found += [
            f"{item_id!r} is in {name} without data" for item_id in ids if item_id not in keyspace.items
        ]
    for item_id in keyspace.items:
        found += [f"{item_id!r}: {broken}" for broken in _item_violations(keyspace, item_id)]
    if max(keyspace.wake, keyspace.room) > 1:
        found.append("more than one element on a list of wake-ups")
    if isinstance(keyspace.state, bytes):
        return [*found, f"state is {keyspace.state!r}"]
    if keyspace.kept and not (keyspace.state and keyspace.state.flags & OUTCOMES):
        found.append("outcomes are kept and the flag does not say so")
    if keyspace.state:
        found += _state_violations(keyspace, keyspace.state, completed)
    return found


def _item_violations(keyspace: Keyspace, item_id: bytes) -> Iterator[str]:
    record, extra = keyspace.meta.get(item_id), keyspace.extras.get(item_id)
    if isinstance(record, bytes):
        yield f"the record {record!r} is not one"
        return
    if isinstance(extra, bytes):
        yield f"the extra {extra!r} is not one"
    if bool(record and record.options & EXTRA) != (extra is not None):
        yield "the extra and its bit disagree"
    if (record.expires if record else 0) != keyspace.expiry.get(item_id, 0):
        yield "expires and the index of it disagree"
    if record:
        yield from _record_violations(keyspace, item_id, record)
    elif item_id not in keyspace.ready:
        yield "without a record though it is not ready for the first time"


def _record_violations(keyspace: Keyspace, item_id: bytes, record: Record) -> Iterator[str]:
    if record.token and record.token <= record.created:
        yield "its token is not after its creation"
    if record.attempt and not record.token:
        yield "attempts without a token"
    if item_id in keyspace.leased and not record.attempt:
        yield "leased without an attempt"
    if record.expires and (record.token or item_id in keyspace.leased or item_id in keyspace.dead):
        yield "it may expire though it was leased or died"
    if item_id in keyspace.dead:
        extra = keyspace.extras.get(item_id)
        lapsed = record.options & DIES and isinstance(extra, Extra) and extra.error == b"expired"
        if not record.attempt and not lapsed:
            yield "dead without an attempt"
    if item_id in keyspace.ready and (level := place_level(keyspace.ready[item_id])) != record.priority:
        yield f"of priority {record.priority} it waits in level {level}"


def _state_violations(keyspace: Keyspace, state: State, completed: int | None) -> Iterator[str]:
    records = [record for record in keyspace.meta.values() if isinstance(record, Record)]
    seen = [
        *(record.token for record in records),
        *(record.created for record in records),
        *(place_time(score) for score in keyspace.ready.values()),
    ]
    if seen and state.clock < max(seen):
        yield f"the clock is behind by {max(seen) - state.clock}"
    waiting = [*keyspace.delayed.values(), *keyspace.leased.values()]
    if waiting and state.next_due > min(waiting):
        yield f"next_due is late by {state.next_due - min(waiting)}"
    if keyspace.items and state.largest < max(map(len, keyspace.items.values())):
        yield "largest is too small"
    gone = sum(keyspace.counters.get(name, 0) for name in GONE)
    derived = state.added - len(keyspace.items) - gone
    if completed is not None and derived != completed:
        yield f"{derived} completed by the counters, {completed} by the replies"


def unattended(keyspace: Keyspace) -> bool:
    """Return whether items are ready and no wake-up lies there for a waiter, though the queue is not paused."""
    paused = isinstance(keyspace.state, State) and keyspace.state.paused
    return bool(keyspace.ready) and not keyspace.wake and not paused
