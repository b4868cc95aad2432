"""Workers of both colours, run in the background of a test: written once, as `colours.py` does for queues."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
from typing import TYPE_CHECKING, Any, Final

from colours import AsyncColour, Colour, bare

import leaseq.worker
import leaseq.worker.aio

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

PATIENCE: Final = 60.0
"""Seconds that a condition may take on a machine that stalls."""


class Shift:
    """One run of a worker."""

    def __init__(self, colour: Colour, queues: Any, handle: Callable[[Any], object], **options: Any) -> None:
        self.colour = colour
        self.asyncio = isinstance(colour, AsyncColour)
        module: Any = leaseq.worker.aio if self.asyncio else leaseq.worker
        self.worker = module.Worker(
            bare(queues), self._handler(handle), **{"handle_signals": False, "announce": False, **options}
        )
        self.heard = False
        self.future: Future[int] = start(colour, self.worker)

    def _handler(self, handle: Callable[[Any], object]) -> Callable[[Any], object]:
        if not self.asyncio or inspect.iscoroutinefunction(handle):
            return handle

        async def handler(item: Any) -> object:
            return handle(item)

        return handler

    @property
    def run(self) -> Any:
        """What is inside the worker."""
        return self.worker._run

    def beat(self) -> None:
        """Let the heart beat now."""
        self.call(self.run.tender.beat)

    def call(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call something of the worker where that may be done."""
        if not self.asyncio:
            return function(*args, **options)

        async def there() -> Any:
            answer = function(*args, **options)
            return await answer if inspect.isawaitable(answer) else answer

        return self.colour.run(there())

    def stop(self, **options: Any) -> None:
        """Tell it to stop."""
        self.call(self.worker.stop, **options)

    def result(self) -> int:
        """What `run` answers, or raises."""
        self.heard = True
        return self.future.result(PATIENCE)


def start(colour: Colour, worker: Any) -> Future[int]:
    """Run a worker in the background."""
    if isinstance(colour, AsyncColour):
        return asyncio.run_coroutine_threadsafe(worker.run(), colour.loop)
    return colour.start(worker.run)


@contextlib.contextmanager
def shift(colour: Colour, queues: Any, handle: Callable[[Any], object], **options: Any) -> Iterator[Shift]:
    """A worker at work, which is stopped at the end."""
    started = Shift(colour, queues, handle, **options)
    try:
        yield started
    finally:
        if not started.future.done():
            started.stop(at_once=True)
        if not started.heard:
            started.result()


class Gate:
    """Handlers of either colour stand here until it opens."""

    def __init__(self) -> None:
        self.inside = threading.Semaphore(0)
        self._open = threading.Event()

    def wait(self) -> None:
        """Stand here, in a thread."""
        self.inside.release()
        assert self._open.wait(PATIENCE)

    async def wait_async(self) -> None:
        """Stand here, in a task."""
        self.inside.release()
        async with asyncio.timeout(PATIENCE):
            while not self._open.is_set():  # noqa: ASYNC110 (set from another thread)
                await asyncio.sleep(0.005)

    def handler(
        self, colour: Colour, then: Callable[[Any], object] = lambda _: None
    ) -> Callable[[Any], object]:
        """A handler that stands here, then does something."""

        async def handle_async(item: Any) -> None:
            await self.wait_async()
            then(item)

        def handle(item: Any) -> None:
            self.wait()
            then(item)

        return handle_async if isinstance(colour, AsyncColour) else handle

    def reached(self, count: int = 1) -> None:
        """Wait until so many more stand here."""
        for _ in range(count):
            assert self.inside.acquire(timeout=PATIENCE)

    def open(self) -> None:
        """Let all pass."""
        self._open.set()
