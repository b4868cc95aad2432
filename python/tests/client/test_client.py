"""The client as the README promises it, for threads and asyncio, with the kinds of connections that people have."""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
import trustme
from support import servers
from support.client_flavours import unwrap
from support.redis_probe import blocked
from support.servers import TIMEOUT_SECS

import leaseq
import leaseq.aio
from leaseq import Item, commands
from leaseq.commands.releases import ReleaseRequest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import redis
    from support.client_flavours import ClientFlavour

pytestmark = pytest.mark.usefixtures("cap_of_an_hour")

SHORT_TIMEOUT_SECS = 0.2
CONNECTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "decoding": {"decode_responses": True},
    "resp2": {"protocol": 2},
    "resp3": {"protocol": 3, "decode_responses": True},
    "resp2 decoding": {"protocol": 2, "decode_responses": True},
    "health checks": {"health_check_interval": 1},
    "short timeout": {"socket_timeout": SHORT_TIMEOUT_SECS},
    "no timeout": {"socket_timeout": None},
    "two connections": {"max_connections": 2},
}


def test_the_life_of_an_item(flavour: ClientFlavour, url: str) -> None:
    """LQ-ADD-1, LQ-LEASE-1, LQ-LEASE-3, LQ-COMPLETE-2, LQ-EXTEND-1, LQ-RELEASE-2: the sentences of the README."""
    queue = flavour.queue("orders", url)
    assert queue.add_item(Item(b"data", id="a")) is True
    assert queue.add_item(Item(b"other", id="a")) is False
    assert queue.queue_len() == 1
    item = queue.lease(30)
    assert item is not None
    assert (item.id, item.data, item.attempt, item.lost) == ("a", b"data", 1, False)
    assert (queue.queue_len(), queue.processing()) == (0, 1)
    before = item.deadline
    assert queue.extend(item, 60) is True
    assert item.deadline > before + 20
    assert queue.release(item) == "ready"
    again = queue.lease(30)
    assert again is not None
    assert again.attempt == 2
    assert again.token > item.token
    assert queue.complete(item) is True, "the first call wins, also with a superseded lease"
    assert queue.complete(again) is False
    assert queue.inspect("a").state == "absent"
    assert queue.lease(30, block=False) is None
    assert queue.lease(30, timeout=0.1) is None
    assert queue.stats().completed == 1


@pytest.mark.promise("G20")
def test_an_item_has_what_it_was_made_of() -> None:
    """LQ-CLIENT-26: what becomes of a buffer afterwards is not sent."""
    buffer = bytearray(b"before")
    of_a_view, of_all = Item(memoryview(buffer)), Item(buffer)
    buffer[:] = b"xxxxxx"
    assert (of_a_view.data, of_all.data) == (b"before", b"before")


def test_items_are_made_of_what_people_have() -> None:
    """LQ-ITEM-2: ids and data come through byte for byte, whatever they were given as."""
    assert Item("ü").data == "ü".encode()
    assert Item(bytearray(b"x")).data == b"x"
    assert Item(memoryview(b"xyz")[::2]).data == b"xz"
    assert Item(b"", id=b"\xc3\xbc").id == "ü"
    assert Item(b"").id != Item(b"").id
    assert Item.from_json_data({"a": [1]}, id="b").data_json() == {"a": [1]}
    # as JSON.stringify writes it, so that an id that is a hash of the data is the same in every language
    assert Item.from_json_data({"a": [1, 2.5, None, "é\n"]}).data == '{"a":[1,2.5,null,"é\\n"]}'.encode()
    assert Item.from_json_data("\ud800").data == b'"\\ud800"'
    assert Item.from_dict({"data": "x", "id": "i"}).id == "i"
    assert Item.from_dict({"data": b"x"}).data == b"x"
    assert Item.from_json('{"data": "x", "id": "i"}').data == b"x"
    assert Item.from_json(b'{"data": "x"}').data == b"x"
    assert repr(Item(b"secret", id="i")) == "<Item 'i', 6 bytes>"


