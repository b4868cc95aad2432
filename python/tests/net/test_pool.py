"""The connections that are kept: which is handed out again, how many there may be, when they are closed."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import os
import resource
import socket
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import redis
import uvloop
from support import servers
from support.client_flavours import connections_in_use
from support.redis_probe import until
from support.servers import TIMEOUT_SECS

import leaseq
import leaseq.aio
from leaseq import Item
from leaseq._aio import connection as aio_connection
from leaseq._aio import pool
from leaseq._aio import route as aio
from leaseq._sync import concurrency
from leaseq._sync import connection as sync_connection
from leaseq._sync import route as sync
from leaseq.process import fork

if TYPE_CHECKING:
    from support.client_flavours import ClientFlavour

    from leaseq_conformance.fault_proxy import Listener


async def test_a_call_that_is_cancelled_while_it_connects_frees_its_place() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        client = redis.asyncio.Redis(
            port=port, max_connections=1, client_name="x", socket_connect_timeout=0.2, socket_timeout=0.2
        )
        async with leaseq.aio.WorkQueue("q", client) as queue:
            call = asyncio.create_task(queue.stats())
            peer, _ = await asyncio.to_thread(silent.accept)
            call.cancel()
            await asyncio.wait([call])
            with pytest.raises(leaseq.LeaseqError) as silence:
                await queue.stats()
        assert "max_connections" not in str(silence.value)
        peer.close()


def asking_for(url: str, options: str) -> str:
    """The URL with more options."""
    return f"{url}{'&' if '?' in url else '?'}{options}"


def route_of(flavour: ClientFlavour, client: Any) -> Any:
    """The connections for a client; closed with the flavour."""
    route: Any = (sync if flavour.name == "sync" else aio).route(client)
    flavour.own(client)
    return route


def in_loop(flavour: ClientFlavour, call: Any, *args: Any) -> Any:
    """Return what a call answers that is no coroutine, where the connections live."""

    async def called() -> Any:
        return call(*args)

    return call(*args) if flavour.name == "sync" else flavour.run(called())


def ids(client: redis.Redis) -> set[str]:
    return {each["id"] for each in client.client_list()}


def test_a_connection_that_came_back_is_handed_out_again(flavour: ClientFlavour, url: str) -> None:
    route = route_of(flavour, flavour.client(url))
    first, second = flavour.run(route.acquire("", None)), flavour.run(route.acquire("", None))
    assert first is not second
    route.release(first)
    assert flavour.run(route.acquire("", None)) is first
    route.release(first)
    route.release(second)
    assert flavour.run(route.acquire("", None)) is second
    route.release(second)
    flavour.run(route.close())


@pytest.mark.parametrize("options", ["protocol=2", "protocol=3", "db=3&client_name=mine"])
def test_one_that_the_server_closed_meanwhile_is_opened_again(
    flavour: ClientFlavour, url: str, redis_client: redis.Redis, options: str
) -> None:
    """LQ-ERROR-4: no reply is lost to it, whether an item was added is known; also where there may be one alone."""
    queue = flavour.queue("q", asking_for(url, f"max_connections=1&{options}"))
    others = ids(redis_client)
    assert queue.add_item(Item(b"x", id="a"))
    for each in ids(redis_client) - others:
        assert redis_client.client_kill_filter(_id=each) == 1
    assert queue.add_item(Item(b"x", id="b"))
    assert queue.stats().ready == 2
    again = [each for each in redis_client.client_list() if each["id"] not in others]
    client_info = (again[0]["db"], again[0]["name"])
    assert [client_info] * len(again) == [("3", "mine") if options.startswith("db") else ("0", "")]


def test_one_that_was_reset_meanwhile_is_opened_again(flavour: ClientFlavour, proxy: Listener) -> None:
    """LQ-ERROR-4: nothing was sent there, so no reply is lost to it."""
    queue = flavour.queue("q", proxy.url)
    assert queue.add_item(Item(b"x", id="a"))
    idle = route_of(flavour, queue.executor.client)._idle[-1]
    proxy.reset()
    servers.wait_until(lambda: not in_loop(flavour, idle.is_usable))
    assert queue.add_item(Item(b"x", id="b"))


def test_one_whose_opening_was_interrupted_is_not_handed_out(
    flavour: ClientFlavour, redis_client: redis.Redis, proxy: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LQ-ERROR-4: what its opening asked for comes later, and would be taken for the reply of a call."""
    del redis_client  # the server is empty
    interruption = KeyboardInterrupt if flavour.name == "sync" else asyncio.CancelledError
    module = sync_connection if flavour.name == "sync" else aio_connection
    route = route_of(flavour, flavour.client(proxy.url))

    def raising(*_: Any, **__: Any) -> Any:
        raise interruption

    with monkeypatch.context() as patched:
        patched.setattr(module.Connection, "read", raising)
        with pytest.raises((interruption, concurrent.futures.CancelledError)):
            flavour.run(route.acquire("", None))
    connection = flavour.run(route.acquire("", None))
    flavour.run(connection.send("ECHO", "mine"))
    assert flavour.run(connection.read()) == b"mine"
    route.release(connection)
    flavour.run(route.close())


