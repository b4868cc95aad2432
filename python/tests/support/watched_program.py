"""A program that serves /metrics, /healthz and /readyz (`--listen`), and reading these."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Final, Self

from prometheus_client.parser import text_string_to_metric_families
from support import programs, servers
from support.cli_runner import COMMAND
from support.job_app import TIMEOUT_SECS, until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]
UP_ONLY: Final = ("_total", "_count", "_sum", "_bucket")
"""The ends of the names of metrics that never go back."""


class WatchedProgram:
    """`leaseq ARGUMENTS`, which listens on a free port."""

    def __init__(self, url: str, folder: Path, command: str, *arguments: str) -> None:
        self._reserved = servers.ReservedPort()
        self.address = f"127.0.0.1:{self._reserved.number}"
        self._wrote = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed where the process is ended)
        self.process = subprocess.Popen(
            [*COMMAND, command, "--listen", self.address, *arguments],
            cwd=folder,
            env=programs.environment(REDIS_URL=url),
            stdout=subprocess.DEVNULL,
            stderr=self._wrote,
            start_new_session=True,
        )

    def get(self, path: str) -> tuple[int, str]:
        """Status and text."""
        try:
            with urllib.request.urlopen(f"http://{self.address}{path}", timeout=TIMEOUT_SECS) as answer:
                return answer.status, answer.read().decode().rstrip("\n")
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode().rstrip("\n")

    def until(self, check: Callable[[], object]) -> None:
        """Wait until it is so."""

        def checked() -> object:
            assert self.process.poll() is None, self.written()
            with contextlib.suppress(OSError):
                return check()
            return False

        until(checked)

    def until_ready(self) -> None:
        self.until(lambda: self.get("/readyz")[0] == 200)

    def series(self) -> Series:
        """Each value by its name and labels."""
        return {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(self.get("/metrics")[1])
            for sample in family.samples
        }

    def value(self, name: str, **labels: str) -> float:
        """The sum of the values of `leaseq_worker_NAME` with these labels; NaN if there is none."""
        found = [
            value
            for (each, given), value in self.series().items()
            if each == f"leaseq_worker_{name}" and labels.items() <= dict(given).items()
        ]
        return sum(found) if found else math.nan

    def events(self, event: str, function: str = "") -> float:
        """Return how often that happened to items of a function."""
        return self.value("events_total", event=event, function=function)

    def written(self) -> str:
        """Return what it has written on stderr so far."""
        return os.pread(self._wrote.fileno(), os.fstat(self._wrote.fileno()).st_size, 0).decode()

    def end(self) -> int:
        """Stop it. Return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(TIMEOUT_SECS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(TIMEOUT_SECS)
        self._wrote.close()
        self._reserved.close()


def went_back(before: Series, after: Series) -> list[str]:
    """Return what never goes back, and did, or is gone."""
    return [
        f"{name}{dict(labels)}: {value} became {after.get((name, labels))}"
        for (name, labels), value in before.items()
        if name.endswith(UP_ONLY) and after.get((name, labels), -1.0) < value
    ]
