"""`leaseq stats`."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from leaseq.cli import output, text
from leaseq.cli.server import on_queue, stats_of

if TYPE_CHECKING:
    from rich.table import Table

    from leaseq import QueueStats, WorkQueue


@click.command()
@on_queue
@output.as_json
def stats(*, queue: WorkQueue, as_json: bool) -> None:
    """Show how QUEUE stands: items by state, counters, limits.

    \b
    Examples:
      leaseq stats orders
      leaseq stats orders --json | jq .ready
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    found = stats_of(queue)
    if as_json:
        output.document(as_dict(queue, found))
    else:
        output.console().print(picture(found))


def as_dict(queue: WorkQueue, stats: QueueStats) -> dict[str, Any]:
    """For JSON: the fields of QueueStats, times in seconds, beside the queue's name and group."""
    return {"queue": queue.name, "group": queue.group, **dataclasses.asdict(stats)}


def picture(stats: QueueStats) -> Table:
    """A table of what there is."""
    limit = f" of {stats.max_items}" if stats.max_items else ""
    waited = f"the next has waited {text.duration(stats.waited)}" if stats.ready else ""
    rows: list[tuple[str, int, str]] = [
        ("ready", stats.ready, "PAUSED: nothing is leased" if stats.paused else waited),
        ("delayed", stats.delayed, f"{stats.due} due" if stats.due else ""),
        ("leased", stats.leased, f"{stats.overdue} overdue" if stats.overdue else ""),
        ("dead", stats.dead, "see leaseq dead list" if stats.dead else ""),
        ("items", stats.items, f"{stats.items - stats.dead}{limit} held, dead ones aside" if limit else ""),
    ]
    names = ("added", "completed", "reclaimed", "released", "died", "expired", "removed", "purged", "kept")
    rows += [(name, count, "") for name in names if (count := getattr(stats, name)) or name in names[:2]]
    return output.table(("", "items", ""), rows, right=("items",))
