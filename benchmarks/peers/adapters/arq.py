"""arq.

Settings:
- `max_jobs=100` (20 drained a quarter fewer, 200 no more) and `keep_result=0`; uvloop; results on: `keep_result` of
  a day
- it polls, and takes at most `max_jobs` and what is done meanwhile each time: `poll_delay=0.01`, since at its default
  of 0.5 s drain and latency would be those of that pause. Shorter ones drained no faster; 0.001 has a median latency of
  1.6 ms where 0.01 has 6, for nine times the commands of an idle worker, some 900 a second. Idle cost is with the same
  0.01, recovery by defaults with the default
- bulk: it has no call for many; 100 calls at a time with `asyncio.gather`
- quickest recovery: `job_timeout=1`, which makes the mark of a running job last 11 s

Reference: https://arq-docs.helpmanual.io/ (arq.worker.Worker)
"""

from __future__ import annotations

import asyncio
from typing import Any

import uvloop
from arq import create_pool
from arq.connections import RedisSettings
from arq.jobs import Job
from arq.worker import Worker, func

from peers.adapters import common

POLL_SECS = 0.01
SETTINGS = RedisSettings(host="127.0.0.1", port=common.ORDERS.port, database=common.ORDERS.database)


async def handle(_: dict[str, Any], data: str) -> object:
    """Work on one item."""
    return await common.handle_async(data)


async def produce() -> None:
    """Enqueue as told."""
    pool = await create_pool(SETTINGS)

    async def one(job: common.Job) -> str:
        await pool.enqueue_job("handle", job.data, _job_id=job.id)
        return job.id

    async def result(job_id: str) -> object:
        info = await Job(job_id, pool).result_info()
        return info and info.result

    await common.produce_async(one, common.gathered(one), result)


def work() -> None:
    """Work until killed."""
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    options: dict[str, Any] = {} if common.ORDERS.as_shipped else {"poll_delay": POLL_SECS}
    if common.ORDERS.quickest:
        options["job_timeout"] = 1
    Worker(
        functions=[func(handle, name="handle")],
        redis_settings=SETTINGS,
        max_jobs=common.concurrency(100),
        keep_result=common.DAY if common.ORDERS.results else 0,
        log_results=False,
        **options,
    ).run()


if __name__ == "__main__":
    if common.ORDERS.role == "produce":
        uvloop.run(produce())
    else:
        work()
