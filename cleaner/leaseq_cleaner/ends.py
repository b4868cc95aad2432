"""How the program ends: one line on stderr, and an exit code that says what kind of end it was."""

import sys
from asyncio import CancelledError
from collections.abc import Callable
from enum import IntEnum
from typing import NoReturn

import click

from leaseq.errors import LeaseqError, ReplyLostError, ServerError, UnavailableError
from leaseq_cleaner.web import ListenError


class Code(IntEnum):
    """The exit codes."""

    DONE = 0
    FOUND = 1
    BAD_INPUT = 2
    NO_SERVER = 3
    BUG = 70
    IO = 74
    INTERRUPTED = 130
    BROKEN_PIPE = 141


MEANINGS = {
    Code.DONE.value: "done; the service was told to stop",
    Code.FOUND.value: "--dry-run found damage, or --once failed for a queue; the lines say which",
    Code.BAD_INPUT.value: "bad input: a flag, the environment, the file, an address that is taken; nothing was done",
    Code.NO_SERVER.value: "the server is away, or refuses the user or a right",
    Code.BUG.value: "an error in leaseq itself: please report it; --log-level debug says more",
    Code.IO.value: "the output could not be written: not every queue was looked at",
    Code.INTERRUPTED.value: "interrupted a second time, before the calls under way had ended",
    Code.BROKEN_PIPE.value: "whoever read the output has gone: not every queue was looked at",
}


def end(run: Callable[[], int]) -> NoReturn:
    """Run the program and exit with its code. Whatever it raises becomes one line."""
    try:
        code = run()
        sys.stdout.flush()
    except BrokenPipeError:
        code = Code.BROKEN_PIPE
        sys.stdout = None  # nothing is left to flush at the end
    except click.exceptions.Exit as error:
        code = error.exit_code
    except (Exception, KeyboardInterrupt, CancelledError) as error:  # noqa: BLE001 (what is not foreseen has a line and a code too)
        message, code = _meaning(error)
        click.echo(f"leaseq-cleaner: {' '.join(message.split())}", err=True)
    sys.exit(code)


def _meaning(error: BaseException) -> tuple[str, int]:
    match error:
        case KeyboardInterrupt() | CancelledError() | click.Abort():
            return "interrupted", Code.INTERRUPTED
        case click.UsageError():
            return f"{error.format_message().rstrip('.')} (see leaseq-cleaner --help)", Code.BAD_INPUT
        case click.ClickException():
            return error.format_message(), Code.BAD_INPUT
        case ListenError():
            return f"{error}; --listen takes another HOST:PORT, or off", Code.BAD_INPUT
        case ServerError() | UnavailableError() | ReplyLostError():
            return str(error), Code.NO_SERVER
        case LeaseqError():
            return str(error), Code.BAD_INPUT
        case OSError():
            return f"writing failed: {error.strerror or error}", Code.IO
        case BaseExceptionGroup() if len(error.exceptions) == 1:
            return _meaning(error.exceptions[0])
    return f"unexpected {type(error).__name__}: {error}", Code.BUG
