"""What the job layer raises, and what a job raises to say what is to become of it."""

from leaseq.errors import LeaseqError


class ResultNotKept(LeaseqError):  # noqa: N818 (named for what it says of the job)
    """No result of this job will ever come: none is kept, its time is over, or there is no such job."""


class JobCancelled(LeaseqError):  # noqa: N818 (likewise)
    """The job was cancelled. Also raised inside a job that runs in a thread."""

    def __init__(self, message: str = "the job was cancelled") -> None:
        super().__init__(message)


class JobTimeout(LeaseqError, TimeoutError):  # noqa: N818 (likewise)
    """Raised inside a job whose time is over: it may clean up, and is tried again like after any other failure."""

    def __init__(self, message: str = "its time is over") -> None:
        super().__init__(message)


class JobFailed(LeaseqError):  # noqa: N818 (likewise)
    """The job is dead: it failed for the last time.

    Attributes:
        type: of the exception, such as "ValueError"; "" where no worker wrote one.
        message: of the exception.
        traceback: as the worker had it; "" where there is none. It is long where the exception had long messages, and
            then lacks its beginning.
        attempt: how many attempts there were.
    """

    def __init__(self, job_id: str, *, type: str, message: str, traceback: str, attempt: int) -> None:  # noqa: A002
        what = f"{type}: {message}" if type else message
        super().__init__(f"job {job_id!r} failed after {attempt} attempts: {what or 'nothing is known why'}")
        self.type = type
        self.message = message
        self.traceback = traceback
        self.attempt = attempt
        if traceback:
            self.add_note(f"\nin the worker:\n{traceback}")


class BadEnvelopeError(LeaseqError, ValueError):
    """What a queue holds is not a job that this version can read (LQ-JOB-2)."""


class SerializationError(LeaseqError, TypeError):
    """Arguments or a result cannot be written in the App's format; nothing was sent."""


class Retry(Exception):  # noqa: N818 (what a job decides, no error)
    """Raised by a job: run me again, after `delay` seconds (None: after the job's backoff). The attempt counts."""

    def __init__(self, reason: str = "", *, delay: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.delay = delay
