"""The registry of queues: entering one, reading all (LQ-REGISTRY-1 to LQ-REGISTRY-4)."""

import contextlib
import math
from typing import Any

from redis.exceptions import ClusterDownError

from leaseq import errors
from leaseq._aio import concurrency
from leaseq._aio.calls import Calls, CallState
from leaseq._aio.connection import Connection
from leaseq._aio.server_handle import ServerHandle
from leaseq.errors import LeaseqError
from leaseq.keys import REGISTRY, QueueKeys, RegisteredQueue, registered

AGAIN_SECS = 300.0
"""Seconds after which a queue is entered again, for a server that lost the registry."""

REPLY_TIMEOUT_SECS = 1.0
"""Seconds that the reply may take: the caller of the call before it waits."""

PAGE = 1000
"""About how many entries are read by one command."""


class Registration:
    """Keeps one queue in the registry, on behalf of the calls that add or lease."""

    def __init__(self, client: concurrency.Client, keys: QueueKeys) -> None:
        self._calls = Calls(client, REGISTRY)
        self._entry = keys.entry
        self.due = -math.inf
        """When to enter it again, on `concurrency.now`."""

    async def enter(self) -> None:
        """Enter the queue. Whatever goes wrong is no concern of a caller."""
        self.due = concurrency.now() + AGAIN_SECS
        with contextlib.suppress(LeaseqError):
            await self._calls.talk(self._send, CallState())

    async def _send(self, connection: Connection) -> None:
        try:
            await connection.send("SADD", REGISTRY, self._entry)
            await connection.read(REPLY_TIMEOUT_SECS)
        except ClusterDownError as error:
            # the queue works also if the slot of the registry has no owner now
            raise errors.from_server(error) from error
        except BaseException as error:
            await self._calls.raise_named(error, connection)
            raise


async def queues(server: str | concurrency.Client | None = None) -> list[RegisteredQueue]:
    """The queues that clients have entered, sorted; read in pages, so that no command takes long.

    `server` is a URL or a client, as for `WorkQueue`. An entry says that the queue held items once, not that it does now.
    A queue is missing whose clients may not write the registry, or wrote none since the server lost it.
    Raises the errors of `leaseq.errors`.
    """
    async with ServerHandle(server, "the registry of queues", "queues('redis://localhost')") as opened:
        calls = Calls(opened.client, REGISTRY)
        found: set[RegisteredQueue] = set()
        cursor: Any = "0"
        while True:
            cursor, entries = await calls.execute("SSCAN", REGISTRY, cursor, "COUNT", str(PAGE))
            found.update(queue for entry in entries if (queue := registered(entry)))
            if int(cursor) == 0:
                return sorted(found)
