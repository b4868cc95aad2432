"""The connections of clients that leaseq opens: which is handed out again, and how commands are packed."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
from typing import TYPE_CHECKING, Any

import pytest
from support import servers
from support.client_flavours import connections_in_use

import leaseq
from leaseq import Item, packing
from leaseq._aio import io as aio
from leaseq._sync import io as sync

if TYPE_CHECKING:
    import redis
    from support.client_flavours import ClientFlavour

    from leaseq_conformance.fault_proxy import Listener


def asking_for(url: str, options: str) -> str:
    """The URL with more options."""
    return f"{url}{'&' if '?' in url else '?'}{options}"


def client_of(flavour: ClientFlavour, url: str) -> Any:
    """A client as leaseq opens one for a URL."""
    return flavour.own((sync if flavour.name == "sync" else aio).connect(url))


def ids(client: redis.Redis) -> set[str]:
    return {each["id"] for each in client.client_list()}


def test_a_connection_that_came_back_is_handed_out_again(flavour: ClientFlavour, url: str) -> None:
    pool = client_of(flavour, url).connection_pool
    first = flavour.run(pool.get_connection())
    second = flavour.run(pool.get_connection())
    assert first is not second
    flavour.run(pool.release(first))
    assert flavour.run(pool.get_connection()) is first
    flavour.run(pool.release(first))
    flavour.run(pool.release(second))


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
    told = (again[0]["db"], again[0]["name"])
    assert [told] * len(again) == [("3", "mine") if options.startswith("db") else ("0", "")]


def test_one_whose_opening_was_interrupted_is_not_handed_out(
    flavour: ClientFlavour, redis_client: redis.Redis, proxy: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LQ-ERROR-4: what its opening asked for comes later, and would be taken for the reply of a call."""
    del redis_client  # the server is empty
    interruption = KeyboardInterrupt if flavour.name == "sync" else asyncio.CancelledError
    pool = client_of(flavour, proxy.url).connection_pool
    with monkeypatch.context() as patched:
        patched.setattr(pool.connection_class, "read_response", _raises(interruption))
        proxy.hold_replies_after = 0
        with pytest.raises((interruption, concurrent.futures.CancelledError)):
            flavour.run(pool.get_connection())
    sent, second = proxy.bytes_from_clients, flavour.start(lambda: flavour.run(pool.get_connection()))
    servers.wait_until(lambda: second.done() or proxy.bytes_from_clients > sent)
    proxy.hold_replies_after = None
    connection = second.result(servers.PATIENCE)
    flavour.run(connection.send_command("ECHO", "mine"))
    assert flavour.run(connection.read_response(disable_decoding=True)) == b"mine"
    flavour.run(pool.release(connection))


def _raises(error: type[BaseException]) -> Any:
    def raising(*_: Any, **__: Any) -> Any:
        raise error

    return raising


def test_a_push_that_came_meanwhile_is_no_reply(
    flavour: ClientFlavour, url: str, redis_client: redis.Redis
) -> None:
    """With RESP3 a server may say something unasked, also to a connection that waits."""
    client = client_of(flavour, asking_for(url, "protocol=3&max_connections=1"))
    connection = flavour.run(client.connection_pool.get_connection())
    flavour.run(connection.send_command("CLIENT", "TRACKING", "ON", "BCAST"))
    assert flavour.run(connection.read_response()) in {b"OK", "OK"}
    flavour.run(client.connection_pool.release(connection))
    redis_client.set("k", "v")
    servers.wait_until(lambda: bool(flavour.run(connection.can_read())))
    queue = flavour.queue("q", client)
    assert queue.add_item(Item(b"x", id="a"))
    assert not queue.add_item(Item(b"x", id="a"))
    assert queue.stats().ready == 1


def test_one_that_is_to_connect_again_does(
    flavour: ClientFlavour, url: str, redis_client: redis.Redis
) -> None:
    """What redis-py marks, for example since its server moves, it gets back."""
    pool = client_of(flavour, url).connection_pool
    connection = flavour.run(pool.get_connection())
    flavour.run(pool.release(connection))
    before = ids(redis_client)
    connection.mark_for_reconnect()
    flavour.run(pool.release(flavour.run(pool.get_connection())))
    assert ids(redis_client) != before


def test_a_limit_of_connections_holds(flavour: ClientFlavour, url: str) -> None:
    """One connection, used by call after call; two at once are one too many."""
    queue = flavour.queue("q", asking_for(url, "max_connections=1"))
    for number in range(3):
        assert queue.add_item(Item(b"x", id=str(number)))
    client = client_of(flavour, asking_for(url, "max_connections=1"))
    held = flavour.run(client.connection_pool.get_connection())
    assert connections_in_use(client) == 1
    mine = flavour.queue("q", client)
    with pytest.raises(leaseq.UnavailableError, match="max_connections"):
        mine.stats()
    flavour.run(client.connection_pool.release(held))
    assert connections_in_use(client) == 0
    assert mine.stats().ready == 3


def test_closing_a_queue_closes_what_it_kept(queue: Any, redis_client: redis.Redis) -> None:
    before = ids(redis_client)
    queue.add_item(Item(b"x"))
    assert ids(redis_client) > before
    queue.close()
    servers.wait_until(lambda: ids(redis_client) == before)


def test_the_child_of_a_fork_opens_its_own(url: str) -> None:
    """Two processes on one connection would read each other's replies."""
    client: Any = sync.connect(url)
    with client:
        pool = client.connection_pool
        connection = pool.get_connection()
        other = pool.get_connection()
        pool.release(connection)
        child = os.fork()
        if child == 0:
            pool.release(other)
            os._exit(0 if pool.get_connection() not in {connection, other} else 1)
        _, status = os.waitpid(child, 0)
        assert status == 0
        assert pool.get_connection() is connection
        pool.release(connection)
        pool.release(other)


COMMANDS: list[tuple[bytes | str | int, ...]] = [
    ("PING",),
    ("EVALSHA", "0" * 40, 2, "a", "b", "ä€😀", b"\0\xff\r\n", 2**53, -1, ""),
    ("SET", "k", b"x" * 100_000),
]


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: str(command[0]))
def test_a_command_is_packed_alike_with_hiredis_and_without(
    flavour: ClientFlavour,
    url: str,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[bytes | str | int, ...],
    encoding: str,
) -> None:
    """LQ-ITEM-1: an id is UTF-8, whatever a client takes text for."""
    pool = client_of(flavour, asking_for(url, f"encoding={encoding}")).connection_pool
    connection = flavour.run(pool.get_connection())
    packed = packing.pack(connection, command)
    monkeypatch.setattr(packing, "pack_command", None)
    assert b"".join(packed) == b"".join(packing.pack(connection, command))
    flavour.run(pool.release(connection))
