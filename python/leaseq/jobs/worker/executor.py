"""Runs one job: from the item that carries it to its result, or to what is to become of its failure."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import msgspec

from leaseq._aio.leased import LeasedItem
from leaseq.jobs import envelope, failure
from leaseq.jobs.context import Context
from leaseq.jobs.envelope import Envelope, Result
from leaseq.jobs.errors import BadEnvelopeError, JobTimeout, Retry, SerializationError
from leaseq.jobs.function import JobFunction
from leaseq.jobs.serializer import Format, Serializer, format_of
from leaseq.jobs.worker.running import Running
from leaseq.worker.verdicts import Backoff, DeadLetter, Release


class Place(Protocol):
    """Where functions that are not asynchronous run."""

    async def run(self, call: Callable[[], Any], timeout: float | None) -> Any:
        """What the call returns. Raises what it raises, JobTimeout."""


class Executor:
    """The handler of a worker: completes with a result, or raises `DeadLetter` or `Release` with the text of the failure."""

    def __init__(
        self,
        functions: dict[str, JobFunction[Any, Any]],
        serializer: Serializer | None,
        worker_id: str,
        running: Running,
        threads: Place,
    ) -> None:
        self._functions = functions
        self._serializer = serializer
        self._serializers = {serializer.name: serializer} if serializer is not None else {}
        self._worker_id = worker_id
        self._running = running
        self._threads = threads

    async def __call__(self, item: LeasedItem) -> None:
        """Run the job of an item."""
        started = time.time()
        self._running.begin(item, started)
        try:
            job, function, args, kwargs = self._read(item, started)
            if function.signature.takes_context:
                args = (self._context(item, job, function), *args)
            try:
                value = await self._run(function, args, kwargs, _timeout(job, function))
            except (Exception, SystemExit) as error:  # noqa: BLE001 (told)
                raise self._verdict(error, item, job, function, started) from None
            self._keep(item, value, started)
        finally:
            self._running.end(item)

    def _read(
        self, item: LeasedItem, started: float
    ) -> tuple[Envelope, JobFunction[Any, Any], tuple[Any, ...], dict[str, Any]]:
        """What to run. What no worker with these functions can run is dead at once (LQ-JOB-7)."""
        try:
            job = envelope.read(item.data, self._serializers)
            function = self._function(job.function)
            return job, function, *function.signature.bind(job.args, job.kwargs)
        except (BadEnvelopeError, LookupError, TypeError, msgspec.ValidationError) as error:
            raise DeadLetter(self._text(error, started)) from None

    def _function(self, name: str) -> JobFunction[Any, Any]:
        if name not in self._functions:
            names = sorted(self._functions)
            known = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "") or "none"
            raise LookupError(f"this App has no function {name!r}; it has {known}")
        return self._functions[name]

    def _context(self, item: LeasedItem, job: Envelope, function: JobFunction[Any, Any]) -> Context:
        return Context(
            id=item.id,
            function=function.name,
            queue=item.queue.name,
            attempt=item.attempt + job.attempt - 1,
            enqueued=job.enqueued / 1000,
            score=(job.due or job.enqueued) / 1000,
            headers=item.headers,
            token=item.token,
            worker=self._worker_id,
            _report=self._running.reporter(item),
        )

    async def _run(
        self,
        function: JobFunction[Any, Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        timeout: float | None,
    ) -> Any:
        if function.is_async:
            return await _within(timeout, function.function(*args, **kwargs))
        return await self._threads.run(lambda: function.function(*args, **kwargs), timeout)

    def _verdict(
        self,
        error: BaseException,
        item: LeasedItem,
        job: Envelope,
        function: JobFunction[Any, Any],
        started: float,
    ) -> Exception:
        """What becomes of a failure: whether there are attempts left is the item's own limit to say."""
        text = self._text(error, started)
        if isinstance(error, DeadLetter):
            return DeadLetter(failure.written("DeadLetter", error.reason, "", self._worker_id, started))
        attempt = item.attempt + job.attempt - 1
        if isinstance(error, Retry):
            delay = self._backoff(job, function)(attempt) if error.delay is None else error.delay
            return Release(text, delay=delay)
        if isinstance(error, (*function.retry_on, JobTimeout)):
            return Release(text, delay=self._backoff(job, function)(attempt))
        return DeadLetter(text)

    def _keep(self, item: LeasedItem, value: Any, started: float) -> None:
        """Set what completing the item keeps, where it keeps anything. What cannot be written never will be."""
        if not item.keep:
            return
        form: Format = format_of(item.data)
        result = Result(
            v=envelope.VERSION,
            result=value,
            started=round(started * 1000),
            ended=round(time.time() * 1000),
            worker=self._worker_id,
            job=envelope.copy_of(item.data),
        )
        try:
            item.result = envelope.write_result(result, form, self._serializer)
        except SerializationError as error:
            raise DeadLetter(self._text(error, started)) from None

    def _text(self, error: BaseException, started: float) -> str:
        return failure.text_of(error, self._worker_id, started)

    @staticmethod
    def _backoff(job: Envelope, function: JobFunction[Any, Any]) -> Backoff:
        if job.backoff is None:
            return function.options.backoff
        first, last = job.backoff
        return Backoff(first / 1000, last / 1000)


def _timeout(job: Envelope, function: JobFunction[Any, Any]) -> float | None:
    """How long an attempt may take: as the call said, else as the function says (LQ-JOB-4)."""
    return function.options.timeout if job.timeout is None else job.timeout / 1000 or None


async def _within(timeout: float | None, awaitable: Awaitable[Any]) -> Any:
    """Await something; past its time it is cancelled where it waits, and JobTimeout is raised."""
    scope = asyncio.timeout(timeout)
    try:
        async with scope:
            return await awaitable
    except TimeoutError as error:
        if scope.expired():
            raise JobTimeout(f"took longer than {timeout:g} seconds") from error
        raise
