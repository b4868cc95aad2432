"""The errors of the job layer, and the exceptions by which a job decides what becomes of it."""

from leaseq.durations import Duration, seconds
from leaseq.errors import LeaseqError


class ResultNotKept(LeaseqError):  # noqa: N818 (named for what it says of the job)
    """The job has no result to return, now or later: none is kept, its time is over, or there is no such job."""


class JobCancelled(LeaseqError):  # noqa: N818 (likewise)
    """Raised by `result()`: the job was cancelled."""

    def __init__(self, message: str = "the job was cancelled") -> None:
        super().__init__(message)


class JobInterrupted(BaseException):
    """Raised inside a job in a thread that has to end: it was cancelled, its lease was lost, or its worker stops.

    Like `asyncio.CancelledError`, which an asynchronous job gets, it is no subclass of Exception, so `except Exception`
    does not catch it. Clean up in `finally`, or catch it and raise it again.
    """


class JobTimeout(JobInterrupted):
    """Raised inside a job in a thread or a forked process when its time limit is over.

    Clean up within 5 seconds. The attempt counts as failed, also if the function raises another exception, except Retry and
    DeadLetter. If the function catches it and returns, the job succeeds.
    """

    def __init__(self, message: str = "its time is over") -> None:
        super().__init__(message)


class JobFailed(LeaseqError):  # noqa: N818 (likewise)
    """Raised by `result()`: the job is dead, it failed for the last time.

    Attributes:
        type: the class name of the job's exception, such as "ValueError"; "" if no worker wrote one.
        message: the text of the exception.
        traceback: the traceback in the worker, as text; "" if there is none. The start of a long one is cut off.
        attempt: the number of its last attempt, as `Context.attempt` has it; 0 before the first.
    """

    def __init__(self, job_id: str, *, type: str, message: str, traceback: str, attempt: int) -> None:  # noqa: A002
        what = f"{type}: {message}" if type else message
        how = f"failed after {attempt} attempts: {what or 'nothing is known why'}"
        if not attempt and what == "expired":
            how = "expired: no worker started it in time"
        super().__init__(f"job {job_id!r} {how}")
        self.type = type
        self.message = message
        self.traceback = traceback
        self.attempt = attempt
        if traceback:
            self.add_note(f"\nin the worker:\n{traceback}")


class BlockedLoopError(LeaseqError, RuntimeError):
    """An asynchronous job called what would block the event loop of its worker; nothing was done."""


class WorkerFailedError(LeaseqError):
    """The processes of a worker ended before they could work; what they printed says why."""


class BadEnvelopeError(LeaseqError, ValueError):
    """The data of a job, or of its result, cannot be read by this version or this App (LQ-JOB-2)."""


class SerializationError(LeaseqError, TypeError):
    """The App's format cannot hold an argument or a result unchanged.

    For an argument nothing was sent. A job with such a result is dead.
    """


class Retry(Exception):  # noqa: N818 (what a job decides, no error)
    """Raised by a job to run it again, after `delay` seconds (None: after the job's backoff). The attempt counts.

    `reason` is kept as the message of its last error. Raises BadTypeError, BadArgumentError for a wrong delay.
    """

    def __init__(self, reason: str = "", *, delay: Duration | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.delay = None if delay is None else seconds(delay, "delay")
