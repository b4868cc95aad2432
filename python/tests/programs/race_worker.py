"""The programs that `test_race` starts and kills: a worker, a producer, a cleaner. Run as `python -m programs.race_worker ROLE ARGS`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import leaseq
import leaseq.aio

if TYPE_CHECKING:
    from collections.abc import Callable

LEASE = 0.6


def record(path: str, item_id: str, token: int, answer: str) -> None:
    """One line, written in one call, so that a kill leaves it whole or absent."""
    with Path(path).open("ab", buffering=0) as log:
        log.write(f"{item_id} {token} {answer}\n".encode())


def work(url: str, log: str, seed: str) -> None:
    """Lease for ever; complete, release, let expire, now and then too late."""
    chance = random.Random(seed)
    queue = leaseq.WorkQueue("race", url)
    while True:
        with contextlib.suppress(leaseq.LeaseqError):
            for item in queue.lease_items(chance.choice((1, 1, 3)), LEASE, timeout=2):
                record(log, item.id, item.token, f"leased {item.attempt}")
                if chance.random() < 0.05:
                    queue.release(item, delay=chance.choice((0, 0.05)))
                elif chance.random() < 0.02:
                    time.sleep(LEASE * 1.2)  # the lease runs out; the work is done all the same
                    record(log, item.id, item.token, str(queue.complete(item)))
                else:
                    record(log, item.id, item.token, str(queue.complete(item)))


async def work_async(url: str, log: str, seed: str) -> None:
    """Two tasks that share one queue, with the heart at work."""
    chance = random.Random(seed)
    queue = leaseq.aio.WorkQueue("race", url)

    async def loop() -> None:
        while True:
            with contextlib.suppress(leaseq.LeaseqError, ZeroDivisionError):
                async for item in queue.items(LEASE, timeout=2):
                    record(log, item.id, item.token, f"leased {item.attempt}")
                    if chance.random() < 0.03:
                        await queue.release(item)
                        continue
                    await asyncio.sleep(chance.random() * 0.004)
                    record(log, item.id, item.token, str(await queue.complete(item)))

    await asyncio.gather(loop(), loop())


def produce(url: str, log: str, first: str, count: str) -> None:
    """Add a range of ids; add again what may not have been added, which only answers that it exists."""
    queue = leaseq.WorkQueue("race", url)
    ids = [f"i{number}" for number in range(int(first), int(first) + int(count))]
    while ids:
        size = random.choice((1, 1, 7))
        items = [leaseq.Item(b"x" * 20, id=item_id) for item_id in ids[:size]]
        # once more, where the machine stood still for longer than a reply may take
        with contextlib.suppress(leaseq.LeaseqError):
            queue.add_items(items, delay=random.choice((0, 0, 0.1)))
            for item in items:
                record(log, item.id, 0, "added")
            ids = ids[size:]
        time.sleep(0.002)


def clean(url: str, log: str) -> None:
    """Both cleaners, all the time."""
    queue = leaseq.WorkQueue("race", url)
    while True:
        with contextlib.suppress(leaseq.LeaseqError):
            queue.light_clean()
            repairs = queue.deep_clean().repairs
            if repairs:
                record(log, "repair", 0, str(repairs))
        time.sleep(0.02)


def main() -> None:
    """Run one role."""
    role, *args = sys.argv[1:]
    os.write(1, b"go\n")
    if role == "async":
        asyncio.run(work_async(*args))
    else:
        roles: dict[str, Callable[..., None]] = {"work": work, "produce": produce, "clean": clean}
        roles[role](*args)


if __name__ == "__main__":
    main()
