"""Settings that a person must correct are reported by name, at the first call at the latest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import redis
from support import servers
from support.background_worker import background_worker
from support.servers import TIMEOUT_SECS

import leaseq
from leaseq.endpoint import endpoint
from leaseq.server_url import server_set

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.client_flavours import ClientFlavour


@pytest.fixture
def restricted(url: str, redis_client: redis.Redis) -> Iterator[str]:
    """The server's place, which has users without a right: `select` and `setname`, password x."""
    for name, right in (("select", "-select"), ("setname", "-client|setname")):
        redis_client.acl_setuser(
            name, enabled=True, passwords=["+x"], keys=["*"], channels=["*"], commands=["+@all", right]
        )
    yield url.partition("://")[2].partition("/")[0]
    redis_client.acl_deluser("select", "setname")


REFUSED = {
    "redis://select:x@{}/3": (leaseq.AccessDeniedError, "SELECT 3"),
    "redis://setname:x@{}/0?client_name=a": (leaseq.AccessDeniedError, "CLIENT SETNAME a"),
    "redis://select:wrong@{}/0": (leaseq.AccessDeniedError, "password"),
    "redis://{}/999": (leaseq.BadArgumentError, "SELECT 999"),
    "redis://{}/0?client_name=a%20b": (leaseq.BadArgumentError, "CLIENT SETNAME a b"),
}


@pytest.mark.parametrize("form", REFUSED)
def test_what_a_greeting_is_refused_for(flavour: ClientFlavour, restricted: str, form: str) -> None:
    """LQ-ERROR-4: nothing was sent. It was "the server cannot be reached"."""
    kind, text = REFUSED[form]
    queue = flavour.queue("q", form.format(restricted))
    with pytest.raises(kind, match=text) as refused:
        queue.stats()
    assert refused.value.definite


@pytest.mark.parametrize("form", REFUSED)
def test_a_refused_connection_is_closed(
    flavour: ClientFlavour, restricted: str, redis_client: redis.Redis, form: str
) -> None:
    """A program that tries again and again takes all connections of the server otherwise."""
    queue = flavour.queue("q", form.format(restricted))
    before = len(redis_client.client_list())
    refused = []
    for _ in range(3):
        with pytest.raises(REFUSED[form][0]) as error:
            queue.stats()
        refused.append(error)  # nothing is closed for want of a reference to it
    servers.wait_until(lambda: len(redis_client.client_list()) == before)


@pytest.mark.parametrize("form", ["redis://select:x@{}/3", "redis://{}/999"])
def test_a_worker_ends_that_only_a_person_can_help(
    flavour: ClientFlavour, restricted: str, form: str
) -> None:
    """LQ-WORK-14: it tried without end."""
    kind, text = REFUSED[form]
    queue = flavour.queue("q", form.format(restricted))
    with (
        pytest.raises(kind, match=text),
        background_worker(flavour, queue, lambda _: None) as worker,
    ):
        worker.result()


@pytest.mark.promise("G21")
@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("redis://h/0?socket_timeout=0", "socket_timeout"),
        ("redis://h/0?socket_timeout=nan", "socket_timeout"),
        ("redis://h/0?socket_connect_timeout=-1", "socket_connect_timeout"),
        ("redis://h/abc", "path"),
        ("redis://h/-1", "path"),
        ("redis://h/0?nosuch=1", "nosuch"),
        ("redis://h/0?protocol=7", "protocol"),
        ("rediss://h/0?ssl_cert_reqs=CERT_NONE", "CERT_NONE"),
        ("rediss://h/0?ssl_ca_certs=/no/such/file", "FileNotFoundError"),
        ("rediss://h/0?ssl_ciphers=bad", "cipher"),
    ],
)
def test_options_of_a_url(flavour: ClientFlavour, url: str, text: str) -> None:
    """They raised errors of redis-py, or did something else without a word (LQ-CLIENT-27)."""
    with pytest.raises(leaseq.BadArgumentError, match=text):
        flavour.queue("q", url)


@pytest.mark.parametrize(
    "url", ["redis://h", "redis://h/", "redis://u:p@h:1/2/", "rediss://h?db=2", "redis://[::1]:1/3?db=1"]
)
def test_urls_that_are_right(url: str) -> None:
    assert server_set(url) is None


def test_an_endpoint_shows_no_password() -> None:
    found = endpoint({"password": "secret"}, redis.Connection)
    assert "secret" not in repr(found) + str(found)


@pytest.mark.each_server
@pytest.mark.parametrize("rest", ["/3", "/0?client_name=a"])
def test_what_a_server_refuses_for_now_is_no_setting(
    flavour: ClientFlavour, own_server: Callable[..., servers.SpawnedServer], rest: str
) -> None:
    """A script that runs for long makes servers but Valkey 9 refuse SELECT and SETNAME: that passes."""
    server = own_server("--lua-time-limit", "10")
    url = server.url.removesuffix("/0") + rest
    with server.client() as running, server.client() as killing:
        busy = flavour.start(lambda: running.eval("while true do end", 0))
        servers.wait_until(lambda: is_busy(killing))
        with pytest.raises(leaseq.ServerError, match="BUSY") as refused:
            flavour.queue("q", url).stats()
        assert refused.value.definite
        killing.execute_command("SCRIPT", "KILL")
        with pytest.raises(redis.ResponseError):
            busy.result(TIMEOUT_SECS)


def is_busy(client: redis.Redis) -> bool:
    """Return whether the server runs a script for longer than it may."""
    try:
        client.get("k")
    except redis.ResponseError as error:
        return str(error).startswith("BUSY")
    return False
