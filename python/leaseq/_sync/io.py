"""What differs between threads and asyncio: connections, waiting, work in the background.

Written by hand on both sides; everything above is written once, in `_aio`, and generated for threads.
"""

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, Literal, cast

import redis
import redis.asyncio
from redis import BlockingConnectionPool, ConnectionPool, Redis, RedisCluster
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode
from redis.exceptions import AskError, MovedError
from redis.retry import Retry

from leaseq import flows
from leaseq._sync.at_once import send_at_once
from leaseq._sync.plain import broken
from leaseq._sync.pool import Pool
from leaseq._sync.race import Stop, current
from leaseq.commands import Argument
from leaseq.errors import REFUSALS, BadTypeError
from leaseq.forked import KeptFromChildren
from leaseq.packing import pack

Client = Redis | RedisCluster


now = time.monotonic
"""Seconds on a clock that never steps."""


MANY = 2**31
"""As good as no limit, of connections."""

HANG_UP_SECS = 1.0
"""How long the server may take to notice that a connection is closed."""


ODD = (AttributeError, RuntimeError, TypeError, ValueError)
"""How a connection of redis-py breaks that somebody closes under us."""


class NothingYetError(Exception):
    """No reply came within the time."""


def connect(url: str) -> Redis:
    """A client for a URL that never sends anything twice. Raises ValueError or TypeError for one that is none."""
    # every waiter holds a connection; a limit, which redis-py sets by itself, is for the URL to ask for
    pool = Pool.from_url(url, retry=Retry(NoBackoff(), 0), max_connections=MANY)
    pool.connection_class(**pool.connection_kwargs)  # does not connect; an unknown option is told now
    return Redis.from_pool(pool)


def check_client(client: object) -> Client:
    """The client, if it is one for threads. Raises BadTypeError."""
    if isinstance(client, Redis | RedisCluster):
        return client
    hint = ""
    if isinstance(client, redis.asyncio.Redis | redis.asyncio.RedisCluster):
        hint = ": this is an asyncio client; use leaseq.aio.WorkQueue with it"
    message = f"the server is a URL or a redis client, not {type(client).__name__}{hint}"
    raise BadTypeError(message)


