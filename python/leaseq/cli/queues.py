"""The command `leaseq queues`: the queues in the registry, with their counts."""

from collections.abc import Iterator
from typing import Any

import click

from leaseq import QueueStats, WorkQueue, registry
from leaseq.cli import formatting, output
from leaseq.cli.server import Server, on_server
from leaseq.cli.stats import as_dict


@click.command(short_help="List the queues of the server, with their counts.")
@on_server
@output.as_json
def queues(*, server: Server, as_json: bool) -> None:
    """List the queues that clients have registered on the server, with their counts.

    Exits with 1 if there are none.

    \b
    Examples:
      leaseq queues
      leaseq queues --json | jq -r 'select(.dead > 0).queue'
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    columns = ("queue", "group", "ready", "delayed", "leased", "dead", "next has waited", "")
    output.print_list(
        _found(server),
        lambda entry: _row(*entry),
        columns,
        right_aligned=columns[2:7],
        as_dict=lambda entry: as_dict(*entry),
        nothing="no client has entered a queue here",
        as_json=as_json,
    )


def _found(server: Server) -> Iterator[tuple[WorkQueue, QueueStats]]:
    for name, group in registry.queues(server.named()):
        with server.queue(name, group) as queue:
            yield queue, queue.stats()


def _row(queue: WorkQueue, stats: QueueStats) -> tuple[Any, ...]:
    waited = formatting.duration(stats.waited) if stats.ready else ""
    paused = "PAUSED" if stats.paused else ""
    return (queue.name, queue.group, stats.ready, stats.delayed, stats.leased, stats.dead, waited, paused)
