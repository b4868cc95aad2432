"""Runs one job where its function needs it: in the event loop, a thread, or a separate process."""

import asyncio
import itertools
import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from leaseq._aio.queue import LeasedItem
from leaseq.callables import awaited
from leaseq.errors import (
    BadArgumentError,
    BadIdError,
    BadTypeError,
    OutOfMemoryError,
    ReplyLostError,
    ServerError,
    TooLargeError,
    UnavailableError,
)
from leaseq.item import Item
from leaseq.jobs import failure
from leaseq.jobs.call import followed_with
from leaseq.jobs.current_job import CurrentJob, SlotWaits, current
from leaseq.jobs.envelope import Stage
from leaseq.jobs.info import description_of
from leaseq.jobs.middleware import needs_loop, run, run_in_loop
from leaseq.jobs.store._aio.store import Store
from leaseq.jobs.worker.execution import JobExecution, JobResult, LeasedJob, PreparedJob, UnknownFunction
from leaseq.jobs.worker.process_pool import JobProcesses
from leaseq.jobs.worker.progress import ProgressReporter
from leaseq.jobs.worker.signal_emitter import SignalEmitter
from leaseq.jobs.worker.thread_pool import LAST_SECS, AdaptiveThreadPool
from leaseq.jobs.worker.time_limit import within
from leaseq.jobs.worker.unknown_functions import UnknownFunctions
from leaseq.log_format import job_fields
from leaseq.worker import server_health
from leaseq.worker.hooks import logger
from leaseq.worker.retry_policy import DeadLetter
from leaseq.worker.work_meter import WorkMeter

PASSING = (UnavailableError, ReplyLostError, ServerError, OutOfMemoryError)
"""Errors after which work that is done is reported again."""


