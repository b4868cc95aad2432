"""The worker that `test_forked` starts and kills. Run as `python -m programs.forking_worker MODE URL CONCURRENCY`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import TYPE_CHECKING

import leaseq
import leaseq.aio
import leaseq.worker
import leaseq.worker.aio

if TYPE_CHECKING:
    from leaseq import LeasedItem
    from leaseq.aio import LeasedItem as AsyncLeasedItem

HOUR = 3600.0


def fork() -> None:
    """Leave a process running, and tell its number."""
    child = os.fork()
    if child:
        os.write(1, b"%d\n" % child)
        return
    while True:
        signal.pause()


def handle(item: LeasedItem | AsyncLeasedItem) -> None:
    """Fork, if the item says so."""
    if item.data == b"fork":
        fork()


async def handle_async(item: AsyncLeasedItem) -> None:
    """Fork in the thread of the event loop."""
    handle(item)


async def run_async(url: str, concurrency: int) -> None:
    """A worker of asyncio."""
    async with leaseq.aio.WorkQueue("q", url) as queue:
        await leaseq.worker.aio.Worker(
            queue, handle_async, lease_secs=HOUR, concurrency=concurrency, announce=False
        ).run()


def main() -> None:
    """Run one worker until it is killed."""
    flavour, url, concurrency = sys.argv[1:]
    if flavour == "asyncio":
        asyncio.run(run_async(url, int(concurrency)))
        return
    with leaseq.WorkQueue("q", url) as queue:
        leaseq.worker.Worker(
            queue, handle, lease_secs=HOUR, concurrency=int(concurrency), announce=False
        ).run()


if __name__ == "__main__":
    main()
