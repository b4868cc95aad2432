"""What differs between threads and asyncio: connections, waiting, work in the background.

Written by hand on both sides; everything above is written once, in `_aio`, and generated for threads.
"""

import asyncio
import contextlib
import math
import time
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from functools import partial
from typing import Any, cast

import redis
from redis.asyncio import BlockingConnectionPool, ConnectionPool, Redis, RedisCluster
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AskError, MovedError

from leaseq import flows
from leaseq._aio.plain import broken
from leaseq._aio.pool import Pool
from leaseq._aio.watch import Watch
from leaseq.commands import Argument
from leaseq.errors import REFUSALS, BadTypeError
from leaseq.forked import KeptFromChildren
from leaseq.packing import pack

Client = Redis | RedisCluster


now = time.monotonic
"""Seconds on a clock that never steps."""


_late: set[asyncio.Task[None]] = set()
MANY = 2**31
"""As good as no limit, of connections."""

HANG_UP_SECS = 1.0
"""How long the server may take to notice that a connection is closed."""


ODD = (AttributeError, RuntimeError, TypeError, ValueError)
"""How a connection of redis-py breaks that somebody closes under us."""

LATE = "no reply came within the time"


class NothingYetError(Exception):
    """No reply came within the time."""


def connect(url: str) -> Redis:
    """A client for a URL that never sends anything twice. Raises ValueError or TypeError for one that is none."""
    # every waiter holds a connection; a limit, which redis-py sets by itself, is for the URL to ask for
    pool = Pool.from_url(url, retry=Retry(NoBackoff(), 0), max_connections=MANY)
    pool.connection_class(**pool.connection_kwargs)  # does not connect; an unknown option is told now
    return Redis.from_pool(pool)


def check_client(client: object) -> Client:
    """The client, if it is one of asyncio. Raises BadTypeError."""
    if isinstance(client, Redis | RedisCluster):
        return client
    hint = ""
    if isinstance(client, redis.Redis | redis.RedisCluster):
        hint = ": this is a client for threads; use leaseq.WorkQueue with it"
    message = f"the server is a URL or a redis.asyncio client, not {type(client).__name__}{hint}"
    raise BadTypeError(message)


def check_pipe(pipe: Any) -> Any:
    """The pipeline, if it is one that only queues. Raises BadTypeError."""
    if isinstance(pipe, redis.asyncio.client.Pipeline | redis.asyncio.cluster.ClusterPipeline):
        return pipe
    message = f"pipe takes what the pipeline() of a redis.asyncio client gives, not {type(pipe).__name__}"
    raise BadTypeError(message)


