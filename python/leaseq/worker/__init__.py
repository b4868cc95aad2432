"""A worker that runs a handler for each item of a queue: `Worker(queue, handler, concurrency=10).run()`.

The same for asyncio is in `leaseq.worker.aio`.
"""

from leaseq.backoff import Backoff
from leaseq.worker._sync.worker import Worker
from leaseq.worker.hooks import Hooks
from leaseq.worker.retry_policy import DeadLetter, Release

__all__ = ["Backoff", "DeadLetter", "Hooks", "Release", "Worker"]
