"""Settling the leases that a dead process held: releases them, charges one, or runs the suspects one at a time."""

import asyncio
import contextlib
import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from leaseq._aio import concurrency
from leaseq.backoff import Backoff
from leaseq.durations import seconds
from leaseq.errors import LeaseqError
from leaseq.item import lease_ref
from leaseq.jobs import failure
from leaseq.jobs.program import Program
from leaseq.jobs.worker.estate import Estate
from leaseq.jobs.worker.execution import JobExecution, LeasedJob, PreparedJob
from leaseq.jobs.worker.job_worker import LEASE_SECS, JobWorker, WorkerOptions
from leaseq.jobs.worker.lease_journal import HeldLease, LeaseJournal
from leaseq.jobs.worker.signal_emitter import SignalEmitter, started
from leaseq.jobs.worker.suspects import SuspectSource
from leaseq.jobs.worker.thread_pool import AdaptiveThreadPool
from leaseq.results import Released
from leaseq.worker import server_health
from leaseq.worker.hooks import logger
from leaseq.worker.settings import Readiness
from leaseq.worker.work_meter import WorkMeter


class Settlement:
    """Settles one estate, and reports each lease that is settled to the supervisor."""

    def __init__(
        self,
        program: Program,
        journal: LeaseJournal,
        estate: Estate,
        options: WorkerOptions,
        meter: WorkMeter | None = None,
    ) -> None:
        self._program = program
        self._store = program.clients.aio.store
        self._journal = journal
        self._estate = estate
        self._meter = meter
        self._lease_secs = seconds(options.get("lease_secs", LEASE_SECS), "lease_secs")
        self._expire_at = concurrency.now() + self._lease_secs
        self._trial: JobWorker | None = None
        self._threads = AdaptiveThreadPool()
        self._signals = SignalEmitter.of(program.clients.settings, self._threads)
        if estate.suspects:
            self._source = SuspectSource(self._store, journal, estate.suspects, self._lease_secs)
            alone: WorkerOptions = {
                **options,
                "concurrency": 1,
                "burst": True,
                "max_jobs": None,
                "max_memory": None,
            }
            self._trial = JobWorker(program, journal, self._source, meter, **alone)

    @property
    def readiness(self) -> Readiness:
        """Always "stopping": it leases nothing."""
        return "stopping"

    @property
    def answered_at(self) -> float | None:
        """When the server last answered a job that runs alone, in seconds since 1970."""
        return None if self._trial is None else self._trial.answered_at

    @property
    def stopped(self) -> bool:
        """False: a settlement ends when it is done, and is not replaced."""
        return False

    def stop(self, *, at_once: bool = False) -> None:
        """Start no more suspects."""
        if self._trial is not None:
            self._trial.stop(at_once=at_once)

    async def run(self) -> int:
        """Settle the whole estate. Return the number of suspects that have ended here."""
        await self._give_back(self._estate.free)
        for held in self._estate.charged:
            await self._charge(held)
        performed = 0 if self._trial is None else await self._try(self._trial)
        self._journal.over()
        if self._signals is not None:
            await self._signals.close(stopped=True)
        self._threads.close()
        return performed

    async def _try(self, trial: JobWorker) -> int:
        """Run each suspect alone; returns how many have ended."""
        if len(self._estate.suspects) > 1:
            logger.warning(
                "worker: %d jobs were running in a process that %s; each runs alone now, to see which is why: %s",
                len(self._estate.suspects),
                self._estate.why,
                ", ".join(held.id for held in self._estate.suspects),
            )
        await self._source.extend()  # the first one may keep this process from doing it
        keeping = asyncio.create_task(self._source.keep(), name="leaseq suspects")
        try:
            return await trial.run()
        finally:
            keeping.cancel()
            await asyncio.wait([keeping])
            await self._give_back(self._source.untried)

    async def _give_back(self, leases: Iterable[HeldLease]) -> None:
        """Release leases, uncounted."""
        by_queue: dict[str, list[HeldLease]] = {}
        for held in leases:
            by_queue.setdefault(held.queue, []).append(held)
        for queue, several in by_queue.items():
            await self._release(queue, several, uncounted=True)

    async def _charge(self, held: HeldLease) -> None:
        """Release the lease of a job whose attempt has failed, after its function's backoff."""
        text = failure.written("ProcessDied", f"its process {self._estate.why}", "", self._estate.worker, 0)
        delay, function = Backoff()(held.attempt), ""
        event = None
        with contextlib.suppress(Exception):  # a job that cannot be read here dies in its next attempt
            found = await self._prepared(held)
            if found is not None:
                lease, prepared = found
                delay, function = prepared.backoff(prepared.attempt), prepared.function.name
                event = started(lease, prepared)
        for answer in await self._release(held.queue, [held], delay=delay, error=text):
            if event is not None and self._signals is not None:
                self._signals.charged(event, answer, text, delay)
            if self._meter is not None and answer != "lost":
                outcome = "died" if answer == "dead" else "retried"
                self._meter.charged(self._store.queue(held.queue), function, outcome)

    async def _prepared(self, held: HeldLease) -> tuple[LeasedJob, PreparedJob] | None:
        settings = self._program.clients.settings
        (data,) = await self._store.data(held.queue, [held.id])
        lease = LeasedJob(
            id=held.id,
            queue=held.queue,
            data=data or b"",
            headers=held.headers,
            attempt=held.attempt,
            token=held.token,
            keep=held.keep,
            started=0,
        )
        execution = JobExecution(settings, self._estate.worker)
        prepared = execution.ready(lease, lambda *_: None)
        return (lease, prepared) if isinstance(prepared, PreparedJob) else None

    async def _release(self, queue: str, held: Sequence[HeldLease], **options: Any) -> list[Released]:
        """Release leases, with growing pauses while the server is away, until they have expired. Return the states, if known."""
        answers: list[Released] = []
        leases = [lease_ref(one.id, one.token) for one in held]
        for failures in itertools.count(1):
            try:
                answers = await self._store.queue(queue).release_items(leases, **options)
            except LeaseqError as error:
                pause = server_health.pause(failures)
                if concurrency.now() + pause < self._expire_at:
                    await asyncio.sleep(pause)
                    continue
                logger.error("worker: %d jobs wait for the end of their leases: %s", len(held), error)
            break
        self._journal.settled(held)
        return answers
