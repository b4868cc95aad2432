"""Processes that lose their parents, where they become children of this one: in a container whose process 1 it is."""

import ctypes
import os
import sys
from collections.abc import Container
from typing import Final

_PR_GET_CHILD_SUBREAPER: Final = 37


def adopts_orphans() -> bool:
    """Return whether processes that lose their parents become children of this one: it is process 1, or a subreaper."""
    if os.getpid() == 1:
        return True
    chosen = ctypes.c_int(0)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(chosen))
    return chosen.value != 0


def reap_orphans(known: Container[int]) -> None:
    """Wait for the children that have ended, so that none stays as a zombie; `known` are left to their owners."""
    while (ended := _first_ended()) is not None and ended not in known:
        os.waitpid(ended, 0)


def _first_ended() -> int | None:
    try:
        found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return None if found is None else found.si_pid
