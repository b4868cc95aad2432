"""`leaseq dead list`, `revive`, `purge`: items that wait for a person."""

import functools
from collections.abc import Callable
from typing import Any

import click

from leaseq import WorkQueue, formatting
from leaseq.cli import confirmation, output
from leaseq.cli.audit import audited
from leaseq.cli.exit_codes import ErrorHandlingGroup
from leaseq.cli.params import duration
from leaseq.cli.patterns import on_queues
from leaseq.cli.server import on_queue, stats_of

Function = Callable[..., Any]


@click.group(cls=ErrorHandlingGroup)
def dead() -> None:
    """Show dead letters, put them back, delete them.

    \b
    Example:
      leaseq dead list orders
    """  # noqa: D301 (click's mark for text that is not to be wrapped)


@dead.command("list")
@on_queue
@click.option(
    "--limit", type=click.IntRange(1, 256), default=100, show_default=True, help="At most this many."
)
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Skip this many at the start.")
@click.option("--backward", is_flag=True, help="Last died first.")
@output.as_json
def list_(*, queue: WorkQueue, limit: int, offset: int, backward: bool, as_json: bool) -> None:
    """List dead items of QUEUE with their last errors, first died first. Exits with 1 if there are none.

    \b
    Examples:
      leaseq dead list orders
      leaseq dead list orders --json | jq -r .error | sort | uniq -c
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    now = stats_of(queue).now
    output.print_list(
        queue.dead_letters(offset=offset, limit=limit, backward=backward),
        lambda each: (each.id, formatting.when(each.time - now), each.attempt, each.error),
        ("id", "died", "attempts", "last error"),
        right_aligned=("attempts",),
        nothing="nothing is dead",
        as_json=as_json,
    )


def _which(option: str, metavar: str, **details: Any) -> Callable[[Function], Function]:
    """Return what gives a command the ways to say which dead items: ID..., --all, and an option; one of the three."""
    name = option.removeprefix("--").replace("-", "_")

    def decorated(function: Function) -> Function:
        @click.argument("ids", metavar="[ID]...", nargs=-1)
        @click.option("--all", "everything", is_flag=True, help="All that are dead now.")
        @click.option(option, name, metavar=metavar, **details)
        @functools.wraps(function)
        def checked(*args: Any, ids: tuple[str, ...], everything: bool, **options: Any) -> Any:
            if bool(ids) + everything + (options[name] is not None) != 1:
                raise click.UsageError(f"say which: ID..., --all or {option} {metavar}, one of the three")
            return function(*args, ids=ids, **options)

        return checked

    return decorated


which_to_revive = _which("--matching", "TEXT", help="All whose last error contains this text.")
which_to_purge = _which(
    "--older-than", "DURATION", type=duration, help="All that died at least this time ago, such as 30d."
)


@dead.command()
@on_queues
@which_to_revive
@output.as_json
@audited
def revive(*, queue: WorkQueue, **chosen: Any) -> int:
    """Make dead items of QUEUE ready again, with 0 attempts. Exits with 1 if an item was not dead.

    \b
    Examples:
      leaseq dead revive orders order-1 order-2
      leaseq dead revive orders --matching "timeout: bank"
      leaseq dead revive "mail-*" --all --dry-run
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    if not chosen["ids"]:
        stats_of(queue)
    return revive_chosen(queue, "revived", **chosen)


@dead.command()
@on_queues
@which_to_purge
@confirmation.yes
@output.as_json
@audited
def purge(*, queue: WorkQueue, **chosen: Any) -> int:
    """Delete dead items of QUEUE permanently. Exits with 1 if an item was not dead.

    \b
    Examples:
      leaseq dead purge orders order-1
      leaseq dead purge orders --older-than 30d --yes
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    if not chosen["ids"]:
        stats_of(queue)
    return purge_chosen(queue, "items", **chosen)


def revive_chosen(
    queue: WorkQueue, done: str, *, ids: tuple[str, ...], matching: str | None, as_json: bool
) -> int:
    """Make dead items ready again, and print what became of them; answer the exit code. `done` says what was done."""
    if ids:
        return output.answers(ids, queue.revive_items(ids), done, "not dead:", as_json=as_json)
    return output.counted(queue.revive_all(matching), done, as_json=as_json)


def purge_chosen(
    queue: WorkQueue, what: str, *, ids: tuple[str, ...], older_than: float | None, yes: bool, as_json: bool
) -> int:
    """Drop dead items after asking, and print what became of them; answer the exit code. `what` is what they are."""
    if ids:
        return output.answers(ids, queue.purge_items(ids), "purged", "not dead:", as_json=as_json)
    if there := queue.stats().dead:
        which = "all" if older_than is None else f"those dead for {formatting.duration(older_than)}"
        confirmation.confirm(f"Drop dead {what} of {queue.name} permanently, {which} of {there}?", yes=yes)
    return output.counted(queue.purge_all(older_than or 0), "purged", as_json=as_json)
