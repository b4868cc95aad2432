"""leaseq's jobs (`leaseq.jobs`), from this checkout.

Settings:
- `app.run_worker(processes=1)` with its default settings: one process that another supervises, 8 jobs at a time
- `threads` are `def` functions, enqueued with `enqueue`; the variant `asyncio` has `async def` ones and `enqueue` of `aio`
- `asyncio` runs on uvloop, as the peers on asyncio do
- results are not kept (`keep=None`); results on: for a day, the default
- bulk: `enqueue_many`
- quickest recovery: `lease_secs=1`; by default it is 30

Reference: docs/jobs.md
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import uvloop

import leaseq.jobs
from peers.adapters import common

if TYPE_CHECKING:
    from collections.abc import Sequence

app = leaseq.jobs.App(common.ORDERS.url)
RESULT_TTL = common.DAY if common.ORDERS.results else None


@app.job(name="handle", keep=RESULT_TTL)
def handle(data: str) -> Any:
    """Work on one item in a thread."""
    return common.handle(data)


@app.job(name="handle_async", keep=RESULT_TTL)
async def handle_async(data: str) -> Any:
    """Work on one item on the event loop."""
    return await common.handle_async(data)


def produce() -> None:
    """Enqueue as told."""

    def one(job: common.Job) -> str:
        return handle.enqueue(job.data).id

    def bulk(jobs: Sequence[common.Job]) -> None:
        app.enqueue_many(handle.call(job.data) for job in jobs)

    def result(job_id: str) -> object:
        return app.handle(job_id).result(common.RESULT_SECS)

    with app:
        common.produce(one, bulk, result)


async def produce_asyncio() -> None:
    """Enqueue as told."""

    async def one(job: common.Job) -> str:
        return (await handle_async.aio.enqueue(job.data)).id

    async def bulk(jobs: Sequence[common.Job]) -> None:
        await app.aio.enqueue_many(handle_async.call(job.data) for job in jobs)

    async def result(job_id: str) -> object:
        return await app.aio.handle(job_id).result(common.RESULT_SECS)

    async with app.aio:
        await common.produce_async(one, bulk, result)


def work() -> None:
    """Work until killed."""
    options: Any = {"lease_secs": 1.0} if common.ORDERS.quickest else {}
    if common.ORDERS.concurrency:
        options["concurrency"] = common.ORDERS.concurrency
    app.run_worker(processes=1, **options)


if __name__ == "__main__":
    if common.ORDERS.variant == "asyncio":
        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    if common.ORDERS.role == "work":
        work()
    elif common.ORDERS.variant == "asyncio":
        asyncio.run(produce_asyncio())
    else:
        produce()