def check_pipe(pipe: Any) -> Any:
    """The pipeline, if it is one that only queues. Raises BadTypeError."""
    if isinstance(pipe, redis.client.Pipeline | redis.cluster.ClusterPipeline):
        return pipe
    message = f"pipe takes what the pipeline() of a redis client gives, not {type(pipe).__name__}"
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

    def __init__(self, connection: Any, put_back: Callable[[], None], *, plain: bool = False) -> None:
        self._connection = connection
        self._put_back = put_back
        self._plain = plain

    def send(self, *command: Argument) -> None:
        """Send a command."""
        self.send_packed(pack(self._connection, command))

    def send_packed(self, packed: list[bytes]) -> None:
        """Send the bytes of a command."""
        connection = self._connection
        if self._left_off or self._is_cut or not connection.is_connected:
            # redis-py would connect again, but the replies that are awaited came with the old connection
            raise redis.ConnectionError("the connection was closed")
        if self.asking:
            self._ask()
        self.owed += 1
        try:
            if not (self._plain and len(packed) == 1 and send_at_once(connection, packed[0])):
                # no health check: it would read the reply of a command that is still under way
                connection.send_packed_command(packed, check_health=False)
        except ODD as error:
            self._tell(error)
            raise

    def _ask(self) -> None:
        """Say that the next command is for a slot that comes here."""
        self.asking = False
        try:
            self.send("ASKING")
            self.read()
        finally:
            self.asking = True

    def read(self, seconds: float | None = None) -> Any:
        """Read a reply, for so long or as the client says. An interruption leaves it there, to be read later."""
        try:
            reply = self._read(seconds)
        except REFUSALS:
            self.owed -= 1
            raise
        except OSError as error:
            raise broken(self._connection, error) from error
        except ODD as error:
            self._tell(error)
            raise
        self.owed -= 1
        if isinstance(reply, redis.ResponseError):
            raise reply
        return reply

    def _read(self, seconds: float | None) -> Any:
        connection = self._connection
        own = connection.socket_timeout
        if own is None or (seconds is not None and seconds != own):  # never for ever
            bound = flows.LONGEST_REPLY if seconds is None else seconds
            return connection.read_response(disable_decoding=True, disconnect_on_error=False, timeout=bound)
        # the socket is set to that already
        if self._plain:
            return connection._parser.read_response(disable_decoding=True)
        return connection.read_response(disable_decoding=True, disconnect_on_error=False)

    def read_within(self, seconds: float) -> Any:
        """Read a reply that may take long. Raises NothingYetError."""
        self._check()
        stop = current()
        if stop is None:
            return self._read_in_time(seconds)
        try:
            heard = self._heard(stop, seconds)
        except ODD as error:
            self._tell(error)
            raise
        if not heard:
            raise NothingYetError
        return self.read()

    def _read_in_time(self, seconds: float) -> Any:
        """Read a reply, in a thread that nobody interrupts. What has begun within the time is read to its end."""
        try:
            return self.read(seconds)
        except redis.TimeoutError:
            self._check()
            if not self._begun():
                raise NothingYetError from None
        return self.read()

    def _begun(self) -> bool:
        """Whether there is something of a reply.

        Not asked of the connection, which would connect again where another thread has just cut it, and then wait for a
        reply that cannot come.
        """
        try:
            return bool(self._connection._parser.can_read(0))
        except ODD as error:
            self._tell(error)
            raise

    def _heard(self, stop: Stop, seconds: float) -> bool:
        """Whether a reply begins within the time, in a thread that can be interrupted."""
        stop.check()
        if self._begun():
            return True
        heard = stop.wait(_open(self._connection._sock), seconds)
        self._check()
        return heard

    def _tell(self, error: Exception) -> None:
        """Raise the error that callers know, for an odd one of a connection that somebody closed under us."""
        if self._is_cut or not self._connection.is_connected:
            raise redis.ConnectionError("the connection was closed") from error

    def _check(self) -> None:
        # redis-py would connect again, but the replies that are awaited came with the old connection
        if self._is_cut or not self._connection.is_connected:
            raise redis.ConnectionError("the connection was closed")

    def cut(self) -> None:
        """Close the connection: its replies are no longer wanted."""
        self._is_cut = True
        self._connection.disconnect()

    def cut_off(self) -> None:
        """End the connection under the thread that reads, and then closes it.

        The number of a socket that is closed here may be another's by the time that thread begins to wait for it.
        """
        self._is_cut = True
        sock = self._connection._sock
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    @property
    def can_leave_off(self) -> bool:
        """Whether it can end one direction, and has only the commands in it that are sent."""
        return not self.asking and not isinstance(self._connection._sock, ssl.SSLSocket)

    def leave_off(self) -> None:
        """Send nothing more: the server ends a block and closes; what it answered before can still be read."""
        self._left_off = True
        sock = self._connection._sock
        with contextlib.suppress(OSError):
            if sock is not None:
                sock.shutdown(socket.SHUT_WR)

    def hang_up(self) -> None:
        """Close the connection, and wait until the server has: then no wake-up goes there any more."""
        sock = self._connection._sock
        with contextlib.suppress(OSError):
            if sock is not None:
                sock.shutdown(socket.SHUT_WR)
                sock.settimeout(HANG_UP_SECS)
                while sock.recv(65536):
                    pass
        self.cut()

    def give_back(self) -> None:
        """Return the connection to the client; never with a reply on its way that the next user would take for its."""
        if self.owed or self._left_off:  # also when it was cut: redis-py may have connected again meanwhile
            self.cut()
        self._put_back()


def _open(sock: socket.socket | None) -> socket.socket:
    """The socket, if it is still there."""
    if sock is None:
        raise redis.ConnectionError("the connection was closed")
    return sock


def _descriptor(connection: Any) -> int:
    """The number of its socket; negative when it has none."""
    sock: socket.socket | None = getattr(connection, "_sock", None)
    return -1 if sock is None else sock.fileno()


