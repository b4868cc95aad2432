"""LQ-CLIENT-10, LQ-CLIENT-19: what a time limit means, which is the same for threads and asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from typing import TYPE_CHECKING, Any, Self

import pytest
import redis
import uvloop

import leaseq
import leaseq.aio
from leaseq._aio import connection as aio
from leaseq._aio.connection import Connection as AioConnection
from leaseq._sync import connection as sync
from leaseq.endpoint import Endpoint, endpoint
from leaseq.time_limit import LEAST_BYTES_PER_SECOND, TimeLimit, arrival_secs

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.client_flavours import ClientFlavour

    from leaseq_conformance.fault_proxy import Listener

LIMIT_SECS = 0.3
SIZE = 2 * LEAST_BYTES_PER_SECOND
HUGE = 16 << 20
"""More than the kernel keeps for a socket."""


class PacedServer:
    """A server that does with each connection what the test says, in its own pace. It takes no greeting."""

    def __init__(self, serve: Callable[[socket.socket, PacedServer], None]) -> None:
        self._serve = serve
        self._over = threading.Event()
        self._listening = socket.socket()
        self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        self._listening.bind(("127.0.0.1", 0))
        self._listening.listen(64)
        self.port: int = self._listening.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def pause(self, seconds: float) -> None:
        """Do nothing for a while. Raises OSError when the test is over."""
        if self._over.wait(seconds):
            raise OSError

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._listening.accept()
            except OSError:
                return
            self._threads.append(threading.Thread(target=self._run, args=(peer,)))
            self._threads[-1].start()

    def _run(self, peer: socket.socket) -> None:
        with contextlib.suppress(OSError), peer:
            self._serve(peer, self)

    def close(self) -> None:
        """End it."""
        self._over.set()
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def endpoint(self, **given: Any) -> Endpoint:
        """Where it is."""
        given = {
            "host": "127.0.0.1",
            "port": self.port,
            "socket_timeout": LIMIT_SECS,
            "lib_name": None,
        } | given
        return endpoint(given, redis.Connection)


def opened(flavour: ClientFlavour, at: Endpoint) -> Any:
    """A connection of this flavour."""
    return flavour.run((sync if flavour.name == "sync" else aio).Connection.open(at))


def in_pieces(piece: int, pause: float) -> Callable[[socket.socket, PacedServer], None]:
    """Send SIZE bytes, piece by piece."""

    def serve(peer: socket.socket, server: PacedServer) -> None:
        peer.recv(65536)
        reply = b"$%d\r\n%s\r\n" % (SIZE, b"x" * SIZE)
        for start in range(0, len(reply), piece):
            peer.sendall(reply[start : start + piece])
            server.pause(pause)

    return serve


@pytest.mark.promise("G18")
@pytest.mark.parametrize("call", ["read", "read_within"])
def test_a_reply_takes_the_time_of_its_bytes(flavour: ClientFlavour, call: str) -> None:
    """The whole takes three times the limit, and no pause does."""
    with PacedServer(in_pieces(SIZE // 9, LIMIT_SECS / 3)) as server:
        connection = opened(flavour, server.endpoint())
        flavour.run(connection.send("GET", "k"))
        reply = connection.read() if call == "read" else connection.read_within(LIMIT_SECS)
        assert flavour.run(reply) == b"x" * SIZE
        connection.close()


@pytest.mark.promise("G18")
@pytest.mark.parametrize("call", ["read", "read_within"])
def test_a_drip_does_not_renew_the_limit(flavour: ClientFlavour, call: str) -> None:
    with PacedServer(in_pieces(1, LIMIT_SECS / 10)) as server:
        connection = opened(flavour, server.endpoint())
        flavour.run(connection.send("GET", "k"))
        began = time.monotonic()
        with pytest.raises(redis.TimeoutError):
            flavour.run(connection.read() if call == "read" else connection.read_within(LIMIT_SECS))
        assert time.monotonic() - began < 10 * LIMIT_SECS
        assert connection.has_failed
        connection.close()


def slowly(piece: int, pause: float) -> Callable[[socket.socket, PacedServer], None]:
    """Take in HUGE bytes, piece by piece."""

    def serve(peer: socket.socket, server: PacedServer) -> None:
        left = HUGE
        while left > 0:
            left -= len(peer.recv(piece, socket.MSG_WAITALL))
            server.pause(pause)

    return serve


@pytest.mark.promise("G18")
def test_a_command_takes_the_time_of_its_bytes(flavour: ClientFlavour) -> None:
    """Sending it takes several times the limit, and the server takes something in all the time."""
    with PacedServer(slowly(HUGE // 20, LIMIT_SECS / 5)) as server:
        connection = opened(flavour, server.endpoint())
        began = time.monotonic()
        flavour.run(connection.send("SET", "k", b"x" * HUGE))
        assert time.monotonic() - began > 2 * LIMIT_SECS
        connection.close()


def test_the_reply_to_a_large_command_waits_until_it_has_arrived(flavour: ClientFlavour) -> None:
    """A proxy between client and server takes the command in at once and passes it on slowly."""

    def serve(peer: socket.socket, server: PacedServer) -> None:
        left = SIZE
        while left > 0:
            left -= len(peer.recv(65536))
        server.pause(2 * LIMIT_SECS)
        peer.sendall(b"+OK\r\n")
        peer.recv(65536)
        server.pause(100 * LIMIT_SECS)

    with PacedServer(serve) as server:
        connection = opened(flavour, server.endpoint())
        flavour.run(connection.send("SET", "k", b"x" * SIZE))
        assert flavour.run(connection.read()) == b"OK"
        flavour.run(connection.send("PING"))
        with pytest.raises(redis.TimeoutError):
            flavour.run(connection.read())
        connection.close()


def test_the_time_of_a_large_command_is_that_of_its_own_reply(flavour: ClientFlavour) -> None:
    """LQ-CLIENT-19: the next call on the connection sends nothing large."""

    def serve(peer: socket.socket, server: PacedServer) -> None:
        left = SIZE
        while left > 0:
            left -= len(peer.recv(65536))
        peer.sendall(b"+OK\r\n")
        peer.recv(65536)
        server.pause(100 * LIMIT_SECS)

    with PacedServer(serve) as server:
        connection = opened(flavour, server.endpoint())

        async def is_usable() -> bool:
            return bool(connection.is_usable())

        flavour.run(connection.send("SET", "k", b"x" * SIZE))
        assert flavour.run(connection.read()) == b"OK"
        assert connection.is_usable() if flavour.name == "sync" else flavour.run(is_usable())
        flavour.run(connection.send("PING"))
        began = time.monotonic()
        with pytest.raises(redis.TimeoutError):
            flavour.run(connection.read())
        assert time.monotonic() - began < arrival_secs(SIZE)
        connection.close()


def test_the_time_of_bytes() -> None:
    limit = TimeLimit(5, 100)
    assert limit.pause(0, 100) == 5
    assert limit.pause(0, 104) == 1
    assert limit.pause(3 * LEAST_BYTES_PER_SECOND, 104) == 4
    assert limit.pause(3 * LEAST_BYTES_PER_SECOND, 104) == 5
    assert limit.pause(0, 112) <= 0


of_each_loop = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])


@of_each_loop
def test_a_loop_that_stands_still_is_not_the_network(run: Any) -> None:
    """LQ-CLIENT-20: a reply is here, and the loop reads it late; connecting goes on, and takes none of the time."""
    arrived = threading.Event()

    def serve(peer: socket.socket, _: PacedServer) -> None:
        while peer.recv(65536):
            peer.sendall(b"+PONG\r\n")
            arrived.set()

    async def call(server: PacedServer) -> None:
        opening = asyncio.create_task(AioConnection.open(server.endpoint(client_name="x")))
        await asyncio.sleep(0)
        time.sleep(2 * LIMIT_SECS)  # noqa: ASYNC251 (the loop stands still)
        connection = await opening
        arrived.clear()
        await connection.send("PING")
        reading = asyncio.create_task(connection.read())
        await asyncio.sleep(0)
        assert arrived.wait(LIMIT_SECS)
        time.sleep(2 * LIMIT_SECS)  # noqa: ASYNC251 (the loop stands still)
        assert await reading == b"PONG"
        connection.close()
        await connection.wait_closed()

    with PacedServer(serve) as server:
        run(call(server))


@of_each_loop
def test_a_reply_that_comes_after_the_loop_stood_still(run: Any) -> None:
    """LQ-CLIENT-20: the rest of the limit is there for it."""

    def serve(peer: socket.socket, server: PacedServer) -> None:
        peer.recv(65536)
        server.pause(1.5 * LIMIT_SECS)
        peer.sendall(b"+PONG\r\n")
        server.pause(100 * LIMIT_SECS)

    async def call(server: PacedServer) -> None:
        connection = await AioConnection.open(server.endpoint())
        await connection.send("PING")
        reading = asyncio.create_task(connection.read())
        await asyncio.sleep(0)
        time.sleep(1.1 * LIMIT_SECS)  # noqa: ASYNC251 (the loop stands still)
        assert await reading == b"PONG"
        connection.close()
        await connection.wait_closed()

    with PacedServer(serve) as server:
        run(call(server))


@pytest.mark.promise("G18")
@of_each_loop
def test_a_server_that_says_nothing_ends_connecting(run: Any) -> None:
    async def call(server: PacedServer) -> None:
        with pytest.raises(redis.TimeoutError):
            await AioConnection.open(server.endpoint(client_name="x"))

    with PacedServer(lambda _, server: server.pause(100 * LIMIT_SECS)) as server:
        run(call(server))


@pytest.mark.promise("G18")
def test_connecting_has_one_limit(flavour: ClientFlavour) -> None:
    """Not one for each reply of the greeting."""

    def serve(peer: socket.socket, server: PacedServer) -> None:
        peer.recv(65536)
        for _ in range(100):
            server.pause(LIMIT_SECS * 0.6)
            peer.sendall(b"+OK\r\n")

    with PacedServer(serve) as server:
        began = time.monotonic()
        with pytest.raises(redis.TimeoutError):
            opened(flavour, server.endpoint(client_name="x", lib_name="", db=3))
        assert time.monotonic() - began < 3 * LIMIT_SECS


@pytest.fixture
def idle_queue(flavour: ClientFlavour, proxy: Listener) -> Any:
    """A queue with eight idle connections, through the proxy."""
    queue: Any = flavour.queue(
        "q", f"{proxy.url}{'&' if '?' in proxy.url else '?'}socket_timeout={LIMIT_SECS}"
    )
    assert queue.stats().ready == 0
    route = queue.executor.route
    taken = [flavour.run(route.acquire("", None)) for _ in range(8)]
    for connection in taken:
        route.release(connection)
    assert len(route._idle) == 8
    return queue


@pytest.mark.promise("G19")
@pytest.mark.parametrize("fault", ["timeout", "break"])
def test_dead_idle_connections_cost_one_call(idle_queue: Any, proxy: Listener, fault: str) -> None:
    """LQ-CLIENT-21: the others may have the same fault as the failed one."""
    if fault == "timeout":
        proxy.hold_replies_after = 0
    else:
        proxy.cut_replies_after = 0
    with pytest.raises(leaseq.ReplyLostError):
        idle_queue.stats()
    proxy.hold_replies_after = proxy.cut_replies_after = None
    assert not idle_queue.executor.route._idle
    assert idle_queue.stats().ready == 0


def test_a_refused_call_costs_no_connection(idle_queue: Any) -> None:
    with pytest.raises(leaseq.BadArgumentError):
        idle_queue.configure(max_data=0)
    assert len(idle_queue.executor.route._idle) == 8
