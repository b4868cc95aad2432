"""The fault proxy: bytes pass it unharmed, commands can be stopped before and after the server runs them, links can be bad."""

from __future__ import annotations

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
import redis
from support import servers

from leaseq._scripts import SCRIPTS, STATS
from leaseq_conformance import resp
from leaseq_conformance.fault_proxy import DeferredReply, FaultProxy, FaultProxyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from leaseq_conformance.fault_proxy import Listener


@pytest.fixture
def proxy(server: servers.Server, url: str) -> Iterator[FaultProxy]:
    names = {script.sha1: script.name for script in SCRIPTS}
    with FaultProxy(url, names) as made:
        yield made


@pytest.fixture
def actor(proxy: FaultProxy) -> Iterator[redis.Redis]:
    """A client with a separate listener, on one connection whose greetings are over."""
    with client_of(proxy, "w1") as client:
        client.ping()
        yield client


def client_of(proxy: FaultProxy, name: str, **options: Any) -> redis.Redis:
    return servers.plain_client(proxy.listener(name).url, single_connection_client=True, **options)


@pytest.fixture
def background() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def test_a_command_is_written_down_with_its_exact_bytes(proxy: FaultProxy, actor: redis.Redis) -> None:
    value = bytes(range(256)) * 1000 + b"\r\n$3\r\n"
    actor.set(b"\xffkey\r\n", value)
    assert actor.get(b"\xffkey\r\n") == value
    (command,) = proxy.commands_of("w1", "SET")
    assert command.arguments == (b"SET", b"\xffkey\r\n", value)
    assert (command.sent, command.reply, command.delivered) == (True, b"+OK\r\n", b"+OK\r\n")


@pytest.mark.parametrize("protocol", [2, 3])
def test_every_kind_of_reply_passes_unharmed(
    proxy: FaultProxy, server: servers.Server, protocol: int
) -> None:
    with client_of(proxy, "w1", protocol=protocol) as client:
        client.hset("h", mapping={b"a": b"\r\n", b"b": b""})
        client.zadd("z", {"m": 1.5})
        client.rpush("l", b"*1\r\n", b"", b"x" * 100_000)
        asks: list[Callable[[Any], Any]] = [
            lambda asked: asked.hgetall("h"),
            lambda asked: asked.zrange("z", 0, -1, withscores=True),
            lambda asked: asked.lrange("l", 0, -1),
            lambda asked: asked.get("absent"),
            lambda asked: asked.eval("return {1, {}, {2, {'x', false}}}", 0),
            lambda asked: asked.config_get("maxmemory*"),
        ]
        for ask in asks:
            with servers.plain_client(server.url, protocol=protocol) as direct:
                assert ask(client) == ask(direct)
        with pytest.raises(redis.ResponseError, match="wrong kind"):
            client.incr("l")


def test_a_pipeline_keeps_its_order_and_a_given_reply_its_place(
    proxy: FaultProxy, actor: redis.Redis
) -> None:
    proxy.add_breakpoint("w1", "INCRBY", action=resp.reply(b"mine"), nth=2)
    pipe = actor.pipeline(transaction=False)
    for _ in range(3):
        pipe.incrby("n", 1)
        pipe.get("n")
    assert pipe.execute() == [1, b"1", b"mine", b"1", 2, b"2"]


def test_a_script_is_told_by_its_digest_and_by_its_source(proxy: FaultProxy, actor: redis.Redis) -> None:
    keys = [f"leaseq:{{q}}:q:{key}" for key in STATS.keys]
    with pytest.raises(redis.exceptions.NoScriptError):
        actor.evalsha(STATS.sha1, len(keys), *keys)
    actor.eval(STATS.source, len(keys), *keys)
    by_digest, by_source = proxy.commands_of("w1", "stats")
    assert (by_digest.name, by_source.name) == ("EVALSHA", "EVAL")
    assert by_source.keys == tuple(key.encode() for key in keys)
    assert by_source.argv == ()
    assert "EVALSHA stats" in by_digest.describe()
    assert "NOSCRIPT" in by_digest.describe()


def test_before_holds_the_command_back_from_the_server(
    proxy: FaultProxy, actor: redis.Redis, redis_client: redis.Redis, background: ThreadPoolExecutor
) -> None:
    point = proxy.add_breakpoint("w1", "SET")
    answer = background.submit(actor.set, "a", "1")
    assert point.wait().arguments[1] == b"a"
    assert redis_client.get("a") is None
    point.resume()
    assert answer.result(60) is True
    assert redis_client.get("a") == b"1"


def test_after_holds_the_reply_of_what_the_server_has_done(
    proxy: FaultProxy, actor: redis.Redis, redis_client: redis.Redis, background: ThreadPoolExecutor
) -> None:
    point = proxy.add_breakpoint("w1", "SET", "after")
    answer = background.submit(actor.set, "a", "1")
    point.wait()
    assert redis_client.get("a") == b"1"
    assert not answer.done()
    point.resume()
    assert answer.result(60) is True


