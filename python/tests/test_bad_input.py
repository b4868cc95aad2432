"""Everything wrong that a caller can pass: each gets its named error, and nothing in the keyspace changes."""

from __future__ import annotations

import math
import socket
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import redis
import redis.asyncio

import leaseq
import leaseq.aio
from leaseq import (
    AccessDeniedError,
    BadArgumentError,
    BadIdError,
    BadNameError,
    BadTypeError,
    Item,
    LeaseqError,
    TooLargeError,
    UnavailableError,
)

if TYPE_CHECKING:
    import servers
    from colours import Colour

Call = Callable[[Any, Any], object]
Row = tuple[type[LeaseqError], Call]
MIB = 1024 * 1024


def with_token(item: Any, token: Any) -> Any:
    """The item with another token."""
    real = getattr(item, "real", item)
    real.token = token
    return item


def with_id(item: Any, item_id: Any) -> Any:
    """The item with another id."""
    real = getattr(item, "real", item)
    real.id = item_id
    return item


BAD_IDS: dict[str, Any] = {
    "empty": "",
    "too long": "x" * 257,
    "too many bytes": "ü" * 129,
    "NUL": "a\0b",
    "empty bytes": b"",
    "surrogate": "a\ud800",
    "not UTF-8": b"\xff",
    "overlong": b"\xc0\x80",
    "surrogate bytes": b"\xed\xa0\x80",
}
NO_IDS: dict[str, Any] = {"int": 5, "list": ["a"], "float": 1.5, "bytearray": bytearray(b"a")}
BAD_NUMBERS: dict[str, float] = {
    "negative": -1,
    "NaN": math.nan,
    "infinite": math.inf,
    "minus infinite": -math.inf,
    "huge": 1e300,
    "huge int": 10**400,
    "beyond": 315_360_000_001.0,
}
NO_NUMBERS: dict[str, Any] = {"str": "5", "bool": True, "list": [1], "complex": 1j}
NO_COUNTS: dict[str, Any] = {"float": 1.0, "str": "1", "bool": True, "None": None}
NO_ITEMS: dict[str, Any] = {"str": "a", "bytes": b"a", "None": None, "int": 1, "dict": {"id": "a"}}
BAD_TOKENS: dict[str, Any] = {"negative": -1, "huge": 10**16, "enormous": 10**5000}
NO_TOKENS: dict[str, Any] = {"str": "1", "float": 1.5, "None": None, "bool": True}

ROWS: dict[str, Row] = {}


def _swapped(call: Callable[[Any, Any, Any], object], value: Any, queue: Any, item: Any) -> object:
    return call(queue, item, value)


def rows(
    title: str, error: type[LeaseqError], values: dict[str, Any], call: Callable[[Any, Any, Any], object]
) -> None:
    """One row for each bad value."""
    for name, value in values.items():
        ROWS[f"{title}: {name}"] = (error, partial(_swapped, call, value))


