"""Facts about a job, from its stored parts. No input or output."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import msgspec

from leaseq.errors import LeaseqError
from leaseq.exception_text import written
from leaseq.jobs import envelope, failure
from leaseq.jobs.definition import Definition
from leaseq.jobs.envelope import Envelope, Result
from leaseq.jobs.errors import BadEnvelopeError, JobCancelled, JobFailed, ResultNotKept
from leaseq.jobs.failure import Failure
from leaseq.jobs.job_state import JobState
from leaseq.jobs.serializer import Serializer
from leaseq.results import WAITS, ItemInfo, Outcome

Status = Literal["delayed", "ready", "running", "retrying", "succeeded", "failed", "cancelled", "unknown"]
"""The status of a job; see `JobInfo.status` for the values."""

ENDS: frozenset[Status] = frozenset({"succeeded", "failed", "cancelled", "unknown"})
"""The statuses of jobs that no worker will run."""

_STATUS: dict[str, Status] = {
    "delayed": "delayed",
    "ready": "ready",
    "leased": "running",
    "result": "succeeded",
    "failure": "failed",
    "dead": "failed",
}


class JobSnapshot(NamedTuple):
    """The answers of four calls about one job."""

    outcome: Outcome
    item: ItemInfo
    data: bytes | None
    state: JobState


@dataclass(frozen=True, slots=True)
class JobInfo:
    """A job as the server has it now. Times are seconds since 1970. Unknown values are 0.0, "" or None.

    Attributes:
        id: the id of the job.
        queue: the queue of the job.
        status: "delayed", "ready", "running", "retrying" (it waits for another attempt), "succeeded", "failed",
            "cancelled", or "unknown": there is no such job, it expired, or nothing is kept of it.
        function: the name of the function.
        args: the positional arguments.
        kwargs: the keyword arguments.
        description: the description of the call; by default the call itself.
        enqueued: when the job was enqueued, by the server's clock.
        due: when the job was due, by the clock of the program that enqueued it.
        timeout: seconds that an attempt may take, by the options of the call, else of the function if the App has it. None:
            no limit, or not known.
        retries: attempts that it may have after the first. None: no limit, or the job is no longer in its queue.
        started: when its last attempt started, by the worker's clock; known up to a second late.
        ended: when it ended, by the server's clock.
        attempt: the number of its last attempt, 0 before the first.
        worker: the id of the worker that runs it, or ran it last.
        error: the last failure: "ValueError: no such order".
        traceback: the traceback of the last failure.
        result: what the function returned, converted to its annotation if the App has the function; None before, and if
            none is kept.
        progress: the last report of `Context.progress` while the job runs: `(done, total)`, where total can be None, or the
            value of JSON that it reported.
    """

    id: str
    queue: str
    status: Status
    function: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    description: str
    enqueued: float
    due: float
    timeout: float | None
    retries: int | None
    started: float
    ended: float
    attempt: int
    worker: str
    error: str
    traceback: str
    result: Any
    progress: Any

    @property
    def progress_text(self) -> str:
        """The progress for people: "3 of 10", or the value as JSON; "" without one."""
        if isinstance(self.progress, tuple):
            done, total = self.progress
            return f"{done:.15g}" if total is None else f"{done:.15g} of {total:.15g}"
        return "" if self.progress is None else msgspec.json.encode(self.progress).decode()


def status_of(outcome: Outcome, state: JobState) -> Status:
    """The status of a job. A state of its cancellation counts where there is neither an item nor an outcome."""
    if outcome.state == "absent":
        return "cancelled" if state.cancelled is not None else "unknown"
    if outcome.state in {"ready", "delayed"} and outcome.attempt:
        return "retrying"
    return _STATUS.get(outcome.state, "unknown")


def statuses_of_chain(states: Sequence[tuple[Outcome, JobState]]) -> list[Status]:
    """Return the status of each job of a chain. A job that was created before its predecessor is of an earlier chain."""
    statuses: list[Status] = []
    newest = 0.0
    for outcome, state in states:
        is_older = 0 < outcome.created < newest
        statuses.append("unknown" if is_older else status_of(outcome, state))
        newest = max(newest, outcome.created)
    return statuses


def info_of(
    queue: str,
    snapshot: JobSnapshot,
    serializers: dict[str, Serializer],
    functions: Mapping[str, Definition],
) -> JobInfo:
    """Return all that is known of a job, in a program that has these functions."""
    outcome, item, state = snapshot.outcome, snapshot.item, snapshot.state
    result = _result(outcome, serializers)
    job = _envelope(snapshot.data or bytes(result.job) or state.job, serializers)
    function = functions.get(job.function)
    failed = failure.read(outcome.error or item.error or "")
    runs = state.token > 0 and state.token == item.token and item.state == "leased"
    return JobInfo(
        id=outcome.id,
        queue=queue,
        status=status_of(outcome, state),
        function=job.function,
        args=tuple(job.args),
        kwargs=job.kwargs,
        description=description_of(job),
        enqueued=outcome.created or job.enqueued / 1000,
        due=(job.due or job.enqueued) / 1000,
        timeout=job.time_limit(None if function is None else function.options.timeout),
        retries=item.max_attempts + job.attempt - 2 if item.max_attempts else None,
        started=(state.started if runs else result.started) / 1000 or failed.started,
        ended=outcome.ended or (state.cancelled or 0) / 1000 or (item.time if item.state == "dead" else 0.0),
        attempt=_attempt(outcome, job),
        worker=state.worker if runs else result.worker or failed.worker,
        error=_error(failed),
        traceback=failed.traceback,
        result=_returned(result, function),
        progress=_progress(state) if runs else None,
    )


def result_of(result: Result, functions: Mapping[str, Definition]) -> Any:
    """Return what the function returned, converted if the program has the function, and the result says which it is of."""
    data = bytes(result.job)
    with contextlib.suppress(BadEnvelopeError):
        if data:
            return _returned(result, functions.get(envelope.read(data, Envelope).function))
    return result.result


def _progress(state: JobState) -> Any:
    return state.progress if state.done is None else (state.done, state.total)


def envelope_of(snapshot: JobSnapshot) -> Envelope | None:
    """Return the envelope of a job, with arguments as a serializer wrote them; None if there is none that can be read."""
    with contextlib.suppress(BadEnvelopeError):
        copy: bytes = b""
        if snapshot.outcome.state == "result":
            copy = bytes(envelope.read(snapshot.outcome.content, Result).job)
        data = snapshot.data or copy or snapshot.state.job
        return envelope.read(data, Envelope) if data else None
    return None


def description_of(job: Envelope) -> str:
    """Return the description of a job, or the call itself."""
    if job.description is not None or not job.function:
        return job.description or ""
    arguments = [written(each, repr) for each in job.args]
    arguments += [f"{name}={written(each, repr)}" for name, each in job.kwargs.items()]
    return f"{job.function}({', '.join(arguments)})"


def _returned(result: Result, function: Definition | None) -> Any:
    """Return a result, converted for its function. A result that no longer fits it stays as it was kept."""
    if function is not None and function.signature.result is not None:
        with contextlib.suppress(msgspec.ValidationError):
            return function.signature.result(result.result)
    return result.result


def _error(failed: Failure) -> str:
    return f"{failed.type}: {failed.message}" if failed.type else failed.message


def _result(outcome: Outcome, serializers: dict[str, Serializer]) -> Result:
    if outcome.state == "result":
        with contextlib.suppress(BadEnvelopeError):
            return envelope.read(outcome.content, Result, serializers)
    return Result(v=envelope.VERSION)


def _envelope(data: bytes, serializers: dict[str, Serializer]) -> Envelope:
    """Return the envelope of a job; without a function if it cannot be read."""
    if data:
        with contextlib.suppress(BadEnvelopeError):
            return envelope.read(data, Envelope, serializers)
    return Envelope(v=envelope.VERSION, function="")


def _attempt(outcome: Outcome, job: Envelope) -> int:
    """Return the number of the last attempt as people see it: the envelope has that of the first. 0: there was none."""
    return outcome.attempt and outcome.attempt + job.attempt - 1


def unsuccessful(job_id: str, queue: str, snapshot: JobSnapshot) -> LeaseqError | TimeoutError:
    """Return the exception for a job without a result."""
    outcome, state, error = snapshot.outcome, snapshot.state, snapshot.item.error
    if outcome.state in {"failure", "dead"}:
        failed = failure.read(outcome.error or error)
        return JobFailed(
            job_id,
            type=failed.type,
            message=failed.message,
            traceback=failed.traceback,
            attempt=_attempt(outcome, envelope_of(snapshot) or Envelope(v=envelope.VERSION, function="")),
        )
    if outcome.state in WAITS:
        why = f", after {error.partition(chr(10))[0]}" if error else ""
        status = status_of(outcome, state)
        if status == "ready":
            why += f": no worker has taken it from queue {queue!r}; `leaseq workers` shows who listens"
        return TimeoutError(f"job {job_id!r} has not ended: it is {status}{why}")
    if state.cancelled is not None:
        return JobCancelled(f"job {job_id!r} was cancelled")
    return ResultNotKept(
        f"there is no job {job_id!r} in queue {queue!r} and no result of it: it expired, its result was not kept or its"
        " time is over, or it never was"
    )
