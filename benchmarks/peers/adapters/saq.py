"""SAQ.

Settings:
- `concurrency=10`, its default, for which 20 is no faster and 1 and 100 are slower; uvloop; `ttl=-1`: results are not kept; results on: `ttl` of a day
- bulk: it has no call for many that waits for no result; 100 calls at a time with `asyncio.gather`
- quickest recovery: `timeout=1` and `retries=3` for the job, `timers={"sweep": 1}` for the worker

Reference: https://saq-py.readthedocs.io/en/latest/ (Worker, Job)
"""

from __future__ import annotations

import asyncio
from typing import Any

import uvloop
from saq import Queue, Worker

from peers.adapters import common

queue = Queue.from_url(common.ORDERS.url, name="bench")
OPTIONS: dict[str, Any] = {"ttl": common.DAY if common.ORDERS.results else -1}
if common.ORDERS.quickest:
    OPTIONS |= {"timeout": 1, "retries": 3}


async def handle(_: dict[str, Any], *, data: str) -> object:
    """Work on one item."""
    return await common.handle_async(data)


async def produce() -> None:
    """Enqueue as told."""
    await queue.connect()

    async def one(job: common.Job) -> str:
        await queue.enqueue("handle", key=job.id, data=job.data, **OPTIONS)
        return job.id

    async def result(key: str) -> object:
        job = await queue.job(key)
        return job and job.result

    await common.produce_async(one, common.gathered(one), result)


async def work() -> None:
    """Work until killed."""
    timers: Any = {"sweep": 1} if common.ORDERS.quickest else None
    worker = Worker(queue, functions=[("handle", handle)], concurrency=common.concurrency(10), timers=timers)
    await worker.start()


if __name__ == "__main__":
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    asyncio.run(produce() if common.ORDERS.role == "produce" else work())
