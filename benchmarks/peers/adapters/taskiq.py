"""taskiq with taskiq-redis, on a list or on a stream.

Settings:
- `--workers 1 --max-async-tasks 100`, which many tasks are its default; no result backend; `--no-parse`: no
  pydantic. Neither `--max-prefetch`, `ORJSONSerializer` nor a larger `xread_count` is faster
- the variant `stream` is `RedisStreamBroker`, which acknowledges; `list` is `ListQueueBroker`, which does not
- `socket_timeout=None` for the list: it waits without end, and the default of redis-py 8 ends its process every 5 s
- results on: `RedisAsyncResultBackend` with a `result_ex_time` of a day
- bulk: it has no call for many; 100 calls at a time with `asyncio.gather`
- recovery: none on a list; quickest on a stream: `idle_timeout=1000`, `xread_block=100`. It looks for what others
  have abandoned only behind a read that brought new messages: without new messages an item is never taken over

Reference: https://taskiq-python.github.io/guide/cli.html, https://github.com/taskiq-python/taskiq-redis#readme
"""

from __future__ import annotations

from typing import Any

import uvloop
from taskiq_redis import ListQueueBroker, RedisAsyncResultBackend, RedisStreamBroker

from peers.adapters import common

STREAM: dict[str, Any] = {"consumer_id": "0"}  # what was enqueued before the first worker came counts
if common.ORDERS.quickest:
    STREAM |= {"idle_timeout": 1000, "xread_block": 100}

broker: Any = (
    RedisStreamBroker(common.ORDERS.url, queue_name="bench", **STREAM)
    if common.ORDERS.variant == "stream"
    else ListQueueBroker(common.ORDERS.url, queue_name="bench", socket_timeout=None)
)
if common.ORDERS.results:
    broker = broker.with_result_backend(RedisAsyncResultBackend(common.ORDERS.url, result_ex_time=common.DAY))


@broker.task(task_name="handle")
async def handle(data: str) -> object:
    """Work on one item."""
    return await common.handle_async(data)


async def produce() -> None:
    """Enqueue as told."""
    await broker.startup()

    async def one(job: common.Job) -> Any:
        return (await handle.kiq(job.data)).task_id

    async def result(task_id: str) -> object:
        if not await broker.result_backend.is_result_ready(task_id):
            return None
        return (await broker.result_backend.get_result(task_id)).return_value

    await common.produce_async(one, common.gathered(one), result)


if __name__ == "__main__":
    if common.ORDERS.role == "produce":
        uvloop.run(produce())
    else:
        common.become(
            "taskiq", "worker", "peers.adapters.taskiq:broker", "--workers", "1", "--no-parse", "--log-level", "ERROR",
            "--max-async-tasks", str(common.concurrency(100)), "--no-configure-logging",
        )  # fmt: skip
