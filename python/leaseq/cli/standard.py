"""Standard streams that whoever started the program has closed (`leaseq ... >&-`)."""

from __future__ import annotations

import os
import sys


def reopen() -> None:
    """Put /dev/null in their place: what a program opens next, such as its connection, must not become stdout."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one
            os.set_inheritable(number, True)  # positional only
        if getattr(sys, name) is None:
            stream = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115 # as long as the program
            setattr(sys, name, stream)
