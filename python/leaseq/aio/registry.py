"""The registry of queues that clients keep on the server (spec/02-data.md, 2.8), for asyncio."""

from leaseq._aio.registry import queues
from leaseq.keys import RegisteredQueue

__all__ = ["RegisteredQueue", "queues"]
