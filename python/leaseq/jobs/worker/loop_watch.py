"""Names the job that blocks the event loop of a worker: while it does, no other job, heartbeat or time limit is served."""

import asyncio
import sys
import threading
import traceback
from collections.abc import Mapping
from typing import Any, Final, Self

from leaseq.jobs.current_job import CurrentJob
from leaseq.jobs.failure import NOT_THE_USERS
from leaseq.worker.hooks import logger

TICK_SECS: Final = 0.25
TICKS: Final = 4
"""A loop that answers in none of TICKS ticks is blocked. They are counted: a process that was stopped does not count them."""


class LoopWatch:
    """A thread that looks whether the loop answers. A context manager, in the loop."""

    def __init__(self, jobs: Mapping["asyncio.Task[Any]", CurrentJob]) -> None:
        """`jobs` are those that run in the loop."""
        self._jobs = jobs
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._over = threading.Event()
        self._missed = 0

    def __enter__(self) -> Self:
        threading.Thread(target=self._watch, name="leaseq watch", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def _answer(self) -> None:
        self._missed = 0

    def _watch(self) -> None:
        try:
            while not self._over.wait(TICK_SECS):
                if self._missed == 0:
                    self._loop.call_soon_threadsafe(self._answer)
                self._missed += 1
                if self._missed == TICKS + 1:
                    self._report()
        except RuntimeError:  # the loop is closed
            return

    def _report(self) -> None:
        task = asyncio.current_task(self._loop)
        frame = sys._current_frames().get(self._loop_thread)  # noqa: SLF001 (documented)
        if task is None or frame is None:
            return
        stack = traceback.extract_stack(frame)
        while len(stack) > 1 and stack[0].filename.startswith(NOT_THE_USERS):
            del stack[0]
        job = self._jobs.get(task)
        logger.warning(
            "%s has blocked the event loop for %g s: no other job, heartbeat or time limit of this process is served"
            " meanwhile. Make it `def`, or give it fork=True, or await what takes long. It stands here:\n%s",
            f"job {job.id} of {job.function}" if job else f"task {task.get_name()}",
            TICKS * TICK_SECS,
            "".join(traceback.format_list(list(stack)[-10:])).rstrip(),
        )
