"""Connections: replies in pieces, late, unasked or not at all; how connections open and close."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
import os
import select
import socket
import ssl
import struct
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hiredis
import pytest
import redis
import redis.asyncio
import redis.sentinel
import trustme
from support import servers
from support.servers import TIMEOUT_SECS

import leaseq
import leaseq.aio
from leaseq import Item
from leaseq._aio import connection as aio
from leaseq._sync import connection as sync
from leaseq._sync.concurrency import connect
from leaseq._sync.route import route
from leaseq.doctor.node import Node
from leaseq.endpoint import Endpoint, endpoint, error_reply
from leaseq.process import fork

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.client_flavours import ClientFlavour

    from leaseq_conformance.fault_proxy import Listener

MODULES: dict[str, Any] = {"sync": sync, "asyncio": aio}
REPLIES = b"+OK\r\n:12\r\n>2\r\n+pushed\r\n:1\r\n$5\r\nhe\r\no\r\n*3\r\n$1\r\na\r\n_\r\n-WRONGTYPE x\r\n-NOSCRIPT No matching script\r\n$-1\r\n#f\r\n"
READ = [b"OK", 12, b"he\r\no", "list", redis.exceptions.NoScriptError, None, False]


def sockets() -> set[str]:
    """The sockets that this process has open."""
    found = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # that of the folder itself
            found.add(str(descriptor.readlink()))
    return {each for each in found if each.startswith("socket:")}


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_a_connection_that_is_reset_at_once_leaves_no_descriptor(
    tls: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not until the garbage collector comes by, which may take minutes: each attempt in an outage would cost one."""
    made = endpoint({"host": "127.0.0.1"}, redis.SSLConnection if tls else redis.Connection)
    context, set_up = made.tls(), Endpoint.set_up
    connecting: list[socket.socket] = []

    def note(self: Endpoint, sock: socket.socket) -> None:
        connecting[:] = [sock]
        set_up(self, sock)

    def wait_for_reset(_: Endpoint) -> ssl.SSLContext | None:
        accepted, _address = listener.accept()
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        accepted.close()
        poll = select.poll()
        poll.register(connecting[0], select.POLLHUP)
        assert poll.poll(TIMEOUT_SECS * 1000)
        return context

    monkeypatch.setattr(Endpoint, "set_up", note)
    monkeypatch.setattr(Endpoint, "tls", wait_for_reset)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        there = dataclasses.replace(made, port=listener.getsockname()[1])
        gc.disable()
        try:
            before = sockets()
            for _ in range(3):
                with pytest.raises(redis.ConnectionError) as raised:
                    sync.Connection.open(there)
                assert sockets() == before, "also while the caller keeps the error"
                del raised
        finally:
            gc.enable()


def at(url: str) -> Endpoint:
    """Where a URL leads."""
    pool = redis.ConnectionPool.from_url(url)
    return endpoint(pool.connection_kwargs, pool.connection_class)


def opened(flavour: ClientFlavour, url: str) -> Any:
    """A connection of this flavour."""
    return flavour.run(MODULES[flavour.name].Connection.open(at(url)))


def read_all(flavour: ClientFlavour, connection: Any) -> list[Any]:
    found: list[Any] = []
    for _ in READ:
        try:
            reply = flavour.run(connection.read(TIMEOUT_SECS))
        except redis.RedisError as error:
            found.append(type(error))
        else:
            found.append("list" if isinstance(reply, list) else reply)
    return found


@pytest.mark.parametrize("place", range(len(REPLIES) + 1))
def test_replies_are_split_at_every_byte(flavour: ClientFlavour, place: int) -> None:
    """LQ-CLIENT-1: however the network cuts them; an unasked push is no reply."""
    pieces = [piece for piece in (REPLIES[:place], REPLIES[place:]) if piece]
    if flavour.name == "asyncio":
        connection: Any = _made_by(flavour, aio.Connection, at("redis://h"))
        for piece in pieces:
            connection.data_received(piece)
        assert read_all(flavour, connection) == READ
        return
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # keeps pieces apart
    with ours, theirs:
        connection = sync.Connection(at("redis://h"))
        connection._use(ours)
        for piece in pieces:
            theirs.send(piece)
        assert read_all(flavour, connection) == READ


def _made_by(flavour: ClientFlavour, make: Callable[..., Any], *args: Any) -> Any:
    async def made() -> Any:
        return make(*args)

    return flavour.run(made())


