"""Connections end with their event loop: no other loop can read or close them (LQ-CLIENT-18)."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from typing import Protocol

from leaseq._aio import concurrency

FINISH_SECS = 1.0
"""Seconds that a loop that ends waits for items of its cancelled calls, to give them back."""


class OfLoop(Protocol):
    """A connection of an event loop."""

    loop: asyncio.AbstractEventLoop

    def close(self) -> None:
        """Close it."""

    async def wait_closed(self) -> None:
        """Wait until its loop is rid of it."""


_closers: dict[asyncio.AbstractEventLoop, AsyncGenerator[None, None]] = {}
"""For each event loop that has connections, what closes them."""


def runs_here(loop: asyncio.AbstractEventLoop) -> bool:
    """Return whether this thread runs that event loop."""
    try:
        return loop is asyncio.get_running_loop()
    except RuntimeError:
        return False


async def watch(connections: Callable[[], Iterable[OfLoop]]) -> None:
    """Have those of `connections` that are of this event loop closed with it.

    If a loop was closed without ending its asynchronous generators, its connections are closed when the next loop starts to use some.
    """
    loop = asyncio.get_running_loop()
    if loop in _closers:
        return
    closer = _closers[loop] = _close_at_end(connections)
    await anext(closer)
    for ended in [each for each in list(_closers) if each.is_closed()]:
        _closers.pop(ended, None)
    for connection in connections():
        if connection.loop.is_closed():
            connection.close()


async def _close_at_end(connections: Callable[[], Iterable[OfLoop]]) -> AsyncGenerator[None, None]:
    """`asyncio.run` and the like end the asynchronous generators that are left before they close their loop."""
    try:
        yield
    finally:
        loop = asyncio.get_running_loop()
        await concurrency.Background.end_all(FINISH_SECS)
        _closers.pop(loop, None)
        closing = [each for each in connections() if each.loop is loop]
        for connection in closing:
            connection.close()
        for connection in closing:
            await connection.wait_closed()