class Wire:
    """One connection, borrowed: replies come as bytes whatever the client decodes, and nothing is retried."""

    owed = 0
    kept = False
    asking = False
    followed = False
    """Whether a command was sent behind a block that is not over: what it brings would be lost with the connection."""
    _is_cut = False
    _left_off = False
    _reader: asyncio.StreamReader | None = None

    def __init__(
        self, connection: Any, put_back: Callable[[], Awaitable[None]], watch: Watch, *, plain: bool = False
    ) -> None:
        self._connection = connection
        self._put_back = put_back
        self._watch = watch
        self._plain = plain

    async def send(self, *command: Argument) -> None:
        """Send a command. It is on its way before this waits for anything, so an interruption does not stop it."""
        await self.send_packed(pack(self._connection, command))

    async def send_packed(self, packed: list[bytes]) -> None:
        """Send the bytes of a command, as `send`."""
        connection = self._connection
        if self._left_off or self._is_cut or not connection.is_connected:
            # redis-py would connect again, but the replies that are awaited came with the old connection
            raise redis.ConnectionError("the connection was closed")
        if self.asking:
            await self._ask()
        # not send_packed_command: interrupted, that closes the connection of a command that is under way already
        try:
            connection._writer.write(packed[0] if len(packed) == 1 else b"".join(packed))
            self.owed += 1
            if connection._writer.transport.get_write_buffer_size():
                async with asyncio.timeout(self._bound(None)):
                    await connection._writer.drain()
        except TimeoutError as error:
            raise redis.TimeoutError("the server takes nothing in") from error
        except ODD as error:
            self._tell(error)
            raise

    async def _ask(self) -> None:
        """Say that the next command is for a slot that comes here."""
        self.asking = False
        try:
            await self.send("ASKING")
            await self.read()
        finally:
            self.asking = True

    async def read(self, seconds: float | None = None) -> Any:
        """Read a reply. An interruption leaves the connection as it is, so that the reply can still be read."""
        self._reader = self._connection._reader
        self._watch.begin(self, self._bound(seconds))
        try:
            return await self._read()
        finally:
            self._watch.end(self)

    def be_late(self) -> None:
        """The reply that is awaited took too long; one that came in this moment is still read.

        The connection is of no use any more. It may be closed already: with bytes that the server does not take in, its
        transport does not tell its reader.
        """
        self._is_cut = True
        if self._reader is not None:
            self._reader.set_exception(redis.TimeoutError(LATE))

    async def read_within(self, seconds: float) -> Any:
        """Read a reply that may take long. Raises NothingYetError."""
        try:
            async with asyncio.timeout(seconds):
                return await self._read()
        except TimeoutError:
            raise NothingYetError from None

    async def _read(self) -> Any:
        connection = self._connection
        try:
            if self._plain:
                reply = await connection._parser.read_response(disable_decoding=True)
            else:
                reply = await connection.read_response(
                    disable_decoding=True, disconnect_on_error=False, timeout=math.inf
                )
                if reply is None and (error := connection._reader.exception()):
                    raise error  # redis-py takes ETIMEDOUT for the end of a time it was given
        except REFUSALS:
            self.owed -= 1
            raise
        except OSError as error:
            raise broken(connection, error) from error
        except ODD as error:
            self._tell(error)
            raise
        self.owed -= 1
        if isinstance(reply, redis.ResponseError):
            raise reply
        return reply

    def _tell(self, error: Exception) -> None:
        """Raise the error that callers know, for an odd one of a connection that somebody closed under us."""
        if self._is_cut or not self._connection.is_connected:
            raise redis.ConnectionError("the connection was closed") from error

    def _bound(self, seconds: float | None) -> float:
        """How long to wait for a reply: so long, or as the client says, but never for ever."""
        if seconds is not None:
            return seconds
        own: float | None = self._connection.socket_timeout
        return flows.LONGEST_REPLY if own is None else own

    async def cut(self) -> None:
        """Close the connection: its replies are no longer wanted."""
        self._is_cut = True
        await self._connection.disconnect(nowait=True)

    async def cut_off(self) -> None:
        """Close the connection under the task that reads."""
        await self.cut()

    @property
    def can_leave_off(self) -> bool:
        """Whether it can end one direction, and has only the commands in it that are sent."""
        return not self.asking and bool(self._connection._writer.can_write_eof())

    async def leave_off(self) -> None:
        """Send nothing more: the server ends a block and closes; what it answered before can still be read."""
        self._left_off = True
        with contextlib.suppress(*ODD, OSError):
            self._connection._writer.write_eof()

    async def hang_up(self) -> None:
        """Close the connection, and wait until the server has: then no wake-up goes there any more."""
        connection = self._connection
        with contextlib.suppress(OSError, NotImplementedError):
            if connection.is_connected and connection._writer.can_write_eof():
                connection._writer.write_eof()
                async with asyncio.timeout(HANG_UP_SECS):
                    while await connection._reader.read(65536):
                        pass
        await self.cut()

    async def give_back(self) -> None:
        """Return the connection to the client; never with a reply on its way that the next user would take for its."""
        if self.owed or self._left_off or self._is_cut:
            await self.cut()
        try:
            await self._put_back()
        except asyncio.CancelledError:  # while another task held the lock of the pool
            task = asyncio.get_running_loop().create_task(self._put_back_later())
            _late.add(task)
            task.add_done_callback(_late.discard)
            raise

    async def _put_back_later(self) -> None:
        with contextlib.suppress(KeyError, ValueError):
            await self._put_back()


def _descriptor(connection: Any) -> int:
    """The number of its socket; negative when it has none."""
    writer = connection._writer
    if writer is None or writer.transport.is_closing():  # of uvloop, the number may be another's by now
        return -1
    sock = writer.get_extra_info("socket")
    number: int = -1 if sock is None else sock.fileno()
    return number


_kept_from_children = KeptFromChildren(_descriptor)


class OneServer:
    """Borrows connections from a client of one server (or of a Sentinel set, which finds the server)."""

    redirects = False

    def __init__(self, client: Redis) -> None:
        self._client = client
        self._watch = Watch()

    async def borrow(self, _key: str, _redirection: AskError | None) -> Wire:
        """A connection."""
        pool: Any = self._client.connection_pool
        if isinstance(pool, Pool):
            connection = await pool.at_hand()
            if connection is not None:
                wire = Wire(connection, partial(pool.release, connection), self._watch, plain=pool.plain)
                return await fresh(wire, connection, _cancellations()) if was_reset(connection) else wire
        cancellations = _cancellations()
        connection = await pool.get_connection()
        wire = Wire(connection, partial(pool.release, connection), self._watch)
        return await fresh(wire, connection, cancellations)

    async def refresh(self) -> None:
        """There is nothing to look up again."""


