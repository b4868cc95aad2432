"""Jobs of functions that this worker does not have: another worker may, as while a new version is rolled out (LQ-JOB-42)."""

from typing import NoReturn

from leaseq._aio.queue import LeasedItem
from leaseq.errors import LeaseqError
from leaseq.jobs import failure
from leaseq.jobs.worker.execution import UnknownFunction
from leaseq.worker.hooks import logger
from leaseq.worker.retry_policy import DeadLetter, Release

REFUSAL_LIMIT_SECS = 600.0
"""Seconds after the first refusal at which a job is dead."""

SHORTEST_DELAY_SECS = 10.0
LONGEST_DELAY_SECS = 60.0
"""A refused job waits as long as it has been refused, within these: a worker does not spend its time on refusals."""

KIND = "UnknownFunction"


class UnknownFunctions:
    """Puts off jobs of one worker. The time of the first refusal is in the last error of the item, by the server's clock."""

    def __init__(self, worker: str) -> None:
        self._worker = worker
        self._named: set[str] = set()

    async def put_off(self, item: LeasedItem, unknown: UnknownFunction) -> NoReturn:
        """Raise Release, or DeadLetter once workers have refused the job for 10 minutes; warn once for each function."""
        now = item.deadline - item.hold.secs
        last = failure.read(await _last_error(item))
        first = (last.refused if last.type == KIND else 0.0) or now
        since = max(0.0, now - first)
        if since >= REFUSAL_LIMIT_SECS:
            raise DeadLetter(failure.written(KIND, unknown.reason, "", self._worker, 0.0))
        if unknown.function not in self._named:
            self._named.add(unknown.function)
            logger.warning(
                "%s: its jobs are put off until a worker has it, and dead %d minutes after they were first refused",
                unknown.reason,
                REFUSAL_LIMIT_SECS // 60,
            )
        reason = failure.written(KIND, unknown.reason, "", self._worker, 0.0, refused=first)
        delay = min(max(since, SHORTEST_DELAY_SECS), LONGEST_DELAY_SECS)
        raise Release(reason, uncounted=True, delay=delay)


async def _last_error(item: LeasedItem) -> str:
    try:
        return (await item.queue.inspect(item.id)).error
    except LeaseqError:  # then this is the first refusal that is known
        return ""