def test_with_completes_releases_and_backs_off(queue: Any) -> None:
    """LQ-COMPLETE-2, LQ-RELEASE-2, LQ-RELEASE-4: the end of a block, an exception, an interruption."""
    queue.add_item(Item(b"x", id="a"))
    for interruption in (KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError):
        item = queue.lease(30)
        with pytest.raises(interruption), item:
            raise interruption
        assert (queue.inspect("a").state, queue.inspect("a").attempt) == ("ready", 0)
    item = queue.lease(30)
    before = queue.stats().now
    with pytest.raises(ZeroDivisionError), item:
        raise ZeroDivisionError
    info = queue.inspect("a")
    assert (info.state, info.attempt) == ("delayed", 1)
    assert before + 0.4 < info.time <= queue.stats().now + 1
    item = queue.lease(30, timeout=TIMEOUT_SECS)
    with item:
        pass
    assert queue.stats().completed == 1
    queue.add_item(Item(b"x", id="b"))
    for item in queue.items(30, timeout=0.1):
        with item:
            assert queue.release(item) == "ready", "what the block did itself stays"
            break
    assert queue.inspect("b").state == "ready"


@pytest.mark.parametrize("dead", [False, True])
def test_an_error_with_half_a_surrogate_pair_is_kept(queue: Any, *, dead: bool) -> None:
    """The file system of Python gives such names."""
    queue.add_item(Item(b"x", id="a"))
    item = queue.lease(30)
    error = "no file \udc80.txt"
    assert (queue.dead_letter(item, error=error) if dead else queue.release(item, error=error)) is not None
    assert queue.inspect("a").error == "no file \\udc80.txt"


def test_an_error_that_is_no_text_is_shown(queue: Any, redis_client: redis.Redis) -> None:
    """A program in another language may write any bytes."""
    queue.add_item(Item(b"x", id="a"))
    item = unwrap(queue.lease(30))
    words = commands.release_each(queue.keys, [ReleaseRequest(item, error="stop-")]).eval()
    changed = [b"stop\xe9" if word in {"stop-", b"stop-"} else word for word in words]
    redis_client.execute_command(*changed)  # type: ignore[no-untyped-call]
    assert queue.inspect("a").error == "stop\ufffd"


def test_the_delay_of_a_failed_block_grows_with_the_attempt(queue: Any) -> None:
    """LQ-RELEASE-4."""
    queue.add_item(Item(b"x", id="a"))
    for most in (1, 2, 4, 8):
        before = queue.stats().now
        with pytest.raises(ZeroDivisionError), queue.lease(30):
            raise ZeroDivisionError
        assert before + most / 2 <= queue.inspect("a").time <= queue.stats().now + most
        assert queue.promote("a")


class Panic(BaseException):
    """As PyO3 raises for a panic of Rust."""


@pytest.mark.parametrize("raised", [Panic("at the disco"), BaseExceptionGroup("several", [Panic()])])
def test_what_is_no_interruption_is_a_failure_of_the_block(queue: Any, raised: BaseException) -> None:
    """LQ-RELEASE-4: it backs off with its text, and does not come again at once, uncounted, without end."""
    queue.add_item(Item(b"x", id="a"))
    with pytest.raises(type(raised)), queue.lease(30):
        raise raised
    info = queue.inspect("a")
    assert (info.state, info.attempt) == ("delayed", 1)
    assert str(raised) in info.error


def test_what_a_failed_call_ended_is_left_alone(queue: Any) -> None:
    """LQ-COMPLETE-2: many items, the second chunk is refused: the end of a block completes what was not released."""
    queue.add_items([Item(b"x", id=str(number)) for number in range(257)])
    items = queue.lease_items(256, 30) + queue.lease_items(1, 30)
    with items[0], items[256]:
        with pytest.raises(leaseq.BadTypeError) as caught:
            queue.release_items([*items, "typo"])
        assert caught.value.answers == ["ready"] * 256
    assert (queue.inspect("0").state, queue.inspect("256").state) == ("ready", "absent")


def test_what_the_block_raises_passes_on_without_a_server(
    flavour: ClientFlavour, own_server: servers.StartServer
) -> None:
    """LQ-ERROR-4: a release that fails does not hide an exception, least of all an interruption."""
    server = own_server()
    queue = flavour.queue("q", server.url)
    queue.add_items([Item(b"x"), Item(b"x")])
    first, second = queue.lease_items(2, 30)
    server.stop()
    with pytest.raises(KeyboardInterrupt) as caught, first:
        raise KeyboardInterrupt
    assert "did not release" in caught.value.__notes__[0]
    with pytest.raises(ZeroDivisionError), second:
        raise ZeroDivisionError


