"""A worker of jobs as a program (`programs/jobs_worker.py`), and what its jobs leave in Redis."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from support import programs
from support.job_app import TIMEOUT_SECS

if TYPE_CHECKING:
    import redis


class Program:
    """A worker, as a program. It writes to a file: in a pipe that is not read there is no room for all of a long log."""

    def __init__(self, url: str, *, stdin: int | None = None, **options: Any) -> None:
        self._wrote = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed where the process is ended)
        self.process = subprocess.Popen(
            programs.command("jobs_worker", json.dumps({"processes": 1, "lease_secs": 600, **options})),
            env=programs.environment(REDIS_URL=url),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=self._wrote,
            text=True,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    def children(self) -> list[int]:
        """Its processes that live."""
        found = []
        for path in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                fields = path.read_text().rpartition(")")[2].split()
                if int(fields[1]) == self.pid and fields[0] != "Z":
                    found.append(int(path.parent.name))
        return found

    def signal(self, number: int = signal.SIGTERM) -> None:
        os.kill(self.pid, number)

    def written(self) -> str:
        """Return what it has written on stderr so far."""
        size = os.fstat(self._wrote.fileno()).st_size
        return os.pread(self._wrote.fileno(), size, 0).decode()

    def end(self) -> tuple[int, str, str]:
        """Its exit code, and what it wrote."""
        out, _ = self.process.communicate(timeout=TIMEOUT_SECS)
        self._wrote.seek(0)
        return self.process.returncode, out, self._wrote.read()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self.process.communicate(timeout=TIMEOUT_SECS)
        self._wrote.close()


def values_of(client: redis.Redis, name: str) -> list[str]:
    """The values of a list, in which jobs leave notes."""
    values: Any = client.lrange(name, 0, -1)
    return [value.decode() for value in values]
