"""dramatiq.

Settings:
- `--processes 1 --threads 8`: eight threads are its default
- its default middleware, of which Prometheus's is not installed; no results
- results on: the middleware `Results`, `store_results=True`, `result_ttl` of a day
- bulk: it has no call for many
- quickest recovery: `heartbeat_timeout=1000` and `maintenance_chance=1_000_000`, which is always

Reference: https://dramatiq.io/reference.html#dramatiq.brokers.redis.RedisBroker, https://dramatiq.io/guide.html#workers
"""

from __future__ import annotations

from typing import Any

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import ResultMissing, Results
from dramatiq.results.backends import RedisBackend

from peers.roles import kit

OPTIONS: dict[str, Any] = {}
if kit.ORDERS.quickest:
    OPTIONS = {"heartbeat_timeout": 1000, "maintenance_chance": 1_000_000}

broker = RedisBroker(url=kit.ORDERS.url, **OPTIONS)
dramatiq.set_broker(broker)
backend = RedisBackend(url=kit.ORDERS.url)
KEPT: dict[str, Any] = {}
if kit.ORDERS.results:
    broker.add_middleware(Results(backend=backend))
    KEPT = {"store_results": True, "result_ttl": kit.DAY * 1000}


@dramatiq.actor(actor_name="handle", queue_name="bench", **KEPT)
def handle(data: str) -> object:
    """Work on one item."""
    return kit.handle(data)


def one(job: kit.Job) -> object:
    """Enqueue one."""
    return handle.send(job.data).message_id


def result(message_id: str) -> object:
    """Its result."""
    try:
        return backend.get_result(handle.message().copy(message_id=message_id))
    except ResultMissing:
        return None


if __name__ == "__main__":
    if kit.ORDERS.role == "produce":
        kit.produce(one, result=result)
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
