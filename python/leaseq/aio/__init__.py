"""leaseq for asyncio: the same names and signatures as `leaseq`, with `await`, `async for` and `async with`."""

from leaseq._aio.multi_queue import WorkQueues
from leaseq._aio.queue import LeasedItem, WorkQueue
from leaseq.commands.completions import Completion
from leaseq.item import Item

__all__ = ["Completion", "Item", "LeasedItem", "WorkQueue", "WorkQueues"]
