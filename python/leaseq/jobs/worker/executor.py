"""Runs one job, in the place that its function asks for: the event loop, a thread, or a process of its own."""

import asyncio
import time
from collections.abc import Awaitable
from typing import Any

from leaseq._aio.leased import LeasedItem
from leaseq.jobs.errors import JobTimeout
from leaseq.jobs.worker.desk import Desk, Ending, Lease, Ready
from leaseq.jobs.worker.forks import Forks
from leaseq.jobs.worker.running import Running
from leaseq.jobs.worker.threads import Threads
from leaseq.worker.hooks import logger


class Executor:
    """The handler of a worker: completes an item with its result, or raises what becomes of it."""

    def __init__(self, desk: Desk, running: Running, threads: Threads, forks: Forks) -> None:
        self._desk = desk
        self._running = running
        self._threads = threads
        self._forks = forks

    async def __call__(self, item: LeasedItem) -> None:
        """Run the job of an item. Raises DeadLetter, Release."""
        lease = Lease(
            id=item.id,
            queue=item.queue.name,
            data=item.data,
            headers=item.headers,
            attempt=item.attempt,
            token=item.token,
            keep=item.keep > 0,
            started=time.time(),
        )
        self._running.begin(item, lease.started)
        try:
            ready = self._desk.ready(lease, self._running.reporter(item))
            ending = ready if isinstance(ready, Ending) else await self._run(item, lease, ready)
        finally:
            self._running.end(item)
        ending.raise_failure()
        if ending.content:
            item.result = ending.content

    async def _run(self, item: LeasedItem, lease: Lease, ready: Ready) -> Ending:
        function = ready.function
        logger.info("%s: %s, job %s, attempt %d", lease.queue, function.name, lease.id, ready.attempt)
        if function.options.fork:
            return await self._forks.run(lease, ready, self._running.reporter(item))
        try:
            if function.is_async:
                value = await within(ready.timeout, function.function(*ready.args, **ready.kwargs))
            else:
                value = await self._threads.run(lambda: function(*ready.args, **ready.kwargs), ready.timeout)
        except (Exception, SystemExit) as error:  # noqa: BLE001 (told)
            return self._desk.failed(lease, ready, error)
        return self._desk.done(lease, value)


async def within(timeout: float | None, awaitable: Awaitable[Any]) -> Any:
    """Await something; past its time it is cancelled where it waits. Raises JobTimeout."""
    scope = asyncio.timeout(timeout)
    try:
        async with scope:
            return await awaitable
    except TimeoutError as error:
        if scope.expired():
            raise JobTimeout(f"took longer than {timeout:g} seconds") from error
        raise
