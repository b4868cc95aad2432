"""One program of a campaign, until SIGTERM: `python -m chaos.member ROLE`. It writes to CHAOS_FOLDER."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import random
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import leaseq
import leaseq.aio
from chaos.chaos_jobs import DURABLE, QUEUE, URL, app, step
from chaos.journal import ADDED, ENDED, ENQUEUED, TRUE, WRONG, Journal
from leaseq import Item
from leaseq.worker import Hooks, Worker
from leaseq.worker import aio as worker_aio
from leaseq_cleaner import Cleaner

if TYPE_CHECKING:
    from collections.abc import Callable

ITEMS: Final = "items"
LEASE_SECS: Final = 5.0
ITEM_PAUSE_SECS: Final = 0.02
JOB_PAUSE_SECS: Final = 0.066
AFTER_ERROR_SECS: Final = 0.1


def a_while() -> float:
    """Return how long a handler takes, in seconds."""
    return random.uniform(0, 0.02)


class Record(Hooks):
    """Writes down what a worker did."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def ended(self, item: Any, seconds: float, error: BaseException | None) -> None:
        """After the handler."""
        self._journal.write(ENDED, item.id)

    def completed(self, item: Any) -> None:
        """After the completion."""
        self._journal.write(TRUE, item.id)


class Member:
    """A program, in any role."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.over = threading.Event()

    def _repeat(self, act: Callable[[], object], pause: float) -> None:
        """Do it again and again. Errors of leaseq are faults of the campaign; others are written down."""
        while not self.over.wait(pause):
            try:
                act()
            except leaseq.LeaseqError:
                self.over.wait(AFTER_ERROR_SECS)
            except BaseException:  # noqa: BLE001 (this is what is looked for)
                self._journal.write(WRONG, traceback.format_exc().replace("\n", "|"))

    def produce(self) -> None:
        """Add items and enqueue jobs."""
        numbers = (f"{os.getpid()}-{number}" for number in itertools.count())
        with leaseq.WorkQueue(ITEMS, URL, durable=DURABLE) as queue, app:

            def add() -> None:
                item_id = next(numbers)
                if queue.add_item(Item(bytes(100), id=item_id)):
                    self._journal.write(ADDED, item_id)

            def enqueue() -> None:
                job_id = f"job-{next(numbers)}"
                if step.with_options(id=job_id).enqueue().added:
                    self._journal.write(ENQUEUED, job_id)

            jobs = threading.Thread(target=self._repeat, args=(enqueue, JOB_PAUSE_SECS))
            jobs.start()
            self._repeat(add, ITEM_PAUSE_SECS)
            jobs.join()

    def loop(self) -> None:
        """Lease and complete by hand."""
        with leaseq.WorkQueue(ITEMS, URL, durable=DURABLE) as queue:

            def work() -> None:
                item = queue.lease(LEASE_SECS, timeout=1)
                if item is not None:
                    time.sleep(a_while())
                    self._journal.write(ENDED, item.id)
                    if queue.complete(item):
                        self._journal.write(TRUE, item.id)

            self._repeat(work, 0)

    def threads(self) -> None:
        """Run a worker of threads."""

        def handle(_: Any) -> None:
            time.sleep(a_while())

        with leaseq.WorkQueue(ITEMS, URL) as queue:
            options: Any = {"lease_secs": LEASE_SECS, "concurrency": 4, "hooks": Record(self._journal)}
            Worker(queue, handle, max_attempts=0, **options).run()

    def asyncio(self) -> None:
        """Run a worker of asyncio."""

        async def handle(_: Any) -> None:
            await asyncio.sleep(a_while())

        async def run() -> None:
            async with leaseq.aio.WorkQueue(ITEMS, URL) as queue:
                options: Any = {"lease_secs": LEASE_SECS, "concurrency": 4, "hooks": Record(self._journal)}
                await worker_aio.Worker(queue, handle, max_attempts=0, **options).run()

        asyncio.run(run())

    def cleaner(self) -> None:
        """Run a cleaner."""

        async def run() -> None:
            cleaner = Cleaner(URL, queues=[ITEMS, QUEUE], light_secs=1, deep_secs=3600)
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, cleaner.stop)
            await cleaner.run()

        asyncio.run(run())


ROLES: Final = {
    "produce": Member.produce,
    "loop": Member.loop,
    "threads": Member.threads,
    "asyncio": Member.asyncio,
    "cleaner": Member.cleaner,
}


def main() -> None:
    """Run one member."""
    logging.basicConfig(level=logging.ERROR)
    role = sys.argv[1]
    member = Member(Journal(Path(os.environ["CHAOS_FOLDER"], f"{role}-{os.getpid()}.journal")))
    if role in {"produce", "loop"}:
        signal.signal(signal.SIGTERM, lambda *_: member.over.set())
    ROLES[role](member)


if __name__ == "__main__":
    main()
