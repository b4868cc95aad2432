"""Loops beside the main one, and signals.

Written by hand for threads and for asyncio.
"""

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable
from typing import TypeVar

from leaseq import signals

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
    """Run the main loop; each signal calls `stop`, in the event loop. A cancellation ends it."""
    loop = asyncio.get_running_loop()
    with (
        signals.handling(SIGNALS, lambda _: loop.call_soon_threadsafe(stop))
        if handle_signals
        else contextlib.nullcontext()
    ):
        return await work()
