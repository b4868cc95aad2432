"""The jobs that run in this process, and telling others of those that take a while (LQ-JOB-10)."""

import asyncio
import contextlib
import time
from typing import Any

from leaseq._aio.queue import LeasedItem
from leaseq.errors import LeaseqError
from leaseq.jobs import job_state
from leaseq.jobs.context import is_number
from leaseq.jobs.job_state import Change, JobState
from leaseq.jobs.store._aio.store import Store

REPORT_SECONDS = 0.25
"""Seconds between writing states. A job that is over by then has none."""


class ProgressReporter:
    """The running jobs, and a loop that writes their states. Progress may be reported from any thread."""

    def __init__(self, store: Store, worker_id: str) -> None:
        self._store = store
        self._worker_id = worker_id
        self._states: dict[LeasedItem, JobState] = {}
        self._changed: dict[LeasedItem, None] = {}
        self._written: dict[LeasedItem, float] = {}
        self._over: dict[LeasedItem, Change] = {}
        self._work = asyncio.Event()
        self.performed = 0
        """Number of jobs that have ended here, in any way."""

    def begin(self, item: LeasedItem, started: float) -> None:
        """Record that a job starts."""
        self._states[item] = JobState(token=item.token, worker=self._worker_id, started=round(started * 1000))
        self._changed[item] = None
        if len(self._states) == 1:
            self._work.set()

    def end(self, item: LeasedItem, *, failed: bool) -> None:
        """Record that a job has ended, or an attempt of it that failed."""
        self.performed += 1
        noted = self._states.pop(item)
        self._changed.pop(item, None)
        written = self._written.pop(item, None) is not None
        if written or failed:
            self._over[item] = Change(item.id, item.attempt, noted.n + 1 if written else 0)
            self._work.set()

    def __len__(self) -> int:
        return len(self._states)

    def report(self, item: LeasedItem, done: Any, total: float | None) -> None:
        """Record the progress of a job, if it still runs: how much is done and of how much, or any value of JSON."""
        noted = self._states.get(item)
        if noted is not None:
            number = done if is_number(done) else None
            noted.done, noted.total, noted.progress = number, total, None if number is not None else done
            self._changed[item] = None

    async def run(self) -> None:
        """Write states for as long as the worker lives. That one cannot be written does not concern the work."""
        while True:
            if not self._states and not self._over:
                self._work.clear()
                await self._work.wait()
            await asyncio.sleep(REPORT_SECONDS)
            await self.flush()

    async def flush(self) -> None:
        """Write what has changed, and again what would soon be forgotten; drop the states of what is over."""
        now = time.monotonic()
        old = [item for item, at in self._written.items() if now - at > job_state.LIFE_SECS / 3]
        changed = [item for item in dict.fromkeys([*self._changed, *old]) if item in self._states]
        over, self._over = self._over, {}
        self._changed.clear()
        for item in changed:
            if item in self._written:
                self._states[item].n += 1
            self._written[item] = now
        # jobs end while states are written, so what is written is known before
        due = [
            (
                queue,
                [(item.id, item.attempt, self._states[item]) for item in changed if item.queue.name == queue],
                [end for item, end in over.items() if item.queue.name == queue],
            )
            for queue in {item.queue.name for item in (*changed, *over)}
        ]
        for queue, states, ends in due:
            with contextlib.suppress(LeaseqError):  # of one queue is none of the others
                # first: a job that has ended may run here again
                await self._store.drop_states(queue, ends)
                await self._store.write_states(queue, states)