@pytest.mark.parametrize("more", [b"+OK\r\n", b"?what\r\n"])
def test_a_reply_that_nobody_asked_for_is_nobodys(flavour: ClientFlavour, more: bytes) -> None:
    """LQ-ERROR-4: the next call would take it for its own, also where it came with the reply before."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        answering = threading.Thread(target=_answer, args=(server, more), daemon=True)
        answering.start()
        connection = opened(flavour, f"redis://127.0.0.1:{server.getsockname()[1]}?socket_timeout=3")
        is_usable = connection.is_usable
        assert not (is_usable() if flavour.name == "sync" else _made_by(flavour, is_usable))
        connection.close()


def test_what_is_no_reply_breaks_the_connection(flavour: ClientFlavour) -> None:
    """LQ-ERROR-4: whatever comes behind it would be taken for the reply of another call."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        answering = threading.Thread(target=_answer, args=(server, b"?what\r\n"), daemon=True)
        answering.start()
        queue = flavour.queue("q", f"redis://127.0.0.1:{server.getsockname()[1]}?socket_timeout=3")
        with pytest.raises(leaseq.ReplyLostError):
            queue.stats()


def _answer(server: socket.socket, rest: bytes) -> None:
    with contextlib.suppress(OSError):
        peer, _ = server.accept()
        with peer:
            peer.recv(65536)
            peer.sendall(b"-ERR unknown subcommand\r\n-ERR unknown subcommand\r\n" + rest)
            while peer.recv(65536):
                pass


def test_a_reply_that_has_begun_in_time_is_read_to_its_end(flavour: ClientFlavour, proxy: Listener) -> None:
    """LQ-BLOCK-9: the time is for its start; a reply that has not started can be read later."""
    connection = opened(flavour, proxy.url)
    proxy.hold_replies_after = 40
    flavour.run(connection.send("ECHO", "x" * 100))
    servers.wait_until(
        lambda: proxy.bytes_from_server_held > 0 if hasattr(proxy, "bytes_from_server_held") else True
    )
    reading = flavour.start(lambda: flavour.run(connection.read_within(0.3)))
    with contextlib.suppress(TimeoutError):
        reading.result(0.6)
    assert not reading.done()
    proxy.hold_replies_after = None
    assert reading.result(TIMEOUT_SECS) == b"x" * 100
    proxy.hold_replies_after = 0
    flavour.run(connection.send("PING"))
    with pytest.raises(MODULES[flavour.name].ReplyTimeoutError):
        flavour.run(connection.read_within(0.01))
    assert connection.has_failed, "idle connections of its time may be lost too (LQ-CLIENT-21)"
    with pytest.raises(redis.TimeoutError):
        flavour.run(connection.read(0.01))
    assert connection.pending_replies == 1
    proxy.hold_replies_after = None
    assert flavour.run(connection.read()) == b"PONG"
    assert connection.pending_replies == 0
    connection.close()


def test_a_closed_connection_says_so(flavour: ClientFlavour, url: str) -> None:
    """LQ-ERROR-4: closed by another thread or task; nothing is sent, and nothing connects again."""
    connection = opened(flavour, url)
    flavour.run(connection.send("BLPOP", "nothing", "0"))
    connection.abort()
    for call in (lambda: connection.send("PING"), connection.read, lambda: connection.read_within(1)):
        with pytest.raises(redis.ConnectionError):
            flavour.run(call())
    assert connection.pending_replies
    connection.close()
    assert connection.fileno() == -1


def test_one_that_is_aborted_keeps_its_socket_until_its_thread_closes_it(url: str) -> None:
    """Closed by another thread, its number could be that of a new connection when the wait starts."""
    connection = sync.Connection.open(at(url))
    connection.send("BLPOP", "nothing", "0")
    connection.abort()
    assert connection.fileno() != -1
    with pytest.raises(redis.ConnectionError):
        connection.read_within(3600)
    connection.close()
    assert connection.fileno() == -1


