"""The signals of a worker: emitted when the server has recorded what happened, and delivered beside the jobs.

A receiver that is `async def` is awaited in the event loop, another one is called in a thread. The signals of one job are
delivered in order.
"""

import asyncio
import contextlib
import dataclasses
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal, Self

from leaseq._aio import concurrency
from leaseq.callables import awaited, is_async
from leaseq.item import LeasedItemBase
from leaseq.jobs import envelope, failure
from leaseq.jobs.envelope import Result
from leaseq.jobs.settings import Settings
from leaseq.jobs.signals import JobEvent, Receiver, log_failure
from leaseq.jobs.worker.execution import JobResult, LeasedJob, PreparedJob
from leaseq.jobs.worker.thread_pool import AdaptiveThreadPool
from leaseq.jobs.worker.time_limit import within
from leaseq.jobs.worker.unknown_functions import KIND
from leaseq.results import Released
from leaseq.worker.hooks import Hooks, logger

RECEIVER_SECS: Final = 30.0
"""Seconds that a receiver may take."""

LAST_SECS: Final = 3.0
"""Seconds that a worker which was stopped waits for receivers."""

AT_A_TIME: Final = 8
"""Receivers that run at a time."""

MOST_WAITING: Final = 1000
"""Signals that wait for receivers; with more, the worker starts no job until some are delivered."""

MOST_HELD: Final = 100_000
"""Jobs whose end is waited for."""


@dataclass(slots=True, eq=False)
class _Attempt:
    """One attempt of a job, and its signals that wait for the end of an attempt before it."""

    item: LeasedItemBase
    event: JobEvent
    waiting: list[JobEvent] = field(default_factory=list)
    is_over: bool = False


