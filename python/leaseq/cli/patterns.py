"""A pattern as the QUEUE of a command: the command runs on each queue that matches."""

import fnmatch
import functools
from collections.abc import Callable
from typing import Any, Final

import click

from leaseq import WorkQueue, formatting, registry
from leaseq.cli import output
from leaseq.cli.exit_codes import CommandError, ExitCode
from leaseq.cli.server import Server, in_group, on_server
from leaseq.registry import RegisteredQueue

Function = Callable[..., Any]

_WILD: Final = frozenset("*?[")  # none of them is in the name of a queue


def on_queues(function: Function) -> Function:
    """Give a command what `on_queue` gives; QUEUE may also be a pattern, and --dry-run shows what that matches."""

    @click.argument("queue")
    @on_server
    @in_group
    @click.option(
        "--dry-run", is_flag=True, help="Change nothing; show the queues that QUEUE, a pattern, matches."
    )
    @functools.wraps(function)
    def with_queues(
        *args: Any, queue: str, server: Server, group: str | None, dry_run: bool, **options: Any
    ) -> Any:
        if _WILD.isdisjoint(queue):
            if dry_run:
                raise click.UsageError("--dry-run is for a pattern as QUEUE, such as 'mail-*'")
            with server.queue(queue, group) as opened:
                return function(*args, queue=opened, **options)
        with server.opened("the queues") as client:
            found = _matching(client, queue, group)
            if dry_run:
                return _show(found, as_json=options["as_json"])
            codes = [_run(function, client, each, options) for each in found]
        return ExitCode.DONE if ExitCode.DONE in codes else max(codes)

    return with_queues


def _matching(client: Any, pattern: str, group: str | None) -> list[RegisteredQueue]:
    """Return the queues of the registry that match, of one group if that is given. Raises CommandError if there are none."""
    found = [
        each
        for each in registry.queues(client)
        if fnmatch.fnmatchcase(each.name, pattern) and group in {None, each.group}
    ]
    if not found:
        where = "" if group is None else f" in group {group}"
        raise CommandError(f"no queue matches {pattern}{where}; `leaseq queues` lists those there are")
    return found


def _run(function: Function, client: Any, each: RegisteredQueue, options: dict[str, Any]) -> int:
    """Run the command on one queue, below a line with its name; answer its exit code. Raises what is no answer."""
    with WorkQueue(each.name, client, group=each.group) as opened, output.about(each.name, each.group):
        if not options["as_json"]:
            output.line(f"{formatting.queue(*each)}:")
        try:
            code = function(queue=opened, **options)
        except CommandError as answer:
            if answer.code != ExitCode.NO:
                raise
            if str(answer):
                output.line(str(answer))
            return ExitCode.NO
    return code if isinstance(code, int) else ExitCode.DONE


def _show(found: list[RegisteredQueue], *, as_json: bool) -> None:
    for each in found:
        if as_json:
            output.record({"queue": each.name, "group": each.group})
        else:
            output.line(f"would change {formatting.queue(*each)}")
