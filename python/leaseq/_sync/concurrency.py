"""The differences between threads and asyncio: connections, waiting, work in the background.

Written by hand on both sides; everything above is written once, in `_aio`, and generated for threads.
"""

import contextlib
import math
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, Literal, cast

import redis
import redis.asyncio
from redis import ConnectionPool, Redis, RedisCluster
from redis.backoff import NoBackoff
from redis.exceptions import MaxConnectionsError
from redis.retry import Retry

from leaseq._sync.race import current
from leaseq.errors import BadArgumentError, BadTypeError, LeaseqError
from leaseq.password_file import PasswordFile
from leaseq.process import THIS

Client = Redis | RedisCluster


now = time.monotonic
"""Seconds on a clock that never steps."""


SLOT_CHECK_SECS = 0.1
"""A waiter looks this often for what interrupted calls left: nobody wakes it for that."""

UNLIMITED = 2**31
"""As good as no limit, of connections."""


def connect(url: str, password: PasswordFile | None = None) -> Redis:
    """A client for a URL that never sends anything twice. Raises ValueError for one that is none, BadArgumentError for its options."""
    # every waiter holds a connection; a limit, which redis-py sets by itself, is for the URL to ask for
    given: dict[str, Any] = {} if password is None else {"credential_provider": password}
    pool = ConnectionPool.from_url(url, retry=Retry(NoBackoff(), 0), max_connections=UNLIMITED, **given)
    try:
        pool.connection_class(**pool.connection_kwargs)  # does not connect
    except Exception as error:  # of many kinds: TypeError, RedisError, AttributeError
        raise BadArgumentError(f"redis-py refuses an option of the server URL: {error}") from error
    return Redis.from_pool(pool)


def check_client(client: object) -> Client:
    """The client, if it is one for threads. Raises BadTypeError."""
    if isinstance(client, Redis | RedisCluster):
        return client
    hint = ""
    if isinstance(client, redis.asyncio.Redis | redis.asyncio.RedisCluster):
        hint = ": this is an asyncio client; use leaseq.aio.WorkQueue with it"
    raise BadTypeError(f"the server is a URL or a redis client, not {type(client).__name__}{hint}")


def check_pipe(pipe: Any, durable: object = None) -> Any:
    """The pipeline, if it is one that only queues. Raises BadTypeError, and BadArgumentError beside `durable` or behind `watch`."""
    if durable is not None:
        raise BadArgumentError(
            "durable does not apply to a pipeline: put WAIT or WAITAOF behind it, outside MULTI"
        )
    if isinstance(pipe, redis.client.Pipeline | redis.cluster.ClusterPipeline):
        if getattr(pipe, "watching", False) and not getattr(pipe, "explicit_transaction", True):
            raise BadArgumentError(
                "behind watch() a pipeline sends each command at once: call its multi() first, which queues what follows"
            )
        return pipe
    raise BadTypeError(f"pipe takes what the pipeline() of a redis client gives, not {type(pipe).__name__}")


class Slot:
    """A connection that may be in use. One that an interrupted call had is free again once nothing refers to it."""

    __slots__ = ("__weakref__",)


class Slots:
    """A bound on the connections in use, which an interruption between any two lines leaves as it is."""

    def __init__(self, count: int, seconds: float | None) -> None:
        """Seconds to wait if none is free; None: without limit."""
        self._count = count
        self._seconds = seconds
        self._start_over()

    def _start_over(self) -> None:
        """Forget the slots: threads of a parent do not give back in its child what they hold at a fork."""
        self._process = THIS.number
        self._guard = Guard()
        self._taken: list[weakref.ref[Slot]] = []
        self._released = WakeEvent()

    def take(self) -> Slot:
        """Take one. Raises MaxConnectionsError."""
        if self._process != THIS.number:
            self._start_over()
        slot = Slot()
        until = math.inf if self._seconds is None else now() + self._seconds
        while not self._try(slot):
            left = until - now()
            if left <= 0:
                raise MaxConnectionsError("all connections are in use")
            self._released.wait(min(left, SLOT_CHECK_SECS))
        return slot

    def _try(self, slot: Slot) -> bool:
        with self._guard:
            if len(self._taken) >= self._count:
                self._taken = [each for each in self._taken if each() is not None]
            if len(self._taken) >= self._count:
                return False
            self._taken.append(weakref.ref(slot))
        return True

    def release(self, slot: Slot | None) -> None:
        """Give one back, which may be one of a parent."""
        if slot is not None:
            with self._guard, contextlib.suppress(ValueError):
                self._taken.remove(weakref.ref(slot))
            self._released.set()


caller = threading.get_ident
"""Who makes a call."""


def sleep(seconds: float) -> None:
    """Wait."""
    stop = current()
    if stop is None:
        time.sleep(seconds)
    else:
        stop.wait(None, seconds)


Worker = threading.Thread
"""A worker in the background."""


def is_alive(worker: Worker) -> bool:
    """Return whether it goes on working."""
    return worker.is_alive()


class Background:
    """Work that outlives the call that began it."""

    def __init__(self) -> None:
        self._threads: set[threading.Thread] = set()

    def begin(self, work: Callable[[], None], *, finish: bool = False) -> Worker:
        """Run it. With `finish` a program does not end before it.

        Without a further thread, what is to be finished is done here and now; for the rest, raises LeaseqError.
        """

        def run() -> None:
            try:
                work()
            finally:
                self._threads.discard(threading.current_thread())

        thread = threading.Thread(target=run, name="leaseq", daemon=not finish)
        self._threads.add(thread)
        try:
            thread.start()
        except RuntimeError as error:  # there is no memory or number for it, or the interpreter ends
            self._threads.discard(thread)
            if not finish:
                raise LeaseqError(
                    f"this process can start no thread for work in the background: {error}"
                ) from error
            work()
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
    """A sleeper that can be woken, by a signal handler in its own thread too, which `threading.Event` does not allow."""

    def __init__(self) -> None:
        self._asleep = threading.Lock()
        self._asleep.acquire()

    def set(self) -> None:
        """Wake the sleeper, or the next one."""
        with contextlib.suppress(RuntimeError):  # it is set
            self._asleep.release()

    def wait(self, seconds: float | None) -> None:
        """Sleep until it is set or the time is over."""
        self._asleep.acquire(timeout=-1 if seconds is None else min(seconds, threading.TIMEOUT_MAX))


def close(client: Client) -> None:
    """Close a client and its connections."""
    client.close()
    if isinstance(client, RedisCluster):
        cast("Any", client).disconnect_connection_pools()  # its close leaves them open


Swallows = Literal[False]
"""The answer of the end of a block: true if the exception goes no further."""


class Stopper:
    """Would end a block from outside, which threads do not allow: whoever works on an item looks at `lost`."""

    def stop(self) -> None:
        """There is nothing to do."""

    def end(self, _error: BaseException | None) -> Swallows:
        """An exception always passes on."""
        return False
