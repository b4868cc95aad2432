"""The audit log of commands, see `leaseq.audit_log`."""

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import click

from leaseq import audit_log

Function = Callable[..., Any]

_CHANGED: Final = "leaseq.cli.audit.changed"
_OF_OUTPUT: Final = {"as_json", "yes"}


def audited(function: Function) -> Function:
    """Log a command that changes something, before it starts and when it has ended. Nothing is changed if that cannot be written.

    It is the innermost decorator: so it sees the queue or the App that the command gets, and its options.
    """

    @functools.wraps(function)
    def run(**options: Any) -> Any:
        with logged_as(_subject(options)):
            return function(**options)

    return run


@contextlib.contextmanager
def logged_as(subject: Mapping[str, Any]) -> Iterator[None]:
    """Log what the block does, as the work of the command on a subject; see `audited`."""
    context = click.get_current_context()
    with audit_log.logged(audit_log.system_user(), context.command_path, subject) as entry:
        try:
            yield
        finally:
            entry.changed = context.meta.get(_CHANGED)


def changed(count: int) -> None:
    """Note how many items, jobs or leases the command changed."""
    click.get_current_context().meta[_CHANGED] = count


def _subject(options: dict[str, Any]) -> dict[str, Any]:
    """Return on what a command works, and its options. No URL: it may have a password."""
    given = {name: value for name, value in options.items() if name not in {"queue", "app", *_OF_OUTPUT}}
    queue = options["queue"] if "queue" in options else options["app"].queue()
    return {
        "queue": queue.name,
        "group": queue.group,
        "options": {name: value for name, value in given.items() if value not in (None, False, ())},
    }
