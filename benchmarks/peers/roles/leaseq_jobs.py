"""leaseq.jobs, from this checkout.

Settings:
- one process, `App.arun_worker` with `concurrency=100`; asynchronous jobs
- the variant `jobs` keeps no results (`result_ttl=None`), `jobs-results` keeps them for a day, which is the default
- ids are random, as they are where nobody chooses one
- bulk: `enqueue_many`
- quickest recovery: `lease_secs=1`; by default it is 30

Reference: docs/jobs.md
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from leaseq.jobs import App
from peers.roles import kit

if TYPE_CHECKING:
    from collections.abc import Sequence

app = App(kit.ORDERS.url)


@app.job(name="handle", result_ttl=86400.0 if kit.ORDERS.variant == "jobs-results" else None)
async def handle(data: str) -> None:
    """Work on one item."""
    await kit.handle_async(data)


def produce() -> None:
    """Enqueue as told."""

    def one(job: kit.Job) -> None:
        handle.enqueue(job.data)

    def bulk(jobs: Sequence[kit.Job]) -> None:
        app.enqueue_many([handle.call(job.data) for job in jobs])

    with app:
        kit.produce(one, bulk)


async def work() -> None:
    """Work until killed."""
    async with app:
        await app.arun_worker(
            concurrency=kit.concurrency(100), lease_secs=1.0 if kit.ORDERS.quickest else 30.0
        )


if __name__ == "__main__":
    if kit.ORDERS.role == "produce":
        produce()
    else:
        asyncio.run(work())
