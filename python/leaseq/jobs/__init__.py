"""Jobs: functions that are run elsewhere, on the queues of leaseq (spec/jobs.md).

    app = leaseq.jobs.App("redis://localhost")

    @app.job(retries=2)
    async def send(address: str) -> int: ...

    handle = send.enqueue("a@example.org")
    handle.result(timeout=10)

For asyncio see `leaseq.jobs.aio`.

Needs the extra `jobs`.
"""

try:
    import msgspec  # noqa: F401 (the first of what the extra brings)
except ModuleNotFoundError as error:
    from leaseq import extras

    raise extras.missing("jobs", "leaseq.jobs", error) from error

from leaseq.backoff import Backoff
from leaseq.jobs._sync.chain import Chain, ChainHandle
from leaseq.jobs._sync.function import JobFunction
from leaseq.jobs._sync.handle import Handle
from leaseq.jobs._sync.schedules import Schedules
from leaseq.jobs.app import App
from leaseq.jobs.call import Call, Partial
from leaseq.jobs.context import Context
from leaseq.jobs.cron.info import ScheduleInfo
from leaseq.jobs.errors import (
    BadEnvelopeError,
    BlockedLoopError,
    JobCancelled,
    JobFailed,
    JobInterrupted,
    JobTimeout,
    ResultNotKept,
    Retry,
    SerializationError,
    WorkerFailedError,
)
from leaseq.jobs.info import JobInfo, Status
from leaseq.jobs.serializer import Serializer
from leaseq.jobs.signals import JobEvent
from leaseq.worker.retry_policy import DeadLetter

__all__ = [
    "App",
    "Backoff",
    "BadEnvelopeError",
    "BlockedLoopError",
    "Call",
    "Chain",
    "ChainHandle",
    "Context",
    "DeadLetter",
    "Handle",
    "JobCancelled",
    "JobEvent",
    "JobFailed",
    "JobFunction",
    "JobInfo",
    "JobInterrupted",
    "JobTimeout",
    "Partial",
    "ResultNotKept",
    "Retry",
    "ScheduleInfo",
    "Schedules",
    "SerializationError",
    "Serializer",
    "Status",
    "WorkerFailedError",
]
