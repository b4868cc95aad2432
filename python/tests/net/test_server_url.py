"""URLs of sets of servers, for both flavours and for the command line."""

from __future__ import annotations

import contextlib
import json
import re
import traceback
from typing import TYPE_CHECKING, Any

import pytest
from support import servers
from support.background_worker import BackgroundWorker
from support.cli_runner import Calls, run
from support.sentinel_set import SentinelSet

import leaseq
from leaseq import Item
from leaseq.password_file import PasswordFile
from leaseq.server_url import ServerSet, server_set, with_password_file

if TYPE_CHECKING:
    from pathlib import Path

    from support.client_flavours import ClientFlavour
    from support.servers import RedisCluster, StartServer

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
        "sentinel",
        (("h", 1), ("::1", 2)),
        "shop",
        3,
        {"username": None, "password": "c/d", "ssl": True},
        {"ssl": True},
    )
    assert server_set("redis+cluster://a%40b:c@h,i:7/") == ServerSet(
        "cluster", (("h", 6379), ("i", 7)), "mymaster", 0, {"username": "a@b", "password": "c"}
    )
    plus = server_set("redis+cluster://a+b:c+d@h")
    assert plus is not None
    assert plus.options == {"username": "a+b", "password": "c+d"}, "a + before the hosts is no space"


def test_options_of_a_set() -> None:
    """LQ-CLIENT-27."""
    ssl = {"ssl": True, "ssl_ca_certs": "/etc/c a.pem", "ssl_check_hostname": False}
    given = "ssl_ca_certs=/etc/c+a.pem&ssl_check_hostname=no"
    assert server_set(
        f"rediss+sentinel://u:p@h/shop/3?{given}&sentinel_username=s&sentinel_password=%2Bw"
    ) == ServerSet(
        "sentinel",
        (("h", 26379),),
        "shop",
        3,
        {"username": "u", "password": "p", **ssl},
        {"username": "s", "password": "+w", **ssl},
    )
    assert server_set("redis+cluster://u@h?password_file=/run/a%26b&socket_timeout=2.5") == ServerSet(
        "cluster",
        (("h", 6379),),
        "mymaster",
        0,
        {"credential_provider": PasswordFile("/run/a&b", "u"), "socket_timeout": 2.5},
    )
    files = server_set("redis+sentinel://h?password_file=/a&sentinel_password_file=/b&sentinel_username=s")
    assert files is not None
    assert files.options == {"credential_provider": PasswordFile("/a", "")}
    assert files.sentinel_options == {"credential_provider": PasswordFile("/b", "s")}


@pytest.mark.parametrize(
    ("url", "password", "plain"),
    [
        ("redis://h:1/2", None, "redis://h:1/2"),
        ("redis://h:1/2?socket_timeout=1", None, "redis://h:1/2?socket_timeout=1"),
        ("redis://h:1/2?password_file=/a%20b", PasswordFile("/a b", ""), "redis://h:1/2"),
        ("rediss://u%40x@h?a=1&password_file=f&b=%20", PasswordFile("f", "u@x"), "rediss://h?a=1&b=%20"),
        ("unix://u@/tmp/a@b?password_file=f", PasswordFile("f", "u"), "unix:///tmp/a@b"),
        ("unix:///tmp/a@b?password_file=f&db=1", PasswordFile("f", ""), "unix:///tmp/a@b?db=1"),
    ],
)
def test_a_file_with_the_password(url: str, password: PasswordFile | None, plain: str) -> None:
    assert with_password_file(url) == (plain, password)


@pytest.mark.promise("G21")
@pytest.mark.parametrize(
    ("url", "why"),
    [
        (
            "redis+sentinel://h?sentinel_ssl=1",
            "'sentinel_ssl' is no option of this URL, which takes client_name",
        ),
        ("redis+cluster://h?sentinel_password=secret", "'sentinel_password' is no option"),
        ("redis+cluster://h?ssl_ca_certs=/a", "the URL starts with rediss+cluster://"),
        ("redis+cluster://h?socket_timeout=secret", "socket_timeout of this URL is a number of seconds"),
        ("redis+cluster://:secret@h?password_file=/a", "has a password and password_file"),
        ("redis://:secret@h?password_file=/a", "has a password and password_file"),
        ("redis://h?password_file=", "names no file"),
    ],
)
def test_options_that_are_refused(flavour: ClientFlavour, url: str, why: str) -> None:
    """LQ-CLIENT-27: by name, without what may be secret."""
    with pytest.raises(leaseq.BadArgumentError, match=re.escape(why)) as refused:
        flavour.queue("q", url)
    assert "secret" not in str(refused.value)


