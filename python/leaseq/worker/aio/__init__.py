"""The worker for asyncio: `handler` is a coroutine function, and `run` is awaited."""

from leaseq.worker._aio.worker import Worker

__all__ = ["Worker"]
