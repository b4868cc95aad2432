"""leaseq, from this checkout.

Settings:
- the variants `threads` and `asyncio` are `leaseq.worker.Worker`, sync or async, with its default settings
- `two-calls` is a loop of `lease` and `complete`; `fused` is one of `complete_and_lease`: one item at a time
- `asyncio` runs on uvloop, as the peers on asyncio do
- bulk: `add_items`
- quickest recovery: `lease_secs=1`; by default it is 30

Reference: docs/worker.md
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import uvloop

import leaseq
import leaseq.aio
import leaseq.worker.aio
from peers.adapters import common

if TYPE_CHECKING:
    from collections.abc import Sequence

LEASE_SECS = 1.0 if common.ORDERS.quickest else 30.0
OPTIONS: dict[str, Any] = {"lease_secs": LEASE_SECS}
if common.ORDERS.concurrency:
    OPTIONS["concurrency"] = common.ORDERS.concurrency


def produce() -> None:
    """Enqueue as told."""
    with leaseq.WorkQueue("bench", common.ORDERS.url) as queue:

        def one(job: common.Job) -> None:
            queue.add_item(leaseq.Item(job.data, id=job.id))

        def bulk(jobs: Sequence[common.Job]) -> None:
            queue.add_items(leaseq.Item(job.data, id=job.id) for job in jobs)

        common.produce(one, bulk)


async def produce_asyncio() -> None:
    """Enqueue as told."""
    async with leaseq.aio.WorkQueue("bench", common.ORDERS.url) as queue:

        async def one(job: common.Job) -> None:
            await queue.add_item(leaseq.Item(job.data, id=job.id))

        async def bulk(jobs: Sequence[common.Job]) -> None:
            await queue.add_items(leaseq.Item(job.data, id=job.id) for job in jobs)

        await common.produce_async(one, bulk)


def work_threads(queue: leaseq.WorkQueue) -> None:
    """Work until killed."""
    leaseq.worker.Worker(queue, lambda item: common.handle(item.data), **OPTIONS).run()


def work_two_calls(queue: leaseq.WorkQueue) -> None:
    """Lease and complete."""
    while item := queue.lease(LEASE_SECS):
        common.handle(item.data)
        queue.complete(item)


def work_fused(queue: leaseq.WorkQueue) -> None:
    """Complete and lease in one call."""
    item = queue.lease(LEASE_SECS)
    while True:
        while item:
            common.handle(item.data)
            _, item = queue.complete_and_lease(item, LEASE_SECS)
        item = queue.lease(LEASE_SECS)


async def work_asyncio() -> None:
    """Work until killed."""

    async def handle(item: leaseq.aio.LeasedItem) -> None:
        await common.handle_async(item.data)

    async with leaseq.aio.WorkQueue("bench", common.ORDERS.url) as queue:
        await leaseq.worker.aio.Worker(queue, handle, **OPTIONS).run()


LOOPS = {"threads": work_threads, "two-calls": work_two_calls, "fused": work_fused}

if __name__ == "__main__":
    is_asyncio = common.ORDERS.variant == "asyncio"
    if common.ORDERS.role == "produce":
        if is_asyncio:
            uvloop.run(produce_asyncio())
        else:
            produce()
    elif is_asyncio:
        uvloop.run(work_asyncio())
    else:
        with leaseq.WorkQueue("bench", common.ORDERS.url) as work_queue:
            LOOPS[common.ORDERS.variant](work_queue)
