"""A PostgreSQL server for tests: Debian's, which `make postgres` fetches."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import psycopg
from support import servers

from leaseq_conformance import server_programs
from leaseq_conformance.server_process import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Iterator

USER: Final = "postgres"
SETTINGS: Final = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",  # the machine does not crash in a test
    "max_connections": "50",
}
"""All others are its defaults."""


def programs() -> Path:
    """Return the folder with `initdb` and `postgres`. Raises ServerError."""
    fetched = server_programs.CACHE / "postgresql" / "bin"
    if (fetched / "postgres").exists():
        return fetched
    on_path = shutil.which("initdb")
    if on_path is None:
        raise servers.ServerError(f"PostgreSQL is neither in {fetched} nor on PATH: run `make postgres`")
    return Path(on_path).resolve().parent


def _as_user(folder: Path) -> list[str]:
    """Return what to put before a command: PostgreSQL refuses to run as root. The folder is given to its user."""
    if os.getuid():
        return []
    user = pwd.getpwnam("nobody")
    os.chown(folder, user.pw_uid, user.pw_gid)
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


class PostgresServer:
    """A server on a reserved port of 127.0.0.1, with its data in a temporary folder. It runs once this returns. A context manager."""

    def __init__(self) -> None:
        self._programs = programs()
        self._folder = tempfile.TemporaryDirectory(prefix="leaseq-postgres-")
        self._path = Path(self._folder.name)
        self._user = _as_user(self._path)
        self._reserved = servers.ReservedPort()
        self._process: ServerProcess | None = None
        self._made = 0
        initdb = [str(self._programs / "initdb"), "-D", "data", "-U", USER, "--no-sync", "--auth=trust"]
        made = subprocess.run(
            [*self._user, *initdb, "--encoding=UTF8", "--locale=C"],
            cwd=self._path,
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode:
            self.close()
            raise servers.ServerError(f"initdb failed: {made.stderr.strip()}")
        self.start()

    def start(self) -> None:
        """Start it, also after `crash`; returns once it answers."""
        settings = [word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}")]
        server = [str(self._programs / "postgres"), "-D", "data", "-p", str(self._reserved.number)]
        self._process = ServerProcess([*self._user, *server, *settings], self._path)
        servers.wait_until(self._answers)

    def _answers(self) -> bool:
        with contextlib.suppress(psycopg.OperationalError), self._connected():
            return True
        return False

    @contextlib.contextmanager
    def _connected(self) -> Iterator[psycopg.Connection]:
        address = {"host": "127.0.0.1", "port": self._reserved.number, "user": USER, "dbname": "postgres"}
        with psycopg.connect(**address, autocommit=True) as connection:  # type: ignore[arg-type] # a port is a number
            yield connection

    def new_database(self) -> str:
        """Make an empty database. Return its URL for SQLAlchemy."""
        self._made += 1
        name = f"shop{self._made}"
        with self._connected() as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return f"postgresql+psycopg://{USER}@127.0.0.1:{self._reserved.number}/{name}"

    def crash(self) -> None:
        """End it at once; its transactions are rolled back at the next start."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGQUIT)
            servers.wait_until(lambda: not process.running())
            process.stop()

    def close(self) -> None:
        """End it and remove its folder."""
        self.crash()
        self._reserved.close()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
