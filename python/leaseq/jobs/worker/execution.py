"""Preparing a job before it runs, and writing how it ended: the same in every place where jobs run."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

import msgspec

from leaseq.backoff import Backoff, Delays, Policy
from leaseq.callables import refuse_unfinished
from leaseq.exception_text import written
from leaseq.jobs import envelope, failure
from leaseq.jobs.context import Context, Report
from leaseq.jobs.definition import Definition
from leaseq.jobs.envelope import Envelope, Result, Stage
from leaseq.jobs.errors import BadEnvelopeError, JobTimeout, Retry
from leaseq.jobs.middleware import Middleware
from leaseq.jobs.round_trip import check_handed_on, check_result, is_plain
from leaseq.jobs.serializer import Format
from leaseq.jobs.settings import Settings
from leaseq.worker.retry_policy import DeadLetter, Release


class LeasedJob(msgspec.Struct, frozen=True, kw_only=True):
    """A leased item as it can be handed to another process. `started` is in seconds since 1970."""

    id: str
    queue: str
    data: bytes
    headers: Mapping[str, str]
    attempt: int
    token: int
    keep: bool
    started: float


class PreparedJob(NamedTuple):
    """A job that can be run. It has a context if its function or a middleware takes one; `fields` are those of the lines that it logs."""

    function: Definition
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    timeout: float | None
    attempt: int
    job: Envelope
    fields: Mapping[str, object]
    context: Context | None = None

    @property
    def backoff(self) -> Policy:
        """The wait before the next attempt: as the call said, else as the function says (LQ-JOB-5)."""
        job = self.job
        if job.delays is not None:
            return Delays(tuple(delay / 1000 for delay in job.delays))
        if job.backoff is None:
            return self.function.options.backoff
        first, last = job.backoff
        return Backoff(first / 1000, last / 1000)


class UnknownFunction(NamedTuple):
    """A job of a function that this App does not have, and the reason for people."""

    function: str
    reason: str


class JobResult(msgspec.Struct, frozen=True):
    """The end of a job: the content of its outcome (empty: none is kept), or the text of its failure.

    `then` is the next stage of its chain, and `data` its envelope. Of a job whose function was never called,
    `function` is its name and `attempt` the number of this attempt.
    """

    content: bytes = b""
    failed: bool = False
    text: str = ""
    dead: bool = False
    delay: float = 0.0
    then: Stage | None = None
    data: bytes = b""
    function: str = ""
    attempt: int = 0

    def raise_failure(self, function: str, error: BaseException | None) -> NoReturn:
        """Raise the DeadLetter or Release of a job of `function` that failed, for the worker's loop; `error` is for hooks."""
        failed = DeadLetter(self.text) if self.dead else Release(self.text, delay=self.delay)
        failed.function = function
        failed.job_failure = error
        raise failed


