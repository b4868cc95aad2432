"""The `leaseq` program. `program` lists its commands; each has its module."""

import os
import signal
import sys

from leaseq import signals
from leaseq.cli import passwords, stdio


def main() -> None:
    """Run the program; without the extra `cli`, say how to install it and end with 2."""
    stdio.reopen()
    signals.handle_from_now_on((signal.SIGTERM,), end_by)  # until a command has its own handler
    with stdio.needing("cli", "leaseq: the command line needs", "click", "rich", "setproctitle"):
        import rich  # noqa: F401 # commands are imported when they are called for; say now that it is missing

        from leaseq.cli.program import program

        passwords.hide_from_ps("leaseq")
    program(prog_name="leaseq")


def end_by(number: int) -> None:
    """End this process by a signal. Process 1 of a container outlives that, and exits with what a shell would report."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    sys.exit(128 + number)
