"""The jobs of a shop, and a program that enqueues them, on arq."""

import asyncio
import os
from typing import Any

from arq import Retry, create_pool, cron
from arq.connections import RedisSettings
from arq.jobs import JobStatus
from example_run.programs import Programs
from redis.asyncio import Redis

URL = os.environ["REDIS_URL"]
SETTINGS = RedisSettings.from_dsn(URL)


async def open_notes(ctx: dict[str, Any]) -> None:
    ctx["notes"] = Redis.from_url(URL, socket_timeout=90)


async def close_notes(ctx: dict[str, Any]) -> None:
    await ctx["notes"].aclose()


async def total(_ctx: dict[str, Any], prices: list[float], tax: float = 0.2) -> float:
    return round(sum(prices) * (1 + tax), 2)


async def charge(ctx: dict[str, Any], order: int) -> str:
    if ctx["job_try"] < 3:
        raise Retry(defer=0.2)  # the bank does not answer
    return f"order {order} is paid at attempt {ctx['job_try']}"


async def refund(_ctx: dict[str, Any], order: int) -> None:
    raise ValueError(f"order {order} was never paid")


async def remind(_ctx: dict[str, Any], order: int) -> str:
    return f"order {order} is due"


async def count_stock(ctx: dict[str, Any]) -> None:
    await ctx["notes"].rpush("stock", "counted")


async def pack(ctx: dict[str, Any], order: int) -> str:
    await ctx["notes"].rpush("packing", order)
    await asyncio.sleep(1)
    return f"order {order} is packed"


class WorkerSettings:
    redis_settings = SETTINGS
    functions = (total, charge, refund, remind, pack)
    cron_jobs = (cron(count_stock, second=set(range(60))),)
    on_startup = open_notes
    on_shutdown = close_notes
    max_tries = 5
    job_completion_wait = 10


async def shop(worker: Programs) -> None:
    pool = await create_pool(SETTINGS)
    notes = Redis.from_url(URL, socket_timeout=90)

    job = await pool.enqueue_job("total", [10, 20], tax=0.1)
    print("total:", await job.result(timeout=60))

    job = await pool.enqueue_job("charge", 7)
    print("charge:", await job.result(timeout=60))

    job = await pool.enqueue_job("refund", 7)
    try:
        await job.result(timeout=60)
    except ValueError as error:
        print("refund: failed with", type(error).__name__, "|", error)

    job = await pool.enqueue_job("remind", 7, _job_id="remind-7", _defer_by=1)
    again = await pool.enqueue_job("remind", 7, _job_id="remind-7")
    print("remind: delayed", await job.status() == JobStatus.deferred, "| again", again is not None)
    print("remind:", await job.result(timeout=60))

    await notes.blpop("stock", timeout=60)
    await notes.blpop("stock", timeout=60)
    print("count_stock: ran twice")

    job = await pool.enqueue_job("pack", 7)
    await notes.blpop("packing", timeout=60)
    print("the worker is stopped:", *await asyncio.to_thread(worker.stop))
    print("pack:", await job.result(timeout=60))

    await notes.aclose()
    await pool.aclose()


def main() -> None:
    with Programs() as worker:
        worker.start("arq", "from_arq.before.WorkerSettings")
        asyncio.run(shop(worker))