@dataclass(frozen=True, slots=True)
class JobExecution:
    """Reads jobs and writes how they ended, for one worker."""

    settings: Settings
    worker: str
    middleware: Sequence[Middleware] = field(default=())

    def ready(self, lease: LeasedJob, report: Report) -> PreparedJob | JobResult | UnknownFunction:
        """Return the job to run, or the end of a job that can never run: it is dead (LQ-JOB-7)."""
        job = None
        try:
            job = envelope.read(lease.data, Envelope, self.settings.serializers)
            function = self.settings.functions.get(job.function)
            if function is None:
                return self._unknown(job.function)
            args, kwargs = function.signature.bind(job.args, job.kwargs)
        except (BadEnvelopeError, TypeError, msgspec.ValidationError) as error:
            name, first = ("", 1) if job is None else (job.function, job.attempt)
            return self._dead(lease, error, name, lease.attempt + first - 1)
        attempt = lease.attempt + job.attempt - 1
        context = None
        if function.signature.takes_context or self.middleware:
            context = self._context(lease, job, function.name, attempt, report)
        if function.signature.takes_context:
            args = (context, *args)
        timeout = job.time_limit(function.options.timeout)
        fields = {"item": lease.id, "queue": lease.queue, "function": function.name, "attempt": attempt}
        return PreparedJob(function, args, kwargs, timeout, attempt, job, fields, context)

    def _unknown(self, function: str) -> UnknownFunction:
        names = sorted(self.settings.functions)
        known = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "") or "none"
        return UnknownFunction(function, f"this App has no function {function!r}; it has {known}")

    def _context(self, lease: LeasedJob, job: Envelope, name: str, attempt: int, report: Report) -> Context:
        return Context(
            id=lease.id,
            function=name,
            queue=lease.queue,
            attempt=attempt,
            enqueued=job.enqueued / 1000,
            due=(job.due or job.enqueued) / 1000,
            headers=lease.headers,
            token=lease.token,
            worker=self.worker,
            _report=report,
        )

    def done(self, lease: LeasedJob, ready: PreparedJob, value: Any) -> JobResult:
        """Return the end of a job whose function returned. Raises what a serializer raises, which is for `refused`."""
        form = envelope.format_of(lease.data)
        then = ready.job.then
        if not is_plain(value):
            refuse_unfinished(value, ready.function.name)
            if self.settings.checks_values:
                self._check(ready, value, form, kept=lease.keep)
        content = self._result(lease, value, form) if lease.keep else b""
        if not then:
            return JobResult(content)
        return JobResult(content, then=then[0], data=self._next(then, value, form))

    def refused(self, lease: LeasedJob, error: Exception) -> JobResult:
        """Return the end of a job whose result cannot be encoded: it is dead."""
        return self._dead(lease, error)

    def _check(self, ready: PreparedJob, value: Any, form: Format, *, kept: bool) -> None:
        """Raise SerializationError for a result that would not arrive as it is (LQ-JOB-61)."""
        if kept:
            check_result(value, ready.function.name, ready.function.signature, form)
        if ready.job.then:
            following = ready.job.then[0].job.function
            known = self.settings.functions.get(following)
            check_handed_on(value, following, None if known is None else known.signature, form)

    def _result(self, lease: LeasedJob, value: Any, form: Format) -> bytes:
        result = Result(
            v=envelope.VERSION,
            result=value,
            started=round(lease.started * 1000),
            ended=round(time.time() * 1000),
            worker=self.worker,
            job=envelope.copy_of(lease.data),
        )
        return envelope.write(result, form, self.settings.serializer)

    def _next(self, stages: list[Stage], value: Any, form: Format) -> bytes:
        """The envelope of the next stage: what this one returned is its first argument (LQ-JOB-16)."""
        job = stages[0].job
        if job.codec is not None:
            job.unpack(self.settings.serializers)
        delay = int(stages[0].add.get("delay", 0))
        now = round((time.time() + self.settings.ahead) * 1000)
        following = msgspec.structs.replace(
            job,
            args=[value, *job.args],
            codec=None,
            body=None,
            then=stages[1:],
            enqueued=now,
            due=now + delay if delay else None,
        )
        return envelope.write(following, form, self.settings.serializer)

    def failed(self, lease: LeasedJob, ready: PreparedJob, error: BaseException) -> JobResult:
        """Return the end of a job whose function raised. The item's limit decides if there is another attempt."""
        if isinstance(error, DeadLetter):
            text = failure.written("DeadLetter", written(error.reason), "", self.worker, lease.started)
            return JobResult(failed=True, text=text, dead=True)
        if not isinstance(error, (*ready.function.retry_on, JobTimeout, Retry)):
            return self._dead(lease, error)
        requested_delay = error.delay if isinstance(error, Retry) else None
        delay = ready.backoff(ready.attempt) if requested_delay is None else requested_delay
        return JobResult(failed=True, text=self._text(lease, error), delay=delay)

    def crashed(self, lease: LeasedJob, ready: PreparedJob, why: str) -> JobResult:
        """Return the end of a job whose process died."""
        text = failure.written("ProcessDied", why, "", self.worker, lease.started)
        return JobResult(failed=True, text=text, delay=ready.backoff(ready.attempt))

    def _dead(
        self, lease: LeasedJob, error: BaseException, function: str = "", attempt: int = 0
    ) -> JobResult:
        text = self._text(lease, error)
        return JobResult(failed=True, text=text, dead=True, function=function, attempt=attempt)

    def _text(self, lease: LeasedJob, error: BaseException) -> str:
        return failure.text_of(error, self.worker, lease.started)