_kept_from_children = KeptFromChildren(_descriptor)


class OneServer:
    """Borrows connections from a client of one server (or of a Sentinel set, which finds the server)."""

    redirects = False

    def __init__(self, client: Redis) -> None:
        self._client = client

    def borrow(self, _key: str, _redirection: AskError | None) -> Wire:
        """A connection."""
        pool: Any = self._client.connection_pool
        if isinstance(pool, Pool):
            connection = pool.at_hand()
            if connection is not None:
                return Wire(connection, partial(pool.release, connection), plain=pool.plain)
        connection = pool.get_connection()
        _kept_from_children.add(connection)
        return Wire(connection, partial(pool.release, connection))

    def refresh(self) -> None:
        """There is nothing to look up again."""


class Cluster:
    """Borrows connections from a cluster client."""

    redirects = True

    def __init__(self, client: RedisCluster) -> None:
        self._client: Any = client

    def borrow(self, key: str, redirection: AskError | None) -> Wire:
        """A connection to the node that holds the key, or to the one that a redirection names."""
        if redirection is None:
            return self._wire(self._client.get_node_from_key(key))
        moved = isinstance(redirection, MovedError)
        if moved:
            self.refresh()
        wire = self._wire(self._node(redirection.host, redirection.port))
        wire.asking = not moved
        return wire

    def _node(self, host: str, port: int) -> Any:
        """The node; redis-py does not know one that has no slots yet, to which a first one moves."""
        node: Any = self._client.get_node(host, port)
        if node is None:
            make: Any = ClusterNode
            node = make(host, port)
            self._client.nodes_manager.nodes_cache[node.name] = node
        return node

    def refresh(self) -> None:
        """Read the topology again."""
        self._client.nodes_manager.initialize()

    def _wire(self, node: Any) -> Wire:
        return OneServer(self._client.get_redis_connection(node)).borrow("", None)


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


def sleep(seconds: float) -> None:
    """Wait."""
    stop = current()
    if stop is None:
        time.sleep(seconds)
    else:
        stop.wait(None, seconds)


Worker = threading.Thread
"""What does the work in the background."""


def is_alive(worker: Worker) -> bool:
    """Whether it goes on working."""
    return worker.is_alive()


class Background:
    """Work that outlives the call that began it."""

    def __init__(self) -> None:
        self._threads: set[threading.Thread] = set()

    def begin(self, work: Callable[[], None], *, finish: bool = False) -> Worker:
        """Run it. With `finish` a program does not end before it."""

        def run() -> None:
            try:
                work()
            finally:
                self._threads.discard(threading.current_thread())

        thread = threading.Thread(target=run, name="leaseq", daemon=not finish)
        self._threads.add(thread)
        thread.start()
        return thread

    def end(self, seconds: float) -> None:
        """Wait for it so long, and for what it begins."""
        until = now() + seconds
        while self._threads and now() < until:
            for thread in list(self._threads):
                if thread.is_alive():  # it is about to start otherwise
                    thread.join(max(0.0, until - now()))


Guard = threading.Lock
"""Keeps others out of a few lines."""


class Bell:
    """A sleeper that can be woken."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def ring(self) -> None:
        """Wake the sleeper, or the next one."""
        self._event.set()

    def wait(self, seconds: float | None) -> None:
        """Sleep until the bell rings or the time is over."""
        if self._event.wait(seconds):
            self._event.clear()


def close(client: Client) -> None:
    """Close a client and its connections."""
    client.close()
    if isinstance(client, RedisCluster):
        cast("Any", client).disconnect_connection_pools()  # its close leaves them open


Swallows = Literal[False]
"""What the end of a block answers: whether the exception goes no further."""


class Stopper:
    """Would end a block from outside, which threads do not allow: whoever works on an item looks at `lost`."""

    def stop(self) -> None:
        """There is nothing to do."""

    def end(self, _error: BaseException | None) -> Swallows:
        """An exception always passes on."""
        return False
