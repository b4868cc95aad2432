"""The end of a command: one line on stderr that says what to do, and an exit code that a script can tell apart."""

import difflib
import os
import sys
import traceback
from asyncio import CancelledError
from collections.abc import Callable
from enum import IntEnum
from typing import Final, NoReturn

import click
import redis

from leaseq import errors
from leaseq.formatting import one_line, plain


class ExitCode(IntEnum):
    """The exit codes of all commands."""

    DONE = 0
    NO = 1
    BAD_INPUT = 2
    NO_SERVER = 3
    UNKNOWN = 4
    FULL = 5
    BUG = 70
    IO = 74
    INTERRUPTED = 130
    BROKEN_PIPE = 141


MEANINGS: Final = {
    ExitCode.DONE.value: "done; the result is yes",
    ExitCode.NO.value: "the result is no: nothing is there, the lease is lost, the id exists, the queue holds something",
    ExitCode.BAD_INPUT.value: "bad input: a flag, an argument, a file; nothing was done",
    ExitCode.NO_SERVER.value: "the server is away, refuses or cannot do it; nothing was done",
    ExitCode.UNKNOWN.value: "the reply was lost, or the server broke off: it may or may not have been done",
    ExitCode.FULL.value: "the queue or the server takes no more items: try later",
    ExitCode.BUG.value: "an error in leaseq itself: please report what it printed",
    ExitCode.IO.value: "a file or the output could not be read or written: it may or may not have been done",
    ExitCode.INTERRUPTED.value: "interrupted with Ctrl-C (143: with SIGTERM)",
    ExitCode.BROKEN_PIPE.value: "the reader of the output has gone",
}

_BAD_INPUT: Final = (
    errors.BadArgumentError,
    errors.BadIdError,
    errors.BadNameError,
    errors.BadTypeError,
    errors.CrossGroupError,
    errors.NoServerError,
    errors.TooLargeError,
)
_FULL: Final = (errors.OutOfMemoryError, errors.QueueFullError)


class CommandError(Exception):  # often it is an answer, not an error
    """A command's own end: a line for stderr, and the exit code. Nothing is written for an empty line."""

    def __init__(self, message: str, code: ExitCode = ExitCode.NO) -> None:
        super().__init__(message)
        self.code = code


class ErrorHandlingGroup(click.Group):
    """Commands whose errors are reported here, with their names."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; without any, write the help to stderr and end with the code of wrong usage."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(ExitCode.BAD_INPUT)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command. If it does not exist, the error names commands that are spelled alike."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            alike = difflib.get_close_matches(args[0], self.list_commands(ctx))
            if not alike:
                raise
            text = f"{error.message.rstrip('.')}. Did you mean {' or '.join(map(repr, alike))}?"
            raise click.UsageError(text, ctx) from error

    def invoke(self, ctx: click.Context) -> int:
        """Run a command; answer its exit code."""
        run = super().invoke
        return code_of_run(lambda: run(ctx), ctx)


def end(run: Callable[[], object], program: str = "leaseq") -> NoReturn:
    """Run a program and exit with its code. What it raises becomes one line on stderr, save an error of leaseq itself."""
    code = code_of_run(run, program=program)
    sys.exit(code_of_run(sys.stdout.flush) or code)


def code_of_run(
    run: Callable[[], object], context: click.Context | None = None, program: str = "leaseq"
) -> int:
    """Run a part of the program; answer its exit code."""
    try:
        code = run()
    except click.exceptions.Exit as error:
        return error.exit_code
    except BrokenPipeError:
        return close_stdout()
    except (Exception, KeyboardInterrupt, CancelledError) as error:  # noqa: BLE001 # what is not foreseen is printed whole
        if context is not None:
            program = " ".join(filter(None, (context.command_path, context.invoked_subcommand)))
        return _report(error, program)
    return code if isinstance(code, int) else ExitCode.DONE


def _report(error: BaseException, name: str) -> int:
    """Write what it was, after the name of the command; answer the exit code."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:  # of the tasks of asyncio
        error = error.exceptions[0]
    if isinstance(error, click.UsageError):
        name = error.ctx.command_path if error.ctx else name
    meaning = _of_command(error, name) or _of_server(error) or _of_system(error)
    if meaning is None:
        # a script must not take it for an answer, which Python's own code 1 would be
        traceback.print_exception(error)
        return ExitCode.BUG
    message, code = meaning
    if message:
        click.echo(f"{name}: {plain(one_line(message))}", err=True)
    return code


def _of_command(error: BaseException, name: str) -> tuple[str, int] | None:
    match error:
        case CommandError():
            return str(error), error.code
        case KeyboardInterrupt() | CancelledError() | click.Abort():
            return "interrupted", ExitCode.INTERRUPTED
        case click.UsageError():
            return f"{error.format_message().rstrip('.')} (see {name} --help)", ExitCode.BAD_INPUT
        case click.ClickException():
            return error.format_message(), ExitCode.BAD_INPUT
    return None


def _of_server(error: BaseException) -> tuple[str, int] | None:
    if isinstance(error, redis.ResponseError):
        error = errors.from_server(error)
    if isinstance(error, errors.LeaseqError):
        return message_for(error), code_of(error)
    if isinstance(error, redis.AuthenticationError):
        return f"the server refused the user or password: {error}", ExitCode.NO_SERVER
    if isinstance(error, redis.RedisError):
        # of a command that only looks: those that change something are leaseq's
        return f"the server cannot be reached: {error}", ExitCode.NO_SERVER
    return None


def _of_system(error: BaseException) -> tuple[str, int] | None:
    if not isinstance(error, OSError):
        return None
    where = f"{error.filename}: " if error.filename else ""
    return f"reading or writing failed: {where}{error.strerror or error}", ExitCode.IO


def message_for(error: errors.LeaseqError) -> str:
    """Return what to say of an error of the library."""
    cause = error.__cause__
    if isinstance(cause, redis.exceptions.MovedError):  # a URL names one node; that will do for one queue
        return (
            f"this is a node of a cluster, and another has the keys: --url redis://{cause.host}:{cause.port}"
        )
    return str(error)


def code_of(error: errors.LeaseqError) -> ExitCode:
    """The exit code for an error of the library."""
    if not error.definite:
        return ExitCode.UNKNOWN
    if isinstance(error, _BAD_INPUT):
        return ExitCode.BAD_INPUT
    if isinstance(error, errors.QueueInUseError):
        return ExitCode.NO
    return ExitCode.FULL if isinstance(error, _FULL) else ExitCode.NO_SERVER


def close_stdout() -> int:
    """The output is closed: let Python find nothing to flush when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ExitCode.BROKEN_PIPE
