"""LQ-CLUSTER-5, LQ-CLIENT-22: one time limit for a call to a cluster, however many nodes it meets."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import socketserver
import threading
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import redis.asyncio.cluster
import redis.cluster
from redis.crc import key_slot

import leaseq
from leaseq import Item
from leaseq._sync import concurrency
from leaseq._sync.pending_call import PendingCall

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support import servers
    from support.client_flavours import ClientFlavour

    from leaseq_conformance.redis_server import SpawnedServer

CONNECT_SECS = 1.0
REPLY_SECS = 0.4
LIMIT_SECS = CONNECT_SECS + REPLY_SECS
MACHINE_SECS = 0.5
"""Added to a limit for a slow machine."""


def client_of(
    flavour: ClientFlavour, *nodes: SpawnedServer | MovingNode, connect: float = CONNECT_SECS
) -> Any:
    """A client of redis-py that asks these nodes first, in this order."""
    module: Any = redis.cluster if flavour.name == "sync" else redis.asyncio.cluster
    places = [module.ClusterNode(node.host, node.port) for node in nodes]
    limits = {"socket_timeout": REPLY_SECS, "socket_connect_timeout": connect}
    client = flavour.own(module.RedisCluster(startup_nodes=places, protocol=2, **limits))
    if flavour.name == "sync":
        flavour._closers.append(client.disconnect_connection_pools)  # its close leaves them open
    return client


def name_on(place: int) -> str:
    """The name of a queue whose slot is on that node of three."""
    return next(
        name for name in (f"q{n}" for n in range(99)) if key_slot(name.encode()) * 3 // 16384 == place
    )


@contextlib.contextmanager
def frozen(*nodes: SpawnedServer) -> Iterator[None]:
    """Let nodes stand still: the system accepts connections for them."""
    for node in nodes:
        os.kill(node.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for node in nodes:
            os.kill(node.pid, signal.SIGCONT)


class MovingNode(socketserver.ThreadingTCPServer):
    """A node that has all slots, and answers each script after a while that they have moved, to itself."""

    daemon_threads = True
    pause = 0.8 * REPLY_SECS

    class Handler(socketserver.BaseRequestHandler):
        """Answers the commands of one connection, which come one at a time."""

        server: MovingNode

        def handle(self) -> None:
            """Answer until the client leaves."""
            with contextlib.suppress(OSError):
                while data := self.request.recv(65536):
                    port = self.server.port
                    if b"EVAL" in data:
                        time.sleep(self.server.pause)
                        self.request.sendall(b"-MOVED 1 127.0.0.1:%d\r\n" % port)
                    elif b"SLOTS" in data:
                        self.request.sendall(
                            b"*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:%d\r\n" % port
                        )
                    elif b"COMMAND\r\n" in data:
                        self.request.sendall(b"*0\r\n")
                    else:
                        self.request.sendall(b"+OK\r\n" * data.count(b"*"))

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), self.Handler)
        self.host = "127.0.0.1"
        self.port: int = self.server_address[1]
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def server_close(self) -> None:
        """End it."""
        self.shutdown()
        super().server_close()


@pytest.mark.promise("G18")
def test_a_reply_has_what_is_left_of_the_time_of_its_call() -> None:
    connection: Any = SimpleNamespace(endpoint=SimpleNamespace(reply_secs=5.0))
    call: PendingCall[Any] = PendingCall(until=concurrency.now() + 0.2)
    assert 0 < call.reply_secs(connection) <= 0.2
    call.until = concurrency.now() - 1
    assert call.reply_secs(connection) == 0
    call.until = math.inf
    assert (call.reply_secs(connection), call.reply_secs(connection, 1.0)) == (5.0, 1.0)


def test_redirections_that_do_not_end(flavour: ClientFlavour) -> None:
    """Each reply had the whole limit: twelve redirections took twelve."""
    with MovingNode() as node:
        queue = flavour.queue("q", client_of(flavour, node))
        began = time.monotonic()
        with pytest.raises(leaseq.LeaseqError):
            queue.stats()
        assert time.monotonic() - began < LIMIT_SECS + MACHINE_SECS


@pytest.mark.promise("G18")
def test_a_frozen_node_is_waited_for_once(flavour: ClientFlavour, nodes: servers.RedisCluster) -> None:
    """Connecting, a look at the topology and connecting again had the whole limit each."""
    queue = flavour.queue(name_on(0), client_of(flavour, *nodes.nodes))
    with frozen(nodes.nodes[0]):
        began = time.monotonic()
        with pytest.raises(leaseq.UnavailableError, match="nothing was sent"):
            queue.stats()
        assert time.monotonic() - began < LIMIT_SECS + MACHINE_SECS


@pytest.mark.promise("G18")
def test_all_callers_wait_at_the_same_time(flavour: ClientFlavour, nodes: servers.RedisCluster) -> None:
    """They waited for each other while each looked at the topology."""
    queue = flavour.queue(name_on(1), client_of(flavour, *nodes.nodes))
    with frozen(*nodes.nodes):
        began = time.monotonic()
        calls = [flavour.start(queue.stats) for _ in range(8)]
        assert all(isinstance(call.exception(60), leaseq.UnavailableError) for call in calls)
        assert time.monotonic() - began < LIMIT_SECS + MACHINE_SECS


@pytest.mark.promise("G18")
def test_a_node_that_tells_the_slots_behind_frozen_ones(
    flavour: ClientFlavour, nodes: servers.RedisCluster
) -> None:
    """Each node is asked for a part of the limit."""
    queue = flavour.queue(name_on(2), client_of(flavour, *nodes.nodes))
    with frozen(*nodes.nodes[:2]):
        began = time.monotonic()
        assert queue.stats().items == 0
        assert time.monotonic() - began < CONNECT_SECS + MACHINE_SECS


@pytest.mark.promise("G18")
def test_a_frozen_node_of_the_registry(flavour: ClientFlavour, nodes: servers.RedisCluster) -> None:
    """LQ-REGISTRY-3: a queue is registered within a second or not at all."""
    place = key_slot(b"leaseq:queues") * 3 // 16384
    other = (place + 1) % 3
    client = client_of(flavour, nodes.nodes[other], *nodes.nodes, connect=10.0)
    queue = flavour.queue(name_on(other), client)
    with frozen(nodes.nodes[place]):
        began = time.monotonic()
        assert queue.add_item(Item(b"x", id="a"))
        assert time.monotonic() - began < 1 + LIMIT_SECS + MACHINE_SECS
    queue.remove("a")


def test_the_node_that_took_the_place_of_one_that_is_gone(
    flavour: ClientFlavour, cluster: servers.RedisCluster
) -> None:
    """A call that cannot connect asks the others where its slot is, and goes there."""
    name = name_on(0)
    queue = flavour.queue(name, client_of(flavour, *cluster.nodes, connect=10.0))
    assert queue.stats().items == 0
    cluster.move(key_slot(name.encode()), cluster.nodes[1])
    cluster.nodes[0].kill()
    assert queue.stats().items == 0
