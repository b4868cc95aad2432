"""Blocked workers whose server, connection or wake-up goes away: they lease again and wait on, or raise that they cannot."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest
from support import servers
from support.redis_probe import BLOCKS, EVALS, blocked, calls, load
from support.servers import TIMEOUT_SECS

import leaseq
from leaseq import Item
from leaseq_conformance.fault_proxy import FaultProxy

if TYPE_CHECKING:
    import redis
    from support.client_flavours import ClientFlavour


pytestmark = [pytest.mark.usefixtures("cap_of_an_hour"), pytest.mark.each_server]


@pytest.mark.promise("G27")
@pytest.mark.parametrize("protocol", [2, 3])
def test_a_server_that_restarts(
    flavour: ClientFlavour, own_server: servers.StartServer, protocol: int
) -> None:
    """LQ-FAIL-5, LQ-ERROR-4: between two calls it is not noticed; a blocked worker gets a definite error or an item."""
    server = own_server("--appendonly", "yes")
    queue = flavour.queue("q", f"{server.url}?protocol={protocol}")
    queue.add_item(Item(b"x", id="a"))
    server.restart()
    item = queue.lease(30)
    assert item is not None
    server.restart()
    assert queue.complete(item) is True
    waiting = flavour.start(queue.lease, 30, timeout=TIMEOUT_SECS)
    with server.client() as client:
        blocked(client, 1)
    server.restart()
    with contextlib.suppress(leaseq.UnavailableError):  # it may have looked while no server listened
        waiting.cancel()
        queue.add_item(Item(b"x", id="b"))
        assert waiting.result(TIMEOUT_SECS).id == "b"
    if queue.inspect("b").state == "ready":
        again = queue.lease(30, timeout=TIMEOUT_SECS)
        assert again is not None
        assert again.id == "b"
    assert queue.stats().items == 1


@pytest.mark.promise("G27")
def test_a_server_that_is_killed(flavour: ClientFlavour, own_server: servers.StartServer) -> None:
    """LQ-FAIL-5, LQ-ERROR-4: kill -9 under a blocked worker; what was answered is still there afterwards."""
    server = own_server("--appendonly", "yes", "--appendfsync", "always")
    queue = flavour.queue("q", server.url)
    queue.add_items([Item(b"x", id="a"), Item(b"x", id="b")], delay=60)
    waiting = flavour.start(queue.lease, 30, timeout=TIMEOUT_SECS)
    with server.client() as client:
        blocked(client, 1)
    server.kill()
    with pytest.raises(leaseq.UnavailableError) as caught:
        waiting.result(TIMEOUT_SECS)
    assert caught.value.definite
    with pytest.raises(leaseq.UnavailableError):
        queue.add_item(Item(b"x"))
    server.start()
    assert queue.add_item(Item(b"x", id="c"))
    item = queue.lease(30, timeout=TIMEOUT_SECS)
    assert item is not None
    assert item.id == "c"
    assert queue.stats().delayed == 2


def demote_for_a_moment(client: redis.Redis) -> None:
    """Replica and primary again, in one step: no client can ask in between."""
    pipe: Any
    with client.pipeline(transaction=False) as pipe:
        pipe.execute_command("REPLICAOF", "127.0.0.1", "1")
        pipe.execute_command("REPLICAOF", "NO", "ONE")
        pipe.execute()


def test_a_blocked_worker_whose_server_becomes_a_replica(
    flavour: ClientFlavour, own_server: servers.StartServer
) -> None:
    """LQ-BLOCK-5: the server ends the block and closes the connection: the worker waits on over another."""
    server = own_server()
    queue = flavour.queue("q", server.url)
    waiting = flavour.start(queue.lease, 30, timeout=TIMEOUT_SECS)
    with server.client() as client:
        blocked(client, 1)
        demote_for_a_moment(client)
        blocked(client, 1)
    queue.add_item(Item(b"x", id="a"))
    assert waiting.result(TIMEOUT_SECS).id == "a"


@pytest.mark.cap(0.3)  # the end of a block: then the lease is sent
def test_a_demotion_in_front_of_a_lease(flavour: ClientFlavour, own_server: servers.StartServer) -> None:
    """LQ-BLOCK-5: the lease was sent while the news was on its way: the server has not run it, so lease again."""
    server = own_server()
    with FaultProxy(server.url) as made:
        proxy = made.listener("client")
        queue, other = flavour.queue("q", proxy.url), flavour.queue("q", server.url)
        waiting = flavour.start(queue.lease, 30, timeout=TIMEOUT_SECS)
        with server.client() as client:
            blocked(client, 1)
            # the end of the block is heard only when the lease has been sent
            proxy.hold_replies_after, proxy.hold_commands, sent = 0, True, proxy.bytes_from_clients
            demote_for_a_moment(client)
            other.add_item(Item(b"x", id="a"))
            servers.wait_until(lambda: proxy.bytes_from_clients > sent)
            proxy.hold_replies_after = None
            proxy.hold_commands = False
        assert waiting.result(TIMEOUT_SECS).id == "a"
        assert other.inspect("a").attempt == 1


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_server_that_ends_under_a_wait_for_an_outcome_and_for_room(
    flavour: ClientFlavour, own_server: servers.StartServer, how: str
) -> None:
    """LQ-FAIL-5, LQ-BLOCK-12, LQ-ROOM-2: definite errors: nothing was added. Both waits go on when they are made again."""
    server = own_server("--appendonly", "yes", "--appendfsync", "always")
    queue = flavour.queue("q", server.url)
    queue.configure(max_items=1)
    queue.add_item(Item(b"x", id="a"), keep=3600)
    item: Any = queue.lease(3600)
    with server.client() as client:

        def wait() -> list[Any]:
            calls = [
                flavour.start(queue.outcome, "a", timeout=TIMEOUT_SECS),
                flavour.start(queue.add_item_when_room, Item(b"x", id="b"), timeout=TIMEOUT_SECS),
            ]
            blocked(client, 2)
            return calls

        waiting = wait()
        getattr(server, how)()
        for call in waiting:
            with pytest.raises(leaseq.UnavailableError) as caught:
                call.result(TIMEOUT_SECS)
            assert caught.value.definite
        server.start()
        assert (queue.stats().added, queue.stats().items) == (1, 1)
        outcome, added = wait()
        assert queue.complete(item, result=b"r")
        assert queue.lease(30, block=False) is None, "a lease announces the room"
        assert outcome.result(TIMEOUT_SECS).content == b"r"
        assert added.result(TIMEOUT_SECS) is True
        assert (queue.stats().added, queue.stats().items) == (2, 1)


def test_a_server_that_becomes_a_replica_under_a_block_ends_the_wait(
    flavour: ClientFlavour, own_server: servers.StartServer
) -> None:
    """LQ-BLOCK-10: the server ends the block, which may cost the connection; the wait does not go round in circles."""
    server = own_server()
    with server.client() as client:
        load(client)
        queue = flavour.queue("q", flavour.client(server.url))
        waiting = flavour.start(queue.lease, 30, timeout=TIMEOUT_SECS)
        blocked(client, 1)
        client.config_resetstat()
        client.replicaof("127.0.0.1", "1")
        with pytest.raises((leaseq.ServerError, leaseq.ReplyLostError)):
            waiting.result(TIMEOUT_SECS)
        with pytest.raises(leaseq.ServerError, match=r"read.?only") as caught:
            queue.lease(30, timeout=TIMEOUT_SECS)
        assert caught.value.definite
        assert calls(client, *EVALS, *BLOCKS) <= 9
