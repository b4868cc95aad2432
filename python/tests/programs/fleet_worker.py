"""The programs that `test_worker_fleet` starts, kills and stops. Run as `python -m programs.fleet_worker KIND URL LOG`."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import leaseq
import leaseq.aio
import leaseq.worker
import leaseq.worker.aio
from leaseq.worker import Hooks

LEASE = 60.0
"""Seconds. What a killed worker held is made to expire by the test."""


class Record(Hooks):
    """Writes down what happens: one line in one call, so that a kill leaves it whole or absent."""

    def __init__(self, path: str) -> None:
        self._log = Path(path).open("ab", buffering=0)  # noqa: SIM115 (open as long as the process lives)

    def write(self, what: str, item: Any) -> None:
        """Write a line."""
        self._log.write(f"{what} {item.id} {item.token}\n".encode())

    def completed(self, item: Any) -> None:
        """The server said so, or said that an earlier call had done it."""
        self.write("completed", item)


def main() -> None:
    """Run one worker until it is stopped."""
    kind, url, log = sys.argv[1:]
    record = Record(log)
    at_most_once = kind.endswith("once")
    options: Any = {"hooks": record, "lease_secs": LEASE, "grace_secs": 0.2, "at_most_once": at_most_once}
    options |= {"concurrency": 4, "max_attempts": 0, "backoff": lambda _: 0.05}
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a signal that comes when the worker has stopped already

    def pause() -> float:
        return 0.0 if random.random() < 0.5 else random.random() * 0.02

    def handle(item: Any) -> None:
        record.write("handled", item)
        time.sleep(pause())
        if not at_most_once and random.random() < 0.02:
            raise ValueError("now and then")

    async def handle_async(item: Any) -> None:
        record.write("handled", item)
        await asyncio.sleep(pause())
        if not at_most_once and random.random() < 0.02:
            raise ValueError("now and then")

    async def work_async() -> None:
        async with leaseq.aio.WorkQueue("fleet", url) as queue:
            await leaseq.worker.aio.Worker(queue, handle_async, **options).run()

    if kind.startswith("async"):
        asyncio.run(work_async())
    else:
        with leaseq.WorkQueue("fleet", url) as queue:
            leaseq.worker.Worker(queue, handle, **options).run()


if __name__ == "__main__":
    main()
