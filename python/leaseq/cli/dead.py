"""`leaseq dead list`, `revive`, `purge`: items that wait for a person."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import click

from leaseq.cli import asking, output, text
from leaseq.cli.ends import Code, Group, Refusal
from leaseq.cli.kinds import duration
from leaseq.cli.server import on_queue, stats_of

if TYPE_CHECKING:
    from leaseq import WorkQueue


@click.group(cls=Group, no_args_is_help=False)
def dead() -> None:
    """Look at dead letters, put them back, drop them.

    \b
    Example:
      leaseq dead list orders
    """  # noqa: D301 (click's mark for text that is not to be wrapped)


@dead.command("list")
@on_queue
@click.option("--limit", type=click.IntRange(1, 256), default=100, show_default=True, help="At most so many.")
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Leave out so many at the beginning.")
@click.option("--backward", is_flag=True, help="Last died first.")
@output.as_json
def list_(*, queue: WorkQueue, limit: int, offset: int, backward: bool, as_json: bool) -> None:
    """List dead items of QUEUE with their last errors, first died first. Ends with 1 where there are none.

    \b
    Examples:
      leaseq dead list orders
      leaseq dead list orders --json | jq -r .error | sort | uniq -c
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    now = stats_of(queue).now
    letters = queue.dead_letters(offset=offset, limit=limit, backward=backward)
    if as_json:
        for letter in letters:
            output.record(dataclasses.asdict(letter))
    elif letters:
        rows = [(each.id, text.when(each.time - now), each.attempt, each.error) for each in letters]
        output.show(output.table(("id", "died", "attempts", "last error"), rows, right=("attempts",)))
    if not letters:
        raise Refusal("" if as_json else "nothing is dead")


@dead.command()
@on_queue
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All that are dead now.")
@click.option("--matching", metavar="TEXT", help="All whose last error contains this text.")
@output.as_json
def revive(
    *, queue: WorkQueue, ids: tuple[str, ...], everything: bool, matching: str | None, as_json: bool
) -> int:
    """Make dead items of QUEUE ready again, their attempts begun anew. Ends with 1 where one was not dead.

    \b
    Examples:
      leaseq dead revive orders order-1 order-2
      leaseq dead revive orders --matching "timeout: bank"
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    if bool(ids) + everything + (matching is not None) != 1:
        raise click.UsageError("say which: ID..., --all or --matching TEXT, one of the three")
    if ids:
        return _told(ids, queue.revive_items(ids), "revived", as_json=as_json)
    stats_of(queue)
    return output.counted(queue.revive_all(matching), "revived", as_json=as_json)


@dead.command()
@on_queue
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All that are dead now.")
@click.option("--older-than", type=duration, help="All that have been dead for so long, such as 30d.")
@asking.yes
@output.as_json
def purge(
    *,
    queue: WorkQueue,
    ids: tuple[str, ...],
    everything: bool,
    older_than: float | None,
    yes: bool,
    as_json: bool,
) -> int:
    """Drop dead items of QUEUE for ever. Ends with 1 where one was not dead.

    \b
    Examples:
      leaseq dead purge orders order-1
      leaseq dead purge orders --older-than 30d --yes
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    if bool(ids) + everything + (older_than is not None) != 1:
        raise click.UsageError("say which: ID..., --all or --older-than DURATION, one of the three")
    if ids:
        return _told(ids, queue.purge_items(ids), "purged", as_json=as_json)
    if there := stats_of(queue).dead:
        which = "all" if everything else f"those dead for {text.duration(older_than or 0)}"
        asking.confirm(f"Drop dead items of {queue.name} for ever, {which} of {there}?", yes=yes)
    return output.counted(queue.purge_all(older_than or 0), "purged", as_json=as_json)


def _told(ids: tuple[str, ...], answers: list[bool], what: str, *, as_json: bool) -> int:
    for item_id, answer in zip(ids, answers, strict=True):
        if as_json:
            output.record({"id": item_id, what: answer})
        else:
            output.line(f"{what if answer else 'not dead:'} {item_id}")
    return Code.DONE if all(answers) else Code.NO