def test_a_password_that_changes_in_its_file(
    flavour: ClientFlavour, own_server: StartServer, tmp_path: Path
) -> None:
    """Connections that are open stay; the next ones have the new password. Without the file the call is definite."""
    server, file = own_server(), tmp_path / "password"
    file.write_text("first\n")
    with server.client() as admin:
        admin.config_set("requirepass", "first")
        queue = flavour.queue("q", f"{server.url}?password_file={file}")
        assert queue.add_item(Item(b"x", id="a"))
        admin.config_set("requirepass", "second")
        assert queue.stats().items == 1
        admin.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        with pytest.raises(leaseq.AccessDeniedError):
            flavour.queue("q", f"{server.url}?password_file={file}").stats()
        file.write_text("second")
        servers.wait_until(lambda: works(queue))
        other = flavour.queue("q", f"{server.url}?password_file={file}")
        assert other.stats().items == 1
        file.unlink()
        with pytest.raises(leaseq.UnavailableError, match="No such file"):
            flavour.queue("q", f"{server.url}?password_file={file}").stats()


@pytest.mark.parametrize("kind", ["single", "cluster", "sentinel"])
def test_a_password_file_that_is_no_utf_8_is_refused_by_name(
    flavour: ClientFlavour, own_server: StartServer, tmp_path: Path, kind: str
) -> None:
    """LQ-SAFE-3: with the file and what to do, and nothing of the password. A worker ends with it (LQ-WORK-14)."""
    server, file = own_server(), tmp_path / "password"
    file.write_bytes("geheimé".encode("latin-1"))
    url = (
        server.url
        if kind == "single"
        else f"redis+{kind}://{server.url.partition('://')[2].partition('/')[0]}"
    )
    url += f"?{'sentinel_' if kind == 'sentinel' else ''}password_file={file}"
    with pytest.raises(leaseq.AccessDeniedError, match="save it as UTF-8") as refused:
        flavour.queue("q", url).stats()
    assert refused.value.definite
    seen = "".join(traceback.format_exception(refused.value))
    assert str(file) in seen
    assert [word for word in ("geheim", "udce9", "xe9", "position") if word in str(refused.value)] == []
    assert [word for word in ("udce9", "xe9", "position") if word in seen] == []
    if kind == "single":
        work = BackgroundWorker(flavour, flavour.queue("q", url), lambda _: None)
        with pytest.raises(leaseq.AccessDeniedError):
            work.result()


@pytest.mark.parametrize("scheme", ["redis", "redis+cluster", "redis+sentinel"])
@pytest.mark.parametrize("part", ["username", "password"])
def test_a_login_that_is_no_utf_8_is_refused_by_name(flavour: ClientFlavour, part: str, scheme: str) -> None:
    """As from an environment whose bytes are no UTF-8, or from a provider."""
    login = {"username": "shop", "password": "secret", part: "secr\udce9t"}
    url = "{0}://{username}:{password}@{1}".format(scheme, AWAY, **login)
    with pytest.raises(leaseq.BadArgumentError, match=f"{part} .* no UTF-8") as refused:
        flavour.queue("q", url)
    assert [word for word in ("secr", "udce9", "position") if word in str(refused.value)] == []


def works(queue: Any) -> bool:
    with contextlib.suppress(leaseq.LeaseqError):
        return bool(queue.stats().items == 1)
    return False


@pytest.mark.slow
def test_a_password_of_servers_and_one_of_their_sentinels(
    flavour: ClientFlavour, startable_name: str, tmp_path: Path
) -> None:
    """Both from files, also for commands and a cleaner, which take the URL."""
    for name in ("servers", "sentinels"):
        (tmp_path / name).write_text(f"password of {name}\n")
    with SentinelSet(startable_name) as sentinel:
        for name, each in (
            *(("servers", server) for server in (sentinel.primary, *sentinel.replicas)),
            *(("sentinels", watcher) for watcher in sentinel.watchers),
        ):
            with each.client() as client:
                client.execute_command(
                    "ACL", "SETUSER", "shop", "on", "~*", "&*", "+@all", f">password of {name}"
                )
                client.execute_command("ACL", "SETUSER", "default", "off")
        files = f"password_file={tmp_path / 'servers'}&sentinel_password_file={tmp_path / 'sentinels'}"
        url = f"{sentinel_url(sentinel).replace('://', '://shop@')}?{files}&sentinel_username=shop"
        queue = flavour.queue("q", url)
        assert queue.add_item(Item(b"x", id="a"))
        assert Calls(url).yes("stats", "q", "--json").document["items"] == 1
        done = run(["exec", "q", "--url", url, "--burst", "--", "true"])
        assert done.returncode == 0, done
        wrong = f"password_file={tmp_path / 'servers'}&sentinel_password=secret&sentinel_username=shop"
        with pytest.raises(leaseq.LeaseqError) as refused:
            flavour.queue("q", f"{sentinel_url(sentinel).replace('://', '://shop@')}?{wrong}").stats()
        assert "secret" not in str(refused.value)


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
