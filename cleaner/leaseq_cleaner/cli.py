"""The program `leaseq-cleaner`."""

import sys

_EXTRA = {"click", "prometheus_client"}
"""What the extra `cleaner` installs."""


def main() -> None:
    """Run the program; without the extra `cleaner`, say how to install it and end with 2."""
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
    end(lambda: program.main(prog_name="leaseq-cleaner", standalone_mode=False) or 0)
