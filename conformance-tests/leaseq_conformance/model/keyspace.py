"""The keys of one queue, decoded so that two queues, or a queue and a model of it, compare equal or do not.

`Keyspace` is what is stored, nothing derived. `read` takes it from a server in one call, with the outcomes of the ids
that are asked for, and `write` puts it there. Its values are decoded in `packed`; `promises` says what it must keep.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance.model.codec import (
    Extra,
    Outcome,
    Record,
    State,
    decode_extra,
    decode_outcome,
    decode_record,
    decode_state,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import redis

HASHES: Final = ("items", "meta", "counters")
ZSETS: Final = ("ready", "delayed", "leased", "dead")
INDEXES: Final = ("expiry", "kept")
KEYS: Final = (*HASHES, *ZSETS, *INDEXES, "wake", "room", "state")


@dataclass
class Keyspace:
    """All that is stored of one queue; `extras` is the part of `meta` that is not records."""

    items: dict[bytes, bytes] = field(default_factory=dict)
    meta: dict[bytes, Record | bytes] = field(default_factory=dict)
    extras: dict[bytes, Extra | bytes] = field(default_factory=dict)
    counters: dict[bytes, int] = field(default_factory=dict)
    ready: dict[bytes, int] = field(default_factory=dict)
    delayed: dict[bytes, int] = field(default_factory=dict)
    leased: dict[bytes, int] = field(default_factory=dict)
    dead: dict[bytes, int] = field(default_factory=dict)
    expiry: dict[bytes, int] = field(default_factory=dict)
    kept: dict[bytes, int] = field(default_factory=dict)
    wake: int = 0
    room: int = 0
    state: State | bytes | None = None
    results: dict[bytes, Outcome | bytes] = field(default_factory=dict)
    ttls: dict[bytes, int] = field(default_factory=dict, compare=False)
    """The time to live of each result, ms. On a server it runs down."""

    def zsets(self) -> dict[str, dict[bytes, int]]:
        """The four states by name."""
        return {"ready": self.ready, "delayed": self.delayed, "leased": self.leased, "dead": self.dead}

    def indexes(self) -> dict[str, dict[bytes, int]]:
        """The two sorted sets that are no state, by name."""
        return {"expiry": self.expiry, "kept": self.kept}

    def where(self, item_id: bytes) -> list[str]:
        """The states an id is in; one, unless something is damaged."""
        return [name for name, zset in self.zsets().items() if item_id in zset]

    def record(self, item_id: bytes) -> Record | None:
        """The record of an id, where it is whole."""
        record = self.meta.get(item_id)
        return record if isinstance(record, Record) else None

    def difference(self, other: Keyspace) -> str:
        """Return what differs, key by key, for a failure's message."""
        pairs = [(key, getattr(self, key), getattr(other, key)) for key in (*KEYS, "extras", "results")]
        return "\n".join(
            f"{key}: {mine}\n  against {theirs}" for key, mine, theirs in pairs if mine != theirs
        )


READ: Final = """
local out = {}
for i = 1, 3 do out[i] = redis.call('HGETALL', KEYS[i]) end
for i = 4, 9 do out[i] = redis.call('ZRANGE', KEYS[i], '0', '-1', 'WITHSCORES') end
for i = 10, 11 do out[i] = redis.call('LLEN', KEYS[i]) end
out[12] = redis.call('GET', KEYS[12])
for i = 13, #KEYS do out[i] = {redis.call('LRANGE', KEYS[i], '0', '-1'), redis.call('PTTL', KEYS[i])} end
return out
"""


def keys_of(prefix: str) -> list[str]:
    """Return the keys of a queue by its prefix, `leaseq:{group}:name:`, without its results."""
    return [prefix + key for key in KEYS]


def result_keys(prefix: str, ids: Iterable[bytes]) -> list[bytes]:
    """The keys of the results of ids."""
    return [prefix.encode() + b"result:" + item_id for item_id in ids]


def _pairs(flat: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
    return zip(flat[::2], flat[1::2], strict=True)


def read_raw(client: redis.Redis, prefix: str) -> dict[str, bytes | None]:
    """Every key of a queue as the server dumps it: equal only where nothing was written."""
    return {key: client.dump(key) for key in keys_of(prefix)}


def read(client: redis.Redis, prefix: str, ids: Iterable[bytes] = ()) -> Keyspace:
    """Read and decode the whole queue and the results of these ids. `client` must give bytes back."""
    ids = list(ids)
    keys: list[str | bytes] = [*keys_of(prefix), *result_keys(prefix, ids)]
    reply: Any = client.eval(READ, len(keys), *keys)
    items, meta, counters = (dict(_pairs(flat)) for flat in reply[:3])
    stored = Keyspace(items)
    stored.meta = {key: decode_record(packed) for key, packed in meta.items() if key[:1] != b"\0"}
    stored.extras = {key[1:]: decode_extra(packed) for key, packed in meta.items() if key[:1] == b"\0"}
    stored.counters = {name: int(count) for name, count in counters.items()}
    for zset, flat in zip([*stored.zsets().values(), *stored.indexes().values()], reply[3:9], strict=True):
        zset.update({item_id: int(float(score)) for item_id, score in _pairs(flat)})
    stored.wake, stored.room = reply[9:11]
    stored.state = decode_state(reply[11])
    for item_id, (values, ttl) in zip(ids, reply[12:], strict=True):
        if values:
            whole = len(values) == 1
            stored.results[item_id] = decode_outcome(values[0]) if whole else b"\0".join(values)
            stored.ttls[item_id] = ttl
    return stored


def _packed(value: Record | Extra | Outcome | State | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode()


def write(client: redis.Redis, prefix: str, keyspace: Keyspace) -> None:
    """Make the queue on the server what `keyspace` says; results that it does not know stay."""
    pipe = client.pipeline(transaction=True)
    pipe.delete(*keys_of(prefix), *result_keys(prefix, keyspace.results))
    meta = {key: _packed(value) for key, value in keyspace.meta.items()}
    meta |= {b"\0" + key: _packed(value) for key, value in keyspace.extras.items()}
    hashes: dict[str, Any] = {"items": keyspace.items, "meta": meta, "counters": keyspace.counters}
    for name, fields in hashes.items():
        if fields:
            pipe.hset(prefix + name, mapping=fields)
    for name, zset in {**keyspace.zsets(), **keyspace.indexes()}.items():
        if zset:
            pipe.zadd(prefix + name, dict(zset))
    if keyspace.state is not None:
        pipe.set(prefix + "state", _packed(keyspace.state))
    for name, length in {"wake": keyspace.wake, "room": keyspace.room}.items():
        if length:
            pipe.rpush(prefix + name, *["1"] * length)
    for item_id, outcome in keyspace.results.items():
        (key,) = result_keys(prefix, [item_id])
        pipe.rpush(key, _packed(outcome))
        if keyspace.ttls.get(item_id, -1) > 0:
            pipe.pexpire(key, keyspace.ttls[item_id])
    pipe.execute()


def copy(client: redis.Redis, source: str, target: str) -> None:
    """Make the queue `target` a copy of `source`, byte for byte, without its results."""
    pipe = client.pipeline(transaction=True)
    pipe.delete(*keys_of(target))
    for key in KEYS:
        pipe.execute_command("COPY", source + key, target + key, "REPLACE")  # type: ignore[no-untyped-call]
    pipe.execute()