class Executor:
    """The handler of a worker: completes an item with its result, or raises what becomes of it."""

    def __init__(
        self,
        store: Store,
        execution: JobExecution,
        running: ProgressReporter,
        threads: AdaptiveThreadPool,
        forks: JobProcesses,
        moved: Callable[[LeasedItem], None],
        waits: SlotWaits,
        signals: SignalEmitter | None = None,
        meter: WorkMeter | None = None,
    ) -> None:
        """`moved` is called with the item of a job that goes on in a separate process; `meter` counts jobs."""
        self.on_loop: dict[asyncio.Task[Any], CurrentJob] = {}
        """The jobs that run in the event loop."""
        self._waits = waits
        self._signals = signals
        self._store = store
        self._execution = execution
        self._progress = running
        self._threads = threads
        self._forks = forks
        self._moved = moved
        self._meter = meter
        self._unknown = UnknownFunctions(execution.worker)

    async def __call__(self, item: LeasedItem) -> None:
        """Run the job of an item. Raises DeadLetter, Release."""
        lease = LeasedJob(
            id=item.id,
            queue=item.queue.name,
            data=item.data,
            headers=item.headers,
            attempt=item.attempt,
            token=item.token,
            keep=item.keep > 0,
            started=time.time(),
        )
        ready = self._execution.ready(lease, partial(self._progress.report, item))
        if isinstance(ready, UnknownFunction):
            await self._unknown.put_off(item, ready)
        self._begin(item, lease, ready)
        value, error, failed = None, None, True
        try:
            if isinstance(ready, JobResult):
                ending = ready
            else:
                ending, value, error = await self._run(item, lease, ready)
            failed = ending.failed
        finally:
            self._progress.end(item, failed=failed)
            if self._meter is not None:
                self._meter.end(item)
        if ending.failed and error is None:
            error = failure.exception(lease.id, ending.text, ready.attempt)
        if self._signals is not None:
            self._signals.end(item, lease, ending, value, error)
        if ending.failed:
            function = ready.function if isinstance(ready, JobResult) else ready.function.name
            ending.raise_failure(function, error)
        if ending.then is not None:
            await self._hand_on(item, ending, ending.then)
            return
        if ending.content:
            item.result = ending.content

    def _begin(self, item: LeasedItem, lease: LeasedJob, ready: PreparedJob | JobResult) -> None:
        """Tell progress, signals and counts that a job starts, or that it never will."""
        self._progress.begin(item, lease.started)
        if self._signals is not None:
            if isinstance(ready, JobResult):
                self._signals.refuse(item, lease, ready)
            else:
                self._signals.begin(item, lease, ready)
        if self._meter is not None:
            self._meter.begin(item, *_kind_and_lag(lease, ready))

    async def _hand_on(self, item: LeasedItem, ending: JobResult, stage: Stage) -> None:
        """Complete, keep the result and add the next stage, in one step; tried again for as long as the item is held.

        Raises DeadLetter for a stage that the queue does not take.
        """
        queue = self._store.queue(stage.queue)
        content_type = stage.add.get("content_type")
        given = None if content_type is None else str(content_type)
        following = Item(ending.data, stage.id, headers=stage.headers, content_type=given)
        for failures in itertools.count(1):
            try:
                done = await item.queue.complete(
                    item, result=ending.content or None, then=[(queue, following, followed_with(stage))]
                )
            except (BadArgumentError, BadIdError, BadTypeError, TooLargeError, ValueError) as error:
                raise DeadLetter(
                    f"the next stage, {stage.job.function}, cannot be enqueued: {error}"
                ) from error
            except PASSING as error:
                if item.lost:
                    raise
                logger.warning("job %s has ended and cannot be handed on yet: %s", item.id, error)
                await asyncio.sleep(server_health.pause(failures))
            else:
                if not done and failures == 1 and self._signals is not None:
                    self._signals.lost(item)
                return

    async def _run(
        self, item: LeasedItem, lease: LeasedJob, ready: PreparedJob
    ) -> tuple[JobResult, Any, BaseException | None]:
        """Run a job. Return its end, and what it returned or raised in this process."""
        function = ready.function
        if logger.isEnabledFor(logging.INFO):
            description = description_of(ready.job)
            logger.info("%s: %.200s, job %s, attempt %d", lease.queue, description, lease.id, ready.attempt)
        if function.options.fork:
            self._moved(item)
            return await self._forks.run(lease, ready, partial(self._progress.report, item)), None, None
        job = CurrentJob(lease.id, function.name, self._waits)
        before, fields_before = current.set(job), job_fields.set(ready.fields)
        try:
            if self._execution.middleware:
                value = await self._run_in_middleware(lease, ready, job)
            elif function.is_async:
                value = await self._run_on_loop(
                    lease, ready, job, function.function(*ready.args, **ready.kwargs)
                )
            else:
                call = partial(function.function, *ready.args, **ready.kwargs)
                value = await self._threads.run(call, ready.timeout)
            if hasattr(value, "__await__"):
                value = await self._run_on_loop(
                    lease, ready, job, awaited(value), time.time() - lease.started
                )
        except BaseException as error:
            if _is_cancelled(error):
                raise
            return self._execution.failed(lease, ready, error), None, error
        finally:
            current.reset(before)
            job_fields.reset(fields_before)
        try:
            return self._execution.done(lease, ready, value), value, None
        except Exception as error:  # noqa: BLE001 (what a serializer raises, or its text, may be anything)
            return self._execution.refused(lease, error), None, error

    async def _run_in_middleware(self, lease: LeasedJob, ready: PreparedJob, job: CurrentJob) -> Any:
        """Run a job in its middleware: around a thread is what has to be awaited, the rest is in the thread."""
        context, middleware = ready.context, self._execution.middleware
        assert context is not None  # noqa: S101 (there is middleware)
        call = partial(ready.function.function, *ready.args, **ready.kwargs)
        if ready.function.is_async:
            work = run_in_loop(middleware, context, partial(_awaited_call, call))
            return await self._run_on_loop(lease, ready, job, work)
        inner: Any = [each for each in middleware if not needs_loop(each)]

        async def in_thread() -> Any:
            value = await self._threads.run(partial(run, inner, context, call), ready.timeout)
            if hasattr(value, "__await__"):
                work = run_in_loop(inner, context, partial(awaited, value))
                value = await self._run_on_loop(lease, ready, job, work, time.time() - lease.started)
            return value

        outer = [each for each in middleware if needs_loop(each)]
        if not outer:
            return await in_thread()
        limit = None if ready.timeout is None else ready.timeout + LAST_SECS
        return await within(limit, run_in_loop(outer, context, in_thread))

    async def _run_on_loop(
        self,
        lease: LeasedJob,
        ready: PreparedJob,
        job: CurrentJob,
        awaitable: Awaitable[Any],
        used: float = 0.0,
    ) -> Any:
        """Await a job within its time limit, less `used` seconds."""
        timeout = ready.timeout
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 (within a coroutine)
        self.on_loop[task] = job
        try:
            value = await within(timeout, awaitable, used)
        finally:
            del self.on_loop[task]
        if timeout is not None and (took := time.time() - lease.started) > timeout:
            logger.warning(
                "job %s of %s returned after %.1f s, past its limit of %g s: it blocked the event loop, where no limit can end"
                " it, or caught its cancellation. What it returned counts. Make it `def`, or give it fork=True, to have it ended",
                lease.id,
                job.function,
                took,
                timeout,
            )
        return value


async def _awaited_call(call: Callable[[], Any]) -> Any:
    return await awaited(call())


def _kind_and_lag(lease: LeasedJob, ready: PreparedJob | JobResult) -> tuple[str, float | None]:
    """Return the function of a job, and how many seconds after it was due it starts. Of a later attempt, that is not known."""
    if isinstance(ready, JobResult):
        return ready.function, None
    if ready.attempt > 1:
        return ready.function.name, None
    due = (ready.job.due or ready.job.enqueued) / 1000
    return ready.function.name, max(0.0, lease.started - due)


def _is_cancelled(error: BaseException) -> bool:
    """Return whether this task is asked to end. A job can raise CancelledError too, and has failed then."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0