class Cluster:
    """Borrows connections from a cluster client."""

    redirects = True

    def __init__(self, client: RedisCluster) -> None:
        self._client: Any = client
        self._watch = Watch()

    async def borrow(self, key: str, redirection: AskError | None) -> Wire:
        """A connection to the node that holds the key, or to the one that a redirection names."""
        cancellations = _cancellations()
        await self._client.initialize()
        if redirection is None:
            return await self._wire(self._client.get_node_from_key(key), cancellations)
        moved = isinstance(redirection, MovedError)
        if moved:
            await self.refresh()
        wire = await self._wire(self._node(redirection.host, redirection.port), cancellations)
        wire.asking = not moved
        return wire

    def _node(self, host: str, port: int) -> Any:
        """The node; redis-py does not know one that has no slots yet, to which a first one moves."""
        node: Any = self._client.get_node(host, port)
        if node is None:
            nodes = self._client.nodes_manager
            make: Any = ClusterNode
            node = make(host, port, **nodes.connection_kwargs)
            nodes.nodes_cache[node.name] = node
        return node

    async def refresh(self) -> None:
        """Read the topology again."""
        await self._client.nodes_manager.initialize()

    async def _wire(self, node: Any, cancellations: int) -> Wire:
        connection = node.acquire_connection()

        async def put_back() -> None:
            node.release(connection)

        return await fresh(Wire(connection, put_back, self._watch), connection, cancellations)


def _cancellations() -> int:
    """How often this task was asked to end."""
    task = asyncio.current_task()
    return task.cancelling() if task else 0


def was_reset(connection: Any) -> bool:
    """Whether a connection ended with an error, which its parser does not look at."""
    return connection._reader.exception() is not None


async def fresh(wire: Wire, connection: Any, cancellations: int) -> Wire:
    """A wire whose connection stands: redis-py hands out those that the server has closed, or with replies in them.

    Heeds a cancellation since there were `cancellations`: redis-py connects with asyncio.wait_for, which swallows one in
    Python 3.11 when its result comes at the same moment.
    """
    _kept_from_children.add(connection)
    try:
        if not connection.is_connected:
            await connection.connect()
        if was_reset(connection) or await connection.can_read():
            await connection.disconnect(nowait=True)
            await connection.connect()
        if _cancellations() > cancellations:
            raise asyncio.CancelledError  # noqa: TRY301 (as any other)
    except BaseException:
        await wire.cut()  # it may have asked for what did not come yet
        await wire.give_back()
        raise
    return wire


def route(client: Client) -> OneServer | Cluster:
    """How connections of a client are borrowed."""
    return Cluster(client) if isinstance(client, RedisCluster) else OneServer(client)


def address(client: Client) -> Hashable:
    """Equal for two clients of one server, database and user. For a cluster or a Sentinel set, only for the same client."""
    if isinstance(client, RedisCluster):
        return id(client)
    pool: Any = client.connection_pool
    named = [pool.connection_kwargs.get(name) for name in ("path", "host", "port", "db", "username")]
    if type(pool) in {Pool, ConnectionPool, BlockingConnectionPool} and (named[0] or named[1]):
        return (pool.connection_class, *named)
    return id(client)


async def sleep(seconds: float) -> None:
    """Wait."""
    await asyncio.sleep(seconds)


Worker = asyncio.Task[None]
"""What does the work in the background."""


def is_alive(worker: Worker) -> bool:
    """Whether it goes on working."""
    return not worker.done() and not worker.cancelling()


class Background:
    """Work that outlives the call that began it."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, work: Callable[[], Coroutine[Any, Any, None]], *, finish: bool = False) -> Worker:  # noqa: ARG002
        """Run it. With `finish` a program does not end before it (for threads; tasks end with their loop)."""
        task = asyncio.get_running_loop().create_task(work())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def end(self, seconds: float) -> None:
        """Wait for it so long, and for what it begins; then stop it."""
        until = now() + seconds
        while self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=max(0.0, until - now()))
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)


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


Swallows = bool
"""What the end of a block answers: whether the exception goes no further."""


class Stopper:
    """Cancels the task inside a block from outside, and takes that back at its end, as asyncio.timeout does."""

    def __init__(self) -> None:
        self._task = asyncio.current_task()
        self._cancelling = self._task.cancelling() if self._task else 0
        self._sent = False

    def stop(self) -> None:
        """Cancel the task, once."""
        if self._task is not None and not self._sent:
            self._sent = self._task.cancel("the lease is lost")

    def end(self, error: BaseException | None) -> Swallows:
        """The block ends with this: true for a cancellation that is ours alone."""
        if self._task is None or not self._sent or self._task is not asyncio.current_task():
            return False
        # more requests than at the beginning: somebody else cancels the task too
        others = self._task.uncancel() > self._cancelling
        return isinstance(error, asyncio.CancelledError) and not others
