"""Both flavours of the client behind one set of blocking calls, so that a test is written once.

A `ClientFlavour` makes queues and clients. Those of asyncio live in an event loop in a separate thread; what a test gets is
a stand-in that runs each call there and waits, typed as the thing for threads. It adds no behaviour.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, Self, cast

import redis
import redis.asyncio
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.retry import Retry
from support.servers import TIMEOUT_SECS

import leaseq
import leaseq.aio
from leaseq._aio import connection as aio_connection
from leaseq._aio import route as aio_route
from leaseq._sync import connection as sync_connection
from leaseq._sync import route as sync_route

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def connections_in_use(client: Any) -> int:
    """Return the number of connections for a client that are in use."""
    is_sync = isinstance(client, redis.Redis)
    route: Any = (sync_route if is_sync else aio_route).route(client)
    known: Any = (sync_connection if is_sync else aio_connection)._connections
    idle = {id(each) for each in route._idle}
    return sum(
        each.endpoint is route._endpoint and not each._closed and id(each) not in idle
        for each in list(known._connections)
    )


class ClientFlavour:
    """Threads. `start` runs a call in the background."""

    name = "sync"
    no_retry: Any = Retry(NoBackoff(), 0)
    module: Any = redis

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(64)
        self._closers: list[Callable[[], object]] = []

    def queue(self, name: str, server: Any = None, **options: Any) -> leaseq.WorkQueue:
        """A queue; closed with the flavour."""
        queue = leaseq.WorkQueue(name, server, **options)
        self._closers.append(queue.close)
        return queue

    def queues(self, queues: list[leaseq.WorkQueue], **options: Any) -> Any:
        """Queues to lease from as if they were one."""
        return leaseq.WorkQueues(queues, **options)

    def client(self, url: str, **options: Any) -> Any:
        """A redis-py client as a user makes it, default retries included; closed with the flavour."""
        return self.own(self.module.Redis.from_url(url, **options))

    def cluster_client(self, url: str, **options: Any) -> Any:
        """A redis-py cluster client; closed with the flavour."""
        client = self.own(self.module.RedisCluster.from_url(url, **options))
        if isinstance(client, redis.RedisCluster):
            self._closers.append(client.disconnect_connection_pools)  # its close leaves them open
        return client

    def own(self, client: Any) -> Any:
        """Close this client with the flavour."""
        self._closers.append(lambda: self.run(getattr(client, "aclose", client.close)()))
        return client

    def run(self, answer: Any) -> Any:
        """Return what a call of a client of this flavour answers."""
        return answer

    def start(self, call: Callable[..., Any], *args: Any, **options: Any) -> Future[Any]:
        """Run a call in the background."""
        return self._pool.submit(call, *args, **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for close in reversed(self._closers):
            close()
        self._pool.shutdown()


class AsyncioFlavour(ClientFlavour):
    """Asyncio."""

    name = "asyncio"
    no_retry: Any = AsyncRetry(NoBackoff(), 0)
    module: Any = redis.asyncio
    new_loop: Callable[[], asyncio.AbstractEventLoop] = staticmethod(asyncio.new_event_loop)

    def __init__(self) -> None:
        super().__init__()
        self.loop = self.new_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def queue(self, name: str, server: Any = None, **options: Any) -> leaseq.WorkQueue:
        """A stand-in for a queue of asyncio."""
        queue = leaseq.aio.WorkQueue(name, server, **options)
        stand_in = _Queue(self, queue)
        self._closers.append(stand_in.close)
        return cast("leaseq.WorkQueue", stand_in)

    def queues(self, queues: list[leaseq.WorkQueue], **options: Any) -> Any:
        """A stand-in for queues of asyncio."""
        return _Queue(self, leaseq.aio.WorkQueues(unwrap(queues), **options))

    def run(self, answer: Any) -> Any:
        """Wait for an answer."""
        if not inspect.isawaitable(answer):
            return answer

        async def wait() -> Any:
            return await answer

        return asyncio.run_coroutine_threadsafe(wait(), self.loop).result(TIMEOUT_SECS)

    def cluster_client(self, url: str, **options: Any) -> Any:
        """A redis-py cluster client; closed with the flavour."""
        self._closers.append(lambda: self.run(_drop_rest()))  # the last one: they go in reverse
        return super().cluster_client(url, **options)

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self.run(self.loop.shutdown_asyncgens())  # as asyncio.run does
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


async def _drop_rest() -> None:
    """Have the loop outlive what redis-py before 8 leaves to it and to the garbage collector: connections of former nodes."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        await asyncio.wait(others, timeout=TIMEOUT_SECS)
    gc.collect()
    await asyncio.sleep(0)


class _StandIn:
    """Has what the real thing has; runs what is awaitable."""

    def __init__(self, flavour: AsyncioFlavour, real: Any) -> None:
        self.flavour = flavour
        self.real = real

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.real, name)
        if isinstance(value, leaseq.aio.WorkQueue):
            return _Queue(self.flavour, value)
        if not callable(value):
            return value

        def call(*args: Any, **options: Any) -> Any:
            bare_options = {option: unwrap(given) for option, given in options.items()}
            return self.wrap(self.flavour.run(value(*map(unwrap, args), **bare_options)))

        return call

    def wrap(self, answer: Any) -> Any:
        """Stand-ins for the leased items in an answer."""
        if isinstance(answer, leaseq.aio.LeasedItem):
            return _Item(self.flavour, answer)
        if isinstance(answer, list | tuple) and not hasattr(answer, "_fields"):
            return type(answer)(map(self.wrap, answer))
        return answer

    def __repr__(self) -> str:
        return repr(self.real)


class _Queue(_StandIn):
    def items(self, *args: Any, **options: Any) -> Iterator[Any]:
        """A worker loop."""
        items = self.real.items(*args, **options)
        try:
            while True:
                try:
                    yield self.wrap(self.flavour.run(anext(items)))
                except StopAsyncIteration:
                    return
        finally:
            self.flavour.run(items.aclose())

    def __enter__(self) -> Self:
        self.flavour.run(self.real.__aenter__())
        return self

    def __exit__(self, *error: object) -> None:
        self.flavour.run(self.real.__aexit__(*error))


class _Item(_StandIn):
    @property
    def result(self) -> Any:
        """The result that `complete` stores."""
        return self.real.result

    @result.setter
    def result(self, value: Any) -> None:
        self.real.result = value

    def __enter__(self) -> Self:
        self.flavour.run(self.real.__aenter__())
        return self

    def __exit__(self, *error: object) -> None:
        self.flavour.run(self.real.__aexit__(*error))


def unwrap(value: Any) -> Any:
    """The real thing behind a stand-in, also inside lists and tuples: for what is handed over inside something else."""
    if isinstance(value, _StandIn):
        return value.real
    if isinstance(value, list | tuple):
        return type(value)(map(unwrap, value))
    return value


FLAVOURS: Final = (ClientFlavour, AsyncioFlavour)
