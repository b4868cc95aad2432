"""A worker whose clock is wrong: `python -m programs.cron_worker MINUTES`, which is fast or slow by this; the server in $REDIS_URL."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from typing import Any

import redis.asyncio

OFFSET = float(sys.argv[1]) * 60
_TIME = time.time
time.time = lambda: _TIME() + OFFSET

from support.job_app import extend_program_timeouts  # noqa: E402 (the clock comes first)

from leaseq.jobs import App, Context  # noqa: E402

extend_program_timeouts()

WORKERS = 3
URL = os.environ["REDIS_URL"]
app = App(URL)
client: Any = redis.asyncio.Redis.from_url(URL)


@app.on_shutdown
async def close() -> None:
    """Leave no connection open."""
    await client.aclose()


@app.every(60, missed="all", name="minutely")
async def minutely(ctx: Context) -> None:
    """Leave its slot, once all three take part: until then each holds as many as it can."""
    await client.sadd("at-work", OFFSET)
    if await client.scard("at-work") == WORKERS:
        await client.rpush("begin", "now")
    await client.blmove("begin", "begin", 0)
    await client.hincrby("by", OFFSET, 1)
    await client.rpush("slots", f"{round(ctx.due)}")


if __name__ == "__main__":
    asyncio.run(app.aio.run_worker(concurrency=4, lease_secs=600, grace_secs=100))
