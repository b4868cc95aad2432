"""A worker that is killed as it hands on: `python -m programs.chain_worker before|after|never`, the server in $REDIS_URL."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any

import redis
from support.job_app import extend_program_timeouts

from leaseq.jobs import App, ChainHandle, Context
from leaseq.jobs.worker.executor import Executor


def jobs(app: App) -> Any:
    """The one function of the chains: appends a number, and leaves a trace."""

    @app.job(name="append", retries=None)
    async def append(ctx: Context, numbers: list[int], number: int) -> list[int]:
        with redis.Redis.from_url(os.environ["REDIS_URL"]) as client:
            client.rpush("effects", f"{numbers}+{number}")
        return [*numbers, number]

    return append


def chain(app: App, number: int) -> ChainHandle[list[int]]:
    """Enqueue a chain of three."""
    append: Any = app.function("append")
    steps = (
        app.chain(append.with_options(id=f"c{number}").call([number], 1))
        .then(append.partial(2))
        .then(append.partial(3))
    )
    handle: ChainHandle[list[int]] = steps.enqueue()
    return handle


def die() -> None:
    """Be killed."""
    os.kill(os.getpid(), signal.SIGKILL)


def main(when: str) -> None:
    """Work until killed, or until there is nothing to do."""
    complete_with_next = Executor._hand_on

    async def killed(self: Executor, *arguments: Any) -> None:
        if when == "before":
            die()
        await complete_with_next(self, *arguments)
        if when == "after":
            die()

    setattr(Executor, "_hand_on", killed)  # noqa: B010 (mypy knows what was there)
    extend_program_timeouts()
    app = App(os.environ["REDIS_URL"])
    jobs(app)

    async def work() -> None:
        async with app.aio as running:
            await running.run_worker(burst=True, concurrency=1, lease_secs=600)

    asyncio.run(work())


if __name__ == "__main__":
    main(sys.argv[1])