rows("add id", BadIdError, BAD_IDS, lambda q, _, v: q.add_item(Item(b"x", id=v)))
rows("add second id", BadIdError, BAD_IDS, lambda q, _, v: q.add_items([Item(b"x"), Item(b"x", id=v)]))
rows("add id type", BadTypeError, NO_IDS, lambda q, _, v: q.add_item(Item(b"x", id=v)))
rows(
    "remove",
    BadIdError,
    {**BAD_IDS},
    lambda q, _, v: q.remove(v if isinstance(v, str) else Item(b"", id=v).id),
)
rows("remove second", BadIdError, {"empty": "", "NUL": "\0"}, lambda q, _, v: q.remove_items(["ready", v]))
rows("remove type", BadTypeError, {**NO_IDS, "bytes": b"ready", "None": None}, lambda q, _, v: q.remove(v))
rows("remove many", BadTypeError, {"str": "ready", "int": 1, "None": None}, lambda q, _, v: q.remove_items(v))
rows("inspect", BadIdError, {"empty": "", "too long": "x" * 257, "NUL": "\0"}, lambda q, _, v: q.inspect(v))
rows("inspect type", BadTypeError, {**NO_IDS, "None": None}, lambda q, _, v: q.inspect(v))
rows("inspect many", BadTypeError, {"str": "ready", "None": None}, lambda q, _, v: q.inspect_items(v))
rows(
    "data type",
    BadTypeError,
    {"int": 1, "None": None, "list": [1], "dict": {}},
    lambda q, _, v: q.add_item(Item(v)),
)
rows("data", BadArgumentError, {"surrogate": "\ud800"}, lambda q, _, v: q.add_item(Item(v)))
rows("no item", BadTypeError, NO_ITEMS, lambda q, _, v: q.add_item(v))
rows("no items", BadTypeError, NO_ITEMS, lambda q, _, v: q.add_items(v))
rows("no second item", BadTypeError, NO_ITEMS, lambda q, _, v: q.add_items([Item(b"x"), v]))
rows("too large", TooLargeError, {"1 MiB + 1": b"x" * (MIB + 1)}, lambda q, _, v: q.add_item(Item(v)))
rows(
    "too large among good ones",
    TooLargeError,
    {"1 MiB + 1": b"x" * (MIB + 1)},
    lambda q, _, v: q.add_items([Item(b"x"), Item(v), Item(b"x")]),
)
rows("delay", BadArgumentError, BAD_NUMBERS, lambda q, _, v: q.add_item(Item(b"x"), delay=v))
rows(
    "delay type", BadTypeError, {**NO_NUMBERS, "None": None}, lambda q, _, v: q.add_item(Item(b"x"), delay=v)
)
rows("not_before", BadArgumentError, BAD_NUMBERS, lambda q, _, v: q.add_item(Item(b"x"), not_before=v))
rows("not_before type", BadTypeError, NO_NUMBERS, lambda q, _, v: q.add_item(Item(b"x"), not_before=v))
rows("both", BadArgumentError, {"both": 1}, lambda q, _, v: q.add_item(Item(b"x"), delay=v, not_before=v))
rows(
    "priority",
    BadArgumentError,
    {"-8": -8, "8": 8, "1e9": 10**9},
    lambda q, _, v: q.add_item(Item(b"x"), priority=v),
)
rows(
    "priority type",
    BadTypeError,
    {"str": "1", "float": 1.0},
    lambda q, _, v: q.add_item(Item(b"x"), priority=v),
)
rows(
    "attempts",
    BadArgumentError,
    {"-1": -1, "65536": 65536},
    lambda q, _, v: q.add_item(Item(b"x"), max_attempts=v),
)
rows(
    "attempts type",
    BadTypeError,
    {"str": "1", "float": 1.5},
    lambda q, _, v: q.add_item(Item(b"x"), max_attempts=v),
)
rows("pipe", BadTypeError, {"object": object(), "str": "x"}, lambda q, _, v: q.add_item(Item(b"x"), pipe=v))
DURATIONS = {**BAD_NUMBERS, "zero": 0, "too short": 0.0001, "31 days": 31 * 86400.0}
rows("lease", BadArgumentError, DURATIONS, lambda q, _, v: q.lease(v, block=False))
rows("blocking lease", BadArgumentError, DURATIONS, lambda q, _, v: q.lease(v))
rows("lease type", BadTypeError, {**NO_NUMBERS, "None": None}, lambda q, _, v: q.lease(v))
rows(
    "timeout",
    BadArgumentError,
    {k: v for k, v in BAD_NUMBERS.items() if k != "beyond"},
    lambda q, _, v: q.lease(1, timeout=v),
)
rows("timeout type", BadTypeError, NO_NUMBERS, lambda q, _, v: q.lease(1, timeout=v))
rows("items", BadArgumentError, DURATIONS, lambda q, _, v: next(q.items(v)))
rows(
    "count",
    BadArgumentError,
    {"0": 0, "-1": -1, "257": 257, "huge": 10**30},
    lambda q, _, v: q.lease_items(v, 30),
)
rows("count type", BadTypeError, NO_COUNTS, lambda q, _, v: q.lease_items(v, 30))
rows("extend", BadArgumentError, DURATIONS, lambda q, i, v: q.extend(i, v))
rows("extend type", BadTypeError, {**NO_NUMBERS, "None": None}, lambda q, i, v: q.extend(i, v))
rows("extend what", BadTypeError, {**NO_ITEMS, "Item": Item(b"x")}, lambda q, _, v: q.extend(v, 30))
rows("complete what", BadTypeError, {**NO_ITEMS, "Item": Item(b"x")}, lambda q, _, v: q.complete(v))
rows("complete many", BadTypeError, NO_ITEMS, lambda q, _, v: q.complete_items(v))
rows("release what", BadTypeError, {**NO_ITEMS, "Item": Item(b"x")}, lambda q, _, v: q.release(v))
rows("release many", BadTypeError, NO_ITEMS, lambda q, _, v: q.release_items(v))
rows("extend many", BadTypeError, NO_ITEMS, lambda q, _, v: q.extend_items(v, 30))
rows("complete and lease what", BadTypeError, NO_ITEMS, lambda q, _, v: q.complete_and_lease(v, 30))
rows("complete and lease", BadArgumentError, DURATIONS, lambda q, i, v: q.complete_and_lease(i, v))
rows("release delay", BadArgumentError, BAD_NUMBERS, lambda q, i, v: q.release(i, delay=v))
rows("release delay type", BadTypeError, {**NO_NUMBERS, "None": None}, lambda q, i, v: q.release(i, delay=v))
for _name, _call in {
    "complete": lambda q, i: q.complete(i),
    "extend": lambda q, i: q.extend(i, 30),
    "release": lambda q, i: q.release(i),
    "complete and lease": lambda q, i: q.complete_and_lease(i, 30),
}.items():
    rows(f"{_name} token", BadArgumentError, BAD_TOKENS, lambda q, i, v, c=_call: c(q, with_token(i, v)))  # type: ignore[misc]
    rows(f"{_name} token type", BadTypeError, NO_TOKENS, lambda q, i, v, c=_call: c(q, with_token(i, v)))  # type: ignore[misc]
    rows(f"{_name} id", BadIdError, {"empty": "", "NUL": "\0"}, lambda q, i, v, c=_call: c(q, with_id(i, v)))  # type: ignore[misc]
