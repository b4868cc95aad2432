"""Workers of both flavours, run in the background of a test: written once, as `client_flavours.py` does for queues."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
from typing import TYPE_CHECKING, Any, Final

from support.client_flavours import AsyncioFlavour, ClientFlavour, unwrap

import leaseq.worker
import leaseq.worker.aio
from leaseq.worker import Hooks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

TIMEOUT_SECS: Final = 60.0
"""Seconds that a condition may take on a machine that stalls."""


class BackgroundWorker:
    """One run of a worker."""

    def __init__(
        self, flavour: ClientFlavour, queues: Any, handle: Callable[[Any], object], **options: Any
    ) -> None:
        self.flavour = flavour
        self.asyncio = isinstance(flavour, AsyncioFlavour)
        module: Any = leaseq.worker.aio if self.asyncio else leaseq.worker
        self.worker = module.Worker(
            unwrap(queues), self._handler(handle), **{"handle_signals": False, "announce": False, **options}
        )
        self.is_started = False
        self.future: Future[int] = start(flavour, self.worker)

    def _handler(self, handle: Callable[[Any], object]) -> Callable[[Any], object]:
        if not self.asyncio or inspect.iscoroutinefunction(handle):
            return handle

        async def handler(item: Any) -> object:
            return handle(item)

        return handler

    @property
    def run(self) -> Any:
        """The private run of the worker, with its parts."""
        return self.worker._run

    def beat(self) -> None:
        """Send a heartbeat now."""
        self.call(self.run.heartbeater.beat)

    def call(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call a function of the worker on its own thread or event loop."""
        if not self.asyncio:
            return function(*args, **options)

        async def there() -> Any:
            answer = function(*args, **options)
            return await answer if inspect.isawaitable(answer) else answer

        return self.flavour.run(there())

    def stop(self, **options: Any) -> None:
        """Tell it to stop."""
        self.call(self.worker.stop, **options)

    def result(self) -> int:
        """Return what `run` answers, or raises."""
        self.is_started = True
        return self.future.result(TIMEOUT_SECS)


def start(flavour: ClientFlavour, worker: Any) -> Future[int]:
    """Run a worker in the background."""
    if isinstance(flavour, AsyncioFlavour):
        return asyncio.run_coroutine_threadsafe(worker.run(), flavour.loop)
    return flavour.start(worker.run)


@contextlib.contextmanager
def background_worker(
    flavour: ClientFlavour, queues: Any, handle: Callable[[Any], object], **options: Any
) -> Iterator[BackgroundWorker]:
    """A worker at work, which is stopped at the end."""
    started = BackgroundWorker(flavour, queues, handle, **options)
    try:
        yield started
    finally:
        if not started.future.done():
            started.stop(at_once=True)
        if not started.is_started:
            started.result()


class Latch:
    """Handlers of either flavour stand here until it opens."""

    def __init__(self) -> None:
        self.inside = threading.Semaphore(0)
        self._open = threading.Event()

    def wait(self) -> None:
        """Stand here, in a thread."""
        self.inside.release()
        assert self._open.wait(TIMEOUT_SECS)

    async def wait_async(self) -> None:
        """Stand here, in a task."""
        self.inside.release()
        async with asyncio.timeout(TIMEOUT_SECS):
            while not self._open.is_set():  # noqa: ASYNC110 (set from another thread)
                await asyncio.sleep(0.005)

    def handler(
        self, flavour: ClientFlavour, then: Callable[[Any], object] = lambda _: None
    ) -> Callable[[Any], object]:
        """A handler that stands here, then does something."""

        async def handle_async(item: Any) -> None:
            await self.wait_async()
            then(item)

        def handle(item: Any) -> None:
            self.wait()
            then(item)

        return handle_async if isinstance(flavour, AsyncioFlavour) else handle

    def reached(self, count: int = 1) -> None:
        """Wait until `count` more handlers stand here."""
        for _ in range(count):
            assert self.inside.acquire(timeout=TIMEOUT_SECS)

    def open(self) -> None:
        """Let all pass."""
        self._open.set()


class RecordingHooks(Hooks):
    """Keeps the calls of a worker's hooks."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []

    def leased(self, items: Any) -> None:
        self.calls.append(("leased", [item.id for item in items]))

    def started(self, item: Any) -> None:
        self.calls.append(("started", item.id))

    def ended(self, item: Any, seconds: float, error: BaseException | None) -> None:
        assert seconds >= 0
        self.calls.append(("ended", (item.id, error and str(error))))

    def completed(self, item: Any) -> None:
        self.calls.append(("completed", item.id))

    def released(self, item: Any, delay: float, error: str | None) -> None:
        self.calls.append(("released", (item.id, delay, error)))

    def dead_lettered(self, item: Any, error: str | None) -> None:
        self.calls.append(("dead_lettered", (item.id, error)))

    def lost(self, item: Any) -> None:
        self.calls.append(("lost", item.id))

    def server_away(self, error: BaseException) -> None:
        self.calls.append(("server_away", type(error).__name__))

    def server_back(self, seconds: float) -> None:
        assert seconds >= 0
        self.calls.append(("server_back", None))

    def of(self, name: str) -> list[Any]:
        return [what for called, what in self.calls if called == name]
