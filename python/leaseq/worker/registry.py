"""The live workers of a server. The same for asyncio is in `leaseq.worker.aio.registry`."""

from leaseq.worker._sync.live import live_workers
from leaseq.worker.live import HeldItem, LiveWorker

__all__ = ["HeldItem", "LiveWorker", "live_workers"]
