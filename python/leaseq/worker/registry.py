"""The live workers of a server. The same for asyncio is in `leaseq.worker.aio.registry`."""

from leaseq.worker._sync.presence import live_worker, live_workers, quiet_worker, resume_worker, stop_worker
from leaseq.worker.presence import HeldItem, WorkerInfo

__all__ = [
    "HeldItem",
    "WorkerInfo",
    "live_worker",
    "live_workers",
    "quiet_worker",
    "resume_worker",
    "stop_worker",
]
