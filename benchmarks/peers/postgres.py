"""A PostgreSQL server for the libraries that work on one, and what it tells of itself."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from bench_server import START_SECS, ServerNotFoundError, free_port
from leaseq._guard import GuardedProcess

if TYPE_CHECKING:
    from types import TracebackType

PROGRAMS: Final = "/usr/lib/postgresql"
"""Where Debian has them: a folder for each version."""
SETTINGS: Final = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    # the Redis server writes to no disk either, so that PostgreSQL need not wait for one
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
}
"""All others are its defaults."""
USER: Final = "postgres"
STOP_SECS: Final = 10.0
REST_SECS: Final = 0.2
"""Waited at most until no process of the server runs."""
TICKS: Final = os.sysconf("SC_CLK_TCK")
CUTIME: Final = 13
"""Place of the CPU time of ended children in /proc/PID/stat, counted from the state."""


def find() -> Path:
    """Return the folder with the newest PostgreSQL. Raises ServerNotFoundError."""
    if on_path := shutil.which("initdb"):
        return Path(on_path).resolve().parent
    found = sorted(Path(PROGRAMS).glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    if not found:
        raise ServerNotFoundError(
            f"PostgreSQL is neither on PATH nor in {PROGRAMS}: on Debian, `apt-get install postgresql`"
        )
    return found[-1].parent


def _as_user(folder: Path) -> list[str]:
    """Return what to put before a command: PostgreSQL refuses to run as root. The folder is given to its user."""
    if os.getuid():
        return []
    try:
        user = pwd.getpwnam(USER)
    except KeyError:
        user = pwd.getpwnam("nobody")
    os.chown(folder, user.pw_uid, user.pw_gid)
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


class PostgresServer:
    """A PostgreSQL server on 127.0.0.1, with its data in a temporary folder; it ends with this process. A context manager."""

    def __init__(self) -> None:
        self._programs = find()
        self.port = free_port()
        self._folder = tempfile.TemporaryDirectory(prefix="leaseq-bench-")
        folder = Path(self._folder.name)
        user, data = _as_user(folder), folder / "data"
        initdb = [str(self._programs / "initdb"), "-D", str(data), "-U", USER, "--no-sync", "--auth=trust"]
        made = subprocess.run(
            [*user, *initdb, "--encoding=UTF8", "--locale=C"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode:
            raise RuntimeError(f"initdb failed: {made.stderr.strip()}")
        settings = [word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}")]
        server = [str(self._programs / "postgres"), "-D", str(data), "-p", str(self.port), *settings]
        self._process = GuardedProcess([*user, *server], folder)
        self._wait_ready()

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + START_SECS
        while time.monotonic() < deadline and self._process.running():
            with contextlib.suppress(RuntimeError):
                self.ask("SELECT 1")
                return
            time.sleep(0.05)
        self.close()
        raise RuntimeError(f"PostgreSQL did not start in {START_SECS:.0f} s")

    @property
    def pid(self) -> int:
        """The process that starts the others."""
        return self._process.pid

    def ask(self, statement: str) -> str:
        """Return what psql says to a statement, values alone. Raises RuntimeError."""
        psql = [str(self._programs / "psql"), "-h", "127.0.0.1", "-p", str(self.port), "-U", USER, "-X", "-q"]
        ended = subprocess.run(
            [*psql, "-t", "-A", "-c", statement, "postgres"], capture_output=True, text=True, check=False
        )
        if ended.returncode:
            raise RuntimeError(ended.stderr.strip())
        return ended.stdout.strip()

    def empty(self) -> None:
        """Delete everything, tables too: adapters make them when they start."""
        self.ask("SET client_min_messages = warning; DROP SCHEMA public CASCADE; CREATE SCHEMA public")

    def reset(self) -> None:
        """Set the statistics to zero: none is read here that can be."""

    def delete_items(self) -> None:
        """Delete all jobs of River."""
        self.ask("TRUNCATE river_job")

    def used_memory(self) -> int:
        """Return the bytes on disk of River's jobs and their indexes."""
        return int(self.ask("SELECT pg_total_relation_size('river_job')"))

    def cpu_usec(self) -> float:
        """Return the CPU time of all its processes so far, in microseconds, once they have done what they were sent."""
        deadline = time.monotonic() + REST_SECS
        while "R" in self._states() and time.monotonic() < deadline:
            time.sleep(0.001)
        spent = sum(self._ran_usec(pid) for pid in [self.pid, *self._children()])
        # ended processes leave theirs to the first
        ended = sum(map(int, self._stat(self.pid)[CUTIME : CUTIME + 2]))
        return spent + ended / TICKS * 1e6

    def _children(self) -> list[int]:
        return list(map(int, Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()))

    def _states(self) -> list[str]:
        found = []
        for pid in self._children():
            with contextlib.suppress(OSError):  # a process that has ended
                found.append(self._stat(pid)[0])
        return found

    @staticmethod
    def _stat(pid: int) -> list[str]:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()

    @staticmethod
    def _ran_usec(pid: int) -> float:
        try:
            return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1000
        except OSError:  # a process that has ended
            return 0.0

    def version(self) -> str:
        """Product and version, as the running server tells them."""
        return f"PostgreSQL {self.ask('SHOW server_version').split()[0]}"

    def close(self) -> None:
        """Stop it and remove its folder."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGINT)  # it ends at once, in order, without waiting for its clients
        deadline = time.monotonic() + STOP_SECS
        while self._process.running() and time.monotonic() < deadline:
            time.sleep(0.02)
        self._process.kill()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