@pytest.fixture
def deaf() -> Iterator[str]:
    """A server that takes nothing in."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"redis://127.0.0.1:{server.getsockname()[1]}?socket_timeout=0.2"


def test_who_takes_nothing_in_is_waited_for_as_long_as_the_client_says(
    flavour: ClientFlavour, deaf: str
) -> None:
    """LQ-ERROR-4: part of a command may be there, so the connection is of no more use."""
    given = at(deaf + "&socket_connect_timeout=5")
    silent = Endpoint(
        **{name: getattr(given, name) for name in Endpoint.__slots__} | {"given": {"lib_name": None}}
    )
    connection = flavour.run(MODULES[flavour.name].Connection.open(silent))
    with pytest.raises(redis.TimeoutError):
        flavour.run(connection.send("SET", "k", b"x" * (64 << 20)))
    assert connection.pending_replies
    connection.close()


def test_who_takes_nothing_in_over_tls(deaf_over_tls: Endpoint) -> None:
    """LQ-ERROR-4: also after a look for pushes, and after a wait for a reply that may take long."""
    connection = sync.Connection.open(deaf_over_tls)
    connection.send("PING")
    assert connection.read(TIMEOUT_SECS) == b"PONG"
    assert connection._has_pushes_only()
    with pytest.raises(redis.TimeoutError):
        connection.send("SET", "k", b"x" * (64 << 20))
    connection.close()


@pytest.fixture
def deaf_over_tls(tmp_path: Path) -> Iterator[Endpoint]:
    """A server that answers one command, and then takes nothing in."""
    issuer = trustme.CA()
    issuer.cert_pem.write_to_path(tmp_path / "ca")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issuer.issue_cert("127.0.0.1").configure_cert(context)
    over = threading.Event()

    def answer(server: socket.socket) -> None:
        peer, _ = server.accept()
        with context.wrap_socket(peer, server_side=True) as encrypted:
            encrypted.recv(65536)
            encrypted.sendall(b"+PONG\r\n")
            over.wait(2 * TIMEOUT_SECS)

    with socket.create_server(("127.0.0.1", 0)) as server:
        answering = threading.Thread(target=answer, args=(server,), daemon=True)
        answering.start()
        given = {
            "host": "127.0.0.1",
            "port": server.getsockname()[1],
            "ssl_ca_certs": str(tmp_path / "ca"),
            "socket_timeout": 0.2,
            "socket_connect_timeout": TIMEOUT_SECS,
            "lib_name": None,
        }
        yield endpoint(given, redis.SSLConnection)
        over.set()
        answering.join(TIMEOUT_SECS)


def test_a_server_that_says_nothing_is_not_waited_for_for_ever(flavour: ClientFlavour, deaf: str) -> None:
    """LQ-ERROR-4: it took nothing in, so nothing was done."""
    with pytest.raises(leaseq.UnavailableError, match="Timeout"):
        flavour.queue("q", deaf).stats()


@pytest.mark.parametrize("options", ["protocol=2", "protocol=3"])
def test_who_it_is(flavour: ClientFlavour, url: str, redis_client: redis.Redis, options: str) -> None:
    """User, password, database and name; also the name of this library, if the server has a command for it."""
    redis_client.acl_setuser("worker", enabled=True, passwords=["+a:b/c"], categories=["+@all"], keys=["*"])
    host = url.partition("://")[2].partition("/")[0]
    queue = flavour.queue("q", f"redis://worker:a%3Ab%2Fc@{host}/3?client_name=mine&{options}")
    assert queue.add_item(Item(b"x", id="a"))
    mine: Any = [each for each in redis_client.client_list() if each["name"] == "mine"]
    assert {(each["user"], each["db"], each["resp"]) for each in mine} == {("worker", "3", options[-1])}
    if "lib-name" in mine[0]:
        assert (mine[0]["lib-name"], mine[0]["lib-ver"]) == ("leaseq", leaseq.__version__)
    with pytest.raises(leaseq.AccessDeniedError):
        flavour.queue("q", f"redis://worker:wrong@{host}?{options}").stats()
    if options == "protocol=2":  # HELLO takes any password for a user that needs none
        with pytest.raises(leaseq.AccessDeniedError):
            flavour.queue("q", f"redis://:wrong@{host}?{options}").stats()
    with pytest.raises(leaseq.BadArgumentError, match=r"out of range .*SELECT 999"):
        flavour.queue("q", f"redis://{host}/999?{options}").stats()


class Provider(redis.CredentialProvider):
    """Gives the password of the moment."""

    def __init__(self) -> None:
        self.password = "one"  # noqa: S105 (of this test)

    def get_credentials(self) -> tuple[str, str]:
        """User and password."""
        return "changing", self.password


class AsyncProvider(redis.CredentialProvider):
    """Has to be awaited."""

    def get_credentials(self) -> tuple[str, str]:
        """Not in an event loop, which would stand still."""
        raise NotImplementedError

    async def get_credentials_async(self) -> tuple[str, str]:
        """User and password."""
        await asyncio.sleep(0)
        return "awaited", "one"


def test_in_asyncio_a_provider_is_awaited(url: str, redis_client: redis.Redis) -> None:
    redis_client.acl_setuser("awaited", enabled=True, passwords=["+one"], categories=["+@all"], keys=["*"])

    async def call() -> None:
        async with (
            redis.asyncio.Redis.from_url(url, credential_provider=AsyncProvider()) as client,
            leaseq.aio.WorkQueue("q", client) as queue,
        ):
            assert (await queue.stats()).ready == 0

    asyncio.run(call())


def test_a_password_that_its_provider_changes(
    flavour: ClientFlavour, url: str, redis_client: redis.Redis
) -> None:
    """The next connection uses it; those that stand go on."""
    user: dict[str, Any] = {"enabled": True, "categories": ["+@all"], "keys": ["*"]}
    redis_client.acl_setuser("changing", passwords=["+one"], **user)
    provider = Provider()
    queue = flavour.queue("q", flavour.client(url, credential_provider=provider))
    assert queue.add_item(Item(b"x", id="a"))
    redis_client.acl_setuser("changing", passwords=["+two", "-one"], **user)
    assert queue.stats().ready == 1
    for each in redis_client.client_list():
        if each["user"] == "changing":
            redis_client.client_kill_filter(_id=each["id"])
    with pytest.raises(leaseq.AccessDeniedError):
        queue.stats()
    provider.password = "two"  # noqa: S105 (of this test)
    assert queue.stats().ready == 1


def test_a_client_that_is_handed_in_is_not_used(
    flavour: ClientFlavour, url: str, redis_client: redis.Redis
) -> None:
    """Nothing of ours goes over its connections, nor of its owner's over ours; closing it changes nothing."""
    client = flavour.client(url, client_name="theirs", max_connections=2)
    flavour.run(client.ping())
    queue = flavour.queue("q", client)
    assert queue.add_item(Item(b"x"))
    names = [each["name"] for each in redis_client.client_list()]
    assert names.count("theirs") == 2
    flavour.run(getattr(client, "aclose", client.close)())
    assert queue.stats().ready == 1
    queue.close()
    servers.wait_until(lambda: "theirs" not in [each["name"] for each in redis_client.client_list()])


