"""Functions that are not asynchronous, in threads next to the event loop.

Waking a thread for a call, and the loop for its end, takes longer than a quick call. So one thread runs quick calls one
after the other, and reports them together. Calls that wait get another thread within about a millisecond.
"""

import asyncio
import contextlib
import contextvars
import ctypes
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from leaseq.jobs.errors import JobInterrupted, JobTimeout
from leaseq.jobs.worker.time_limit import raise_late
from leaseq.worker.hooks import logger

LAST_SECS = 5.0
"""Seconds that a function may run after its JobTimeout; then it and its thread are abandoned."""

QUICK_SECS = 0.0001
"""Calls that take less than this are quick."""

RELIEF_SECS = 0.001
"""Seconds that a call waits for a busy thread, and an end to be reported with others."""


class _Run:
    """One call of a function, and its end."""

    def __init__(self, call: Callable[[], Any], future: "asyncio.Future[Any]") -> None:
        self.call = contextvars.copy_context().run
        self.function = call
        self.future: asyncio.Future[tuple[Any, BaseException | None]] = future
        self.timer: asyncio.TimerHandle | None = None
        self.limit = 0.0
        self.since = 0.0
        self.slow = False
        self.guard = threading.Lock()
        self.thread: int | None = None
        self.refused: type[BaseException] | None = None
        self.over = False
        self.interrupted = False

    def interrupt(self, kind: type[BaseException]) -> None:
        """Raise an exception in its thread where that is at work in Python; a call of C sees it when it returns."""
        with self.guard:
            if self.thread is None:
                self.refused = kind
            elif not self.over:
                self.interrupted = True
                _raise_in(self.thread, kind)

    def late(self, timeout: float) -> None:
        """Its time is over. A function that catches JobTimeout and returns has succeeded."""
        self.limit = timeout
        self.interrupt(JobTimeout)
        self.timer = self.future.get_loop().call_later(LAST_SECS, self._abandon)

    def _abandon(self) -> None:
        if not self.future.done():
            logger.error("a function does not end past its time: its thread is given up")
            self.future.set_result((None, JobTimeout()))


class AdaptiveThreadPool:
    """As many threads as there are calls at a time, at most. They are daemons: what hangs keeps no program from ending."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._guard = threading.Lock()
        self._inbox: deque[_Run] = deque()
        self._progress: dict[_Run, None] = {}
        self._asleep = 0
        self._awake = 0
        self._slow = 0
        self._usual = 1.0
        self._wakes: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._relief: asyncio.TimerHandle | None = None
        self._outbox: deque[tuple[_Run, Any, BaseException | None]] = deque()
        self._delivery_due = False
        self._closed = False

    async def run(self, call: Callable[[], Any], timeout: float | None) -> Any:
        """Return what the call returns. Past its time JobTimeout is raised in its thread; cancelled, JobInterrupted."""
        run = _Run(call, self._loop.create_future())
        self._hand_over(run)
        if timeout:
            run.timer = self._loop.call_later(timeout, run.late, timeout)
        try:
            value, error = await run.future
        except asyncio.CancelledError:
            if run.future.cancelled():  # else it has ended
                run.interrupt(JobInterrupted)
                run.future = self._loop.create_future()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(run.future, LAST_SECS)
            raise
        finally:
            if run.timer is not None:
                run.timer.cancel()
        if error is not None and run.limit:
            raise_late(error, run.limit)
        if error is not None:
            raise error
        return value

    def close(self) -> None:
        """End the threads that have nothing to do, and those that were given up when they have."""
        if self._relief is not None:
            self._relief.cancel()
        with self._guard:
            self._closed = True
            for _ in range(self._asleep):
                self._wakes.put(None)

    def _hand_over(self, run: _Run) -> None:
        with self._guard:
            self._inbox.append(run)
            if not self._lacks():
                return
            if self._usual > QUICK_SECS or self._awake == self._slow:
                try:
                    self._wake()
                except RuntimeError:  # no more threads can be started
                    self._inbox.pop()
                    raise
            elif self._relief is None:
                self._relief = self._loop.call_later(RELIEF_SECS, self._relieve)

    def _relieve(self) -> None:
        """Calls have waited: those before them are not quick, and the waiting ones get other threads."""
        with self._guard:
            self._relief = None
            for run in self._progress:
                if not run.slow and time.monotonic() - run.since > QUICK_SECS:
                    run.slow = True
                    self._slow += 1
            with contextlib.suppress(RuntimeError):  # no more threads: those that there are will come to it
                for _ in range(self._lacks()):
                    self._wake()
        self._deliver()

    def _lacks(self) -> int:
        """Return the number of waiting calls for which no thread is about to look."""
        return max(0, len(self._inbox) - (self._awake - len(self._progress)))

    def _wake(self) -> None:
        if self._asleep:
            self._asleep -= 1
            self._wakes.put(None)
        else:
            threading.Thread(target=self._work, name="leaseq job", daemon=True).start()
        self._awake += 1

    def _work(self) -> None:
        while (run := self._next()) is not None:
            self._end(run, *_perform(run))

    def _next(self) -> _Run | None:
        """Wait for the next call and return it; None at the end."""
        while True:
            with self._guard:
                if self._inbox:
                    run = self._inbox.popleft()
                    run.since = time.monotonic()
                    self._progress[run] = None
                    return run
                if self._closed:
                    return None
                self._asleep += 1
                self._awake -= 1
            self._wakes.get()

    def _end(self, run: _Run, value: Any, error: BaseException | None) -> None:
        with self._guard:
            del self._progress[run]
            self._slow -= run.slow
            took = time.monotonic() - run.since
            self._usual = took if took > self._usual else (took + self._usual) / 2
            self._outbox.append((run, value, error))
            if self._delivery_due or (self._inbox and self._relief):
                return
            self._delivery_due = True
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        """Report all calls that have ended."""
        self._delivery_due = False
        while self._outbox:
            run, value, error = self._outbox.popleft()
            if not run.future.done():
                run.future.set_result((value, error))


def _perform(run: _Run) -> tuple[Any, BaseException | None]:
    """Call, and let nothing that was raised from outside get away: it may come as the call ends."""
    value: Any = None
    error: BaseException | None = None
    try:
        try:
            with run.guard:
                if run.refused is None:
                    run.thread = threading.get_ident()
                else:  # what was to interrupt it came before it started
                    error = run.refused()
            if error is None:
                value = run.call(run.function)
        except BaseException as failure:  # noqa: BLE001 (told)
            error = failure
        with run.guard:
            run.over = True
            if run.interrupted:
                _raise_in(threading.get_ident(), None)
    except BaseException as failure:  # noqa: BLE001 (raised from outside, between the call and here)
        run.over = True
        error = error or failure
    return value, error


def _raise_in(thread: int, kind: type[BaseException] | None) -> None:
    """Raise in a thread, or take back what was not raised yet. The exception is made there, without arguments."""
    raised = None if kind is None else ctypes.py_object(kind)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)