@pytest.mark.parametrize(("when", "stored"), [("before", None), ("after", b"1")])
def test_disconnect_cuts_the_connection_on_the_side_that_was_said(
    proxy: FaultProxy, actor: redis.Redis, redis_client: redis.Redis, when: Any, stored: bytes | None
) -> None:
    proxy.add_breakpoint("w1", "SET", when, "disconnect")
    with pytest.raises(redis.ConnectionError):
        actor.set("a", "1")
    assert redis_client.get("a") == stored
    (command,) = proxy.commands_of("w1", "SET")
    assert command.delivered is None
    assert command.sent is (when == "after")


def test_kill_calls_back_before_the_connection_goes(proxy: FaultProxy, actor: redis.Redis) -> None:
    killed = threading.Event()
    proxy.listener("w1", killed.set)
    proxy.add_breakpoint("w1", "SET", "after", "kill")
    with pytest.raises(redis.ConnectionError):
        actor.set("a", "1")
    assert killed.is_set()


@pytest.mark.parametrize(("when", "stored"), [("before", None), ("after", b"1")])
def test_a_reply_is_given_in_the_place_of_the_server(
    proxy: FaultProxy, actor: redis.Redis, redis_client: redis.Redis, when: Any, stored: bytes | None
) -> None:
    proxy.add_breakpoint("w1", "SET", when, resp.error("LEASEQ_CLOCK not now"))
    with pytest.raises(redis.ResponseError, match="LEASEQ_CLOCK not now"):
        actor.set("a", "1")
    assert redis_client.get("a") == stored
    assert actor.ping() is True


def test_only_the_actor_and_the_command_of_a_point_are_stopped(proxy: FaultProxy, actor: redis.Redis) -> None:
    point = proxy.add_breakpoint("w2", "SET")
    actor.set("a", "1")
    assert not point.hit
    with pytest.raises(FaultProxyError, match="w2 sent no SET"):
        point.wait(0.01)
    with client_of(proxy, "w2") as other:
        other.get("a")
        assert not point.hit


def test_two_held_commands_go_in_the_order_that_is_said(
    proxy: FaultProxy, actor: redis.Redis, redis_client: redis.Redis, background: ThreadPoolExecutor
) -> None:
    with client_of(proxy, "w2") as other:
        first, second = proxy.add_breakpoint("w1", "RPUSH"), proxy.add_breakpoint("w2", "RPUSH")
        answers = [
            background.submit(client.rpush, "l", name) for client, name in ((actor, "w1"), (other, "w2"))
        ]
        first.wait()
        second.wait()
        second.resume()
        assert answers[1].result(60) == 1
        first.resume()
        assert answers[0].result(60) == 2
    assert redis_client.lrange("l", 0, -1) == [b"w2", b"w1"]


def test_cut_ends_a_blocked_command(
    proxy: FaultProxy, actor: redis.Redis, background: ThreadPoolExecutor
) -> None:
    blocked = background.submit(actor.blpop, ["nothing"], 3600)
    servers.wait_until(lambda: bool(proxy.commands_of("w1", "BLPOP")), 60)
    proxy.reset("w1")
    with pytest.raises(redis.ConnectionError):
        blocked.result(60)


def test_a_gate_that_ends_leaves_no_thread_and_resumes_what_it_holds(
    server: servers.Server, url: str, background: ThreadPoolExecutor
) -> None:
    before = set(threading.enumerate())
    with FaultProxy(url) as proxy:
        client = client_of(proxy, "w1")
        point = proxy.add_breakpoint("w1", "SET")
        answer = background.submit(client.set, "a", "1")
        point.wait()
    assert answer.exception(60) is None or isinstance(answer.exception(60), redis.ConnectionError)
    client.close()
    left = [thread for thread in set(threading.enumerate()) - before if "Executor" not in thread.name]
    assert not left


def test_a_server_that_is_not_there_resets_the_connection() -> None:
    with FaultProxy("unix:///nowhere/at/all") as proxy, pytest.raises(redis.ConnectionError):
        client_of(proxy, "w1")


@pytest.fixture
def link(proxy: FaultProxy) -> Listener:
    """The listener of `actor`, for the faults of its link."""
    return proxy.listener("w1")


def test_a_reply_is_cut_after_that_many_bytes_and_the_command_has_run(
    link: Listener, actor: redis.Redis, redis_client: redis.Redis
) -> None:
    link.cut_replies_after = len(b":1\r\n") + 3
    assert actor.incr("n") == 1
    with pytest.raises(redis.ConnectionError):
        actor.incr("n")
    assert link.cut_replies_after is None
    assert redis_client.get("n") == b"2"
    (_, second) = link.proxy.commands_of("w1", "INCRBY")
    assert (second.reply, second.delivered) == (b":2\r\n", None)


def test_replies_are_held_after_that_many_bytes_and_commands_are_not(
    link: Listener, actor: redis.Redis, redis_client: redis.Redis, background: ThreadPoolExecutor
) -> None:
    with client_of(link.proxy, "w1") as other:
        other.ping()
        link.hold_replies_after = 2
        first, second = background.submit(actor.incr, "a"), background.submit(other.incr, "b")
        servers.wait_until(lambda: redis_client.mget("a", "b") == [b"1", b"1"])
        assert not first.done()
        assert not second.done()
        link.hold_replies_after = None
        assert (first.result(60), second.result(60)) == (1, 1)


