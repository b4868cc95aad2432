"""redis-work-queue.

Settings:
- one loop of `lease` and `complete`, as the README's worker: the library has no other; several handlers at a time
  are several such loops in threads
- `socket_timeout=None`, since `lease` waits without end and redis-py 8 gives up after 5 s by default
- bulk: `add_item_to_pipeline` on pipelines of 1000, the documented way to add many
- a lease of 30 s; no cleaner runs by default, since the library starts none
- quickest recovery: a lease of 1 s, `light_clean` every 0.1 s in a thread of the worker

Reference: https://github.com/MeVitae/redis-work-queue#readme
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from typing import TYPE_CHECKING

from redis import Redis
from redis_work_queue import Item, KeyPrefix, WorkQueue

from peers.adapters import common

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH = 1000

db = Redis.from_url(common.ORDERS.url, socket_timeout=None)
queue = WorkQueue(KeyPrefix("bench"))


def one(job: common.Job) -> None:
    """Enqueue one."""
    queue.add_item(db, Item(job.data, id=job.id))


def bulk(jobs: Sequence[common.Job]) -> None:
    """Enqueue many."""
    for at in range(0, len(jobs), WIDTH):
        pipeline = db.pipeline()
        for job in jobs[at : at + WIDTH]:
            queue.add_item_to_pipeline(pipeline, Item(job.data, id=job.id))
        pipeline.execute()


def clean() -> None:
    """Put back what the dead held, again and again."""
    with contextlib.redirect_stdout(sys.stderr):  # it prints what it does
        while True:
            queue.light_clean(db)
            time.sleep(0.1)


def work() -> None:
    """Work in as many threads as `concurrency` says; by default in this thread."""
    if common.ORDERS.quickest:
        threading.Thread(target=clean, daemon=True).start()
    for _ in range(common.concurrency(1) - 1):
        threading.Thread(target=loop, daemon=True).start()
    loop()


def loop() -> None:
    """Lease and complete one by one."""
    lease_secs = 1 if common.ORDERS.quickest else 30
    while True:
        item = queue.lease(db, lease_secs)
        common.handle(item.data())
        queue.complete(db, item)


if __name__ == "__main__":
    if common.ORDERS.role == "produce":
        common.produce(one, bulk)
    else:
        work()
