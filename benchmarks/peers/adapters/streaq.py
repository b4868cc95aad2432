"""streaQ.

Settings:
- `concurrency=16`, its default, for which 1 and 100 are slower, as `prefetch=100` is no faster; uvloop; `ttl=0`: results are not kept; `silent=True`: nothing is logged for each task
- bulk: `enqueue_many`, 500 at a time
- quickest recovery: `idle_timeout=1`

Reference: https://streaq.readthedocs.io/en/latest/ (Worker, its method task)
"""

from __future__ import annotations

import uvloop
from streaq import Worker

from peers.adapters import common

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH = 500

worker = Worker(
    redis_url=common.ORDERS.url,
    queue_name="bench",
    concurrency=common.concurrency(16),
    idle_timeout=1 if common.ORDERS.quickest else 60,
    anyio_kwargs={"use_uvloop": True},
)


@worker.task(ttl=0, silent=True, name="handle")
async def handle(data: str) -> None:
    """Work on one item."""
    await common.handle_async(data)


async def one(job: common.Job) -> None:
    """Enqueue one."""
    await handle.enqueue(job.data)


async def bulk(jobs: Sequence[common.Job]) -> None:
    """Enqueue many."""
    for at in range(0, len(jobs), WIDTH):
        await worker.enqueue_many([handle.enqueue(job.data) for job in jobs[at : at + WIDTH]])


async def produce() -> None:
    """Enqueue as told."""
    async with worker:
        await common.produce_async(one, bulk)


if __name__ == "__main__":
    if common.ORDERS.role == "produce":
        uvloop.run(produce())
    else:
        worker.run_sync()
