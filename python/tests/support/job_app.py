"""Apps and their workers in tests: both flavours of every call, and workers that run beside the test."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Any, Final, Self

from support import servers, timeouts

from leaseq.jobs.worker.job_worker import JobWorker

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    import pytest

    from leaseq.jobs import App
    from leaseq.jobs.worker.progress import ProgressReporter

TIMEOUT_SECS: Final = 120.0
"""Seconds that a condition may take on a machine that stalls."""


LEASE_SECS: Final = 600.0
"""Long enough that no lease ends because the machine stalls. Heartbeats come when a test asks for them."""


def until(check: Callable[[], object]) -> None:
    servers.wait_until(check, TIMEOUT_SECS)


def late_replies() -> contextlib.AbstractContextManager[None]:
    """Replies come, however late: if the reply that gives a job were lost, the job would stay leased for LEASE_SECS."""
    return timeouts.reply_grace(float(timeouts.REPLY_SECS))


def extend_program_timeouts() -> None:
    """For a program: it bears what the tests themselves bear, to its end."""
    timeouts.extend_default_timeouts()
    late_replies().__enter__()


def for_asyncio(thing: Any) -> Any:
    """An App, a function or a handle as asyncio has it; it may be that already."""
    return getattr(thing, "aio", thing)


class JobAppFlavour:
    """Calls `name` of an App, a function or a handle, or of its `aio`, in a separate event loop."""

    def __init__(self, app: App, *, asynchronous: bool) -> None:
        self.app = app
        self.asynchronous = asynchronous
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._late_replies = late_replies()

    def __call__(self, thing: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        answer = getattr(self.side(thing), name)(*args, **kwargs)
        return self.run(answer) if self.asynchronous else answer

    def side(self, thing: Any) -> Any:
        """The same for this flavour."""
        return for_asyncio(thing) if self.asynchronous else thing

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run something in the loop, and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(TIMEOUT_SECS)

    def start(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run something in the loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def burst(self, **options: Any) -> int:
        """Run what is ready; how many jobs ended."""
        chosen: Any = {"burst": True, "handle_signals": False, "lease_secs": LEASE_SECS, **options}
        ended: int = self.run(self.app.aio.run_worker(**chosen))
        return ended

    @contextlib.contextmanager
    def working(self, **options: Any) -> Iterator[RunningWorker]:
        """A worker that runs until the block ends."""
        worker = RunningWorker(self, options)
        try:
            yield worker
        finally:
            worker.stop()
            worker.ended()

    def __enter__(self) -> Self:
        self._late_replies.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.run(self.app.aio.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._late_replies.__exit__(None, None, None)


class Hours:
    """Time limits of an hour and more, in event loops, which end when a test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._scopes: list[asyncio.Timeout] = []
        limited = asyncio.timeout

        def noted(delay: float | None) -> asyncio.Timeout:
            scope = limited(delay)
            if delay is not None and delay >= 3600:
                self._scopes.append(scope)
            return scope

        monkeypatch.setattr(asyncio, "timeout", noted)
        self._timers: list[tuple[asyncio.TimerHandle, Callable[..., object], tuple[Any, ...]]] = []
        call_later = asyncio.BaseEventLoop.call_later

        def timed(
            loop: asyncio.BaseEventLoop,
            delay: float,
            callback: Callable[..., object],
            *args: Any,
            **more: Any,
        ) -> asyncio.TimerHandle:
            timer = call_later(loop, delay, callback, *args, **more)
            if delay >= 3600:
                self._timers.append((timer, callback, args))
            return timer

        monkeypatch.setattr(asyncio.BaseEventLoop, "call_later", timed)

    def pass_by(self, flavour: JobAppFlavour) -> None:
        """They are over."""

        async def end() -> None:
            for scope in self._scopes:
                scope.reschedule(asyncio.get_running_loop().time())
            self._scopes.clear()
            timers, self._timers = self._timers, []
            for timer, callback, args in timers:
                if not timer.cancelled():
                    timer.cancel()
                    callback(*args)

        flavour.run(end())


def _flush_in_turn(running: ProgressReporter) -> None:
    """Notes are written by the worker and when a test asks: either waits for what the other has started to write."""
    turn, flush = asyncio.Lock(), running.flush

    async def flush_in_turn() -> None:
        async with turn:
            await flush()

    vars(running)["flush"] = flush_in_turn


class RunningWorker:
    """One worker in the loop of a flavour."""

    def __init__(self, flavour: JobAppFlavour, options: dict[str, Any]) -> None:
        self._flavour = flavour

        async def make() -> JobWorker:
            service = JobWorker(
                flavour.app.program, **{"handle_signals": False, "lease_secs": LEASE_SECS, **options}
            )
            _flush_in_turn(service._progress)
            return service

        self.service: JobWorker = flavour.run(make())
        self._future = flavour.start(self.service.run())
        until(lambda: self.service._worker._run is not None or self._future.done())

    def stop(self, *, at_once: bool = False) -> None:
        self._flavour._loop.call_soon_threadsafe(lambda: self.service.stop(at_once=at_once))

    def ended(self) -> int:
        """Return what `run` answers, or raises."""
        answer: int = self._future.result(TIMEOUT_SECS)
        return answer

    def beat(self) -> None:
        """Let the heart beat now."""
        run = self.service._worker._run
        assert run is not None
        self._flavour.run(run.heartbeater.beat())

    def flush(self) -> None:
        """Write notes now."""
        self._flavour.run(self.service._progress.flush())
