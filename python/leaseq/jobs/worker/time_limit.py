"""The time limit of one attempt (LQ-JOB-4, LQ-JOB-20)."""

import asyncio
from collections.abc import Awaitable
from typing import Any, NoReturn

from leaseq.jobs.errors import JobTimeout, Retry
from leaseq.worker.retry_policy import DeadLetter

AGAIN_SECS = 5.0
"""Seconds after which an asynchronous job that goes on past its time is cancelled again."""


async def within(timeout: float | None, awaitable: Awaitable[Any], used: float = 0.0) -> Any:
    """Await something. Past its time, less `used` seconds, it is cancelled where it waits: JobTimeout unless it returns."""
    if timeout is None:
        return await awaitable
    limit = _Limit(timeout - used)
    try:
        return await awaitable
    except asyncio.CancelledError as error:
        if limit.end():
            raise_late(error, timeout)
        raise
    except BaseException as error:
        if limit.cancellations:
            raise_late(error, timeout)
        raise
    finally:
        limit.end()


class _Limit:
    """Cancels the running task when its time is over, and again for as long as it goes on.

    Once need not be enough: `asyncio.wait_for` of Python 3.11 forgets a cancellation that comes as it ends.
    """

    def __init__(self, timeout: float) -> None:
        self.cancellations = 0
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 (within a coroutine)
        self._task = task
        self._before = task.cancelling()
        self._timer = task.get_loop().call_later(timeout, self._cancel)

    def _cancel(self) -> None:
        self.cancellations += 1
        self._task.cancel()
        self._timer = self._task.get_loop().call_later(AGAIN_SECS, self._cancel)

    def end(self) -> bool:
        """Take back the cancellations. Return true if there were any, and none from another caller."""
        self._timer.cancel()
        cancellations, self.cancellations = self.cancellations, 0
        for _ in range(cancellations):
            self._task.uncancel()
        return cancellations > 0 and self._task.cancelling() <= self._before


def raise_late(error: BaseException, timeout: float) -> NoReturn:
    """Raise what an attempt past its time limit failed with, given what its function raised (LQ-JOB-20).

    That is JobTimeout, also if the function turned it into another exception. Its own decision stands: DeadLetter, Retry.
    """
    if isinstance(error, DeadLetter | Retry):
        raise error
    message = f"took longer than {timeout:g} seconds"
    if not isinstance(error, JobTimeout):
        raise JobTimeout(message) from error
    error.args = (message,)
    raise error
