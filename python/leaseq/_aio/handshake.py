"""The start of a connection: its time limit, and the commands before the first call."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Any, Protocol

from leaseq.commands import Argument
from leaseq.endpoint import Endpoint
from leaseq.errors import REFUSALS

_STEPS = 50
"""A time limit is counted in this number of steps. A loop that stands still counts as one."""


class Greeter(Protocol):
    """A connection that stands."""

    endpoint: Endpoint

    async def send(self, *command: Argument) -> None:
        """Send a command."""

    async def read(self, seconds: float | None = None) -> Any:
        """Read a reply."""


@contextlib.asynccontextmanager
async def network_timeout(seconds: float) -> AsyncGenerator[None, None]:
    """Raise TimeoutError when the network has taken this time: not the event loop, which other work may hold up (LQ-CLIENT-20)."""
    loop, step = asyncio.get_running_loop(), seconds / _STEPS
    timer: asyncio.TimerHandle

    def count(left: int) -> None:
        nonlocal timer
        if left:
            timer = loop.call_later(step, count, left - 1)
        else:
            limit.reschedule(loop.time())

    async with asyncio.timeout(None) as limit:
        timer = loop.call_later(step, count, _STEPS - 1)
        try:
            yield
        finally:
            timer.cancel()


async def greet(connection: Greeter) -> None:
    """Send HELLO, AUTH and the like, and read all replies. Raises the error of redis-py that refuses the connection."""
    endpoint = connection.endpoint
    greeting = endpoint.greeting(await _credentials(endpoint.credentials))
    for command in greeting:
        await connection.send(*command)
    for command in greeting:
        try:
            reply = await connection.read(endpoint.connect_secs)
        except REFUSALS as error:
            reply = error
        if (refusal := endpoint.refusal(command, reply)) is not None:
            raise refusal


async def _credentials(provider: Any) -> Any:
    """Return what a provider of credentials gives now."""
    if provider is None:
        return None
    if hasattr(provider, "get_credentials_async"):  # from redis-py 5.3 on
        return await provider.get_credentials_async()
    return provider.get_credentials()
