"""The `leaseq` program. `program` lists its commands; each has its module."""

from leaseq.cli import stdio


def main() -> None:
    """Run the program; without the extra `cli`, say how to install it and end with 2."""
    stdio.reopen()
    with stdio.needing("cli", "leaseq: the command line needs", "click", "rich"):
        import rich  # noqa: F401 # commands are imported when they are called for; say now that it is missing

        from leaseq.cli.program import program
    program(prog_name="leaseq")
