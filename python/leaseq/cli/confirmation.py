"""The `--yes` option and the question that commands ask before they remove something permanently."""

from typing import Final

import click

from leaseq.cli.exit_codes import CommandError, ExitCode

yes: Final = click.option("--yes", "-y", is_flag=True, help="Do not ask.")
"""The option of all commands that ask; the parameter is `yes`."""


def confirm(question: str, *, yes: bool) -> None:
    """Ask on stderr, unless `yes` is given. Raises CommandError for a no, and without a terminal."""
    if yes:
        return
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort as error:
        click.echo(err=True)  # the question's line ends here
        if isinstance(error.__context__, EOFError):
            raise CommandError("there is no terminal to ask on; pass --yes", ExitCode.BAD_INPUT) from error
        raise
    if not agreed:
        raise CommandError("nothing was done")
