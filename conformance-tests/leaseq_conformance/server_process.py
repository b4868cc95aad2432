"""A server program as a child process that ends with the process that started it, SIGKILL included."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

STOP_SECONDS: Final = 20.0
"""Seconds between SIGTERM and SIGKILL when a server is stopped."""
_GUARD: Final = 'read -r _; kill -9 "$0" 2>/dev/null'
"""Waits for the end of a pipe that only the starter holds, then kills the server."""


class ServerError(Exception):
    """There is no server that can be used; the message says why and what to do."""


class ServerProcess:
    """A running server.

    Args:
        command: program and arguments.
        folder: its working directory; what it prints is in the file `output` there.

    Raises:
        ServerError: it cannot be started.
    """

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        self._owner = os.getpid()
        try:
            with (folder / "output").open("ab") as output:
                self._process = subprocess.Popen(
                    list(command),
                    cwd=folder,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,  # Ctrl-C is for the starter, which may still need the server
                )
        except OSError as error:
            raise ServerError(f"{command[0]} cannot be started: {error}") from error
        self.pid = self._process.pid
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, str(self.pid)], stdin=subprocess.PIPE, start_new_session=True
        )

    def running(self) -> bool:
        """Return whether the server still runs."""
        return self._process.poll() is None

    def stop(self) -> None:
        """End it with SIGTERM and wait; does nothing in a forked copy of the starter."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it with SIGKILL and wait; does nothing in a forked copy of the starter."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        if os.getpid() != self._owner:
            return
        self._guard.kill()  # first: it must not kill a later process of the same id
        self._guard.wait()
        if self._guard.stdin is not None:
            self._guard.stdin.close()
        if number == signal.SIGKILL and self.running():
            os.killpg(self.pid, number)  # also a child that writes a snapshot: its folder may go next
        self._process.send_signal(number)  # does nothing where the process has ended
        self._process.send_signal(signal.SIGCONT)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
