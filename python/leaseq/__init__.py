"""leaseq: a lease-based work queue on Redis and Valkey.

    queue = leaseq.WorkQueue("orders", "redis://localhost")
    queue.add_item(leaseq.Item(b"data", id="a"))

    for item in queue.items(lease_secs=30):
        with item:
            handle(item.data)

The same for asyncio is in `leaseq.aio`.
"""

from leaseq._sync.multi_queue import WorkQueues
from leaseq._sync.queue import LeasedItem, WorkQueue
from leaseq._version import __version__
from leaseq.commands.completions import AddOptions, Completion, FollowUp
from leaseq.durability import Disk, Durability, Replicas
from leaseq.embedded import EmbeddedServer, embedded
from leaseq.errors import (
    AccessDeniedError,
    BadArgumentError,
    BadIdError,
    BadNameError,
    BadTypeError,
    ClockError,
    CrossGroupError,
    EmbeddedServerError,
    FormatError,
    LeaseqError,
    NoDurabilityError,
    NoScriptsError,
    NoServerError,
    NotDurableError,
    OutOfMemoryError,
    QueueClosedError,
    QueueFullError,
    QueueInUseError,
    ReplyLostError,
    ServerError,
    TooLargeError,
    UnavailableError,
    WrongKeyTypeError,
)
from leaseq.item import Item
from leaseq.results import (
    Completed,
    DeepClean,
    ItemInfo,
    LightClean,
    ListedItem,
    Outcome,
    OutcomeState,
    Page,
    QueueStats,
    Released,
    State,
)

__all__ = [
    "AccessDeniedError",
    "AddOptions",
    "BadArgumentError",
    "BadIdError",
    "BadNameError",
    "BadTypeError",
    "ClockError",
    "Completed",
    "Completion",
    "CrossGroupError",
    "DeepClean",
    "Disk",
    "Durability",
    "EmbeddedServer",
    "EmbeddedServerError",
    "FollowUp",
    "FormatError",
    "Item",
    "ItemInfo",
    "LeasedItem",
    "LeaseqError",
    "LightClean",
    "ListedItem",
    "NoDurabilityError",
    "NoScriptsError",
    "NoServerError",
    "NotDurableError",
    "OutOfMemoryError",
    "Outcome",
    "OutcomeState",
    "Page",
    "QueueClosedError",
    "QueueFullError",
    "QueueInUseError",
    "QueueStats",
    "Released",
    "Replicas",
    "ReplyLostError",
    "ServerError",
    "State",
    "TooLargeError",
    "UnavailableError",
    "WorkQueue",
    "WorkQueues",
    "WrongKeyTypeError",
    "__version__",
    "embedded",
]
