"""arq.

Settings:
- `max_jobs=100` and `keep_result=0`; uvloop
- it polls: `poll_delay` stays at its default of 0.5 s except for quickest recovery
- bulk: it has no call for many; 100 calls at a time with `asyncio.gather`
- quickest recovery: `job_timeout=1`, which makes the mark of a running job last 11 s, and `poll_delay=0.1`

Reference: https://arq-docs.helpmanual.io/ (arq.worker.Worker)
"""

from __future__ import annotations

import asyncio
from typing import Any

import uvloop
from arq import create_pool
from arq.connections import RedisSettings
from arq.worker import Worker, func

from peers.roles import kit

SETTINGS = RedisSettings(host="127.0.0.1", port=kit.ORDERS.port, database=kit.ORDERS.database)


async def handle(_: dict[str, Any], data: str) -> None:
    """Work on one item."""
    await kit.handle_async(data)


async def produce() -> None:
    """Enqueue as told."""
    pool = await create_pool(SETTINGS)

    async def one(job: kit.Job) -> None:
        await pool.enqueue_job("handle", job.data, _job_id=job.id)

    await kit.produce_async(one, kit.gathered(one))


def work() -> None:
    """Work until killed."""
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    options: dict[str, Any] = {}
    if kit.ORDERS.quickest:
        options = {"job_timeout": 1, "poll_delay": 0.1}
    Worker(
        functions=[func(handle, name="handle")],
        redis_settings=SETTINGS,
        max_jobs=kit.concurrency(100),
        keep_result=0,
        log_results=False,
        **options,
    ).run()


if __name__ == "__main__":
    if kit.ORDERS.role == "produce":
        uvloop.run(produce())
    else:
        work()
