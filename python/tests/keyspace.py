"""The keys of one queue, decoded so that two queues, or a queue and a model of it, compare equal or do not.

`Keyspace` is what is stored, nothing derived: the six keys with ids, the packed `state`, the length of `wake`.
`read` takes it from a server in one call, `write` puts it there, `violations` says which promises it breaks.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import redis

EPOCH: Final = 1_735_689_600_000_000
"""2025-01-01, the zero of places."""
LEVEL: Final = 2**50
"""One level of priority in a place."""
HASHES: Final = ("items", "meta", "counters")
ZSETS: Final = ("ready", "delayed", "leased", "dead")
KEYS: Final = (*HASHES, *ZSETS, "state", "wake")


class Record(NamedTuple):
    """What `meta` holds of an item; the options follow only where one differs from its default."""

    attempt: int
    token: int
    created: int
    priority: int = 0
    max_attempts: int = 0

    def encode(self) -> bytes:
        """Pack: version, options, attempt, token, created, then priority and max_attempts."""
        options = bool(self.priority or self.max_attempts)
        packed = struct.pack("<BBIdd", 1, options, self.attempt, self.token, self.created)
        return packed + struct.pack("<bH", self.priority, self.max_attempts) * options


def decode_record(packed: bytes) -> Record | bytes:
    """Unpack; what is not exactly what a script writes stays bytes."""
    if len(packed) not in {22, 25}:
        return packed
    _, _, attempt, token, created = struct.unpack("<BBIdd", packed[:22])
    try:
        record = Record(attempt, int(token), int(created), *struct.unpack("<bH", packed[22:] or b"\0\0\0"))
    except (ValueError, OverflowError):
        return packed
    return record if record.encode() == packed else packed


@dataclass
class State:
    """What `state` holds."""

    clock: int = 0
    next_due: int = 0
    largest: int = 0
    added: int = 0
    leases: int = 0
    max_data: int = 0

    def encode(self) -> bytes:
        """Pack: format, flags, then the fields, then room for other limits."""
        head = struct.pack("<BBddI", 1, 0, self.clock, self.next_due, self.largest)
        counts = self.added.to_bytes(6, "little") + self.leases.to_bytes(6, "little")
        return head + counts + struct.pack("<I6x", self.max_data)


def decode_state(packed: bytes | None) -> State | bytes | None:
    """Unpack; what is not exactly what a script writes stays bytes."""
    if packed is None or len(packed) != 44:
        return packed
    _, _, clock, next_due, largest = struct.unpack("<BBddI", packed[:22])
    added, leases = (int.from_bytes(packed[at : at + 6], "little") for at in (22, 28))
    state = State(int(clock), int(next_due), largest, added, leases, *struct.unpack("<I", packed[34:38]))
    return state if state.encode() == packed else packed


@dataclass
class Keyspace:
    """All that is stored of one queue."""

    items: dict[bytes, bytes] = field(default_factory=dict)
    meta: dict[bytes, Record | bytes] = field(default_factory=dict)
    counters: dict[bytes, int] = field(default_factory=dict)
    ready: dict[bytes, int] = field(default_factory=dict)
    delayed: dict[bytes, int] = field(default_factory=dict)
    leased: dict[bytes, int] = field(default_factory=dict)
    dead: dict[bytes, int] = field(default_factory=dict)
    state: State | bytes | None = None
    wake: int = 0

    def zsets(self) -> dict[str, dict[bytes, int]]:
        """The four states by name."""
        return {"ready": self.ready, "delayed": self.delayed, "leased": self.leased, "dead": self.dead}

    def where(self, item_id: bytes) -> list[str]:
        """The states an id is in; one, unless something is damaged."""
        return [name for name, zset in self.zsets().items() if item_id in zset]

    def difference(self, other: Keyspace) -> str:
        """What differs, key by key, for a failure's message."""
        pairs = [(key, getattr(self, key), getattr(other, key)) for key in KEYS]
        return "\n".join(
            f"{key}: {mine}\n  against {theirs}" for key, mine, theirs in pairs if mine != theirs
        )


READ: Final = """
local out = {}
for i = 1, 3 do out[i] = redis.call('HGETALL', KEYS[i]) end
for i = 4, 7 do out[i] = redis.call('ZRANGE', KEYS[i], '0', '-1', 'WITHSCORES') end
out[8] = redis.call('GET', KEYS[8])
out[9] = redis.call('LLEN', KEYS[9])
return out
"""


def keys_of(prefix: str) -> list[str]:
    """The keys of a queue by its prefix, `leaseq:{group}:name:`."""
    return [prefix + key for key in KEYS]