@pytest.mark.promise("G22")
def test_closing_ends_every_wait(queue: Any, flavour: ClientFlavour, redis_client: redis.Redis) -> None:
    """LQ-BLOCK-6: blocked callers get QueueClosedError at once, later calls too, and nothing stays connected."""
    calls = [flavour.start(queue.lease, 30) for _ in range(8)]
    blocked(redis_client, 8)
    queue.close()
    for call in calls:
        with pytest.raises(leaseq.QueueClosedError):
            call.result(TIMEOUT_SECS)
    queue.close()
    later: list[Callable[[], object]] = [
        queue.stats,
        lambda: queue.lease(1),
        lambda: queue.add_item(Item(b"")),
    ]
    for call_later in later:
        with pytest.raises(leaseq.QueueClosedError):
            call_later()
    servers.wait_until(lambda: len(redis_client.client_list()) == 1)


def test_closing_one_queue_leaves_the_callers_client_alone(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str
) -> None:
    """LQ-BLOCK-6: a wake-up that the closed waiter may have taken goes to the next one."""
    client = flavour.client(url)
    queue, other = flavour.queue("q", client), flavour.queue("q", client)
    gone, stays = flavour.start(queue.lease, 30), flavour.start(other.lease, 30)
    blocked(redis_client, 2)
    queue.close()
    with pytest.raises(leaseq.QueueClosedError):
        gone.result(TIMEOUT_SECS)
    other.add_item(Item(b"x", id="a"))
    assert stays.result(TIMEOUT_SECS).id == "a"
    assert flavour.run(client.ping())


def test_a_queue_is_a_context_manager(flavour: ClientFlavour, url: str) -> None:
    """LQ-KEY-1: the group is the name unless given."""
    with flavour.queue("q", url, group="g") as queue:
        queue.add_item(Item(b"x"))
        assert (queue.name, queue.group) == ("q", "g")
    with servers.plain_client(url) as client:
        assert client.exists("leaseq:{g}:q:items")
    with pytest.raises(leaseq.QueueClosedError):
        queue.stats()


@pytest.mark.parametrize("options", CONNECTIONS.values(), ids=CONNECTIONS)
def test_any_client_will_do(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str, options: dict[str, Any]
) -> None:
    """LQ-CALL-7, LQ-CLIENT-1: RESP2 and 3, decoding or not, a read timeout far below a block."""
    queue = flavour.queue("q", flavour.client(url, **options))
    waiting = flavour.start(queue.lease, 30, timeout=TIMEOUT_SECS)
    blocked(redis_client, 1)
    if options.get("socket_timeout") == SHORT_TIMEOUT_SECS:
        ends = time.monotonic() + 3 * SHORT_TIMEOUT_SECS
        while time.monotonic() < ends:
            assert not waiting.done()
            time.sleep(0.05)
        queue = flavour.queue(
            "q", url
        )  # the block has shown it; other calls may take longer on a busy machine
    queue.add_item(Item(b"\xff\0", id="ü"))
    item = waiting.result(TIMEOUT_SECS)
    assert (item.id, item.data) == ("ü", b"\xff\0")
    assert queue.list_items("leased").items[0].id == "ü"
    assert queue.complete(item)
    assert queue.deep_clean().total == 0
    assert queue.light_clean() == leaseq.LightClean()


def test_one_connection_blocks_the_others(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str
) -> None:
    """LQ-ERROR-4: with a single connection a blocked lease leaves none; the error is definite and says what to do."""
    queue = flavour.queue("q", flavour.client(url, max_connections=1))
    waiting = flavour.start(queue.lease, 30, timeout=TIMEOUT_SECS)
    blocked(redis_client, 1)
    with pytest.raises(leaseq.UnavailableError, match="max_connections") as caught:
        queue.add_item(Item(b"x"))
    assert caught.value.definite
    with flavour.queue("q", url) as other:
        other.add_item(Item(b"x", id="a"))
    assert waiting.result(TIMEOUT_SECS).id == "a"
    assert queue.stats().leased == 1