rows("list state", BadArgumentError, {"unknown": "done", "empty": ""}, lambda q, _, v: q.list_items(v))
rows(
    "list state type",
    BadTypeError,
    {"None": None, "int": 1, "object": object()},
    lambda q, _, v: q.list_items(v),
)
rows(
    "list limit",
    BadArgumentError,
    {"0": 0, "257": 257, "-1": -1},
    lambda q, _, v: q.list_items("ready", limit=v),
)
rows("list limit type", BadTypeError, NO_COUNTS, lambda q, _, v: q.list_items("ready", limit=v))
rows(
    "list offset",
    BadArgumentError,
    {"-1": -1, "huge": 10**20},
    lambda q, _, v: q.list_items("ready", offset=v),
)
rows(
    "configure", BadArgumentError, {"0": 0, "-1": -1, "1 GiB": 2**30}, lambda q, _, v: q.configure(max_data=v)
)
rows("configure type", BadTypeError, NO_COUNTS, lambda q, _, v: q.configure(max_data=v))
rows(
    "from_dict",
    BadArgumentError,
    {"list": [], "no data": {"id": "a"}, "more": {"data": "x", "a": 1}},
    lambda q, _, v: q.add_item(Item.from_dict(v)),
)
rows(
    "from_json",
    BadArgumentError,
    {"text": "{", "list": "[]", "None": None, "deep": "[" * 100_000},
    lambda q, _, v: q.add_item(Item.from_json(v)),
)
rows(
    "from_json_data",
    BadArgumentError,
    {"NaN": math.nan, "set": {1}, "bytes": b"x"},
    lambda q, _, v: q.add_item(Item.from_json_data(v)),
)
rows("data_json", BadArgumentError, {"text": b"{", "bytes": b"\xff"}, lambda _q, _i, v: Item(v).data_json())


def dump(client: redis.Redis) -> dict[bytes, Any]:
    """Every key with all that is in it."""
    keys: Any = client.keys()
    return {key: client.dump(key) for key in sorted(keys)}


@pytest.fixture
def prepared(colour: Colour, redis_client: redis.Redis, url: str) -> tuple[leaseq.WorkQueue, Any]:
    """A queue with an item in every state, and the leased one."""
    queue = colour.queue("q", url)
    queue.add_item(Item(b"x", id="dead"), max_attempts=1)
    dying = queue.lease(30)
    assert dying is not None
    queue.release(dying)
    queue.add_item(Item(b"x", id="leased"))
    item = queue.lease(3600)
    queue.add_item(Item(b"x", id="ready"))
    queue.add_item(Item(b"x", id="delayed"), delay=3600)
    return queue, item


def test_bad_arguments_change_nothing(
    subtests: pytest.Subtests, colour: Colour, redis_client: redis.Redis, prepared: tuple[Any, Any]
) -> None:
    """LQ-ERROR-1, LQ-ERROR-2, LQ-ERROR-4, LQ-ITEM-1, LQ-ITEM-4, LQ-CALL-2, LQ-ADD-4, LQ-ADD-5: the whole table."""
    queue, item = prepared
    real = getattr(item, "real", item)
    item_id, token = real.id, real.token
    before = dump(redis_client)
    for title, (error, call) in ROWS.items():
        with subtests.test(title):
            real.id, real.token = item_id, token
            try:
                with pytest.raises(error) as caught:
                    call(queue, item)
                assert caught.value.definite
                assert type(caught.value) is error
                assert dump(redis_client) == before
            finally:
                before = dump(redis_client)
    assert len(ROWS) > 250
    assert not item.lost


@pytest.mark.parametrize("name", ["", "a b", "a{b}", "ü", "a" * 101, "a\n", "a:b", "../x"])
def test_bad_names(colour: Colour, redis_client: redis.Redis, url: str, name: str) -> None:
    """LQ-KEY-2: refused before anything is sent."""
    with pytest.raises(BadNameError):
        colour.queue(name, url)
    with pytest.raises(BadNameError):
        colour.queue("q", url, group=name)
    assert redis_client.dbsize() == 0


