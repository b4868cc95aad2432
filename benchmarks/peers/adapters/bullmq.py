"""BullMQ for Python.

Settings:
- `concurrency=1`, its default, which drains 5 to 15 % faster than 10 when a job needs no time; `removeOnComplete` and `removeOnFail`: finished jobs are not kept
- bulk: `addBulk`, 500 at a time
- quickest recovery: `lockDuration` and `stalledInterval` of 1000 ms

Reference: https://docs.bullmq.io/python/introduction, https://docs.bullmq.io/guide/workers/stalled-jobs
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import uvloop
from bullmq import Queue, Worker

from peers.adapters import common

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH = 500
KEPT = {"removeOnComplete": True, "removeOnFail": True}


async def handle(job: Any, _: str) -> None:
    """Work on one item."""
    await common.handle_async(job.data["data"])


async def produce() -> None:
    """Enqueue as told."""
    queue = Queue("bench", {"connection": common.ORDERS.url})

    async def one(job: common.Job) -> None:
        await queue.add("handle", {"data": job.data}, {"jobId": job.id, **KEPT})

    async def bulk(jobs: Sequence[common.Job]) -> None:
        for at in range(0, len(jobs), WIDTH):
            await queue.addBulk(
                [
                    {"name": "handle", "data": {"data": job.data}, "opts": {"jobId": job.id, **KEPT}}
                    for job in jobs[at : at + WIDTH]
                ]
            )

    await common.produce_async(one, bulk)


async def work() -> None:
    """Work until killed."""
    options: dict[str, Any] = {"connection": common.ORDERS.url, "concurrency": common.concurrency(1)}
    if common.ORDERS.quickest:
        options |= {"lockDuration": 1000, "stalledInterval": 1000}
    worker = Worker("bench", handle, options)
    worker.on("error", lambda *_: None)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(produce() if common.ORDERS.role == "produce" else work())
