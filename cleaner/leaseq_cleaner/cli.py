"""The program `leaseq-cleaner`."""

import sys

from leaseq.cli import passwords, stdio
from leaseq.errors import ReplyLostError, ServerError, UnavailableError


def main() -> None:
    """Run the program; without the extra `cleaner`, say how to install it and end with 2."""
    stdio.reopen()
    with stdio.needing("cleaner", "leaseq-cleaner: it needs", "click", "prometheus_client", "setproctitle"):
        from leaseq.cli.exit_codes import CommandError, ExitCode, end
        from leaseq_cleaner.command import program

        passwords.hide_from_ps("leaseq-cleaner")

    def run() -> int:  # not program.main(): that ends with 1 if the output is closed
        with program.make_context("leaseq-cleaner", sys.argv[1:]) as context:
            try:
                code: int = program.invoke(context)
            except (ServerError, UnavailableError, ReplyLostError) as error:
                # also where it may have been done: what a cleaner does may be done again
                raise CommandError(str(error), ExitCode.NO_SERVER) from error
        return code

    end(run, "leaseq-cleaner")
