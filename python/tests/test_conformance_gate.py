"""The gate: what an actor says passes it unharmed, and can be stopped before and after the server hears it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
import redis
import servers

from leaseq._scripts import SCRIPTS, STATS
from leaseq_conformance import resp
from leaseq_conformance.gate import Gate, GateError
from leaseq_conformance.server import GivenServer, OwnServer, ServerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.on("last")


@pytest.fixture
def gate(server: servers.AnyServer, url: str) -> Iterator[Gate]:
    with servers.plain_client(url) as client:
        kwargs = client.connection_pool.connection_kwargs
    names = {script.sha1: script.name for script in SCRIPTS}
    with Gate((kwargs["host"], kwargs["port"]), names) as made:
        yield made


@pytest.fixture
def actor(gate: Gate) -> Iterator[redis.Redis]:
    """A client behind a door of its own, on one connection whose greetings are over."""
    with client_of(gate, "w1") as client:
        client.ping()
        yield client


def client_of(gate: Gate, name: str, **options: Any) -> redis.Redis:
    return servers.plain_client(
        f"redis://127.0.0.1:{gate.door(name).port}", single_connection_client=True, **options
    )


@pytest.fixture
def aside() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def test_a_command_is_written_down_with_its_exact_bytes(gate: Gate, actor: redis.Redis) -> None:
    value = bytes(range(256)) * 1000 + b"\r\n$3\r\n"
    actor.set(b"\xffkey\r\n", value)
    assert actor.get(b"\xffkey\r\n") == value
    (command,) = gate.of("w1", "SET")
    assert command.arguments == (b"SET", b"\xffkey\r\n", value)
    assert (command.sent, command.reply, command.told) == (True, b"+OK\r\n", b"+OK\r\n")


@pytest.mark.parametrize("protocol", [2, 3])
def test_every_kind_of_reply_passes_unharmed(gate: Gate, server: servers.AnyServer, protocol: int) -> None:
    with client_of(gate, "w1", protocol=protocol) as client:
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


def test_a_pipeline_keeps_its_order_and_an_injected_reply_its_place(gate: Gate, actor: redis.Redis) -> None:
    gate.point("w1", "INCRBY", do=resp.reply(b"mine"), nth=2)
    pipe = actor.pipeline(transaction=False)
    for _ in range(3):
        pipe.incrby("n", 1)
        pipe.get("n")
    assert pipe.execute() == [1, b"1", b"mine", b"1", 2, b"2"]


def test_a_script_is_told_by_its_digest_and_by_its_source(gate: Gate, actor: redis.Redis) -> None:
    keys = [f"leaseq:{{q}}:q:{key}" for key in STATS.keys]
    with pytest.raises(redis.exceptions.NoScriptError):
        actor.evalsha(STATS.sha1, len(keys), *keys)
    actor.eval(STATS.source, len(keys), *keys)
    by_digest, by_source = gate.of("w1", "stats")
    assert (by_digest.name, by_source.name) == ("EVALSHA", "EVAL")
    assert by_source.keys == tuple(key.encode() for key in keys)
    assert by_source.argv == ()
    assert "EVALSHA stats" in by_digest.line()
    assert "NOSCRIPT" in by_digest.line()


def test_before_holds_the_command_back_from_the_server(
    gate: Gate, actor: redis.Redis, redis_client: redis.Redis, aside: ThreadPoolExecutor
) -> None:
    point = gate.point("w1", "SET")
    answer = aside.submit(actor.set, "a", "1")
    assert point.reached().arguments[1] == b"a"
    assert redis_client.get("a") is None
    point.let_go()
    assert answer.result(60) is True
    assert redis_client.get("a") == b"1"


def test_after_holds_the_reply_of_what_the_server_has_done(
    gate: Gate, actor: redis.Redis, redis_client: redis.Redis, aside: ThreadPoolExecutor
) -> None:
    point = gate.point("w1", "SET", "after")
    answer = aside.submit(actor.set, "a", "1")
    point.reached()
    assert redis_client.get("a") == b"1"
    assert not answer.done()
    point.let_go()
    assert answer.result(60) is True


@pytest.mark.parametrize(("when", "stored"), [("before", None), ("after", b"1")])
def test_drop_cuts_the_connection_on_the_side_that_was_said(
    gate: Gate, actor: redis.Redis, redis_client: redis.Redis, when: Any, stored: bytes | None
) -> None:
    gate.point("w1", "SET", when, "drop")
    with pytest.raises(redis.ConnectionError):
        actor.set("a", "1")
    assert redis_client.get("a") == stored
    (command,) = gate.of("w1", "SET")
    assert command.told is None
    assert command.sent is (when == "after")


def test_kill_calls_back_before_the_connection_goes(gate: Gate, actor: redis.Redis) -> None:
    killed = threading.Event()
    gate.door("w1", killed.set)
    gate.point("w1", "SET", "after", "kill")
    with pytest.raises(redis.ConnectionError):
        actor.set("a", "1")
    assert killed.is_set()


@pytest.mark.parametrize(("when", "stored"), [("before", None), ("after", b"1")])
def test_inject_answers_in_the_place_of_the_server(
    gate: Gate, actor: redis.Redis, redis_client: redis.Redis, when: Any, stored: bytes | None
) -> None:
    gate.point("w1", "SET", when, resp.error("LEASEQ_CLOCK not now"))
    with pytest.raises(redis.ResponseError, match="LEASEQ_CLOCK not now"):
        actor.set("a", "1")
    assert redis_client.get("a") == stored
    assert actor.ping() is True


def test_only_the_actor_and_the_command_of_a_point_are_stopped(gate: Gate, actor: redis.Redis) -> None:
    point = gate.point("w2", "SET")
    actor.set("a", "1")
    assert not point.was_reached
    with pytest.raises(GateError, match="w2 sent no SET"):
        point.reached(0.01)
    with client_of(gate, "w2") as other:
        other.get("a")
        assert not point.was_reached


def test_two_held_commands_go_in_the_order_that_is_said(
    gate: Gate, actor: redis.Redis, redis_client: redis.Redis, aside: ThreadPoolExecutor
) -> None:
    with client_of(gate, "w2") as other:
        first, second = gate.point("w1", "RPUSH"), gate.point("w2", "RPUSH")
        answers = [aside.submit(client.rpush, "l", name) for client, name in ((actor, "w1"), (other, "w2"))]
        first.reached()
        second.reached()
        second.let_go()
        assert answers[1].result(60) == 1
        first.let_go()
        assert answers[0].result(60) == 2
    assert redis_client.lrange("l", 0, -1) == [b"w2", b"w1"]


def test_cut_ends_a_blocked_command(gate: Gate, actor: redis.Redis, aside: ThreadPoolExecutor) -> None:
    blocked = aside.submit(actor.blpop, ["nothing"], 3600)
    servers.wait_until(lambda: bool(gate.of("w1", "BLPOP")), 60)
    gate.cut("w1")
    with pytest.raises(redis.ConnectionError):
        blocked.result(60)


def test_a_gate_that_ends_leaves_no_thread_and_lets_go_of_what_it_holds(
    server: servers.AnyServer, url: str, aside: ThreadPoolExecutor
) -> None:
    before = set(threading.enumerate())
    with servers.plain_client(url) as client:
        kwargs = client.connection_pool.connection_kwargs
    with Gate((kwargs["host"], kwargs["port"])) as gate:
        client = client_of(gate, "w1")
        point = gate.point("w1", "SET")
        answer = aside.submit(client.set, "a", "1")
        point.reached()
    assert answer.exception(60) is None or isinstance(answer.exception(60), redis.ConnectionError)
    client.close()
    left = [thread for thread in set(threading.enumerate()) - before if "Executor" not in thread.name]
    assert not left


def test_a_server_that_is_not_there_resets_the_connection() -> None:
    with Gate("/nowhere/at/all") as gate, pytest.raises(redis.ConnectionError):
        client_of(gate, "w1")


def test_own_server_keeps_its_data_over_a_restart_and_forgets_scripts() -> None:
    with OwnServer() as own, own.client() as client:
        digest = client.script_load("return 1")
        client.set("a", "1")
        own.restart()
        assert client.get("a") == b"1"
        assert client.script_exists(digest) == [False]
        own.flush()
        assert client.dbsize() == 0


def test_a_given_database_has_to_be_empty_and_is_left_empty(url: str, redis_client: redis.Redis) -> None:
    redis_client.set("mine", "1")
    with pytest.raises(ServerError, match="holds 1 keys"):
        GivenServer(url)
    redis_client.delete("mine")
    with GivenServer(url) as given:
        redis_client.set("of the suite", "1")
        with pytest.raises(ServerError, match="not the suite's to restart"):
            given.restart()
    assert redis_client.dbsize() == 0


@pytest.mark.parametrize("url", ["rediss://127.0.0.1", "http://127.0.0.1", "redis://127.0.0.1:1"])
def test_a_url_that_cannot_be_used_is_said_so(url: str) -> None:
    with pytest.raises(ServerError):
        GivenServer(url)
