"""The App of tests that run workers as programs: `python -m programs.jobs_worker '{"processes": 2}'`, the server in $REDIS_URL.

What a job does is seen in Redis, under the names of its arguments.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import time
from typing import Any

import redis
from support.job_app import extend_program_timeouts

from leaseq.jobs import App, Backoff, Context
from leaseq.jobs.worker import worker_process
from leaseq.jobs.worker.job_worker import JobWorker

extend_program_timeouts()
URL = os.environ.get("REDIS_URL", "redis://127.0.0.1:1")
AT_ONCE = Backoff(0.001, 0.001)


def note(name: str, value: Any) -> None:
    """Append to a list, on a connection of its own."""
    with redis.Redis.from_url(URL) as client:
        client.rpush(name, str(value))


def has(name: str) -> bool:
    """Whether a key is there."""
    with redis.Redis.from_url(URL) as client:
        return bool(client.exists(name))


def wait_for(name: str) -> None:
    """Wait for a key, for two minutes."""
    end = time.monotonic() + 120
    while not has(name) and time.monotonic() < end:
        time.sleep(0.01)


class KilledWorker(JobWorker):
    """Where a test wants that, each process gets a signal before it can listen to any."""

    def __init__(self, *given: Any, **options: Any) -> None:
        if has("strike"):
            os.kill(os.getpid(), signal.SIGTERM)
            note("struck", os.getpid())
        super().__init__(*given, **options)


setattr(worker_process, "JobWorker", KilledWorker)  # noqa: B010 (mypy knows what was there)
app = App(URL)


@app.job(name="effect", retries=None, backoff=AT_ONCE)
async def effect(ctx: Context, number: int) -> int:
    """Leave its number, once for each attempt."""
    await asyncio.sleep(0)
    note("effects", f"{number}:{ctx.attempt}")
    return number


@app.job(name="forked", retries=None, backoff=AT_ONCE, fork=True)
def forked(ctx: Context, number: int) -> int:
    """The same in a process of its own."""
    note("pids", os.getpid())
    note("effects", f"{number}:{ctx.attempt}")
    return number


@app.job(name="lingers", retries=None, backoff=AT_ONCE, fork=True)
def lingers(ctx: Context, number: int) -> int:
    """The same, so slow at first that somebody can kill it."""
    if ctx.attempt < 3:
        time.sleep(1)
    note("effects", f"{number}:{ctx.attempt}")
    return number


@app.job(name="pid")
def pid() -> int:
    """The process that it runs in."""
    return os.getpid()


@app.job(name="leave")
def leave() -> int:
    """Leave a process running, which has inherited all that is open here."""
    child = os.fork()
    if child == 0:
        time.sleep(3600)
        os._exit(0)
    return child


@app.job(name="hold", retries=None, backoff=AT_ONCE)
def hold(ctx: Context, go: str) -> str:
    """Say who runs it and wait to be let go."""
    note("holding", f"{os.getpid()}:{ctx.attempt}")
    wait_for(go)
    return "whole"


@app.job(name="fhold", retries=None, backoff=AT_ONCE, fork=True)
def fhold(ctx: Context, go: str) -> str:
    """The same in a process of its own."""
    note("holding", f"{os.getpid()}:{ctx.attempt}")
    wait_for(go)
    return "whole"


@app.job(name="ahold", retries=None)
async def ahold(ctx: Context) -> int:
    """Say who runs it and sleep; ended in the first attempts alone."""
    note("holding", f"{os.getpid()}:{ctx.attempt}")
    if not has("go"):
        await asyncio.sleep(3600)
    return ctx.attempt


@app.job(name="poison", retries=2)
async def poison(ctx: Context) -> None:
    """Kill the process that runs it."""
    note("poisoned", ctx.attempt)
    os.kill(os.getpid(), signal.SIGKILL)


@app.on_startup
def begin() -> None:
    """Say that a process has begun; wait, or fail, where a test wants that."""
    note("begun", os.getpid())
    if has("fail-at-start"):
        message = "no database"
        raise ConnectionError(message)
    while has("wait-at-start"):
        time.sleep(0.01)


@app.on_shutdown
def end() -> None:
    """Say that a process has ended as it should."""
    note("ended", os.getpid())


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stderr, level=logging.INFO)
    from programs.jobs_worker import app as importable  # jobs are those of the module, not of __main__

    print(importable.run_worker(**json.loads(sys.argv[1])))  # noqa: T201
