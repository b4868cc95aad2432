"""How a process of a worker starts and ends: it leads a group, and calls the exit functions that it registered itself."""

import atexit
import contextlib
import ctypes
import logging
import os
import signal
import sys
from collections.abc import Callable
from typing import Final, NoReturn

from leaseq import signals
from leaseq.process import fork

STOPS: Final = (signal.SIGTERM, signal.SIGINT)
"""A terminal and a service manager send them to every process of a worker."""

_PR_SET_PDEATHSIG: Final = 1


def fork_process() -> tuple[int, int]:
    """Fork a process that leads a group; return its id (0 in it) and how many other threads this one has.

    In the child the signals of STOPS wait until it calls `start`. Raises OSError if there is no room for a process.
    """
    flush()  # what is not written yet would be written twice
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    try:
        pid, threads = fork()
    except BaseException:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
        raise
    with contextlib.suppress(OSError):  # both do it, since either may come first; the child may be gone
        os.setpgid(pid, pid)
    if pid:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
    else:
        atexit._clear()  # noqa: SLF001 (its parent's; as multiprocessing does)
    return pid, threads


def start(handle: Callable[[int], object]) -> None:
    """In a process that was just forked: call `handle` with each signal of STOPS from now on."""
    signals.handle_from_now_on(STOPS, handle)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)


def end(code: int) -> NoReturn:
    """End this process, after the functions that it registered with `atexit`. Threads are not waited for."""
    try:
        finish()
    finally:
        os._exit(code)


def finish() -> None:
    """Call the functions registered with `atexit`, and write what logs and streams have in their buffers."""
    atexit._run_exitfuncs()  # noqa: SLF001 (os._exit would not)
    logging.shutdown()
    flush()


def flush() -> None:
    """Write what was printed."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


def kill_group(leader: int) -> None:
    """Kill a process and all of its group, which may have outlived it. Call it before the process is waited for."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def signal_at_end_of_parent(number: int) -> None:
    """Have the system send this signal when the thread that forked this process ends, where the system can."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
