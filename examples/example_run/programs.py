"""Programs that an example starts beside a real server, and stops."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Final, Self

import leaseq

STOP_SECONDS: Final = 30
EXAMPLES: Final = str(Path(__file__).parents[1])


class Programs:
    """Processes that run until this is left. They get SIGTERM then, in the order in which they were started."""

    def __init__(self) -> None:
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, program: str, *arguments: str, fds: tuple[int, ...] = ()) -> None:
        """Start a program of this Python environment, such as `leaseq` or `uvicorn`. `fds` are sockets that it gets."""
        self._running.append(
            subprocess.Popen(
                [str(Path(sys.executable).with_name(program)), *arguments],
                env=os.environ | {"PYTHONPATH": EXAMPLES},
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr,  # stdout is for what the example itself prints
                pass_fds=fds,
                process_group=0,  # Ctrl-C is for this process, which then stops the programs
            )
        )

    def stop(self) -> list[int]:
        """Stop the programs that still run, and return the exit code of each. Kill those that take too long."""
        try:
            codes = []
            for each in self._running:
                each.terminate()
                codes.append(each.wait(STOP_SECONDS))
            return codes
        finally:
            for each in self._running:
                each.kill()
                each.wait()
            self._running.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


@contextlib.contextmanager
def temporary_server() -> Iterator[Path]:
    """Start a server in a temporary folder, and name it in `REDIS_URL`. Yield the folder, which is also for other files."""
    with (
        tempfile.TemporaryDirectory(prefix="lq-") as folder,
        leaseq.embedded(Path(folder) / "server") as server,
    ):
        os.environ["REDIS_URL"] = server.url
        yield Path(folder)


class Stopped(SystemExit):
    """Raised in this program by Ctrl-C, SIGTERM and SIGHUP. The exit code is that of a shell: 128 and the signal's number."""


def stop_on_signals() -> None:
    """Make SIGTERM and SIGHUP stop this program as tidily as Ctrl-C does."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)


def _stop(number: int, _frame: FrameType | None) -> None:
    raise Stopped(128 + number)
