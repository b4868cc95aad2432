"""The command `leaseq queues`: the queues in the registry, with their counts."""

import heapq
from collections.abc import Callable, Iterable
from typing import Any, Final

import click

from leaseq import QueueStats, commands, formatting, registry
from leaseq._sync.server_handle import ServerHandle
from leaseq._sync.survey import read_all
from leaseq.cli import output
from leaseq.cli.server import Server, on_server
from leaseq.cli.stats import as_dict
from leaseq.keys import QueueKeys, RegisteredQueue
from leaseq.results import STATES

Entry = tuple[RegisteredQueue, QueueStats]

_BY_NAME: Final = "name"
_ORDERS: Final[dict[str, Callable[[QueueStats], float]]] = {
    "items": lambda stats: stats.items,
    "ready": lambda stats: stats.ready,
    "delayed": lambda stats: stats.delayed,
    "leased": lambda stats: stats.leased,
    "dead": lambda stats: stats.dead,
    "overdue": lambda stats: stats.overdue + stats.due,
    "waited": lambda stats: stats.waited,
}
"""The numbers by which queues can be sorted, the greatest first."""


@click.command(short_help="List the queues of the server, with their counts.")
@on_server
@click.option(
    "--sort",
    type=click.Choice([_BY_NAME, *_ORDERS]),
    default=_BY_NAME,
    show_default=True,
    help="The order: by name, or the greatest number first. overdue counts expired leases and due items that are still in"
    " their place; waited is how long the next item has waited.",
)
@click.option("--limit", type=click.IntRange(1), metavar="COUNT", help="Show only the first COUNT queues.")
@output.as_json
def queues(*, server: Server, sort: str, limit: int | None, as_json: bool) -> None:
    """List the queues that clients have registered on the server, with their counts.

    Exits with 1 if there are none.

    \b
    Examples:
      leaseq queues
      leaseq queues --sort waited --limit 20
      leaseq queues --json | jq -r 'select(.dead > 0).queue'
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    with ServerHandle(
        server.named(), "the list of queues", "leaseq queues --url redis://localhost"
    ) as opened:
        found = registry.queues(opened.client)
        if sort == _BY_NAME:
            found = found[:limit]
        stats = read_all(opened.client, [commands.stats(QueueKeys(*queue)) for queue in found])
    columns = ("queue", "group", *STATES, "next has waited", "")
    output.print_list(
        _sorted(_read(found, stats), sort, limit),
        lambda entry: _row(*entry),
        columns,
        right_aligned=columns[2:7],
        as_dict=lambda entry: as_dict(*entry),
        nothing="no client has entered a queue here",
        as_json=as_json,
    )


def _read(found: Iterable[RegisteredQueue], stats: Iterable[Any]) -> Iterable[Entry]:
    """Yield queues with their stats. Raises the error of a queue that cannot be read."""
    for queue, answer in zip(found, stats, strict=True):
        if isinstance(answer, Exception):
            raise answer
        yield queue, answer


def _sorted(entries: Iterable[Entry], sort: str, limit: int | None) -> Iterable[Entry]:
    """Return the first entries in this order. Equal ones keep the order of their names."""
    if sort == _BY_NAME:
        return entries
    listed, number = list(entries), _ORDERS[sort]
    return heapq.nlargest(limit or len(listed), listed, key=lambda entry: number(entry[1]))


def _row(queue: RegisteredQueue, stats: QueueStats) -> tuple[Any, ...]:
    waited = formatting.duration(stats.waited) if stats.ready else ""
    paused = "PAUSED" if stats.paused else ""
    return (queue.name, queue.group, stats.ready, stats.delayed, stats.leased, stats.dead, waited, paused)