class Foreign(redis.Connection):
    """A class of another library."""


@pytest.mark.parametrize(
    ("kind", "given", "error", "message"),
    [
        (Foreign, {}, leaseq.BadTypeError, "custom class, .*Foreign"),
        (redis.Connection, {"redis_connect_func": print}, leaseq.BadArgumentError, "credential_provider"),
        (redis.SSLConnection, {"ssl_validate_ocsp": True}, leaseq.BadArgumentError, "revoked"),
        (
            redis.SSLConnection,
            {"ssl_ca_certs": "/no/such/file"},
            leaseq.BadArgumentError,
            "FileNotFoundError",
        ),
        (redis.SSLConnection, {"ssl_cert_reqs": "sometimes"}, leaseq.BadArgumentError, "sometimes"),
        (redis.Connection, {"db": "first"}, leaseq.BadArgumentError, "first"),
    ],
)
def test_settings_that_do_not_do(
    kind: type, given: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        endpoint(given, kind)


def test_a_client_for_replicas_is_refused() -> None:
    make: Any = redis.sentinel.Sentinel
    sentinel = make([("127.0.0.1", 1)])
    with pytest.raises(leaseq.BadTypeError, match="master_for"):
        leaseq.WorkQueue("q", sentinel.slave_for("mymaster"))


def test_how_tls_is_spoken(tmp_path: Path) -> None:
    """As redis-py reads the same settings."""
    issuer = trustme.CA()
    authority = tmp_path / "ca"
    issuer.cert_pem.write_to_path(authority)
    strict = endpoint(
        {"ssl_ca_certs": str(authority), "ssl_min_version": ssl.TLSVersion.TLSv1_3}, redis.SSLConnection
    )
    context = strict.tls()
    assert context is not None
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert context.minimum_version == ssl.TLSVersion.TLSv1_3
    assert len(context.get_ca_certs()) >= 1
    for none in ("none", ssl.CERT_NONE, None):
        lax = endpoint({"ssl_cert_reqs": none, "ssl_check_hostname": True}, redis.SSLConnection).tls()
        assert lax is not None
        assert (lax.verify_mode, lax.check_hostname) == (ssl.CERT_NONE, False)
    flags: Any = {"ssl_include_verify_flags": [ssl.VERIFY_CRL_CHECK_LEAF], "ssl_ciphers": "ECDHE+AESGCM"}
    checked = endpoint(flags, redis.SSLConnection).tls()
    assert checked is not None
    assert checked.verify_flags & ssl.VERIFY_CRL_CHECK_LEAF
    assert endpoint({}, redis.Connection).tls() is None


@pytest.mark.parametrize(
    ("text", "kind", "left"),
    [
        ("ERR unknown command", redis.ResponseError, "unknown command"),
        ("LEASEQ_FULL no room", redis.ResponseError, "LEASEQ_FULL no room"),
        ("READONLY You can't write", redis.exceptions.ReadOnlyError, "You can't write"),
        ("ERR max number of clients reached", redis.ConnectionError, "max number of clients reached"),
        ("LOADING Redis is loading", redis.exceptions.BusyLoadingError, "Redis is loading"),
        ("MOVED", redis.ResponseError, "MOVED"),
        ("ASK 12 nowhere", redis.ResponseError, "ASK 12 nowhere"),
    ],
)
def test_errors_are_those_of_redis_py(text: str, kind: type[Exception], left: str) -> None:
    error = error_reply(text)
    assert (type(error), str(error)) == (kind, left)


def test_where_a_slot_is_now() -> None:
    moved: Any = error_reply("MOVED 3999 127.0.0.1:6381")
    assert (type(moved), moved.host, moved.port) == (redis.exceptions.MovedError, "127.0.0.1", 6381)


def test_a_client_in_one_loop_after_another(url: str) -> None:
    """Connections belong to an event loop; the next one has its own."""
    client = redis.asyncio.Redis.from_url(url)

    async def add(name: str) -> bool:
        queue = leaseq.aio.WorkQueue("q", client)
        added = await queue.add_item(Item(b"x", id=name))
        await asyncio.sleep(0)
        await queue.close()
        return added

    assert asyncio.run(add("a"))
    assert asyncio.run(add("b"))


def test_a_unix_socket(flavour: ClientFlavour, tmp_path: Path) -> None:
    path = tmp_path / "s"
    with servers.SpawnedServer(servers.DEFAULT, "--unixsocket", str(path)):
        queue = flavour.queue("q", f"unix://{path}?db=2")
        assert queue.add_item(Item(b"x" * 100_000, id="a"))
        item = queue.lease(30)
        assert item is not None
        assert queue.complete(item)


def test_packed_alike(redis_client: redis.Redis, url: str) -> None:
    """LQ-ITEM-1: text is UTF-8, whatever a client takes text for."""
    connection = sync.Connection.open(at(f"{url}?encoding=latin-1"))
    connection.send("EVAL", "return ARGV", "0", "ä€😀", b"\0\xff\r\n", "")
    assert connection.read() == ["ä€😀".encode(), b"\0\xff\r\n", b""]
    connection.close()
    del redis_client


def test_no_command_has_a_number(
    url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a number hiredis calls repr, where a signal handler that raises crashes the interpreter. Redis-py packs with it too.

    Every test of this process looks at what it packs (`support.packing`).
    """
    connection = sync.Connection.open(at(url))
    command: Any = ("ECHO", 1)
    with pytest.raises(TypeError, match="takes str and bytes"):
        connection.send(*command)
    connection.close()
    packed: list[Any] = []
    monkeypatch.setattr(redis_client, "execute_command", lambda *command, **_: packed.append(command))
    Node(redis_client, "node").execute("EVAL", "return 1", 0, b"x")
    assert packed == [("EVAL", "return 1", "0", b"x")]


def test_the_child_of_a_fork_opens_its_own(url: str) -> None:
    """Two processes on one connection would read each other's replies."""
    with connect(url) as client:
        pool: Any = route(client)
        kept, used = pool.acquire("", None), pool.acquire("", None)
        pool.release(kept)
        child, _ = fork()
        if child == 0:
            pool.release(used)
            own = pool.acquire("", None)
            own.send("PING")
            os._exit(0 if own not in {kept, used} and own.read() == b"PONG" else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert pool.acquire("", None) is kept
        kept.send("PING")
        used.send("PING")
        assert (kept.read(), used.read()) == (b"PONG", b"PONG")
        pool.release(kept)
        pool.release(used)
        pool.close()
    assert isinstance(hiredis.__version__, str)


@pytest.mark.parametrize("seconds", ["1e10", "inf"])
def test_a_time_limit_beyond_what_a_socket_takes(flavour: ClientFlavour, url: str, seconds: str) -> None:
    client = flavour.client(url, socket_timeout=float(seconds), socket_connect_timeout=float(seconds))
    assert flavour.queue("q", client).stats().ready == 0
