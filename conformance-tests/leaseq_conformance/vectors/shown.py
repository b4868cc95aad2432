"""What a vector shows: which keys and items, and how a call comes upon them."""

from __future__ import annotations

from typing import Any

from leaseq_conformance.model.codec import State, decode_state
from leaseq_conformance.vectors.vector import Dump, Refused, Vector


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


def clock(dump: Dump) -> int:
    """The clock of the first queue."""
    state = decode_state(dump.get("state"))  # type: ignore[arg-type]  # it is a string or not there
    return state.clock if isinstance(state, State) else 0


def varied(vectors: list[Vector]) -> list[Vector]:
    """One vector for each set of keys that a call changes."""
    found: dict[Any, Vector] = {}
    for each in vectors:
        changed = frozenset(
            key for key in each.given.keys() | each.then.keys() if each.given.get(key) != each.then.get(key)
        )
        if changed and not isinstance(each.reply, Refused):
            found.setdefault(changed, each)
    return list(found.values())


def moved(made: Vector) -> list[bytes]:
    """Ids of the first queue whose place, data or record changes."""
    found: set[bytes] = set()
    for key in ("meta", "ready", "delayed", "leased", "dead"):
        old: Any = made.given.get(key, {})
        new: Any = made.then.get(key, {})
        found |= {name for name in old if old.get(name) != new.get(name) and name[:1] != b"\0"}
    records: Any = made.given.get("meta", {})
    return sorted(name for name in found if name in records)


def read(made: Vector) -> list[bytes]:
    """Ids among the arguments that have a record."""
    records: Any = made.given.get("meta", {})
    return [each for each in made.argv if each in records]


def leased_from(made: Vector, key: str) -> bool:
    """Whether the key is one of the queue that gave the items."""
    assert isinstance(made.reply, list)
    number = made.reply[0]
    assert isinstance(number, int)
    return number > 0 and made.more[11 * (number - 1)].startswith("other:") == key.startswith("other:")


def gives_twice(made: Vector) -> bool:
    """Whether both calls get items of the same queue."""
    both = isinstance(made.reply, list) and isinstance(made.again, list) and made.reply[0] == made.again[0]
    return both and isinstance(made.reply, list) and made.reply[0] != 0


def way(made: Vector, item_id: bytes) -> Any:
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
