"""The suite's own hand: it runs scripts itself, past every client, to work a queue to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from leaseq._scripts import SCRIPTS

if TYPE_CHECKING:
    import redis

BY_NAME: Final = {script.name: script for script in SCRIPTS}
HOUR_MS: Final = 3_600_000
LONG_AGO: Final = 1_735_689_600_000_001
ROUNDS: Final = 200
"""More calls than any queue of a case takes to empty."""


def run_script(client: redis.Redis, prefix: str, name: str, *argv: Any) -> Any:
    """Run a script on one queue; what it answers. Raises redis.ResponseError."""
    script = BY_NAME[name]
    keys = [prefix + key for key in script.keys]
    return client.eval(script.source, len(keys), *keys, *argv)


def drain(client: redis.Redis, prefix: str) -> list[bytes]:
    """Lease and complete until nothing is left to lease; the ids that were completed.

    Raises:
        RuntimeError: it does not come to an end.
    """
    completed: list[bytes] = []
    for _ in range(ROUNDS):
        wait, _, count, *rest = run_script(client, prefix, "lease", 256, HOUR_MS)
        if not count and wait != 0:
            return completed
        for place in range(0, 4 * count, 4):
            item_id, _, token, _ = rest[place : place + 4]
            completed += [item_id] * run_script(client, prefix, "complete", 1, item_id, token, 0)
    raise RuntimeError(f"the queue {prefix} gives items without end")


def end_everything(client: redis.Redis, prefix: str) -> None:
    """Let every lease expire, every delayed item be due, and revive what is dead."""
    resumed = {"paused": 0, "max_attempts": 0}
    run_script(client, prefix, "configure", 2, *[part for pair in resumed.items() for part in pair])
    for zset in ("leased", "delayed"):
        waiting: Any = client.zrange(prefix + zset, 0, -1)
        if waiting:
            client.zadd(prefix + zset, dict.fromkeys(waiting, LONG_AGO))
    client.setrange(prefix + "state", 10, bytes(8))  # next_due: not known
    run_script(client, prefix, "light_clean", 256)
    dead = client.zrange(prefix + "dead", 0, -1)
    if dead:
        run_script(client, prefix, "revive", len(dead), *dead)
