"""The fixtures themselves: what they promise to every other test."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import redis
import servers
from redis.sentinel import Sentinel

if TYPE_CHECKING:
    from collections.abc import Callable

    from faultproxy import FaultProxy

START_AND_WAIT = """
import sys, servers
server = servers.Server(sys.argv[1]).start()
print(server.pid, flush=True)
sys.stdin.read()
"""


def test_the_database_is_empty(redis_client: redis.Redis) -> None:
    assert redis_client.dbsize() == 0
    redis_client.set("left", "behind")


def test_the_database_is_empty_again(redis_client: redis.Redis) -> None:
    assert redis_client.dbsize() == 0
    redis_client.set("left", "behind")


def test_the_server_is_the_named_one(server_name: str, url: str) -> None:
    version = server_name.partition("-")[2].rstrip("t")  # redis-8.0t is the 8.0 of Debian trixie
    if version:
        assert servers.real_version(url).split()[1].startswith(version)


def test_an_own_server_keeps_its_data_over_kill_and_restart(
    own_server: Callable[..., servers.Server],
) -> None:
    server = own_server("--appendonly", "yes", "--appendfsync", "always")
    with server.client() as client:
        client.set("a", "1")
    server.kill9()
    with pytest.raises(redis.ConnectionError), server.client() as client:
        client.ping()
    server.start()
    server.restart()
    with server.client() as client:
        assert client.get("a") == b"1"


def test_a_server_ends_with_a_killed_test_process(startable_name: str) -> None:
    command = [sys.executable, "-c", START_AND_WAIT, startable_name]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
    servers.wait_until(lambda: not alive(pid))


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_an_unknown_server_is_an_error_with_a_way_out() -> None:
    with pytest.raises(servers.ServerNotFoundError, match="make servers"):
        servers.find("redis-1.0")


def test_no_docker_is_told_from_the_socket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "docker.sock"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
    assert not servers.docker_answers()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        assert servers.docker_answers()


def test_the_proxy_loses_one_reply_after_the_command_ran(
    proxy: FaultProxy, redis_client: redis.Redis
) -> None:
    with servers.plain_client(proxy.url) as client:
        assert client.incr("n") == 1
        proxy.cut_after_down = 0
        with pytest.raises(redis.ConnectionError):
            client.incr("n")
        assert redis_client.get("n") == b"2"
        assert client.incr("n") == 3


def test_a_refusing_proxy(proxy: FaultProxy) -> None:
    proxy.refuse = True
    with servers.plain_client(proxy.url) as client, pytest.raises(redis.ConnectionError):
        client.ping()


def test_the_cluster_serves_every_slot(cluster: servers.ClusterSet) -> None:
    with servers.cluster_client(cluster.url) as client:
        for i in range(30):
            assert client.set(f"key{i}", i)
        assert len(client.get_primaries()) == 3  # type: ignore[no-untyped-call]


def test_sentinels_name_the_primary(sentinel: servers.SentinelSet) -> None:
    watch = Sentinel(sentinel.sentinels, socket_timeout=1)  # type: ignore[no-untyped-call]
    found = watch.discover_master(sentinel.service)  # type: ignore[no-untyped-call]
    assert found == ("127.0.0.1", sentinel.primary.port)
    for client in watch.sentinels:
        client.close()
