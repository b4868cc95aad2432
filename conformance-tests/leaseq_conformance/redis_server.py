"""A real server: started here, or found at a URL.

A server that is started here runs in a temporary folder on a port that is reserved for it, and ends with this process
however that ends. A server that was given by URL is the user's: its database has to be empty, is flushed between cases,
and is never restarted.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urlsplit

import redis

from leaseq_conformance.reserved_port import ReservedPort
from leaseq_conformance.server_process import ServerError, ServerProcess
from leaseq_conformance.server_programs import find_program

if TYPE_CHECKING:
    from types import TracebackType

START_SECS: Final = 60.0
PERSISTENT: Final = ("--appendonly", "yes", "--appendfsync", "everysec")
"""Arguments of a server that keeps its data over a restart."""


def plain_client(url: str, **options: Any) -> redis.Redis:
    """Return a redis-py client without retries and with long timeouts, so that a fault shows as what it is."""
    options = {"socket_timeout": 60, "socket_connect_timeout": 60, "retry": None, **options}
    return redis.Redis.from_url(url, **options)


class Server:
    """A server that cases run on.

    Attributes:
        url: where it is, as redis-py takes it.
        restarts: whether `restart` works.
    """

    url: str
    restarts = False

    def client(self, **options: Any) -> redis.Redis:
        """Return a connection that passes no proxy: bytes, RESP2 unless told otherwise, no retries. The caller closes it."""
        return plain_client(self.url, **{"protocol": 2, **options})

    def flush(self) -> None:
        """Empty the database and forget every script."""
        with self.client() as client:
            client.flushdb()
            client.script_flush()

    def version(self) -> str:
        """Return product and version, such as Valkey 9.1.2."""
        with self.client() as client:
            info: dict[str, Any] = client.info("server")
        for product in ("valkey", "redict", "redis"):  # the forks report a Redis version too
            if info.get(f"{product}_version"):
                return f"{product.capitalize()} {info[f'{product}_version']}"
        return "unknown"

    def restart(self) -> None:
        """Stop the server and start it again with its data; its script cache is empty then and all connections gone."""
        raise ServerError(f"the server at {self.url} was not started here and is not restarted")

    def close(self) -> None:
        """Leave nothing behind."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class ExternalServer(Server):
    """The user's server.

    Raises:
        ServerError: it does not answer, the fault proxy cannot stand before its URL, or its database holds keys.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        if urlsplit(url).scheme not in {"unix", "redis"}:
            raise ServerError(
                f"{url}: give redis://HOST:PORT/DATABASE or unix://PATH; the fault proxy speaks no TLS"
            )
        try:
            with self.client() as client:
                held = client.dbsize()
        except redis.RedisError as error:
            raise ServerError(f"no server answers at {url}: {error}") from error
        if held:
            raise ServerError(
                f"the database at {url} holds {held} keys, which would be deleted. Name an empty one "
                "(redis://HOST:PORT/DATABASE), or none: a server is started then"
            )

    def close(self) -> None:
        """Leave the database as it was: empty."""
        with contextlib.suppress(redis.RedisError):
            self.flush()


class SpawnedServer(Server):
    """A server process on a reserved port of the loopback, in a folder that goes with it. It runs once this returns.

    Args:
        program: see `find_program`.
        arguments: further command-line arguments, such as "--appendonly", "yes". Without any nothing is persistent.
        host: the address at which it listens, one of this machine's own.

    Attributes:
        program: the path of the server program.
        host, port, url: where it listens.
        folder: its working directory; data in it survives `stop`, `kill` and `restart` if the server is persistent.

    Raises:
        ServerError: there is no program, or it does not start.
    """

    restarts = True

    def __init__(
        self,
        program: str | None = None,
        *arguments: str,
        host: str = "127.0.0.1",
    ) -> None:
        self.program = str(find_program(program))
        self._arguments = arguments
        self._folder = tempfile.TemporaryDirectory(prefix="leaseq-server-")
        self.folder = Path(self._folder.name)
        self._process: ServerProcess | None = None
        self._reserved = ReservedPort()
        self.port = self._reserved.number
        self.host = host
        self.url = f"redis://{host}:{self.port}/0"
        try:
            self.start()
        except BaseException:  # an interrupt too: the port and the folder go with it
            self.close()
            raise

    def flush(self) -> None:
        """Empty all databases and forget every script."""
        with self.client() as client:
            client.flushall()
            client.script_flush()

    def command(self) -> list[str]:
        """Return the command line."""
        options = {"port": self.port, "bind": self.host, "dir": self.folder, "daemonize": "no"}
        options |= {"logfile": "log", "save": "", "appendonly": "no", "maxmemory-policy": "noeviction"}
        listed = (part for name, value in options.items() for part in (f"--{name}", str(value)))
        return [self.program, *listed, *self._arguments]

    def start(self, *arguments: str) -> None:
        """Start it again after `stop` or `kill`, with further arguments; returns once it answers.

        Raises:
            ServerError: it does not start; the message has the end of its log.
        """
        process = self._process = ServerProcess([*self.command(), *arguments], self.folder)
        deadline = time.monotonic() + START_SECS
        while not self._answers():
            if not process.running() or time.monotonic() > deadline:
                raise ServerError(f"{self.program} did not start on port {self.port}: {self._printed()}")
            time.sleep(0.005)

    def _printed(self) -> str:
        """The end of its log, and of what it printed."""
        files = [self.folder / name for name in ("log", "output")]
        return "\n".join(file.read_text(errors="replace")[-2000:] for file in files if file.exists())

    def _answers(self) -> bool:
        with contextlib.suppress(redis.RedisError), self.client() as client:
            return bool(client.ping())
        return False

    @property
    def pid(self) -> int:
        """Its process id; raises ServerError while it does not run."""
        if self._process is None:
            raise ServerError("the server does not run")
        return self._process.pid

    def stop(self) -> None:
        """End it with SIGTERM, if it runs."""
        process, self._process = self._process, None
        if process is not None:
            process.stop()

    def kill(self) -> None:
        """End it with SIGKILL, if it runs."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()

    def restart(self) -> None:
        """Stop it with SIGTERM and start it again on the same port and folder."""
        self.stop()
        self.start()

    def close(self) -> None:
        """End it and remove its folder."""
        self.kill()
        self._reserved.close()
        self._folder.cleanup()


def open_server(url: str | None = None, program: str | None = None) -> Server:
    """Return the server at a URL, or start a server that keeps its data over a restart. The caller closes it."""
    return ExternalServer(url) if url else SpawnedServer(program, *PERSISTENT)
