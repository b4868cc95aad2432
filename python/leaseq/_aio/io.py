"""What differs between threads and asyncio: connections, waiting, work in the background.

Written by hand on both sides; everything above is written once, in `_aio`, and generated for threads.
"""

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, cast

import redis
from redis.asyncio import Redis, RedisCluster
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AskError, MovedError

from leaseq.commands import Argument
from leaseq.errors import BadTypeError

Client = Redis | RedisCluster


def now() -> float:
    """Seconds on a clock that never steps."""
    return asyncio.get_running_loop().time()


class NothingYetError(Exception):
    """No reply came within the time."""


def connect(url: str) -> Redis:
    """A client for a URL that never sends anything twice."""
    return Redis.from_url(url, retry=Retry(NoBackoff(), 0))


def check_client(client: object) -> Client:
    """The client, if it is one of asyncio. Raises BadTypeError."""
    if isinstance(client, Redis | RedisCluster):
        return client
    hint = ""
    if isinstance(client, redis.Redis | redis.RedisCluster):
        hint = ": this is a client for threads; use leaseq.WorkQueue with it"
    message = f"the server is a URL or a redis.asyncio client, not {type(client).__name__}{hint}"
    raise BadTypeError(message)


class Wire:
    """One connection, borrowed: replies come as bytes whatever the client decodes, and nothing is retried."""

    def __init__(self, connection: Any, give_back: Callable[[], Awaitable[None]]) -> None:
        self._connection = connection
        self.give_back = give_back
        self.kept = False
        self.asking = False

    async def send(self, *command: Argument) -> None:
        """Send a command."""
        # no health check: it would read the reply of a command that is still under way
        if self.asking:
            await self._connection.send_packed_command(
                self._connection.pack_command("ASKING"), check_health=False
            )
            await self.read()
        await self._connection.send_packed_command(
            self._connection.pack_command(*command), check_health=False
        )

    async def read(self) -> Any:
        """Read a reply. An interruption leaves the connection as it is, so that the reply can still be read."""
        return await self._connection.read_response(disable_decoding=True, disconnect_on_error=False)

    async def read_within(self, seconds: float) -> Any:
        """Read a reply that may take long. Raises NothingYetError."""
        try:
            async with asyncio.timeout(seconds):
                return await self._connection.read_response(
                    disable_decoding=True, timeout=math.inf, disconnect_on_error=False
                )
        except TimeoutError:
            raise NothingYetError from None

    async def cut(self) -> None:
        """Close the connection: its replies are no longer wanted."""
        await self._connection.disconnect(nowait=True)


class OneServer:
    """Borrows connections from a client of one server (or of a Sentinel set, which finds the server)."""

    redirects = False

    def __init__(self, client: Redis) -> None:
        self._client = client

    async def borrow(self, _key: str, _redirection: AskError | None) -> Wire:
        """A connection."""
        pool: Any = self._client.connection_pool
        connection = await pool.get_connection()

        async def give_back() -> None:
            await pool.release(connection)

        return Wire(connection, give_back)

    async def refresh(self) -> None:
        """There is nothing to look up again."""


class Cluster:
    """Borrows connections from a cluster client."""

    redirects = True

    def __init__(self, client: RedisCluster) -> None:
        self._client: Any = client

    async def borrow(self, key: str, redirection: AskError | None) -> Wire:
        """A connection to the node that holds the key, or to the one that a redirection names."""
        await self._client.initialize()
        if redirection is None:
            return await self._wire(self._client.get_node_from_key(key))
        moved = isinstance(redirection, MovedError)
        node = self._client.get_node(redirection.host, redirection.port)
        if moved or node is None:
            await self.refresh()
            node = self._client.get_node(redirection.host, redirection.port)
        wire = await self._wire(node)
        wire.asking = not moved
        return wire

    async def refresh(self) -> None:
        """Read the topology again."""
        await self._client.nodes_manager.initialize()

    async def _wire(self, node: Any) -> Wire:
        connection = node.acquire_connection()

        async def give_back() -> None:
            node.release(connection)

        try:
            await connection.connect()
        except BaseException:
            await give_back()
            raise
        return Wire(connection, give_back)


def route(client: Client) -> OneServer | Cluster:
    """How connections of a client are borrowed."""
    return Cluster(client) if isinstance(client, RedisCluster) else OneServer(client)


async def sleep(seconds: float) -> None:
    """Wait."""
    await asyncio.sleep(seconds)


class Background:
    """Work that outlives the call that began it."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run it."""
        task = asyncio.get_running_loop().create_task(work())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def end(self) -> None:
        """Stop it."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class Guard(contextlib.nullcontext[None]):
    """Keeps others out of a few lines: tasks only switch at an await, so nothing is needed."""


class Bell:
    """A sleeper that can be woken."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def ring(self) -> None:
        """Wake the sleeper, or the next one."""
        self._event.set()

    async def wait(self, seconds: float | None) -> None:
        """Sleep until the bell rings or the time is over."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return
        self._event.clear()


async def close(client: Client) -> None:
    """Close a client and its connections."""
    await cast("Any", client).aclose()
