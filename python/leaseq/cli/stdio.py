"""The start of a program: its standard streams, and the extras that it needs."""

import contextlib
import os
import sys
from collections.abc import Iterator

from leaseq.extras import install_command


def reopen() -> None:
    """Replace closed standard streams by /dev/null (`leaseq ... >&-`).

    What a program opens next, such as its connection, must not become stdout.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one
            os.set_inheritable(number, True)  # positional only
        if getattr(sys, name) is None:
            stream = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115 # as long as the program
            setattr(sys, name, stream)


@contextlib.contextmanager
def needing(extra: str, who: str, *modules: str) -> Iterator[None]:
    """Import what an extra installs; if one of its modules is missing, print how to install it and exit with 2."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in modules:
            raise
        sys.stderr.write(f"{who} {error.name}; install it with: {install_command(extra)}\n")
        sys.exit(2)
