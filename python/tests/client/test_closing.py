"""Closing a queue while calls are under way: what they lease is given back, what they do is told, no odd error."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
import redis
from redis._parsers import _HiredisParser, _RESP3Parser
from support import servers
from support.client_flavours import unwrap
from support.redis_probe import WAKE_UP, load
from support.servers import PATIENCE

import leaseq
import leaseq.aio
from leaseq import Item
from leaseq._aio import io as aio
from leaseq._aio.watch import Watch
from leaseq._sync import io as sync

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.client_flavours import ClientFlavour

    from leaseq_conformance.fault_proxy import Listener

pytestmark = pytest.mark.usefixtures("cap_of_an_hour")


def close_with_replies_held(flavour: ClientFlavour, queue: Any, proxy: Listener) -> None:
    """Close a queue while what the server has answered is still on its way; that arrives then."""
    closing = flavour.start(queue.close)
    servers.wait_until(lambda: unwrap(queue)._transport.life.closed)
    proxy.hold_replies_after = None
    closing.result(PATIENCE)


def test_what_a_wait_leased_is_given_back(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str, proxy: Listener
) -> None:
    """LQ-BLOCK-6: closed when the lease has run and its reply is on the way: the item is ready again, uncounted."""
    queue, other = flavour.queue("q", proxy.url), flavour.queue("q", url)
    assert queue.lease(30, block=False) is None, "the script is known"
    waiting = flavour.start(queue.lease, 30)
    servers.wait_until(lambda: redis_client.info("clients")["blocked_clients"] == 1)
    proxy.hold_replies_after = len(WAKE_UP)
    other.add_item(Item(b"x", id="a"))
    servers.wait_until(lambda: other.stats().leased == 1)
    close_with_replies_held(flavour, queue, proxy)
    with pytest.raises(leaseq.QueueClosedError):
        waiting.result(PATIENCE)
    info = other.inspect("a")
    assert (info.state, info.attempt) == ("ready", 0)


def test_who_died_is_published_by_a_queue_that_closes_at_once(url: str) -> None:
    """LQ-CLIENT-8: the outcome is asked for in the background, which has not begun when the queue is closed."""
    other = leaseq.WorkQueue("q", url)

    async def work() -> None:
        async with leaseq.aio.WorkQueue("q", url) as queue:
            await queue.add_item(Item(b"x", id="a"), max_attempts=1, keep=60)
            await queue.lease(0.001, block=False)
            await asyncio.to_thread(servers.wait_until, lambda: other.stats().overdue == 1)
            assert await queue.lease(30, block=False) is None

    asyncio.run(work())
    assert other.stats().kept == 1
    other.close()


def test_a_call_in_flight_is_answered(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str, proxy: Listener
) -> None:
    """LQ-ERROR-4: closed when the call has run and its reply is on the way: the caller gets it."""
    queue, other = flavour.queue("q", proxy.url), flavour.queue("q", url)
    queue.add_item(Item(b"x"))
    item = queue.lease(30)
    load(redis_client)
    proxy.hold_replies_after = 0
    call = flavour.start(queue.complete, item)
    servers.wait_until(lambda: other.stats().completed == 1)
    close_with_replies_held(flavour, queue, proxy)
    assert call.result(PATIENCE) is True


def test_complete_and_lease_in_flight(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str, proxy: Listener
) -> None:
    """LQ-FUSED-1: the caller learns that the item is completed; the next one goes back."""
    queue, other = flavour.queue("q", proxy.url), flavour.queue("q", url)
    queue.add_items([Item(b"x", id="a"), Item(b"x", id="b")])
    item = queue.lease(30)
    load(redis_client)
    proxy.hold_replies_after = 0
    call = flavour.start(queue.complete_and_lease, item, 30)
    servers.wait_until(lambda: other.stats().completed == 1)
    close_with_replies_held(flavour, queue, proxy)
    assert call.result(PATIENCE) == (True, None)
    info = other.inspect("b")
    assert (info.state, info.attempt) == ("ready", 0)


def test_a_call_that_is_never_answered_ends(
    flavour: ClientFlavour, url: str, proxy: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LQ-ERROR-4: close waits a while only, and the caller is told that the reply is lost."""
    for module in ("leaseq._aio.life", "leaseq._sync.life"):
        monkeypatch.setattr(f"{module}.REPLY_GRACE", 0.3)
    queue = flavour.queue("q", f"{proxy.url}?socket_timeout=3600")
    other = flavour.queue("q", url)
    queue.configure(max_data=7)
    proxy.discard_replies = True
    call = flavour.start(queue.configure, max_data=77)
    servers.wait_until(lambda: other.stats().max_data == 77)
    flavour.start(queue.close).result(PATIENCE)  # the call itself would go on for an hour
    with pytest.raises(leaseq.ReplyLostError):
        call.result(PATIENCE)


WIRE_CALLS: list[Callable[[Any], Any]] = [
    lambda wire: wire.send("PING"),
    lambda wire: wire.read(),
    lambda wire: wire.read_within(1),
]
ODD = [AttributeError, RuntimeError, TypeError, ValueError]


