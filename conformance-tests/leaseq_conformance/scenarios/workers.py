"""Workers that say on the server that they live, as scenarios look at them and forge them (LQ-WORKER-1 to LQ-WORKER-7)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance.scenarios.values import MismatchError, match
from leaseq_conformance.verdict import FailedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import redis

INDEX: Final = "leaseq:workers"
KEYS: Final = "leaseq:worker:*"
WISH: Final = b"/wish"
LIFE_MS: Final = 30_000
INDEX_LIFE_MS: Final = 600_000
CLOCK_ERROR_MS: Final = 100  # of a worker that counts on from the server's time
MEMBERS: Final[Mapping[str, type]] = {
    "version": int,
    "host": str,
    "pid": int,
    "client": str,
    "started": int,
    "reported": int,
    "stopping": bool,
    "concurrency": int,
    "completed": int,
    "queues": list,
    "held": int,
    "items": list,
}


def check(
    client: redis.Redis,
    entry: str,
    wanted: Mapping[str, Any],
    without: Sequence[str] = (),
    beside: Sequence[str] = (),
    named: int | None = None,
    living_ms: int = 1,
) -> None:
    """Look whether one worker is announced, of this queue, in the right form, with these members and without these texts.

    `beside` are the other ids in the index, `named` is how many of its items it names, `living_ms` how long it lives at least.

    Raises:
        MismatchError: it is not so, or not yet.
        FailedError: it has one of the texts.
    """
    index: list[tuple[bytes, float]] = client.zrange(INDEX, 0, -1, withscores=True)  # type: ignore[assignment]
    found_keys: list[bytes] = client.keys(KEYS)  # type: ignore[assignment]
    keys = [key for key in found_keys if not key.endswith(WISH)]
    if len(keys) != 1:
        raise MismatchError(f"{len(keys)} workers are announced, expected 1")
    worker_id = keys[0].removeprefix(b"leaseq:worker:")
    ids = [found for found, _ in index]
    if sorted(ids) != sorted([worker_id, *(other.encode() for other in beside)]):
        raise MismatchError(f"{INDEX} has {ids}, expected {[worker_id, *beside]}")
    text: bytes = client.get(keys[0]) or b"{}"  # type: ignore[assignment]
    for secret in without:
        if secret.encode() in text:
            raise FailedError(f"it says {secret!r}")
    status = json.loads(text)
    life = client.pttl(keys[0])
    if not living_ms <= life <= LIFE_MS:
        raise MismatchError(f"{keys[0]!r} has a time to live of {life} ms, expected {living_ms} to {LIFE_MS}")
    seconds, _ = client.time()
    ahead = dict(index)[worker_id] - seconds * 1000
    if not 0 < ahead <= INDEX_LIFE_MS + 1000:
        raise MismatchError(f"its score lies {ahead:.0f} ms ahead, expected at most {INDEX_LIFE_MS}")
    _check_status(status, entry, wanted, named)
    reported_at = seconds * 1000 - (LIFE_MS - life)
    if abs(status["reported"] - reported_at) > 1000 + CLOCK_ERROR_MS:
        raise MismatchError(f"it reported at {status['reported']}, the server's time is {seconds * 1000}")
    if abs(status["started"] - seconds * 1000) > INDEX_LIFE_MS:
        raise MismatchError(f"it started at {status['started']}, the server's time is {seconds * 1000}")


def _check_status(
    status: Mapping[str, Any], entry: str, wanted: Mapping[str, Any], named: int | None
) -> None:
    """Look at what a worker says of itself. Raises MismatchError."""
    for name, kind in MEMBERS.items():
        if type(status.get(name)) is not kind:
            raise MismatchError(f"its {name} is {status.get(name)!r}, no {kind.__name__}")
    match({"version": 1, "queues": [entry]} | dict(wanted), status, {}, "what it says")
    if named not in {None, len(status["items"])}:
        raise MismatchError(f"it names {len(status['items'])} of its items, expected {named}")
    match([{"queue": entry}] * len(status["items"]), status["items"], {}, "what it says of its items")


def check_none(client: redis.Redis) -> None:
    """Raises MismatchError while a worker is announced."""
    left = [*client.keys(KEYS), *client.zrange(INDEX, 0, -1)]
    if left:
        raise MismatchError(f"{left[0]!r} is still there")


def write(client: redis.Redis, workers: Mapping[str, Any], before: int = 0, *, passed: bool = False) -> None:
    """Enter ids into the index, and what they say of themselves: an object, a text, or nothing for null.

    An object's `ago_ms` becomes its `reported`, that long ago.

    `before`: number of ids without a report that precede them; the first is malformed. `passed`: their time is over.
    """
    seconds, microseconds = client.time()
    now_ms = seconds * 1000 + microseconds // 1000
    forget_at = seconds * 1000 + (-1000 if passed else INDEX_LIFE_MS)
    if before:
        silent = ["!no id", *(f"h:0:{number}" for number in range(1, before))]
        client.zadd(INDEX, dict.fromkeys(silent, seconds * 1000 + INDEX_LIFE_MS - 1))
    for worker_id, status in workers.items():
        client.zadd(INDEX, {worker_id: forget_at})
        if status is not None:
            text = status if isinstance(status, str) else json.dumps(_with_reported(status, now_ms))
            client.set(f"leaseq:worker:{worker_id}", text, px=LIFE_MS)


def _with_reported(status: Mapping[str, Any], now_ms: int) -> dict[str, Any]:
    """The status, with `reported` in place of `ago_ms`."""
    written = dict(status)
    if "ago_ms" in written:
        written["reported"] = now_ms - written.pop("ago_ms")
    return written


def spoil(client: redis.Redis) -> None:
    """Make the index a key that no client can write."""
    client.set(INDEX, "no set")
