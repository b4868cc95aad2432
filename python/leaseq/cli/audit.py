"""The audit log: who changed what and when, as JSON lines in the file that $LEASEQ_AUDIT_LOG names."""

import functools
import getpass
import json
import os
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import click

from leaseq.cli.formatting import one_line

Function = Callable[..., Any]

VARIABLE: Final = "LEASEQ_AUDIT_LOG"

_CHANGED: Final = "leaseq.cli.audit.changed"
_OF_OUTPUT: Final = {"as_json", "yes"}


def audited(function: Function) -> Function:
    """Log a command that changes something, before it starts and when it has ended. Nothing is changed if that cannot be written.

    It is the innermost decorator: so it sees the queue or the App that the command gets, and its options.
    """

    @functools.wraps(function)
    def run(**options: Any) -> Any:
        path = os.environ.get(VARIABLE)
        if not path:
            return function(**options)
        context = click.get_current_context()
        what = _subject(context, options)
        _write(path, {**what, "event": "started"})
        end: dict[str, Any] = {**what, "event": "ended", "error": None}
        try:
            return function(**options)
        except BaseException as error:
            end["error"] = one_line(error) or type(error).__name__
            raise
        finally:
            end["changed"] = context.meta.get(_CHANGED)
            _write(path, end)

    return run


def changed(count: int) -> None:
    """Note how many items, jobs or leases the command changed."""
    click.get_current_context().meta[_CHANGED] = count


def _subject(context: click.Context, options: dict[str, Any]) -> dict[str, Any]:
    """Return who does what: the members that both lines of a command have. No URL: it may have a password."""
    given = {name: value for name, value in options.items() if name not in {"queue", "app", *_OF_OUTPUT}}
    queue = options["queue"] if "queue" in options else options["app"].queue()
    return {
        "run": os.urandom(8).hex(),
        "user": _user(),
        "host": socket.gethostname(),
        "command": context.command_path,
        "queue": queue.name,
        "group": queue.group,
        "options": {name: value for name, value in given.items() if value not in (None, False, ())},
    }


def _user() -> str:
    """Return the name of the user, behind that of who called sudo."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # there is no name for the number, as in many containers
        user = str(os.geteuid())
    caller = os.environ.get("SUDO_USER")
    return f"{caller} as {user}" if caller else user


def _write(path: str, record: dict[str, Any]) -> None:
    """Append a line, in one call of the system. Raises OSError."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    line = json.dumps({"time": now, **record}, default=str).encode() + b"\n"
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o640)
    try:
        os.write(file, line)
    finally:
        os.close(file)