class Broken:
    """A connection that fails as redis-py's do when another thread or task closes them."""

    socket_timeout = 1
    _reader = None

    def __init__(self, odd: type[Exception]) -> None:
        self.odd = odd
        self.is_connected = True
        self.closes = True

    def pack_command(self, *_: object) -> list[bytes]:
        """A command."""
        return []

    def fail(self, *_: object, **__: object) -> Any:
        """What another one does in the middle of this."""
        self.is_connected = not self.closes
        raise self.odd

    send_packed_command = fail

    def read_response(self, **_: object) -> Any:
        """A reply."""
        self.fail()

    @property
    def _writer(self) -> Any:
        return self.fail()

    @property
    def _parser(self) -> Any:
        return self.fail()


@pytest.mark.parametrize("odd", ODD)
def test_a_closed_connection_is_a_connection_error(odd: type[Exception]) -> None:
    """LQ-ERROR-4: whatever redis-py trips over; with the connection open it is a fault, and shown."""
    for call in WIRE_CALLS:
        with pytest.raises(redis.ConnectionError):
            call(sync.Wire(Broken(odd), lambda: None))
        still_open = Broken(odd)
        still_open.closes = False
        with pytest.raises(odd):
            call(sync.Wire(still_open, lambda: None))


@pytest.mark.parametrize("parser", [_HiredisParser, _RESP3Parser])
def test_a_connection_that_is_cut_before_it_is_read_is_not_opened_again(
    url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch, parser: Any
) -> None:
    """LQ-BLOCK-6: closing comes between a waiter's last look and its read: it must not wait on a new connection."""
    client = redis.Redis.from_url(url, parser_class=parser, protocol=3)
    with client:
        wire = sync.Wire(client.connection_pool.get_connection(), lambda: None)
        connected = len(redis_client.client_list())
        wire.send("BLPOP", "nothing", "3600")
        look = wire._check

        def look_and_be_cut() -> None:
            look()
            wire.cut()

        monkeypatch.setattr(wire, "_check", look_and_be_cut)
        with pytest.raises((redis.ConnectionError, sync.NothingYetError)):
            wire.read_within(3600)
        servers.wait_until(lambda: len(redis_client.client_list()) == connected - 1)


@pytest.mark.parametrize("parser", [_HiredisParser, _RESP3Parser])
def test_a_reply_that_has_begun_in_time_is_read_to_its_end(proxy: Listener, parser: Any) -> None:
    """LQ-BLOCK-9: the time is for its beginning; one that has not begun can be read later."""
    client = redis.Redis.from_url(proxy.url, parser_class=parser, protocol=3, socket_timeout=None)
    with client, ThreadPoolExecutor() as pool:
        connection: Any = client.connection_pool.get_connection()
        wire = sync.Wire(connection, lambda: client.connection_pool.release(connection))
        proxy.hold_replies_after = 40
        wire.send("ECHO", "x" * 100)
        servers.wait_until(wire._begun)
        reading = pool.submit(wire.read_within, 0.01)
        with pytest.raises(TimeoutError):
            reading.result(0.3)
        proxy.hold_replies_after = None
        assert reading.result(PATIENCE) == b"x" * 100
        proxy.hold_replies_after = 0
        wire.send("PING")
        with pytest.raises(sync.NothingYetError):
            wire.read_within(0.01)
        proxy.hold_replies_after = None
        assert wire.read() == b"PONG"
        wire.give_back()


@pytest.mark.parametrize("odd", ODD)
async def test_a_closed_connection_is_a_connection_error_in_asyncio(odd: type[Exception]) -> None:
    """LQ-ERROR-4: the same for asyncio."""

    async def put_back() -> None: ...

    for call in WIRE_CALLS:
        with pytest.raises(redis.ConnectionError):
            await call(aio.Wire(Broken(odd), put_back, Watch()))


@pytest.mark.parametrize("steps", range(24))
async def test_a_cancellation_while_connecting_is_heeded(url: str, steps: int) -> None:
    """LQ-BLOCK-6: at every step of the loop; in Python 3.11 the client library swallows it at some."""
    async with leaseq.aio.WorkQueue("q", url) as queue:
        waiting = asyncio.create_task(queue.lease(30))
        for _ in range(steps):
            await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting], timeout=PATIENCE)
        assert waiting.cancelled()


def test_as_many_waiters_as_one_likes(url: str) -> None:
    """LQ-BLOCK-1: each holds a connection; the client library's own limit of connections is not ours."""

    async def work() -> None:
        async with leaseq.aio.WorkQueue("q", url) as queue:
            waiting = [asyncio.create_task(queue.lease(30)) for _ in range(120)]
            other = leaseq.WorkQueue("q", url)
            await asyncio.to_thread(other.add_items, [Item(b"x") for _ in range(120)])
            assert all(await asyncio.gather(*waiting))
            other.close()

    asyncio.run(work())


def test_a_wait_that_is_cut_off_keeps_its_socket_until_its_thread_closes_it(url: str) -> None:
    """Closed by another thread, its number could be that of a new connection when the wait begins."""
    with redis.Redis.from_url(url) as client:
        connection: Any = client.connection_pool.get_connection()
        wire = sync.Wire(connection, lambda: client.connection_pool.release(connection))
        wire.send("BLPOP", "nothing", 0)
        sock = connection._sock
        wire.cut_off()
        assert sock.fileno() != -1
        with pytest.raises(redis.ConnectionError):
            wire.read_within(3600)
        wire.give_back()
        assert sock.fileno() == -1
