"""Script calls of the suite itself, past every client: they work a queue to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance.manifest import SCRIPTS

if TYPE_CHECKING:
    import redis

HOUR_MS: Final = 3_600_000
LONG_AGO: Final = 1_735_689_600_000_001
ROUNDS: Final = 200
"""More leases than it takes to empty any queue of a case."""


def run_script(client: redis.Redis, prefix: str, name: str, *argv: Any) -> Any:
    """Run a script on one queue and return its reply. Raises redis.ResponseError."""
    script = SCRIPTS[name]
    keys = [prefix + key for key in script.keys]
    return client.eval(script.source, len(keys), *keys, *argv)


def drain_queue(client: redis.Redis, prefix: str) -> list[bytes]:
    """Lease and complete until nothing can be leased, and return the ids that were completed.

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
    raise RuntimeError(f"the queue {prefix} still has items after {ROUNDS} leases")


def expire_everything(client: redis.Redis, prefix: str) -> None:
    """Expire every lease, make every delayed item due, and revive what is dead."""
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
