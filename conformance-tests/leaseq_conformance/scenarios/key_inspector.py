"""Access to the keys of a queue without a client: a scenario reads them, forges times in them, and damages them."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance.model import keyspace as stored
from leaseq_conformance.model.codec import Extra, Outcome, State
from leaseq_conformance.model.invariants import violations

if TYPE_CHECKING:
    from collections.abc import Sequence

    import redis

    from leaseq_conformance.model.codec import Record
    from leaseq_conformance.model.keyspace import Keyspace

NEXT_DUE: Final = 10
"""Where next_due lies in `state`."""
EXPIRES: Final = 31
"""Where expires lies in a record."""
REGISTRY: Final = "leaseq:queues"
KINDS: Final = {1: "result", 2: "failure"}


def read(client: redis.Redis, prefix: str) -> Keyspace:
    """The queue with all outcomes that are stored of it."""
    start = prefix.encode() + b"result:"
    pattern = b"".join(b"\\" + bytes([byte]) if byte in b"[]*?\\^-" else bytes([byte]) for byte in start)
    ids = [key[len(start) :] for key in client.scan_iter(match=pattern + b"*", count=1000)]
    return stored.read(client, prefix, sorted(ids))


def now(client: redis.Redis) -> int:
    """The server's time, microseconds."""
    seconds, micros = client.time()
    return int(seconds) * 1_000_000 + int(micros)


def forge(client: redis.Redis, prefix: str, what: str, item_id: str, after_ms: int) -> None:
    """Move a time of an item to `in_ms` milliseconds after now, as if it had been added or leased with it.

    Raises:
        ValueError: the item is not in that state.
    """
    key, time = item_id.encode(), now(client) + after_ms * 1000
    zset = {"deadline": "leased", "due": "delayed", "death": "dead", "expiry": "expiry", "end": "kept"}[what]
    if client.zscore(prefix + zset, key) is None:
        raise ValueError(f"{item_id} is not in {zset}")
    if what == "expiry":
        record = client.hget(prefix + "meta", key)
        assert isinstance(record, bytes)
        client.hset(prefix + "meta", key, record[:EXPIRES] + struct.pack("<d", time))
    if what == "end" and after_ms <= 0:
        client.delete(stored.result_keys(prefix, [key])[0])
    client.zadd(prefix + zset, {key: time})
    if what in {"deadline", "due"}:
        client.setrange(prefix + "state", NEXT_DUE, struct.pack("<d", 0.0))  # not known


def damage(client: redis.Redis, prefix: str, commands: list[list[Any]]) -> None:
    """Run commands whose second word is the name of a key of the queue."""
    for name, key, *rest in commands:
        client.execute_command(name, prefix + key, *rest)  # type: ignore[no-untyped-call]


def picture(keyspace: Keyspace) -> dict[str, Any]:
    """A queue as scenarios write it."""
    state = keyspace.state
    shown: dict[str, Any] = {
        **{name: _in_order(zset) for name, zset in {**keyspace.zsets(), **keyspace.indexes()}.items()},
        "items": {_text(item_id): _text(data) for item_id, data in keyspace.items.items()},
        "records": {_text(item_id): _record(record) for item_id, record in keyspace.meta.items()},
        "errors": {
            _text(item_id): _text(extra.error)
            for item_id, extra in keyspace.extras.items()
            if isinstance(extra, Extra) and extra.error
        },
        "results": {_text(item_id): _outcome(outcome) for item_id, outcome in keyspace.results.items()},
        "counters": {_text(name): count for name, count in keyspace.counters.items() if count},
        "wake": keyspace.wake,
        "room": keyspace.room,
    }
    if isinstance(state, State):
        shown["state"] = {name: getattr(state, name) for name in ("added", "leases", "max_data", "max_items")}
        shown["state"] |= {"max_attempts": state.max_attempts, "paused": state.paused}
    else:
        shown["state"] = None
    return shown


def _in_order(zset: dict[bytes, int]) -> list[str]:
    return [_text(item_id) for _, item_id in sorted((score, item_id) for item_id, score in zset.items())]


def _record(record: Record | bytes) -> Any:
    return _text(record) if isinstance(record, bytes) else {**record._asdict(), "token": str(record.token)}


def _outcome(outcome: Outcome | bytes) -> Any:
    if isinstance(outcome, bytes):
        return _text(outcome)
    return {"kind": KINDS[outcome.kind], "attempt": outcome.attempt, "content": _text(outcome.content)}


def _text(value: bytes) -> str:
    return value.decode("utf-8", "backslashreplace")


def broken(client: redis.Redis, prefix: str) -> list[str]:
    """The invariants that do not hold."""
    return violations(read(client, prefix))


def raw(client: redis.Redis, prefix: str) -> dict[str, bytes | None]:
    """The queue as the server dumps it, for `unchanged`."""
    return stored.read_raw(client, prefix)


def is_registered(client: redis.Redis, prefix: str) -> bool:
    """Return whether the registry of queues has the queue, as `<group>:<name>`."""
    return bool(client.sismember(REGISTRY, entry(prefix)))


def entry(prefix: str) -> str:
    """A queue as registries name it: `<group>:<name>`."""
    _, group, name, _ = prefix.split(":")
    return f"{group[1:-1]}:{name}"


def misregistered(client: redis.Redis) -> list[str]:
    """Members of the registry that no queue can have."""
    members: set[bytes] = client.smembers(REGISTRY)  # type: ignore[assignment]
    return sorted(_text(member) for member in members if member.count(b":") != 1)


def fill_registry(client: redis.Redis, members: Sequence[str], more: int) -> None:
    """Enter these members into the registry, and more queues, so that one page does not hold them."""
    client.sadd(REGISTRY, *members, *(f"filled:{number}" for number in range(more)))


def spoil_registry(client: redis.Redis) -> None:
    """Make the registry a key that no client can write."""
    client.set(REGISTRY, "no set")
