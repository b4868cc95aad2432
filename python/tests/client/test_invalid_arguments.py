"""Everything wrong that a caller can pass: each gets its named error, and nothing in the keyspace changes."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest
import redis
import redis.asyncio
from support import invalid_arguments

import leaseq
import leaseq.aio
from leaseq import (
    AccessDeniedError,
    BadArgumentError,
    BadNameError,
    BadTypeError,
    Item,
    UnavailableError,
    commands,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from support import servers
    from support.client_flavours import ClientFlavour


def dump(client: redis.Redis) -> dict[bytes, Any]:
    """Every key with all that is in it."""
    keys: Any = client.keys()
    return {key: client.dump(key) for key in sorted(keys)}


@pytest.fixture
def prepared(flavour: ClientFlavour, redis_client: redis.Redis, url: str) -> tuple[leaseq.WorkQueue, Any]:
    """A queue with an item in every state, and the leased one."""
    queue = flavour.queue("q", url)
    queue.add_item(Item(b"x", id="dead"), max_attempts=1)
    dying = queue.lease(30)
    assert dying is not None
    queue.release(dying)
    queue.add_item(Item(b"x", id="leased"))
    item = queue.lease(3600)
    queue.add_item(Item(b"x", id="ready"))
    queue.add_item(Item(b"x", id="delayed"), delay=3600)
    return queue, item


@pytest.mark.promise("G9")
def test_bad_arguments_change_nothing(
    subtests: pytest.Subtests, flavour: ClientFlavour, redis_client: redis.Redis, prepared: tuple[Any, Any]
) -> None:
    """LQ-ERROR-1, LQ-ERROR-2, LQ-ERROR-4, LQ-ITEM-1, LQ-ITEM-4, LQ-CALL-2, LQ-ADD-4, LQ-ADD-5: the whole table."""
    queue, item = prepared
    real = getattr(item, "real", item)
    item_id, token = real.id, real.token
    before = dump(redis_client)
    for title, error, call in invalid_arguments.rows():
        real.id, real.token = item_id, token
        raised: Any = None
        try:
            call(queue, item)
        except leaseq.LeaseqError as caught:
            raised = caught
        if type(raised) is not error or not raised.definite or dump(redis_client) != before:
            with subtests.test(title):
                pytest.fail(f"{raised!r} instead of {error.__name__}, or the keyspace changed")
            before = dump(redis_client)
    assert not item.lost


@pytest.mark.parametrize("name", ["", "a b", "a{b}", "ü", "a" * 101, "a\n", "a:b", "../x"])
def test_bad_names(flavour: ClientFlavour, redis_client: redis.Redis, url: str, name: str) -> None:
    """LQ-KEY-2: refused before anything is sent."""
    with pytest.raises(BadNameError):
        flavour.queue(name, url)
    with pytest.raises(BadNameError):
        flavour.queue("q", url, group=name)
    assert redis_client.dbsize() == 0


@pytest.mark.parametrize("name", [None, 5, b"q", ["q"]])
def test_names_of_a_wrong_type(flavour: ClientFlavour, url: str, name: Any) -> None:
    """LQ-KEY-2."""
    with pytest.raises(BadTypeError):
        flavour.queue(name, url)
    if name is not None:
        with pytest.raises(BadTypeError):
            flavour.queue("q", url, group=name)


@pytest.mark.parametrize(
    "server",
    [
        "localhost",
        "http://user:hidden@localhost",
        "redis://:hidden@localhost:port",
        "redis://:hidden@localhost:99999",
        "redis://:hidden@localhost?socket_timeout=soon",
        "redis://:hidden@localhost?no_such_option=1",
        "mysql://x",
        " ",
    ],
)
def test_no_server_url(flavour: ClientFlavour, server: str) -> None:
    """LQ-SAFE-3, LQ-ERROR-2: a named error at once, which does not repeat the password."""
    with pytest.raises(BadArgumentError) as caught:
        flavour.queue("q", server)
    assert "hidden" not in str(caught.value)
    assert caught.value.__suppress_context__ or "hidden" not in repr(caught.value.__context__)


def test_no_server_at_all(flavour: ClientFlavour, monkeypatch: pytest.MonkeyPatch) -> None:
    """LQ-ERROR-2: the message names the ways out."""
    monkeypatch.delenv("REDIS_URL", raising=False)
    for server in (None, ""):
        with pytest.raises(leaseq.NoServerError, match=r"URL.*REDIS_URL.*embedded"):
            flavour.queue("q", server)


@pytest.mark.parametrize(
    "server", [5, b"redis://localhost", object(), redis.ConnectionPool(), ["redis://localhost"]]
)
def test_servers_of_a_wrong_type(flavour: ClientFlavour, server: Any) -> None:
    """LQ-ERROR-2."""
    with pytest.raises(BadTypeError, match="URL or a redis"):
        flavour.queue("q", server)


def test_a_client_of_the_other_flavour() -> None:
    """LQ-ERROR-2: the message says which queue takes it."""
    with pytest.raises(BadTypeError, match=r"leaseq\.aio\.WorkQueue"):
        leaseq.WorkQueue("q", redis.asyncio.Redis())  # type: ignore[arg-type]
    with pytest.raises(BadTypeError, match=r"leaseq\.WorkQueue"):
        leaseq.aio.WorkQueue("q", redis.Redis())  # type: ignore[arg-type]


OPERATIONS: dict[str, Callable[[Any], object]] = {
    "add": lambda q: q.add_item(Item(b"secret data", id="a")),
    "lease": lambda q: q.lease(1, block=False),
    "blocking lease": lambda q: q.lease(1, timeout=1),
    "remove": lambda q: q.remove("a"),
    "stats": lambda q: q.stats(),
    "light_clean": lambda q: q.light_clean(),
    "deep_clean": lambda q: q.deep_clean(),
    "inspect": lambda q: q.inspect("a"),
    "list": lambda q: q.list_items("ready"),
    "promote": lambda q: q.promote("a"),
    "revive": lambda q: q.revive("a"),
    "purge": lambda q: q.purge("a"),
    "outcomes": lambda q: q.outcomes(["a"]),
    "outcome": lambda q: q.outcome("a"),
    "add when room": lambda q: q.add_item_when_room(Item(b"secret data", id="a"), timeout=1),
    "pause": lambda q: q.pause(),
    "resume": lambda q: q.resume(),
    "configure": lambda q: q.configure(max_items=5),
    "delete": lambda q: q.delete(),
    "dead letters": lambda q: q.dead_letters(),
    "revive all": lambda q: q.revive_all(),
    "purge all": lambda q: q.purge_all(),
}


@pytest.mark.parametrize(
    ("rights", "refused", "definite"),
    [
        (["~*", "+@all", "-evalsha", "-eval"], OPERATIONS, True),
        (["~*", "+@all", "-@scripting"], OPERATIONS, True),
        (["~other:*", "+@all"], OPERATIONS, True),
        (["~*", "+@all", "-hsetnx"], ["add"], False),
        (["~*", "+@all", "-blpop"], ["blocking lease"], True),
        (["~*", "+@all", "-@write"], ["add"], False),
    ],
    ids=["no eval", "no scripting", "no keys", "no hsetnx", "no blpop", "no write"],
)
def test_users_without_rights(
    flavour: ClientFlavour,
    redis_client: redis.Redis,
    url: str,
    rights: list[str],
    refused: list[str],
    definite: bool,
) -> None:
    """LQ-ERROR-2, LQ-SAFE-3, LQ-SAFE-4: AccessDeniedError wherever the right is missing, no data in its text or its cause.

    A right that is missing inside a script may have stopped it halfway, so that is not definite.
    """
    redis_client.execute_command("ACL", "SETUSER", "poor", "reset", "on", ">hidden", *rights)  # type: ignore[no-untyped-call]
    try:
        queue = flavour.queue("q", url.replace("redis://", "redis://poor:hidden@"))
        for name in refused:
            with pytest.raises(AccessDeniedError) as caught:
                OPERATIONS[name](queue)
            assert caught.value.definite is definite, name
            assert "secret" not in str(caught.value)
            assert "hidden" not in str(caught.value)
            cause = caught.value.__cause__ or caught.value.__context__
            assert "secret" not in repr(cause)
            assert "hidden" not in repr(cause)
            assert redis_client.dbsize() == 0
    finally:
        redis_client.acl_deluser("poor")


def test_wrong_and_missing_passwords(
    flavour: ClientFlavour, own_server: servers.StartServer, url: str
) -> None:
    """LQ-SAFE-3, LQ-ERROR-2."""
    with pytest.raises(AccessDeniedError) as caught:
        flavour.queue("q", url.replace("redis://", "redis://nobody:hidden@")).stats()
    assert "hidden" not in str(caught.value)
    server = own_server()
    with server.client() as client:
        client.config_set("requirepass", "pw")
    for name, call in OPERATIONS.items():
        with pytest.raises(AccessDeniedError) as caught:
            call(flavour.queue("q", server.url))
        assert caught.value.definite, name
    for protocol in (2, 3):  # a password alone is that of the user `default`
        given = server.url.replace("redis://", "redis://:pw@")
        assert flavour.queue("q", f"{given}?protocol={protocol}").stats().ready == 0


def test_no_server_listens(flavour: ClientFlavour) -> None:
    """LQ-ERROR-4: a refused connection and an unknown host are definite."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound, but not listening
        for server, names in {
            f"redis://127.0.0.1:{held.getsockname()[1]}": [*OPERATIONS],
            "redis://no-such-host.invalid": ["add", "blocking lease"],
            "unix:///nowhere": ["add", "blocking lease"],
        }.items():
            queue = flavour.queue("q", server)
            for name in names:
                with pytest.raises(UnavailableError) as caught:
                    OPERATIONS[name](queue)
                assert caught.value.definite, name


def test_durations_are_the_nearest_millisecond_and_never_become_none() -> None:
    """LQ-CALL-12: the adapters of the conformance suite speak milliseconds, so no case of it can see this."""
    given = {0.0014: 1, 0.0016: 2, 1.0: 1000, 0.1 + 0.2: 300, 2592000.0: 2592000000}
    assert {secs: commands.milliseconds(secs, "lease_secs") for secs in given} == given
    with pytest.raises(BadArgumentError):
        commands.add_options(keep=0.0004)
