"""The differences between threads and asyncio: connections, waiting, work in the background.

Written by hand on both sides; everything above is written once, in `_aio`, and generated for threads.
"""

import asyncio
import contextlib
import time
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, ClassVar, cast

import redis
from redis.asyncio import ConnectionPool, Redis, RedisCluster
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import MaxConnectionsError

from leaseq.errors import BadArgumentError, BadTypeError
from leaseq.password_file import PasswordFile
from leaseq.process import THIS

Client = Redis | RedisCluster


now = time.monotonic
"""Seconds on a clock that never steps."""


UNLIMITED = 2**31
"""As good as no limit, of connections."""


def connect(url: str, password: PasswordFile | None = None) -> Redis:
    """Return a client for a URL that never sends anything twice. Raises ValueError for an invalid URL, BadArgumentError for its options."""
    # every waiter holds a connection, so there is no limit unless the URL has one
    given: dict[str, Any] = {} if password is None else {"credential_provider": password}
    pool = ConnectionPool.from_url(url, retry=Retry(NoBackoff(), 0), max_connections=UNLIMITED, **given)
    try:
        pool.connection_class(**pool.connection_kwargs)  # does not connect
    except Exception as error:  # of many kinds: TypeError, RedisError, AttributeError
        raise BadArgumentError(f"redis-py refuses an option of the server URL: {error}") from error
    return Redis.from_pool(pool)


def check_client(client: object) -> Client:
    """The client, if it is one of asyncio. Raises BadTypeError."""
    if isinstance(client, Redis | RedisCluster):
        return client
    hint = ""
    if isinstance(client, redis.Redis | redis.RedisCluster):
        hint = ": this is a client for threads; use leaseq.WorkQueue with it"
    raise BadTypeError(f"the server is a URL or a redis.asyncio client, not {type(client).__name__}{hint}")


def check_pipe(pipe: Any, durable: object = None) -> Any:
    """Return the pipeline, if it only queues commands. Raises BadTypeError, and BadArgumentError beside `durable` or behind `watch`."""
    if durable is not None:
        raise BadArgumentError(
            "durable does not apply to a pipeline: put WAIT or WAITAOF behind it, outside MULTI"
        )
    if isinstance(pipe, redis.asyncio.client.Pipeline | redis.asyncio.cluster.ClusterPipeline):
        if getattr(pipe, "watching", False) and not getattr(pipe, "explicit_transaction", True):
            raise BadArgumentError(
                "behind watch() a pipeline sends each command at once: call its multi() first, which queues what follows"
            )
        return pipe
    raise BadTypeError(
        f"pipe takes what the pipeline() of a redis.asyncio client gives, not {type(pipe).__name__}"
    )


class Slot:
    """A connection that may be in use."""

    def __init__(self, free: asyncio.Semaphore) -> None:
        self.free = free


class Slots:
    """A bound on the connections in use in each event loop."""

    def __init__(self, count: int, seconds: float | None) -> None:
        """Seconds to wait if none is free; None: without limit."""
        self._count = count
        self._seconds = seconds
        self._start_over()

    def _start_over(self) -> None:
        """Forget the semaphores: tasks of a parent do not give back in its child what they hold at a fork."""
        self._process = THIS.number
        self._free: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = (
            weakref.WeakKeyDictionary()
        )

    async def take(self) -> Slot:
        """Take one. Raises MaxConnectionsError."""
        if self._process != THIS.number:
            self._start_over()
        loop = asyncio.get_running_loop()
        free = self._free.get(loop)
        if free is None:  # what tasks wait for belongs to their loop
            free = self._free[loop] = asyncio.Semaphore(self._count)
        try:
            async with asyncio.timeout(self._seconds if free.locked() else None):
                await free.acquire()
        except TimeoutError as error:
            raise MaxConnectionsError("all connections are in use") from error
        return Slot(free)

    def release(self, slot: Slot | None) -> None:
        """Give one back."""
        if slot is not None:
            slot.free.release()


caller = asyncio.current_task
"""Who makes a call."""


async def sleep(seconds: float) -> None:
    """Wait."""
    await asyncio.sleep(seconds)


Worker = asyncio.Task[None]
"""A worker in the background."""


def is_alive(worker: Worker) -> bool:
    """Return whether it goes on working."""
    return not worker.done() and not worker.cancelling() and not worker.get_loop().is_closed()


class Background:
    """Work that outlives the call that started it."""

    _all: ClassVar[set[asyncio.Task[None]]] = set()

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, work: Callable[[], Coroutine[Any, Any, None]], *, finish: bool = False) -> Worker:  # noqa: ARG002
        """Run it. With `finish` a program does not end before it (for threads; tasks end with their loop)."""
        task = asyncio.get_running_loop().create_task(work())
        for tasks in (self._tasks, self._all):
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        return task

    async def end(self, seconds: float) -> None:
        """Wait for it that long, and for what it starts; then stop it."""
        await _finish(self._tasks, seconds)

    @classmethod
    async def end_all(cls, seconds: float) -> None:
        """The same for all work in this event loop."""
        await _finish(cls._all, seconds)


async def _finish(tasks: set[asyncio.Task[None]], seconds: float) -> None:
    """Wait for those of this event loop, and for what they start; then stop them. Those of a loop that was closed never end."""
    until, loop = now() + seconds, asyncio.get_running_loop()
    tasks -= {each for each in list(tasks) if each.get_loop().is_closed()}
    while mine := [each for each in list(tasks) if each.get_loop() is loop]:
        _, unfinished = await asyncio.wait(mine, timeout=max(0.0, until - now()))
        for task in unfinished:
            task.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)


class Guard(contextlib.nullcontext[None]):
    """Keeps others out of a few lines: tasks only switch at an await, so nothing is needed."""


class WakeEvent:
    """A sleeper that can be woken."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        """Wake the sleeper, or the next one."""
        self._event.set()

    async def wait(self, seconds: float | None) -> None:
        """Sleep until the event is set or the time is over."""
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
"""The answer of the end of a block: true if the exception goes no further."""


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
        # more requests than at the start: the task is cancelled from elsewhere too
        others = self._task.uncancel() > self._cancelling
        return isinstance(error, asyncio.CancelledError) and not others