def test_a_blocking_pool_waits_for_a_connection(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str
) -> None:
    """LQ-CLIENT-1: eight callers share one connection by turns."""
    pool = flavour.module.BlockingConnectionPool.from_url(url, max_connections=1, timeout=10)
    queue = flavour.queue("q", flavour.own(flavour.module.Redis.from_pool(pool)))
    calls = [flavour.start(queue.add_item, Item(b"x", id=str(n))) for n in range(40)]
    assert [call.result(TIMEOUT_SECS) for call in calls] == [True] * 40
    assert len(redis_client.client_list()) == 2


@pytest.mark.promise("G2", "G4")
def test_many_callers_share_one_queue(queue: Any, flavour: ClientFlavour) -> None:
    """LQ-COMPLETE-2, LQ-LEASE-2: 16 workers and 4 producers on one object; each item once, tokens all different."""

    def produce(part: int) -> None:
        for number in range(50):
            queue.add_item(Item(b"x", id=f"{part}-{number}"))

    def work() -> list[tuple[str, int]]:
        done = []
        for item in queue.items(30, timeout=0.5):
            with item:
                done.append((item.id, item.token))
        return done

    workers = [flavour.start(work) for _ in range(16)]
    producers = [flavour.start(produce, part) for part in range(4)]
    for producer in producers:
        producer.result(TIMEOUT_SECS)
    done = [pair for worker in workers for pair in worker.result(TIMEOUT_SECS)]
    assert len(done) == 200
    assert len({item_id for item_id, _ in done}) == 200
    assert len({token for _, token in done}) == 200
    assert queue.stats().completed == 200


@pytest.mark.promise("G2")
async def test_many_tasks_share_one_queue(url: str) -> None:
    """LQ-COMPLETE-2: the same inside one event loop, as asyncio programs are written."""
    async with leaseq.aio.WorkQueue("q", url) as queue:
        done: list[str] = []

        async def work() -> None:
            async for item in queue.items(30, timeout=0.5):
                async with item:
                    await asyncio.sleep(0)
                    done.append(item.id)

        async with asyncio.TaskGroup() as group:
            for _ in range(40):
                group.create_task(work())
            for number in range(10):
                group.create_task(queue.add_items([Item(b"x", id=f"{number}-{n}") for n in range(20)]))
        assert sorted(done) == sorted(f"{number}-{n}" for number in range(10) for n in range(20))


