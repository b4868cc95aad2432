"""URLs of sets of servers, for both flavours and for the command line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from support.cli_runner import Calls, run

import leaseq
from leaseq import Item
from leaseq.server_url import ServerSet, server_set

if TYPE_CHECKING:
    from support.client_flavours import ClientFlavour
    from support.sentinel_set import SentinelSet
    from support.servers import RedisCluster

every_kind = pytest.mark.parametrize("kind", [pytest.param("sentinel", marks=pytest.mark.slow), "cluster"])
AWAY = "127.0.0.1:1"


def sentinel_url(sentinel: SentinelSet) -> str:
    hosts = ",".join(f"{host}:{port}" for host, port in sentinel.sentinels)
    return f"redis+sentinel://{hosts}/{sentinel.service}"


def cluster_url(cluster: RedisCluster) -> str:
    return f"redis+cluster://{AWAY},127.0.0.1:{cluster.nodes[1].port}"


def test_what_a_url_says() -> None:
    assert server_set("redis://h:1/0") is None
    assert server_set("unix:///a+b/socket") is None
    assert server_set("redis+sentinel://h") == ServerSet(
        "sentinel", (("h", 26379),), "mymaster", 0, {"username": None, "password": None}
    )
    assert server_set("rediss+sentinel://:c%2Fd@h:1,[::1]:2/shop/3") == ServerSet(
        "sentinel", (("h", 1), ("::1", 2)), "shop", 3, {"username": None, "password": "c/d", "ssl": True}
    )
    assert server_set("redis+cluster://a%40b:c@h,i:7/") == ServerSet(
        "cluster", (("h", 6379), ("i", 7)), "mymaster", 0, {"username": "a@b", "password": "c"}
    )


@pytest.mark.parametrize("host", ["::1", "[::1", "::1]:26379", "[::1]x", "[]:1", "h:", "h:1:2"])
def test_a_host_that_is_none_is_refused_by_name(flavour: ClientFlavour, host: str) -> None:
    """LQ-CLIENT-27: `::1` is no host `:` with port 1."""
    with pytest.raises(leaseq.BadArgumentError, match="is no HOST or HOST:PORT"):
        flavour.queue("q", f"redis+sentinel://h,{host}/m")


@pytest.mark.promise("G21")
@pytest.mark.parametrize(
    "url",
    [
        "redis+sentinel://",
        "redis+sentinel://secret@",
        "redis+sentinel://h:1/service/x",
        "redis+cluster://h:1/0",
        "redis+what://secret@h:1",
    ],
)
def test_what_is_no_set_of_servers(flavour: ClientFlavour, url: str) -> None:
    with pytest.raises(leaseq.BadArgumentError, match="redis\\+sentinel://") as refused:
        flavour.queue("q", url)
    assert "secret" not in str(refused.value)


def test_sentinels_name_the_primary(flavour: ClientFlavour, sentinel: SentinelSet) -> None:
    queue = flavour.queue(f"q-{flavour.name}", sentinel_url(sentinel))
    assert queue.add_item(Item(b"x", id="a"))
    with leaseq.WorkQueue(queue.name, sentinel.primary.url) as there:
        item = there.lease(3600, timeout=60)
    assert item is not None
    assert queue.inspect("a").state == "leased"


def test_the_database_behind_sentinels(flavour: ClientFlavour, sentinel: SentinelSet) -> None:
    """LQ-CLIENT-27."""
    queue = flavour.queue(f"db-{flavour.name}", f"{sentinel_url(sentinel)}/2")
    assert queue.add_item(Item(b"x", id="a"))
    place = sentinel.primary.url.rpartition("/")[0]
    for database, state in ((0, "absent"), (2, "ready")):
        with leaseq.WorkQueue(queue.name, f"{place}/{database}") as there:
            assert there.inspect("a").state == state


def test_a_cluster_is_found_by_the_node_that_lives(flavour: ClientFlavour, cluster: RedisCluster) -> None:
    for name in "abcdef":
        queue = flavour.queue(f"{name}-{flavour.name}", cluster_url(cluster))
        assert queue.add_item(Item(b"x", id="a"))
        item = queue.lease(3600, timeout=60)
        assert item is not None
        assert queue.complete(item)


@every_kind
def test_a_set_that_is_away(flavour: ClientFlavour, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", f"redis+{kind}://{AWAY}")
    with pytest.raises(leaseq.UnavailableError, match="nothing was sent") as failed:
        flavour.queue("q").add_item(Item(b"x"))
    assert "<redis" not in str(failed.value)


class TestCommandLine:
    def test_sentinels(self, sentinel: SentinelSet) -> None:
        work_through(Calls(sentinel_url(sentinel)))

    def test_a_cluster(self, cluster: RedisCluster) -> None:
        work_through(Calls(cluster_url(cluster)))

    @every_kind
    def test_one_that_is_away(self, kind: str) -> None:
        for args in (["stats", "q"], ["exec", "q", "--", "true"], ["queues"], ["doctor"]):
            Calls(f"redis+{kind}://{AWAY}").refused(3, "nothing was sent", *args)


def work_through(call: Calls) -> None:
    for name in "abc":
        call.yes("add", name, "data", "--id", "1")
        assert call.yes("peek", name, "--json").document["data"] == "data"
        done = run(["exec", name, "--url", call.url, "--burst", "--json", "--", "true"])
        assert json.loads(done.stdout)["state"] == "completed", done
    assert {each["queue"] for each in call.yes("queues", "--json").records} >= set("abc")
    checks = {each["check"]: each["status"] for each in call("doctor", "a", "--json").document}
    assert checks["scripting"] == checks["format"] == "ok"
    call.refused(1, "no worker lives", "workers")
