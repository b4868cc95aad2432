"""The live workers of a server, for asyncio."""

from leaseq.worker._aio.presence import live_workers
from leaseq.worker.presence import HeldItem, WorkerInfo

__all__ = ["HeldItem", "WorkerInfo", "live_workers"]
