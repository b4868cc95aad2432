"""Repair in plain Python: what every page of deep_clean must find, change and leave.

Damage is what no script leaves behind, so it is described in the stored form and not as a `Queue`.
"""

from __future__ import annotations

import copy
from collections import Counter
from typing import TYPE_CHECKING, Final

from leaseq_conformance.model.base import END, NEVER, lost_state, require, tick
from leaseq_conformance.model.codec import (
    EPOCH,
    EXTRA,
    LEVEL,
    OUTCOMES,
    Extra,
    Record,
    State,
    place_level,
    place_time,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leaseq_conformance.model.keyspace import Keyspace

PHASES: Final = ("items", "meta", "ready", "delayed", "leased", "dead", "expiry", "kept")
"""The keys in the order in which a pass looks at them; the first digit of the cursor says which."""
DAY: Final = 86_400_000_000
PREFERRED: Final = ("leased", "dead", "delayed", "ready")


def deep_clean(keyspace: Keyspace, now: int, key: str, page: Sequence[bytes]) -> Counter[str]:
    """Repair, in place, what one page of ids of `key` shows, and count each kind of damage; a dry run counts the same."""
    require(not isinstance(keyspace.state, bytes), "FORMAT")
    lost = not isinstance(keyspace.state, State)
    state = (
        copy.copy(keyspace.state) if isinstance(keyspace.state, State) else lost_state(len(keyspace.items))
    )
    bound = state.next_due if state.next_due >= 0 else NEVER
    impossible = state.next_due < 0
    due = max(0, min([NEVER, *keyspace.delayed.values(), *keyspace.leased.values()]))
    found: Counter[str] = Counter()
    if state.clock >= END:
        state.clock = now
        found["clock"] = 1
    for item_id in page:
        found.update(_repair(keyspace, state, now, key, item_id))
    found["clock"] = min(found["clock"], 1)
    found["state"] = int(found["state"] or (lost and bool(keyspace.items)))
    due_now = found["far_deadline"] or (key in {"delayed", "leased"} and found["bad_time"])
    state.next_due = min(bound, due, *([now] if due_now else []))
    found["next_due"] = int(impossible or (not lost and state.next_due < bound))
    if found["dropped"]:
        keyspace.counters[b"dropped"] = keyspace.counters.get(b"dropped", 0) + found["dropped"]
    if any(found.values()):
        keyspace.state = state
    if (keyspace.ready and not state.paused) or found["next_due"]:
        keyspace.wake = keyspace.wake or 1
    return found


def _repair(keyspace: Keyspace, state: State, now: int, key: str, item_id: bytes) -> list[str]:
    if key == "items":
        return _repair_item(keyspace, state, now, item_id)
    if key == "meta" and item_id[:1] == b"\0":
        return _repair_extra(keyspace, item_id[1:])
    if key == "meta":
        return _repair_record(keyspace, state, item_id)
    if key == "expiry":
        return _repair_index(keyspace, item_id)
    if key == "kept":
        return _repair_kept(keyspace, state, now, item_id)
    return _repair_entry(keyspace, state, now, key, item_id)


def _repair_item(keyspace: Keyspace, state: State, now: int, item_id: bytes) -> list[str]:
    found = []
    zsets = keyspace.zsets()
    places = [name for name in PREFERRED if item_id in zsets[name]]
    if not places:
        keyspace.ready[item_id] = tick(state, now) - EPOCH - _priority(keyspace, item_id) * LEVEL
        found.append("unplaced")
    for name in places[1:]:
        del zsets[name][item_id]
    if len(places) > 1:
        found.append("several_states")
    if places[:1] == ["leased"] and keyspace.leased[item_id] > now + 31 * DAY:
        keyspace.leased[item_id] = now
        found.append("far_deadline")
    if len(keyspace.items[item_id]) > state.largest:
        state.largest = len(keyspace.items[item_id])
        found.append("unmeasured")
    return found


def _repair_record(keyspace: Keyspace, state: State, item_id: bytes) -> list[str]:
    if item_id not in keyspace.items:
        del keyspace.meta[item_id]
        return ["record_without_item"]
    record = _whole(keyspace, item_id)
    if record is None:
        del keyspace.meta[item_id]
        return ["bad_record"]
    found = _raise_clock(state, max(record.token, record.created))
    if record.options & EXTRA and item_id not in keyspace.extras:
        keyspace.extras[item_id] = Extra()
        found.append("bad_extra")
    if record.expires and keyspace.expiry.get(item_id) != record.expires:
        keyspace.expiry[item_id] = record.expires
        found.append("unindexed")
    return found


def _whole(keyspace: Keyspace, item_id: bytes) -> Record | None:
    """The record of an id if it is one, with numbers that a script can have written."""
    record = keyspace.record(item_id)
    if record is None or not -7 <= record.priority <= 7:
        return None
    times = (record.token, record.created, record.expires)
    leased_and_may_expire = record.token and record.expires
    return record if min(times) >= 0 and max(times) < END and not leased_and_may_expire else None


def _repair_extra(keyspace: Keyspace, item_id: bytes) -> list[str]:
    record = _whole(keyspace, item_id)
    if item_id in keyspace.items and record and record.options & EXTRA:
        return []
    del keyspace.extras[item_id]
    return ["bad_extra"]


def _repair_index(keyspace: Keyspace, item_id: bytes) -> list[str]:
    record = _whole(keyspace, item_id)
    if item_id in keyspace.items and record and record.expires == keyspace.expiry[item_id]:
        return []
    del keyspace.expiry[item_id]
    return ["stale_index"]


def _repair_kept(keyspace: Keyspace, state: State, now: int, item_id: bytes) -> list[str]:
    """Outcomes are pruned by their time, so it is one; and the flag says that there are some."""
    found = []
    if item_id in keyspace.items and item_id not in keyspace.dead:
        del keyspace.kept[item_id]  # of an earlier item
        found.append("stale_index")
    elif not 0 <= keyspace.kept[item_id] < NEVER:
        keyspace.kept[item_id] = now
        found.append("bad_time")
    if not state.flags & OUTCOMES:
        state.flags |= OUTCOMES
        found.append("state")
    return found


def _repair_entry(keyspace: Keyspace, state: State, now: int, name: str, item_id: bytes) -> list[str]:
    zset = keyspace.zsets()[name]
    if item_id not in keyspace.items:
        del zset[item_id]
        return ["dropped"]
    at = zset[item_id]
    if name == "ready":
        if place_time(at) < END and -7 <= place_level(at) <= 7:
            return _raise_clock(state, place_time(at))
        zset[item_id] = tick(state, now) - EPOCH - _priority(keyspace, item_id) * LEVEL
        return ["bad_time"]
    if at < 0 or (name != "leased" and at >= END):
        zset[item_id] = now
        return ["bad_time"]
    return []


def _raise_clock(state: State, seen: int) -> list[str]:
    if seen <= state.clock:
        return []
    state.clock = seen
    return ["clock"]


def _priority(keyspace: Keyspace, item_id: bytes) -> int:
    record = _whole(keyspace, item_id)
    return record.priority if record else 0