def test_a_push_that_came_meanwhile_is_no_reply(
    flavour: ClientFlavour, url: str, redis_client: redis.Redis
) -> None:
    """With RESP3 a server may say something unasked, also to a connection that waits."""
    client = flavour.client(asking_for(url, "protocol=3&max_connections=1"))
    route = route_of(flavour, client)
    connection = flavour.run(route.acquire("", None))
    flavour.run(connection.send("CLIENT", "TRACKING", "ON", "BCAST"))
    assert flavour.run(connection.read()) == b"OK"
    route.release(connection)
    redis_client.set("k", "v")
    queue = flavour.queue("q", client)
    assert queue.add_item(Item(b"x", id="a"))
    assert not queue.add_item(Item(b"x", id="a"))
    assert queue.stats().ready == 1


def test_a_bound_on_connections_holds(flavour: ClientFlavour, url: str) -> None:
    """One connection, used by call after call; two at once are one too many."""
    queue = flavour.queue("q", asking_for(url, "max_connections=1"))
    for number in range(3):
        assert queue.add_item(Item(b"x", id=str(number)))
    client = flavour.client(url, max_connections=1)
    route = route_of(flavour, client)
    held = flavour.run(route.acquire("", None))
    assert connections_in_use(client) == 1
    mine = flavour.queue("q", client)
    with pytest.raises(leaseq.UnavailableError, match="max_connections"):
        mine.stats()
    route.release(held)
    assert connections_in_use(client) == 0
    assert mine.stats().ready == 3


def test_a_connection_that_could_not_be_opened_takes_no_place(
    flavour: ClientFlavour, own_server: servers.StartServer
) -> None:
    """LQ-FAIL-5: a client with a bound works again when its server is back."""
    server = own_server()
    queue = flavour.queue("q", asking_for(server.url, "max_connections=2"))
    assert queue.add_item(Item(b"x", id="a"))
    server.kill()
    for _ in range(4):
        with pytest.raises(leaseq.UnavailableError):
            queue.stats()
    server.start()
    assert queue.stats().now > 0


def test_who_finds_none_free_waits_where_the_client_says_so(flavour: ClientFlavour, url: str) -> None:
    kind: Any = (
        redis.BlockingConnectionPool if flavour.name == "sync" else redis.asyncio.BlockingConnectionPool
    )
    for timeout in (0.05, None):
        client = flavour.own(
            flavour.module.Redis.from_pool(kind.from_url(url, max_connections=1, timeout=timeout))
        )
        queue, route = flavour.queue("q", client), route_of(flavour, client)
        held = flavour.run(route.acquire("", None))
        if timeout is not None:
            with pytest.raises(leaseq.UnavailableError, match="max_connections"):
                queue.stats()
        call = flavour.start(queue.stats) if timeout is None else None
        in_loop(flavour, route.release, held)
        if call is not None:
            assert call.result(TIMEOUT_SECS).ready == 0


def test_closing_a_queue_closes_what_it_kept(queue: Any, redis_client: redis.Redis) -> None:
    before = ids(redis_client)
    queue.add_item(Item(b"x"))
    assert ids(redis_client) > before
    queue.close()
    servers.wait_until(lambda: ids(redis_client) == before)


def test_queues_on_one_client_share_connections(
    flavour: ClientFlavour, url: str, redis_client: redis.Redis
) -> None:
    """They are closed with the last of them."""
    before = ids(redis_client)
    client = flavour.client(url)
    one, other = flavour.queue("one", client), flavour.queue("other", client)
    assert one.add_item(Item(b"x"))
    shared = ids(redis_client) - before
    assert other.add_item(Item(b"x"))
    assert ids(redis_client) - before == shared
    one.close()
    assert other.stats().ready == 1
    other.close()
    servers.wait_until(lambda: ids(redis_client) == before)


