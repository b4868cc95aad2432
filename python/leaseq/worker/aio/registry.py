"""The live workers of a server, for asyncio."""

from leaseq.worker._aio.presence import live_worker, live_workers, quiet_worker, resume_worker, stop_worker
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
