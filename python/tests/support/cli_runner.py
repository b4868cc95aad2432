"""Calls of the program `leaseq`: in this process, if that shows as much, and as a separate process."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any, Final

from click.testing import CliRunner

from leaseq.cli.program import program

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

WORKER_SECS = 120.0
"""Seconds that a worker may take on a machine that stalls."""

APART: Final[dict[str, Any]] = (
    {"mix_stderr": False} if "mix_stderr" in signature(CliRunner).parameters else {}
)
"""Options of click before 8.2 that keep the two outputs apart."""

COMMAND = [sys.executable, "-W", "error", "-c", "from leaseq.cli import main; main()"]


def run_worker(folder: Path, url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `leaseq worker` in a folder, to its end."""
    return subprocess.run(
        [*COMMAND, "worker", *arguments],
        cwd=folder,
        env={**os.environ, "REDIS_URL": url},
        capture_output=True,
        text=True,
        timeout=WORKER_SECS,
        check=False,
    )


@dataclass(frozen=True)
class Done:
    """The exit code and output of a call."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def document(self) -> Any:
        return json.loads(self.out)

    @property
    def records(self) -> list[Any]:
        return [json.loads(line) for line in self.lines]


class Calls:
    """Calls on one server."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __call__(self, *args: str, stdin: str | bytes | None = None) -> Done:
        """Run in this process."""
        env = {"REDIS_URL": self.url, "COLUMNS": "100"}
        result = CliRunner(**APART).invoke(program, args, input=stdin, env=env, prog_name="leaseq")
        return Done(result.exit_code, result.stdout, result.stderr)

    def yes(self, *args: str, stdin: str | bytes | None = None) -> Done:
        """Run in this process; it must end with 0 and say nothing on stderr."""
        done = self(*args, stdin=stdin)
        assert (done.code, done.err) == (0, ""), done
        return done

    def refused(self, code: int, expected: str, *args: str, stdin: str | bytes | None = None) -> Done:
        """Run in this process; it must end with that code and one line on stderr, which says so."""
        done = self(*args, stdin=stdin)
        assert done.code == code, done
        one_line(done.err, expected)
        return done

    @contextlib.contextmanager
    def process(self, *args: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
        """A separate process, which ends with the block at the latest."""
        env = os.environ | {"REDIS_URL": self.url}
        with subprocess.Popen([*COMMAND, *args], env=env, text=True, **options) as started:
            try:
                yield started
            finally:
                for number in (
                    signal.SIGTERM,
                    signal.SIGTERM,
                    signal.SIGKILL,
                ):  # `work` ends its commands at the second
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        if started.poll() is None:
                            started.send_signal(number)
                            started.wait(5)


def run(args: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a separate process to its end."""
    return subprocess.run(
        [*COMMAND, *args], capture_output=True, text=True, timeout=150, check=False, **options
    )


def one_line(err: str, expected: str) -> None:
    """Check that stderr has one line, after the name of the program, and no traceback."""
    assert err.startswith("leaseq"), err
    assert err.count("\n") == 1, err
    assert err.endswith("\n"), err
    assert expected in err
    assert "Traceback" not in err
