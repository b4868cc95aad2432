"""How fast a worker drains a queue of items that need no time, next to a loop that leases and completes one by one.

    python benchmarks/worker.py [--items N] [--rounds N] [--server NAME]

Ratios only, each of one round: in every round the plain loop and the workers of both colours take turns on the same
server, so that other load on the machine meets all of them. Prints JSON: the median of the rounds, and every round.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

import leaseq.aio
import leaseq.worker.aio

sys.path.insert(0, str(Path(__file__).parent))
from bench_server import BenchServer

if TYPE_CHECKING:
    from collections.abc import Callable

PLAIN_SHARE: Final = 10
"""The plain loop gets so much less: it would take most of the time."""


def fill(queue: leaseq.WorkQueue, count: int) -> None:
    """Add items of 100 bytes."""
    queue.add_items(leaseq.Item(b"x" * 100) for _ in range(count))


def plain(queue: leaseq.WorkQueue) -> int:
    """Lease and complete one by one."""
    done = 0
    while item := queue.lease(30, block=False):
        done += queue.complete(item)
    return done


def threads(queue: leaseq.WorkQueue) -> int:
    """The worker for threads, with its defaults."""
    return leaseq.worker.Worker(queue, lambda _: None, burst=True).run()


def tasks(queue: leaseq.WorkQueue, url: str) -> int:
    """The worker for asyncio, with its defaults."""

    async def handle(_: leaseq.aio.LeasedItem) -> None: ...

    async def work() -> int:
        async with leaseq.aio.WorkQueue(queue.name, url) as there:
            return await leaseq.worker.aio.Worker(there, handle, burst=True).run()

    return asyncio.run(work())


def rate(queue: leaseq.WorkQueue, count: int, drain: Callable[[], int]) -> float:
    """Items in a second."""
    fill(queue, count)
    began = time.perf_counter()
    if drain() != count:
        raise AssertionError(queue.stats())
    return count / (time.perf_counter() - began)


def one_round(queue: leaseq.WorkQueue, url: str, items: int) -> dict[str, float]:
    """Each once; the ratios to the plain loop."""
    base = rate(queue, max(1, items // PLAIN_SHARE), lambda: plain(queue))
    return {
        "plain_per_second": round(base),
        "threads_ratio": round(rate(queue, items, lambda: threads(queue)) / base, 2),
        "asyncio_ratio": round(rate(queue, items, lambda: tasks(queue, url)) / base, 2),
    }


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--server", default="valkey-9.1.2", help="a name such as redis-7.0, or a program's path"
    )
    options = parser.parse_args()
    with BenchServer(options.server) as server, leaseq.WorkQueue("bench", server.url) as queue:
        rounds = [one_round(queue, server.url, options.items) for _ in range(options.rounds)]
    medians = {name: median(each[name] for each in rounds) for name in rounds[0]}
    print(json.dumps({"median": medians, "items": options.items, "rounds": rounds}, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
