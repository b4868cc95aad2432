"""Loops beside the main one, and signals.

Written by hand for threads and for asyncio.
"""

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

T = TypeVar("T")

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class BackgroundLoop:
    """A loop that runs beside the main one until it is interrupted."""

    def __init__(self, work: Callable[[], Awaitable[None]]) -> None:
        self._task = asyncio.ensure_future(work())

    async def end(self) -> None:
        """Interrupt it where it waits, and wait for its end."""
        self._task.cancel()
        await asyncio.wait([self._task])


async def run_with_signals(
    work: Callable[[], Awaitable[T]], stop: Callable[[], None], *, handle_signals: bool
) -> T:
    """Run the main loop, while the event loop handles signals: each calls `stop`. A cancellation ends it."""
    with _signals(stop) if handle_signals else contextlib.nullcontext():
        return await work()


@contextlib.contextmanager
def _signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` for SIGTERM and SIGINT, in the main thread; elsewhere signals are not ours."""
    loop = asyncio.get_running_loop()
    handled = []
    before = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        for number in SIGNALS:
            with contextlib.suppress(ValueError, RuntimeError, NotImplementedError):
                loop.add_signal_handler(number, stop)
                handled.append(number)
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
            signal.signal(number, before[number])
