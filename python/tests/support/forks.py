"""Forks of every kind, and what their children check."""

from __future__ import annotations

import ctypes
import os
import signal
import traceback
from typing import TYPE_CHECKING, Final

from support.servers import TIMEOUT_SECS

from leaseq.process import fork

if TYPE_CHECKING:
    from collections.abc import Callable

FORKS: Final[dict[str, Callable[[], int]]] = {
    "os.fork": lambda: fork()[0],
    "C": lambda: int(ctypes.PyDLL(None).fork()),  # runs none of Python's hooks, as that of uWSGI
}


def child(kind: str, check: Callable[[], object]) -> int:
    """Fork; in the child run a check, and end with 0 if it returned and was not false. Return the child's id."""
    number = FORKS[kind]()
    if number:
        return number
    code = 1
    try:
        signal.alarm(int(TIMEOUT_SECS))
        code = 1 if check() is False else 0
    except BaseException:  # noqa: BLE001 (the parent learns that it failed)
        traceback.print_exc()
    os._exit(code)


def ended(*children: int) -> list[int]:
    """The exit codes of children."""
    return [os.waitstatus_to_exitcode(os.waitpid(each, 0)[1]) for each in children]
