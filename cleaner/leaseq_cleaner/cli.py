"""The program `leaseq-cleaner`."""

import sys

from leaseq.cli import standard

_EXTRA = {"click", "prometheus_client"}
"""What the extra `cleaner` installs."""


def main() -> None:
    """Run the program; without the extra `cleaner`, say how to install it and end with 2."""
    standard.reopen()
    try:
        from leaseq_cleaner.command import program
        from leaseq_cleaner.ends import end
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in _EXTRA:
            raise
        sys.stderr.write(
            f"leaseq-cleaner: it needs {error.name}; install it with: pip install 'leaseq[cleaner]'\n"
        )
        sys.exit(2)

    def run() -> int:  # not program.main(): whoever does not read its output any more gets 1 from that
        with program.make_context("leaseq-cleaner", sys.argv[1:]) as context:
            code: int = program.invoke(context)
        return code

    end(run)
