"""dramatiq.

Settings:
- `--processes 1 --threads 8`: eight threads are its default
- its default middleware, of which Prometheus's is not installed; no results
- bulk: it has no call for many
- quickest recovery: `heartbeat_timeout=1000` and `maintenance_chance=1_000_000`, which is always

Reference: https://dramatiq.io/reference.html#dramatiq.brokers.redis.RedisBroker, https://dramatiq.io/guide.html#workers
"""

from __future__ import annotations

from typing import Any

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from peers.roles import kit

OPTIONS: dict[str, Any] = {}
if kit.ORDERS.quickest:
    OPTIONS = {"heartbeat_timeout": 1000, "maintenance_chance": 1_000_000}

broker = RedisBroker(url=kit.ORDERS.url, **OPTIONS)
dramatiq.set_broker(broker)


@dramatiq.actor(actor_name="handle", queue_name="bench")
def handle(data: str) -> None:
    """Work on one item."""
    kit.handle(data)


def one(job: kit.Job) -> None:
    """Enqueue one."""
    handle.send(job.data)


if __name__ == "__main__":
    if kit.ORDERS.role == "produce":
        kit.produce(one)
    else:
        kit.become(
            "dramatiq",
            "peers.roles.dramatiq",
            "--processes",
            "1",
            "--threads",
            str(kit.concurrency(8)),
            "--skip-logging",
        )