class SignalEmitter(Hooks):
    """Emits signals of one worker. As hooks of the worker's loop it learns what the server has recorded."""

    def __init__(self, settings: Settings, threads: AdaptiveThreadPool) -> None:
        self._settings = settings
        self._threads = threads
        self._attempts: dict[LeasedItemBase, _Attempt] = {}
        self._of_job: dict[tuple[str, str], deque[_Attempt]] = {}
        """By queue and id: the attempts whose signals are not all emitted. Their ends may be reported after the next one has started."""
        self._deliveries: dict[asyncio.Task[None], None] = {}
        self._last: dict[str, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(AT_A_TIME)

    @classmethod
    def of(cls, settings: Settings, threads: AdaptiveThreadPool) -> Self | None:
        """Return an emitter, or None if there are no receivers."""
        functions = settings.functions.values()
        wanted = settings.receivers.of_worker or any(each.on_success or each.on_failure for each in functions)
        return cls(settings, threads) if wanted else None

    async def room(self) -> None:
        """Wait while too many signals wait for receivers."""
        while len(self._deliveries) >= MOST_WAITING:
            await asyncio.wait(self._deliveries, return_when=asyncio.FIRST_COMPLETED)

    def begin(self, item: LeasedItemBase, lease: LeasedJob, ready: PreparedJob) -> None:
        """Emit that a job starts."""
        event = started(lease, ready)
        attempt = self._enter(item, event)
        attempt.waiting.append(event)
        self._emit_in_order(attempt)

    def refuse(self, item: LeasedItemBase, lease: LeasedJob, ending: JobResult) -> None:
        """Record that a job cannot be run, until the server has recorded it."""
        event = JobEvent(
            signal="failed",
            id=lease.id,
            queue=lease.queue,
            function=ending.function,
            attempt=ending.attempt,
            headers=lease.headers,
        )
        self._enter(item, event)

    def end(
        self,
        item: LeasedItemBase,
        lease: LeasedJob,
        ending: JobResult,
        value: Any,
        error: BaseException | None,
    ) -> None:
        """Record how a job ended, until the server has recorded it."""
        attempt = self._attempts.get(item)
        if attempt is None:  # it was lost meanwhile
            return
        event = attempt.event
        if value is None and ending.content:  # of another process
            with contextlib.suppress(Exception):  # its serializer may not read here what it wrote there
                value = envelope.read(ending.content, Result, self._settings.serializers).result
        seconds = None if event.signal == "failed" else time.time() - lease.started  # refused, else it ran
        attempt.event = dataclasses.replace(event, seconds=seconds, result=value, error=error)

    def completed(self, item: LeasedItemBase) -> None:
        """Emit that a job has succeeded."""
        event = self._known(item)
        self._end(item, None if event is None else dataclasses.replace(event, signal="succeeded"))

    def released(self, item: LeasedItemBase, delay: float, error: str | None) -> None:
        """Emit that a job will run again, if its attempt failed."""
        event = self._known(item)
        self._end(item, None if event is None or error is None else _failed(event, "retried", error, delay))

    def dead_lettered(self, item: LeasedItemBase, error: str | None) -> None:
        """Emit that a job has failed."""
        event = self._known(item)
        if event is None and failure.read(error or "").type == KIND:
            queue = getattr(item, "queue").name  # noqa: B009 (the kind of item of either flavour has it)
            event = JobEvent(signal="failed", id=item.id, queue=queue, attempt=item.attempt)
            self._enter(item, event)
        self._end(item, None if event is None else _failed(event, "failed", error or ""))

    def charged(self, event: JobEvent, answer: Released, error: str, delay: float) -> None:
        """Emit how a job goes on whose process died."""
        if answer == "dead":
            self.emit(_failed(event, "failed", error))
        elif answer != "lost":
            self.emit(_failed(event, "retried", error, delay))

    def lost(self, item: LeasedItemBase) -> None:
        """Forget a job that another worker has, or that was cancelled."""
        self._end(item)

    def _enter(self, item: LeasedItemBase, event: JobEvent) -> _Attempt:
        """Remember an attempt. It does not wait for those whose lease is over: most likely nothing more is heard of them."""
        if len(self._attempts) >= MOST_HELD:
            self._end(next(iter(self._attempts)))
        earlier = self._of_job.setdefault((event.queue, event.id), deque())
        now = concurrency.now()
        for attempt in earlier:
            attempt.is_over |= attempt.item.hold.is_over(now)
        made = self._attempts[item] = _Attempt(item, event)
        earlier.append(made)
        return made

    def _known(self, item: LeasedItemBase) -> JobEvent | None:
        attempt = self._attempts.get(item)
        return None if attempt is None else attempt.event

    def _end(self, item: LeasedItemBase, last: JobEvent | None = None) -> None:
        """Forget an attempt, whose `last` signal is emitted behind its others."""
        attempt = self._attempts.pop(item, None)
        if attempt is None:
            return
        if last is not None:
            attempt.waiting.append(last)
        attempt.is_over = True
        self._emit_in_order(attempt)

    def _emit_in_order(self, changed: _Attempt) -> None:
        """Emit the signals of the job of this attempt, up to those that wait for the end of an earlier attempt."""
        key = (changed.event.queue, changed.event.id)
        attempts = self._of_job.get(key, deque())
        while attempts:
            self._emit_waiting(attempts[0])
            if not attempts[0].is_over:
                break
            attempts.popleft()
        if not attempts:
            self._of_job.pop(key, None)
        if changed not in attempts:  # the others did not wait for it
            self._emit_waiting(changed)

    def _emit_waiting(self, attempt: _Attempt) -> None:
        for event in attempt.waiting:
            self.emit(event)
        attempt.waiting.clear()

    def emit(self, event: JobEvent) -> None:
        """Deliver a signal to its receivers, after the signals of this job that came before."""
        receivers = self._receivers(event)
        if not receivers:
            return
        before = self._last.get(event.id)
        task = asyncio.get_running_loop().create_task(
            self._deliver(event, receivers, before), name=f"leaseq signal {event.signal} of {event.id}"
        )
        self._deliveries[task] = None
        self._last[event.id] = task
        task.add_done_callback(partial(self._delivered, event.id))

    def _receivers(self, event: JobEvent) -> Sequence[Receiver]:
        function = self._settings.functions.get(event.function)
        own: tuple[Receiver, ...] = ()
        if function is not None and event.signal in {"succeeded", "failed"}:
            own = function.on_success if event.signal == "succeeded" else function.on_failure
        return [*own, *self._settings.receivers.of(event.signal)]

    def _delivered(self, job_id: str, task: asyncio.Task[None]) -> None:
        self._deliveries.pop(task, None)
        if self._last.get(job_id) is task:
            del self._last[job_id]

    async def _deliver(
        self, event: JobEvent, receivers: Sequence[Receiver], before: asyncio.Task[None] | None
    ) -> None:
        if before is not None and not before.done():
            await asyncio.wait([before])
        async with self._slots:
            for receiver in receivers:
                await self._call(receiver, event)

    async def _call(self, receiver: Receiver, event: JobEvent) -> None:
        try:
            if is_async(receiver):
                await within(RECEIVER_SECS, receiver(event))
            else:
                value = await self._threads.run(partial(receiver, event), RECEIVER_SECS)
                await within(RECEIVER_SECS, awaited(value))
        except BaseException as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise
            log_failure(receiver, event, error)

    async def close(self, *, stopped: bool) -> None:
        """Wait for what is not delivered yet; if the worker was stopped, not for long."""
        for item in list(self._attempts):
            self._end(item)
        waiting = list(self._deliveries)
        if not waiting:
            return
        _, late = await asyncio.wait(waiting, timeout=LAST_SECS if stopped else None)
        for task in late:
            task.cancel()
        if late:
            logger.error(
                "%d signals were not delivered to their receivers when the worker stopped: %s",
                len(late),
                ", ".join(sorted(task.get_name() for task in late)[:10]),
            )
            await asyncio.wait(late, timeout=LAST_SECS)


def started(lease: LeasedJob, ready: PreparedJob) -> JobEvent:
    """Return the signal that a job starts."""
    takes_context = ready.function.signature.takes_context
    return JobEvent(
        signal="started",
        id=lease.id,
        queue=lease.queue,
        function=ready.function.name,
        attempt=ready.attempt,
        args=tuple(ready.args[1:] if takes_context else ready.args),
        kwargs=ready.kwargs,
        headers=lease.headers,
    )


def _failed(
    event: JobEvent, signal: Literal["retried", "failed"], text: str, delay: float | None = None
) -> JobEvent:
    """Return the signal of a failed attempt. If nothing was raised in this process, there is the text."""
    error = event.error or failure.exception(event.id, text, event.attempt)
    return dataclasses.replace(event, signal=signal, error=error, result=None, delay=delay)
