"""Why there is no result of a job."""

from leaseq.errors import LeaseqError
from leaseq.jobs import failure, info
from leaseq.jobs.errors import JobCancelled, JobFailed, ResultNotKept
from leaseq.jobs.job_state import JobState
from leaseq.results import Outcome


def unsuccessful(
    job_id: str, queue: str, outcome: Outcome, note: JobState, error: str
) -> LeaseqError | TimeoutError:
    """What to raise for a job without a result; `error` is the last one of its item, if that is there."""
    if outcome.state in {"failure", "dead"}:
        failed = failure.read(outcome.error or error)
        return JobFailed(
            job_id,
            type=failed.type,
            message=failed.message,
            traceback=failed.traceback,
            attempt=outcome.attempt,
        )
    if outcome.state in info.WAITS:
        why = f", after {error.partition(chr(10))[0]}" if error else ""
        return TimeoutError(f"job {job_id!r} has not ended: it is {info.status_of(outcome, note)}{why}")
    if note.cancelled is not None:
        return JobCancelled(f"job {job_id!r} was cancelled")
    return ResultNotKept(
        f"there is no job {job_id!r} in queue {queue!r} and no result of it: it expired, its result was not kept or its"
        " time is over, or it never was"
    )
