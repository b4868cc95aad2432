"""The live workers of a server, for asyncio."""

from leaseq.worker._aio.live import live_workers
from leaseq.worker.live import HeldItem, LiveWorker

__all__ = ["HeldItem", "LiveWorker", "live_workers"]
