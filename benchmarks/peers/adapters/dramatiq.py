"""dramatiq.

Settings:
- `--processes 1 --threads 8`: eight threads are its default, and one is no faster
- `dramatiq_queue_prefetch=100`: with its default, twice the threads, it pauses for 5 ms and more whenever 16 messages
  have been taken, and drains a quarter as fast; more than 100 is no faster
- it polls, and waits longer each time it finds nothing, up to `dramatiq_worker_timeout`: 20 ms in place of its
  default of 1 s. Shorter is quicker, but at 10 ms an idle worker uses a seventh of the CPU. Idle cost is measured with
  20 ms too; recovery at default settings with the default, since any poll may look for dead workers
- its default middleware, without that of Prometheus; no results
- results on: the middleware `Results`, `store_results=True`, `result_ttl` of a day
- bulk: it has no call that enqueues many
- quickest recovery: `heartbeat_timeout=1000` and `maintenance_chance=1_000_000`, which means at each poll

Reference: https://dramatiq.io/reference.html#dramatiq.brokers.redis.RedisBroker, https://dramatiq.io/guide.html#workers,
https://dramatiq.io/reference.html#environment-variables
"""

from __future__ import annotations

import os
from typing import Any

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import ResultMissing, Results
from dramatiq.results.backends import RedisBackend

from peers.adapters import common

PREFETCH = 100
POLL_MS = 20
OPTIONS: dict[str, Any] = {}
if common.ORDERS.quickest:
    OPTIONS = {"heartbeat_timeout": 1000, "maintenance_chance": 1_000_000}

broker = RedisBroker(url=common.ORDERS.url, **OPTIONS)
dramatiq.set_broker(broker)
backend = RedisBackend(url=common.ORDERS.url)
KEPT: dict[str, Any] = {}
if common.ORDERS.results:
    broker.add_middleware(Results(backend=backend))
    KEPT = {"store_results": True, "result_ttl": common.DAY * 1000}


@dramatiq.actor(actor_name="handle", queue_name="bench", **KEPT)
def handle(data: str) -> object:
    """Work on one item."""
    return common.handle(data)


def one(job: common.Job) -> object:
    """Enqueue one job. Return its id."""
    return handle.send(job.data).message_id


def result(message_id: str) -> object:
    """Return the result of a job; None if there is none yet."""
    try:
        return backend.get_result(handle.message().copy(message_id=message_id))
    except ResultMissing:
        return None


if __name__ == "__main__":
    if common.ORDERS.role == "produce":
        common.produce(one, result=result)
    else:
        threads = common.concurrency(8)
        if not common.ORDERS.as_shipped:
            os.environ["dramatiq_queue_prefetch"] = str(max(PREFETCH, 2 * threads))  # noqa: SIM112 (its name)
            os.environ["dramatiq_worker_timeout"] = str(POLL_MS)  # noqa: SIM112 (its name)
        common.become(
            "dramatiq",
            "peers.adapters.dramatiq",
            "--processes",
            "1",
            "--threads",
            str(threads),
            "--skip-logging",
        )
