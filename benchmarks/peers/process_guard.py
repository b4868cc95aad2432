"""Runs a command and ends it, with all that it started, once its own starter is gone: python process_guard.py FD COMMAND...

FD is the reading end of a pipe whose other end only the starter holds. A separate program, standard library only: it
is started as the leader of a session, and everything in that session ends with it, also what a library forked.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from pathlib import Path


def in_session(session: int) -> list[int]:
    """The processes of a session, zombies left out."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(OSError):
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == session and fields[0] != "Z":
                    found.append(int(folder.name))
    return found


def kill_session(session: int) -> None:
    """Kill every process of a session except the calling process."""
    while others := [pid for pid in in_session(session) if pid != os.getpid()]:
        for pid in others:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def main() -> int:
    """Wait for the command, or for the starter's end."""
    parent_fd = int(sys.argv[1])
    ended, signal_fd = os.pipe()
    os.set_blocking(signal_fd, False)
    signal.set_wakeup_fd(signal_fd)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    child = subprocess.Popen(sys.argv[2:])
    while child.poll() is None:
        if parent_fd in select.select([parent_fd, ended], [], [])[0]:
            break
        os.read(ended, 64)
    kill_session(os.getpid())
    return child.wait()


if __name__ == "__main__":
    sys.exit(main())