def test_what_is_given_back_in_the_background_is_given_back_once(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LQ-BLOCK-6: by then another call may have it, which would find it closed, or share it with a third."""
    with leaseq.WorkQueue("q", url) as queue:
        queue.lease(30, block=False)  # now the server knows the script
        route = queue.executor.route
        taken: list[Any] = []

        def begin_at_once(_: Any, work: Any, **__: Any) -> None:
            work()
            taken.append(route.acquire("", None))

        def interrupted(*_: Any) -> Any:
            monkeypatch.undo()
            monkeypatch.setattr(concurrency.Background, "begin", begin_at_once)
            raise KeyboardInterrupt

        monkeypatch.setattr(sync_connection.Connection, "read", interrupted)
        with pytest.raises(KeyboardInterrupt):
            queue.lease(30, block=False)
        assert len(taken) == 1
        assert taken[0] not in route._idle  # type: ignore[union-attr]
        taken[0].send("PING")
        assert taken[0].read() == b"PONG"
        route.release(taken[0])


def test_the_bound_is_of_each_event_loop(url: str) -> None:
    """LQ-CLIENT-18: what tasks wait for belongs to their event loop; a client goes on in the next one."""
    client = redis.asyncio.Redis.from_pool(
        redis.asyncio.BlockingConnectionPool.from_url(url, max_connections=1, timeout=TIMEOUT_SECS)
    )

    async def look() -> list[int]:
        queue = leaseq.aio.WorkQueue("q", client)
        found = await asyncio.gather(*(queue.stats() for _ in range(3)))
        await queue.close()
        return [each.ready for each in found]

    assert asyncio.run(look()) == [0, 0, 0]
    assert asyncio.run(look()) == [0, 0, 0]


def test_the_bound_is_of_each_process(url: str) -> None:
    """A thread of the parent does not give back in the child what it holds at a fork."""
    with redis.Redis.from_url(url, max_connections=1) as client:
        pool = sync.route(client)
        used = pool.acquire("", None)
        child, _ = fork()
        if child == 0:
            try:
                kept = pool.acquire("", None)
            finally:
                os._exit(0 if connections_in_use(client) and kept is not used else 1)
        assert os.waitpid(child, 0)[1] == 0
        with pytest.raises(redis.exceptions.MaxConnectionsError):
            pool.acquire("", None)
        pool.release(used)
        pool.close()


@pytest.mark.parametrize("kind", [redis.Redis, redis.asyncio.Redis, redis.asyncio.RedisCluster])
def test_a_client_that_is_gone_leaves_nothing(kind: Any) -> None:
    """Also a cluster's, which its connections ask where a key is."""
    client = kind(host="127.0.0.1", port=1)
    route = weakref.ref((sync if kind is redis.Redis else aio).route(client))
    assert route() is not None
    del client
    gc.collect()
    assert route() is None


def test_one_that_no_call_used_for_a_while_is_closed(flavour: ClientFlavour, url: str) -> None:
    """A burst of calls leaves no more connections open than its program uses afterwards."""
    route = route_of(flavour, flavour.client(url))
    first, second = flavour.run(route.acquire("", None)), flavour.run(route.acquire("", None))
    in_loop(flavour, route.release, first)
    in_loop(flavour, route.release, second)
    assert first.is_open
    first.idle_since -= pool.IDLE_SECS + 1
    assert flavour.run(route.acquire("", None)) is second
    in_loop(flavour, route.release, second)
    servers.wait_until(lambda: not first.is_open)
    assert flavour.run(route.acquire("", None)) is second
    in_loop(flavour, route.release, second)
    flavour.run(route.close())


def test_connections_are_given_up_if_the_process_can_open_no_more(flavour: ClientFlavour, url: str) -> None:
    route = route_of(flavour, flavour.client(url))
    used = [flavour.run(route.acquire("", None))]
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (used[0].fileno() + 8, limits[1]))
    try:
        with pytest.raises(redis.ConnectionError, match="Too many open files"):
            used.extend(iter(lambda: flavour.run(route.acquire("", None)), None))
        for each in used:
            in_loop(flavour, route.release, each)
        servers.wait_until(lambda: not any(each.is_open for each in used))
        Path(os.devnull).read_bytes()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    flavour.run(route.close())


def forget(queues: list[Any]) -> None:
    queues.clear()
    gc.collect()


def test_what_is_forgotten_is_closed_with_a_warning(url: str, redis_client: redis.Redis) -> None:
    before = ids(redis_client)
    queues = [leaseq.WorkQueue("q", url)]
    queues[0].add_item(Item(b"x"))
    with pytest.warns(ResourceWarning, match="close the queue or the App"):
        forget(queues)
    servers.wait_until(lambda: ids(redis_client) == before)


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_what_is_forgotten_in_a_loop_is_closed_with_a_warning(
    run: Any, url: str, redis_client: redis.Redis
) -> None:
    async def forgets() -> None:
        before = ids(redis_client)
        queues = [leaseq.aio.WorkQueue("q", url)]
        await queues[0].add_item(Item(b"x"))
        with pytest.warns(ResourceWarning, match="close the queue or the App"):
            forget(queues)
        await until(lambda: ids(redis_client) == before)

    run(forgets())
