"""Functions that are not asynchronous, in threads beside the event loop."""

import asyncio
import contextlib
import contextvars
import ctypes
import queue
import threading
from collections.abc import Callable
from typing import Any

from leaseq.jobs.errors import JobCancelled, JobTimeout
from leaseq.worker.hooks import logger

LAST_SECS = 5.0
"""How long a function may go on after it was told to end; then it is given up, and its thread with it."""


class _Run:
    """One call, and what became of it."""

    def __init__(self, call: Callable[[], Any], done: Callable[[Any, BaseException | None], None]) -> None:
        self.call = contextvars.copy_context().run
        self.function = call
        self.done = done
        self.guard = threading.Lock()
        self.thread: int | None = None
        self.refused: type[BaseException] | None = None
        self.over = False
        self.told = False

    def begin(self) -> None:
        """In its thread. Raises what it was told before it began: then it must not."""
        with self.guard:
            if self.refused is not None:
                raise self.refused
            self.thread = threading.get_ident()

    def tell(self, kind: type[BaseException]) -> None:
        """Raise an exception in its thread where that is at work in Python; a call of C sees it when it returns."""
        with self.guard:
            if self.thread is None:
                self.refused = kind
            elif not self.over:
                self.told = True
                _raise_in(self.thread, kind)


class Threads:
    """As many threads as there are calls at a time. They are daemons: what hangs does not keep a program from ending."""

    def __init__(self) -> None:
        self._inbox: queue.SimpleQueue[_Run | None] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._closed = False

    async def run(self, call: Callable[[], Any], timeout: float | None) -> Any:
        """What the call returns. Past its time JobTimeout is raised in its thread; cancelled, JobCancelled."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()

        def done(value: Any, error: BaseException | None) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
                loop.call_soon_threadsafe(_settle, future, value, error)

        run = _Run(call, done)
        self._hand_over(run)
        try:
            async with asyncio.timeout(timeout) as scope:
                return await asyncio.shield(future)
        except asyncio.CancelledError:
            run.tell(JobCancelled)
            with contextlib.suppress(Exception):
                await asyncio.wait_for(future, LAST_SECS)
            raise
        except TimeoutError as error:
            if not scope.expired():
                raise
            run.tell(JobTimeout)
            return await self._last(future, f"took longer than {timeout:g} seconds", error)

    async def _last(self, future: asyncio.Future[Any], why: str, cause: Exception) -> Any:
        """A function that catches JobTimeout and returns has done its work."""
        done, _ = await asyncio.wait([future], timeout=LAST_SECS)
        if not done:
            future.cancel()
            logger.error("a function does not end past its time: its thread is given up")
            raise JobTimeout(why) from cause
        error = future.exception()
        if isinstance(error, JobTimeout):
            error.args = (why,)
        return future.result()

    def _hand_over(self, run: _Run) -> None:
        if not self._idle.acquire(blocking=False):
            threading.Thread(target=self._work, name="leaseq job", daemon=True).start()
        self._inbox.put(run)

    def close(self) -> None:
        """End the threads that have nothing to do, and those that were given up when they have."""
        self._closed = True
        while self._idle.acquire(blocking=False):
            self._inbox.put(None)

    def _work(self) -> None:
        while (run := self._inbox.get()) is not None:
            value, error = _perform(run)
            self._idle.release()
            run.done(value, error)
            if self._closed:
                return


def _perform(run: _Run) -> tuple[Any, BaseException | None]:
    """Call, and let nothing that was raised from outside get away: it may come as the call ends."""
    value: Any = None
    error: BaseException | None = None
    try:
        try:
            run.begin()
            value = run.call(run.function)
        except BaseException as failure:  # noqa: BLE001 (told)
            error = failure
        with run.guard:
            run.over = True
            if run.told:
                _raise_in(threading.get_ident(), None)
    except BaseException as failure:  # noqa: BLE001 (raised from outside, between the call and here)
        run.over = True
        error = error or failure
    return value, error


def _settle(future: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(value)
    elif isinstance(error, Exception) and not isinstance(error, StopIteration):
        future.set_exception(error)
    else:  # what would end the loop, or what no future takes
        future.set_exception(RuntimeError(f"{type(error).__name__}: {error}"))


def _raise_in(thread: int, kind: type[BaseException] | None) -> None:
    """Raise in a thread, or take back what was not raised yet. The exception is made there, without arguments."""
    raised = None if kind is None else ctypes.py_object(kind)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)