def _pairs(flat: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
    return zip(flat[::2], flat[1::2], strict=True)


def read_raw(client: redis.Redis, prefix: str) -> dict[str, bytes | None]:
    """Every key of a queue as the server dumps it: equal only where nothing was written."""
    return {key: client.dump(key) for key in keys_of(prefix)}


def read(client: redis.Redis, prefix: str) -> Keyspace:
    """Read and decode the whole queue. `client` must give bytes back."""
    keys = keys_of(prefix)
    reply: Any = client.eval(READ, len(keys), *keys)
    items, meta, counters = (dict(_pairs(flat)) for flat in reply[:3])
    ready, delayed, leased, dead = (
        {i: int(float(score)) for i, score in _pairs(flat)} for flat in reply[3:7]
    )
    return Keyspace(
        items,
        {item_id: decode_record(packed) for item_id, packed in meta.items()},
        {name: int(count) for name, count in counters.items()},
        ready,
        delayed,
        leased,
        dead,
        decode_state(reply[7]),
        reply[8],
    )


def write(client: redis.Redis, prefix: str, keyspace: Keyspace) -> None:
    """Make the queue on the server what `keyspace` says."""
    pipe = client.pipeline(transaction=True)
    pipe.delete(*keys_of(prefix))
    if keyspace.items:
        pipe.hset(prefix + "items", mapping=dict(keyspace.items))  # type: ignore[arg-type]  # bytes are fine
    if keyspace.meta:
        meta = {
            key: value if isinstance(value, bytes) else value.encode() for key, value in keyspace.meta.items()
        }
        pipe.hset(prefix + "meta", mapping=meta)  # type: ignore[arg-type]  # bytes are fine
    if keyspace.counters:
        pipe.hset(prefix + "counters", mapping=dict(keyspace.counters))  # type: ignore[arg-type]  # bytes are fine
    for name, zset in keyspace.zsets().items():
        if zset:
            pipe.zadd(prefix + name, dict(zset))
    if keyspace.state is not None:
        state = keyspace.state
        pipe.set(prefix + "state", state if isinstance(state, bytes) else state.encode())
    if keyspace.wake:
        pipe.rpush(prefix + "wake", *["1"] * keyspace.wake)
    pipe.execute()


def copy(client: redis.Redis, source: str, target: str) -> None:
    """Make the queue `target` byte for byte what `source` is."""
    pipe = client.pipeline(transaction=True)
    pipe.delete(*keys_of(target))
    for key in KEYS:
        pipe.execute_command("COPY", source + key, target + key, "REPLACE")  # type: ignore[no-untyped-call]
    pipe.execute()


def place_time(score: int) -> int:
    """The time of the clock at which a ready item took its place."""
    return EPOCH + score % LEVEL


def place_level(score: int) -> int:
    """The priority in a place."""
    return -(score // LEVEL)


def violations(keyspace: Keyspace, *, completed: int | None = None) -> list[str]:
    """The promises that a queue at rest breaks: none, unless it was damaged.

    A lost record cannot be repaired, only lived with, so what it held is not asked for; that there is one, for every
    item that needs one, is checked by `unrecorded`. `completed` is how many items the caller saw completed.
    """
    found = [
        f"{item_id!r} is in {keyspace.where(item_id) or 'no state'}"
        for item_id in keyspace.items
        if len(keyspace.where(item_id)) != 1
    ]
    places: dict[str, Iterable[bytes]] = {**keyspace.zsets(), "meta": keyspace.meta}
    for name, ids in places.items():
        found += [
            f"{item_id!r} is in {name} without data" for item_id in ids if item_id not in keyspace.items
        ]
    for item_id, record in keyspace.meta.items():
        found += [
            f"the record of {item_id!r}: {broken}" for broken in _record_violations(keyspace, item_id, record)
        ]
    for item_id, score in keyspace.ready.items():
        own = keyspace.meta.get(item_id)
        if isinstance(own, Record) and (level := place_level(score)) != own.priority:
            found.append(f"{item_id!r} of priority {own.priority} waits in level {level}")
    if isinstance(keyspace.state, bytes):
        return [*found, f"state is {keyspace.state!r}"]
    if keyspace.state:
        found += _state_violations(keyspace, keyspace.state, completed)
    return found


def _record_violations(keyspace: Keyspace, item_id: bytes, record: Record | bytes) -> Iterator[str]:
    if isinstance(record, bytes):
        yield f"{record!r} is not one"
        return
    if record.token and record.token <= record.created:
        yield "its token is not after its creation"
    if record.attempt and not record.token:
        yield "attempts without a token"
    if item_id in keyspace.leased and not record.attempt:
        yield "leased without an attempt"
    if item_id in keyspace.dead and not 0 < record.max_attempts <= record.attempt:
        yield "dead before its attempts were used up"


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
    gone = sum(keyspace.counters.get(name, 0) for name in (b"removed", b"dropped"))
    derived = state.added - len(keyspace.items) - gone
    if completed is not None and derived != completed:
        yield f"{derived} completed by the counters, {completed} by the replies"


def unrecorded(keyspace: Keyspace) -> set[bytes]:
    """The items whose record is lost: only one that is ready for the first time has none."""
    return {
        item_id
        for item_id in keyspace.items
        if item_id not in keyspace.meta and item_id not in keyspace.ready
    }


def unattended(keyspace: Keyspace) -> bool:
    """Whether items are ready and no wake-up lies there for a waiter."""
    return bool(keyspace.ready) and not keyspace.wake
