"""A child process that ends with the process that started it, however that one ends.

`prctl(PR_SET_PDEATHSIG)` alone will not do: it fires when the starting *thread* ends, and macOS has no such call. So
a small guard stands between: this file, run as a program. It starts the child and reads from a pipe whose other end
only the starter holds. When the starter is gone, by SIGKILL too, the pipe ends and the guard stops the child.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

STOP_SECS: Final = 10.0  # how long the child may take to end after SIGTERM, before SIGKILL
_PARENT_CHECK_SECS: Final = 1.0
_PR_SET_PDEATHSIG: Final = 1


class GuardedProcess:
    """A running child and its guard.

    Args:
        argv: program and arguments of the child.
        cwd: working directory of the child.
        keep_fds: file descriptors that the child inherits, for example that of a lock.

    Raises:
        OSError: the child cannot be started.
    """

    def __init__(self, argv: Sequence[str], cwd: Path, keep_fds: Sequence[int] = ()) -> None:
        self._owner = os.getpid()
        # -I -S: the guard needs the standard library only, and must not fail for what is in the user's environment
        command = [sys.executable, "-I", "-S", __file__, ",".join(map(str, keep_fds)), *argv]
        self._guard = subprocess.Popen(
            command,
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=keep_fds,
            start_new_session=True,  # Ctrl-C is for the starter, which may still need the child to finish
        )
        self.pid = self._read_pid(argv[0])

    def _read_pid(self, program: str) -> int:
        """Return the child's process id, which is the one line that the guard writes."""
        if self._guard.stdout is None:  # never with PIPE; tells the type checker
            raise AssertionError
        with self._guard.stdout as out:
            line = out.readline().decode()
        if line.startswith("pid "):
            return int(line[4:])
        self._end_guard()
        raise OSError(f"cannot start {program}: {line.strip() or 'its guard process failed'}")

    def running(self) -> bool:
        """Tell whether the child still runs."""
        return self._guard.poll() is None

    def stop(self) -> bool:
        """End the child with SIGTERM and wait for it; in a forked copy of the starter let go of it and return false."""
        is_ours = os.getpid() == self._owner
        if is_ours:
            self._end_guard()
        else:
            self._guard.returncode = 0  # no warning of a child that still runs: it is the starter's
            if self._guard.stdin is not None:
                self._guard.stdin.close()
        return is_ours

    def kill(self) -> None:
        """End the child with SIGKILL and wait for it."""
        if self.running():  # while the guard has not reaped the child, its process id cannot be another's
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        self._end_guard()

    def _end_guard(self) -> None:
        stdin = self._guard.stdin
        if stdin is not None and not stdin.closed:
            # a byte, not only the end of the pipe: a forked copy of this process may hold the pipe open
            with contextlib.suppress(BrokenPipeError):  # the guard has ended already
                os.write(stdin.fileno(), b"q")
            stdin.close()
        self._guard.wait(STOP_SECS * 2)


def _die_with_guard() -> None:
    """Make Linux end the child when the guard itself is killed; elsewhere that case stays open."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _stop(child: subprocess.Popen[bytes]) -> None:
    child.terminate()
    try:
        child.wait(STOP_SECS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _guard(keep_fds: Sequence[int], argv: Sequence[str], starter: int) -> int:
    """Start the child, report its process id, and stop it when the starter says so or is gone."""
    # the child's end wakes the loop below through this pipe, so that nothing has to be polled for it
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda _number, _frame: None)
    try:
        # the guard has one thread, so the child may run code before exec and the death signal is reliable
        child = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=keep_fds,
            preexec_fn=_die_with_guard,  # noqa: PLW1509
        )
    except OSError as error:
        os.write(1, f"{error}\n".encode())
        return 1
    for fd in keep_fds:
        os.close(fd)
    os.write(1, f"pid {child.pid}\n".encode())
    os.close(1)
    while child.poll() is None:
        # the parent check is for a starter whose forked children still hold the pipe
        readable, _, _ = select.select([0, wake_read], [], [], _PARENT_CHECK_SECS)
        signals = os.read(wake_read, 64) if wake_read in readable else b""
        if 0 in readable or os.getppid() != starter or set(signals) - {signal.SIGCHLD}:
            _stop(child)
    return 0


def _main(argv: Sequence[str]) -> int:
    starter = os.getppid()
    keep_fds = [int(fd) for fd in argv[1].split(",") if fd]
    return _guard(keep_fds, argv[2:], starter)


if __name__ == "__main__":
    sys.exit(_main(sys.argv))