def test_held_commands_are_counted_and_run_once_they_may(
    link: Listener, actor: redis.Redis, redis_client: redis.Redis, background: ThreadPoolExecutor
) -> None:
    link.hold_commands, before = True, link.bytes_from_clients
    answer = background.submit(actor.incr, "a")
    servers.wait_until(lambda: link.bytes_from_clients > before)
    assert redis_client.get("a") is None
    link.hold_commands = False
    assert answer.result(60) == 1


@pytest.mark.parametrize(("fault", "runs"), [("discard_commands", 0), ("discard_replies", 1)])
def test_a_black_hole_in_each_direction(
    proxy: FaultProxy, redis_client: redis.Redis, fault: str, runs: int
) -> None:
    with client_of(proxy, "w1", socket_timeout=1) as client:
        client.ping()
        setattr(proxy.listener("w1"), fault, True)
        with pytest.raises(redis.TimeoutError):
            client.incr("n")
        servers.wait_until(lambda: int(redis_client.get("n") or 0) == runs)
        setattr(proxy.listener("w1"), fault, False)
        assert client.incr("n") == runs + 1


def test_latency_makes_replies_late(link: Listener, actor: redis.Redis) -> None:
    link.latency = 0.05
    begun = time.monotonic()
    actor.ping()
    assert time.monotonic() - begun >= 0.1


def test_refused_connections(link: Listener, proxy: FaultProxy) -> None:
    link.refuse = True
    with pytest.raises(redis.ConnectionError):
        client_of(proxy, "w1")
    link.refuse = False
    with client_of(proxy, "w1") as client:
        assert client.ping()


def test_a_client_that_sends_nothing_more_still_reads(link: Listener) -> None:
    with socket.create_connection(("127.0.0.1", link.port)) as sock:
        sock.sendall(b"PING\r\n")
        assert sock.recv(100) == b"+PONG\r\n"
        point = link.add_breakpoint("ECHO", "before")
        sock.sendall(b"*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\n")
        point.wait()
        sock.shutdown(socket.SHUT_WR)
        point.reply_with(b"$2\r\nho\r\n")
        assert sock.recv(100) == b"$2\r\nho\r\n"
        assert sock.recv(100) == b""


@pytest.mark.parametrize("side", ["discard_commands", "discard_replies"])
def test_an_opaque_link_passes_any_bytes_and_none_behind_those_it_swallowed(
    link: Listener, proxy: FaultProxy, side: str
) -> None:
    """As TCP does: what comes later is not delivered without what came before."""
    link.is_opaque = True
    with socket.create_connection(("127.0.0.1", link.port)) as sock:
        sock.sendall(b"PING\r\nPI")
        assert sock.recv(100) == b"+PONG\r\n"
        (connection,) = link._connections
        setattr(link, side, True)
        sock.sendall(b"NG\r\n")
        servers.wait_until(lambda: connection._is_deaf or connection._is_mute)
        setattr(link, side, False)
        sock.sendall(b"PING\r\n")
        sock.settimeout(0.2)
        with pytest.raises(TimeoutError):
            sock.recv(100)
    with client_of(proxy, "w1") as client:
        assert client.ping()
    assert proxy.commands == []


def test_a_deferred_reply_keeps_its_place(
    link: Listener, actor: redis.Redis, background: ThreadPoolExecutor
) -> None:
    later = DeferredReply()
    link.add_breakpoint("ECHO", action=later)
    pipe = actor.pipeline(transaction=False)
    pipe.echo("first")
    pipe.incr("n")
    answer = background.submit(pipe.execute)
    servers.wait_until(
        lambda: [command.reply for command in link.proxy.commands_of("w1", "INCRBY")] == [b":1\r\n"]
    )
    assert not answer.done()
    later.give(b"$4\r\nlate\r\n")
    later.give(b"$5\r\nagain\r\n")
    assert answer.result(60) == [b"late", 1]


@pytest.mark.parametrize(
    "frame",
    [
        b"+OK\r\n",
        b"$-1\r\n",
        b"$3\r\na\r\n\r\n",
        b"*-1\r\n",
        b"*2\r\n$1\r\na\r\n*1\r\n:1\r\n",
        b"%1\r\n+k\r\n*0\r\n",
        b"|1\r\n+k\r\n+v\r\n:1\r\n",
        b">2\r\n+invalidate\r\n_\r\n",
        b"PING\r\n",
    ],
)
@pytest.mark.parametrize("piece", [1, 3, 1000])
def test_frames_are_cut_out_of_any_pieces(frame: bytes, piece: int) -> None:
    stream, frames, data = resp.Stream(), [], frame * 2
    for at in range(0, len(data), piece):
        stream.feed(data[at : at + piece])
        while (found := stream.frame()) is not None:
            frames.append(found)
    assert frames == [frame, frame]