def test_the_servers_url_from_the_environment(
    flavour: ClientFlavour, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LQ-KEY-1: $REDIS_URL is the default server."""
    monkeypatch.setenv("REDIS_URL", url)
    assert flavour.queue("q").add_item(Item(b"x"))


def test_an_embedded_server(flavour: ClientFlavour, tmp_path: Path) -> None:
    """LQ-FAIL-5: embedded:DIR starts a server; its data is there the next time."""
    with flavour.queue("q", f"embedded:{tmp_path}") as queue:
        queue.add_item(Item(b"x", id="a"))
    with flavour.queue("q", f"embedded:{tmp_path}") as queue:
        assert queue.inspect("a").state == "ready"


@pytest.mark.slow
def test_tls(flavour: ClientFlavour, tmp_path: Path) -> None:
    """LQ-CLIENT-1: rediss:// with a custom certificate, a blocked lease included."""
    issuer = trustme.CA()
    made = issuer.issue_cert("127.0.0.1")
    key, certificate, authority = tmp_path / "key", tmp_path / "cert", tmp_path / "ca"
    made.private_key_pem.write_to_path(key)
    made.cert_chain_pems[0].write_to_path(certificate)
    issuer.cert_pem.write_to_path(authority)
    with contextlib.closing(servers.ReservedPort()) as port:
        options = (
            *(
                "--tls-port",
                str(port.number),
                "--tls-cert-file",
                str(certificate),
                "--tls-key-file",
                str(key),
            ),
            *("--tls-ca-cert-file", str(authority), "--tls-auth-clients", "no"),
        )
        with servers.SpawnedServer(servers.WITH_TLS, *options) as server, server.client() as client:
            queue = flavour.queue("q", f"rediss://127.0.0.1:{port.number}?ssl_ca_certs={authority}")
            waiting = flavour.start(queue.lease, 30, timeout=TIMEOUT_SECS)
            blocked(client, 1)
            queue.add_item(Item(b"x" * 100_000, id="a"))
            assert len(waiting.result(TIMEOUT_SECS).data) == 100_000


@pytest.mark.slow
def test_tls_with_a_certificate_of_the_client(flavour: ClientFlavour, tmp_path: Path) -> None:
    """LQ-CLIENT-1: the server asks for it; what the URL says of the server's own counts too."""
    issuer, stranger = trustme.CA(), trustme.CA()
    files = {name: tmp_path / name for name in ("ca", "other", "key", "cert", "own_key", "own_cert")}
    for prefix, name in (("", "elsewhere.example"), ("own_", "client")):
        made = issuer.issue_cert(name)
        made.private_key_pem.write_to_path(files[prefix + "key"])
        made.cert_chain_pems[0].write_to_path(files[prefix + "cert"])
    issuer.cert_pem.write_to_path(files["ca"])
    stranger.cert_pem.write_to_path(files["other"])
    own = f"ssl_certfile={files['own_cert']}&ssl_keyfile={files['own_key']}"
    unchecked = "ssl_check_hostname=False"
    with contextlib.closing(servers.ReservedPort()) as port:
        options = {"port": port.number, "cert-file": files["cert"], "key-file": files["key"]}
        options |= {"ca-cert-file": files["ca"], "auth-clients": "yes"}
        given = [word for name, value in options.items() for word in (f"--tls-{name}", str(value))]
        with servers.SpawnedServer(servers.WITH_TLS, *given):
            place = f"rediss://127.0.0.1:{port.number}?"
            for settings, works in (
                (f"ssl_ca_certs={files['ca']}&{unchecked}&{own}", True),
                (f"ssl_cert_reqs=none&{unchecked}&{own}", True),
                (f"ssl_ca_certs={files['ca']}&{unchecked}", False),
                (f"ssl_ca_certs={files['ca']}&ssl_check_hostname=True&{own}", False),
                (f"ssl_ca_certs={files['other']}&{unchecked}&{own}", False),
            ):
                queue = flavour.queue("q", place + settings)
                if works:
                    assert queue.stats().items == 0
                else:
                    with pytest.raises(leaseq.LeaseqError):
                        queue.stats()


def test_threads_of_a_closed_queue_end(url: str) -> None:
    """LQ-BLOCK-6: neither the heart nor a waiter stays behind."""
    before = threading.active_count()
    queue = leaseq.WorkQueue("q", url)
    queue.add_item(Item(b"x"))
    item = queue.lease(30)
    assert item is not None
    with item:
        pass
    queue.close()
    assert threading.active_count() == before


def test_durations_are_refused_in_the_unit_and_by_the_name_of_their_argument(queue: leaseq.WorkQueue) -> None:
    calls: list[tuple[Callable[[], Any], str]] = [
        (lambda: queue.lease(0, block=False), "lease_secs must be 0.001 to 2592000 seconds (30 days)"),
        (lambda: queue.add_item(Item(b""), delay=-1), "delay must be 0 to 315360000 seconds"),
        (lambda: queue.add_item(Item(b""), keep=4e8), "keep must be 0.001 to 315360000 seconds"),
        (lambda: queue.add_item(Item(b""), priority=8), "priority must be a whole number in -7..7"),
    ]
    for call, expected in calls:
        with pytest.raises(leaseq.BadArgumentError, match=re.escape(expected)):
            call()


async def test_a_server_without_lua_is_named(own_server: servers.StartServer) -> None:
    """LQ-ERROR-6: Garnet without `--lua`, Valkey without its module, and here: a server whose scripts are renamed away."""
    server = own_server("--rename-command", "EVAL", "", "--rename-command", "EVALSHA", "")
    with leaseq.WorkQueue("q", server.url) as queue:
        with pytest.raises(leaseq.NoScriptsError, match=r"runs no Lua scripts.*--lua") as raised:
            queue.add_item(Item(b"x"))
        assert raised.value.definite
        with pytest.raises(leaseq.NoScriptsError):
            queue.lease(30, timeout=1)
    async with leaseq.aio.WorkQueue("q", server.url) as queue:
        with pytest.raises(leaseq.NoScriptsError):
            await queue.add_item(Item(b"x"))
