"""The job that runs here, if one does, and the jobs of a worker that wait for other jobs."""

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass

from leaseq.jobs.errors import BlockedLoopError
from leaseq.worker.hooks import logger


class SlotWaits:
    """Which jobs of one worker wait for jobs of queues that it serves itself."""

    def __init__(self, slots: int, queues: Sequence[tuple[str, str]]) -> None:
        """`queues` are groups and names."""
        self._slots = slots
        self._queues = frozenset(queues)
        self._waiting: dict[object, str] = {}
        self._warned = False

    @contextlib.contextmanager
    def waiting(self, function: str, queue: tuple[str, str]) -> Iterator[None]:
        """Inside this block a job of a function waits for a job of a queue. Warn once if nothing is left to run that."""
        place = object()
        if queue in self._queues:
            self._waiting[place] = function
        if len(self._waiting) >= self._slots and not self._warned:
            self._warned = True
            logger.warning(
                "all %d jobs that this process runs at a time wait for other jobs of its queues (%s): if no other process"
                " serves these, none of them ends before its time limit. Use app.chain, or put the jobs that are waited for"
                " in a queue with a worker for it alone",
                self._slots,
                ", ".join(sorted(set(self._waiting.values()))),
            )
        try:
            yield
        finally:
            self._waiting.pop(place, None)


@dataclass(frozen=True, slots=True)
class CurrentJob:
    """A job that runs in a worker's event loop or in one of its threads."""

    id: str
    function: str
    waits: SlotWaits

    def waiting(self, group: str, queue: str) -> contextlib.AbstractContextManager[None]:
        """Record, in this block, that the job waits for a job of a queue."""
        return self.waits.waiting(self.function, (group, queue))

    def refuse_to_block(self, call: str, instead: str) -> None:
        """Raise BlockedLoopError if a call that waits would block the event loop of a worker, and so the job that is waited for."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return
        raise BlockedLoopError(
            f"{call} would block the event loop of the worker that runs {self.function}: use {instead}"
        )


current: ContextVar[CurrentJob | None] = ContextVar("leaseq job", default=None)
