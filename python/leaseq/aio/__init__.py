"""leaseq for asyncio: the same names and signatures as `leaseq`, with `await`, `async for` and `async with`."""

from leaseq._aio.queue import LeasedItem, WorkQueue
from leaseq._aio.queues import WorkQueues
from leaseq.commands.handoff import Finished
from leaseq.item import Item

__all__ = ["Finished", "Item", "LeasedItem", "WorkQueue", "WorkQueues"]
