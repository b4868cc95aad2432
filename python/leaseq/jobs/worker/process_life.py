"""Start and end of a worker's process: it leads a session, and calls the exit functions that it registered itself."""

import atexit
import contextlib
import ctypes
import logging
import os
import signal
import sys
import weakref
from collections.abc import Callable
from typing import Final, NoReturn

from leaseq import signals
from leaseq.process import fork

STOPS: Final = (signal.SIGTERM, signal.SIGINT)
"""A terminal and a service manager send them to every process of a worker."""

END_SECS: Final = 5.0
"""Seconds that a process has after its grace time, to give back its jobs, call its hooks and end."""

_PR_SET_PDEATHSIG: Final = 1


def fork_process() -> tuple[int, int]:
    """Fork a process that leads a session; return its id (0 in it) and how many other threads this one has.

    That session has no terminal. The terminal of this session would stop a process that reads from it, with its whole group.
    In the child the signals of STOPS wait until it calls `start`. Raises OSError if there is no room for a process.
    """
    flush()  # what is not written yet would be written twice
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    try:
        pid, threads = fork()
    except BaseException:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
        raise
    if pid:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
    else:
        os.setsid()
        _forget_exit_functions()
    return pid, threads


def _forget_exit_functions() -> None:
    """In a child: those of its parent are not called; those that it registers itself are."""
    atexit._clear()  # noqa: SLF001 (as multiprocessing does)
    for finalizer in list(weakref.finalize._registry):  # type: ignore[attr-defined] # noqa: SLF001
        finalizer.atexit = False
    # the next one registers the exit function that calls them, which was forgotten with the others
    weakref.finalize._registered_with_atexit = False  # type: ignore[attr-defined] # noqa: SLF001


def start(handle: Callable[[int], object]) -> None:
    """In a process that was just forked: call `handle` with each signal of STOPS from now on. It has nothing to read."""
    _close_stdin()
    signals.handle_from_now_on(STOPS, handle)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)


def _close_stdin() -> None:
    """Replace its standard input: jobs, and programs that they start, do not read what its parent can."""
    if sys.__stdin__ is None:  # it was closed, and its number can be that of anything
        return
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)


def end_by_alarm(seconds: float) -> None:
    """Have the system end this process after that time, whatever it does then."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)


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


def signal_at_end_of_parent(number: int) -> None:
    """Have the system send this signal when the thread that forked this process ends, where the system can."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)


def exit_text(code: int) -> str:
    """Return how a process ended, as the end of a sentence; `code` is negative for a signal."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