@pytest.mark.parametrize("name", [None, 5, b"q", ["q"]])
def test_names_of_a_wrong_type(colour: Colour, url: str, name: Any) -> None:
    """LQ-KEY-2."""
    with pytest.raises(BadTypeError):
        colour.queue(name, url)
    if name is not None:
        with pytest.raises(BadTypeError):
            colour.queue("q", url, group=name)


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
def test_no_server_url(colour: Colour, server: str) -> None:
    """LQ-SAFE-3, LQ-ERROR-2: a named error at once, which does not repeat the password."""
    with pytest.raises(BadArgumentError) as caught:
        colour.queue("q", server)
    assert "hidden" not in str(caught.value)
    assert caught.value.__suppress_context__ or "hidden" not in repr(caught.value.__context__)


def test_no_server_at_all(colour: Colour, monkeypatch: pytest.MonkeyPatch) -> None:
    """LQ-ERROR-2: the message names the ways out."""
    monkeypatch.delenv("REDIS_URL", raising=False)
    for server in (None, ""):
        with pytest.raises(leaseq.NoServerError, match=r"URL.*REDIS_URL.*embedded"):
            colour.queue("q", server)


@pytest.mark.parametrize(
    "server", [5, b"redis://localhost", object(), redis.ConnectionPool(), ["redis://localhost"]]
)
def test_servers_of_a_wrong_type(colour: Colour, server: Any) -> None:
    """LQ-ERROR-2."""
    with pytest.raises(BadTypeError, match="URL or a redis"):
        colour.queue("q", server)


def test_a_client_of_the_other_colour() -> None:
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
    colour: Colour, redis_client: redis.Redis, url: str, rights: list[str], refused: list[str], definite: bool
) -> None:
    """LQ-ERROR-2, LQ-SAFE-3: AccessDeniedError wherever the right is missing, no data in its text.

    A right that is missing inside a script may have stopped it halfway, so that is not definite.
    """
    redis_client.execute_command("ACL", "SETUSER", "poor", "reset", "on", ">hidden", *rights)  # type: ignore[no-untyped-call]
    try:
        queue = colour.queue("q", url.replace("redis://", "redis://poor:hidden@"))
        for name in refused:
            with pytest.raises(AccessDeniedError) as caught:
                OPERATIONS[name](queue)
            assert caught.value.definite is definite, name
            assert "secret" not in str(caught.value)
            assert "hidden" not in str(caught.value)
            assert redis_client.dbsize() == 0
    finally:
        redis_client.acl_deluser("poor")


def test_wrong_and_missing_passwords(
    colour: Colour, own_server: Callable[..., servers.Server], url: str
) -> None:
    """LQ-SAFE-3, LQ-ERROR-2."""
    with pytest.raises(AccessDeniedError) as caught:
        colour.queue("q", url.replace("redis://", "redis://nobody:hidden@")).stats()
    assert "hidden" not in str(caught.value)
    server = own_server()
    with server.client() as client:
        client.config_set("requirepass", "pw")
    for name, call in OPERATIONS.items():
        with pytest.raises(AccessDeniedError) as caught:
            call(colour.queue("q", server.url))
        assert caught.value.definite, name


def test_no_server_listens(colour: Colour) -> None:
    """LQ-ERROR-4: a refused connection and an unknown host are definite."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # taken, but nobody listens
        for server in (
            f"redis://127.0.0.1:{held.getsockname()[1]}",
            "redis://no-such-host.invalid",
            "unix:///nowhere",
        ):
            queue = colour.queue("q", server)
            for name, call in OPERATIONS.items():
                with pytest.raises(UnavailableError) as caught:
                    call(queue)
                assert caught.value.definite, name


def test_a_key_that_holds_something_else(colour: Colour, redis_client: redis.Redis, url: str) -> None:
    """LQ-ERROR-3: every operation that needs the key, and nothing is changed."""
    queue = colour.queue("q", url)
    for key, names in {
        "items": ["add", "remove", "inspect"],
        "ready": ["add", "lease", "blocking lease", "remove", "light_clean"],
        "state": ["add", "lease", "blocking lease", "stats", "light_clean"],
        "wake": ["add", "lease"],
    }.items():
        redis_client.flushall()
        redis_client.hset("leaseq:{q}:q:" + key, "foreign", "1") if key != "items" else redis_client.set(
            "leaseq:{q}:q:items", "foreign"
        )
        before = dump(redis_client)
        for name in names:
            with pytest.raises(leaseq.WrongTypeError) as caught:
                OPERATIONS[name](queue)
            assert caught.value.definite, (key, name)
            assert dump(redis_client) == before, (key, name)
