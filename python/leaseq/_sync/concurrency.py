"""What differs between threads and asyncio: connections, waiting, work in the background.

Written by hand on both sides; everything above is written once, in `_aio`, and generated for threads.
"""

import threading
import time
from collections.abc import Callable
from typing import Any, Literal, cast

import redis
import redis.asyncio
from redis import ConnectionPool, Redis, RedisCluster
from redis.backoff import NoBackoff
from redis.exceptions import MaxConnectionsError
from redis.retry import Retry

from leaseq._sync.race import current
from leaseq.errors import BadTypeError
from leaseq.process import THIS

Client = Redis | RedisCluster


now = time.monotonic
"""Seconds on a clock that never steps."""


UNLIMITED = 2**31
"""As good as no limit, of connections."""


def connect(url: str) -> Redis:
    """A client for a URL that never sends anything twice. Raises ValueError or TypeError for one that is none."""
    # every waiter holds a connection; a limit, which redis-py sets by itself, is for the URL to ask for
    pool = ConnectionPool.from_url(url, retry=Retry(NoBackoff(), 0), max_connections=UNLIMITED)
    pool.connection_class(**pool.connection_kwargs)  # does not connect; an unknown option is told now
    return Redis.from_pool(pool)


def check_client(client: object) -> Client:
    """The client, if it is one for threads. Raises BadTypeError."""
    if isinstance(client, Redis | RedisCluster):
        return client
    hint = ""
    if isinstance(client, redis.asyncio.Redis | redis.asyncio.RedisCluster):
        hint = ": this is an asyncio client; use leaseq.aio.WorkQueue with it"
    raise BadTypeError(f"the server is a URL or a redis client, not {type(client).__name__}{hint}")


def check_pipe(pipe: Any) -> Any:
    """The pipeline, if it is one that only queues. Raises BadTypeError."""
    if isinstance(pipe, redis.client.Pipeline | redis.cluster.ClusterPipeline):
        return pipe
    raise BadTypeError(f"pipe takes what the pipeline() of a redis client gives, not {type(pipe).__name__}")


def node_of(client: RedisCluster, key: str) -> tuple[str, int]:
    """Where a cluster has a key. Raises what redis-py does."""
    untyped: Any = client
    node = untyped.get_node_from_key(key)
    return node.host, node.port


class Slots:
    """A bound on the connections in use."""

    def __init__(self, count: int, seconds: float | None) -> None:
        """Who finds none free waits so long; None for as long as it takes."""
        self._count = count
        self._seconds = seconds
        self._of: dict[int, threading.Semaphore] = {}
        """For each process: what threads of a parent hold at a fork, they do not give back in its child."""

    def _free(self) -> threading.Semaphore:
        known = self._of.get(THIS.number)
        return known or self._of.setdefault(THIS.number, threading.Semaphore(self._count))

    def take(self) -> None:
        """Take one. Raises MaxConnectionsError."""
        if not self._free().acquire(timeout=self._seconds):
            raise MaxConnectionsError("all connections are in use")

    def release(self) -> None:
        """Give one back."""
        self._free().release()


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


Guard = threading.RLock
"""Keeps other threads out of a few lines; a signal handler that calls the queue does not wait for what it interrupted."""


class WakeEvent:
    """A sleeper that can be woken."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """Wake the sleeper, or the next one."""
        self._event.set()

    def wait(self, seconds: float | None) -> None:
        """Sleep until the wake_event rings or the time is over."""
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
