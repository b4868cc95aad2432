"""`leaseq workers`."""

import dataclasses
from typing import Any, Final

import click

from leaseq import formatting
from leaseq.cli import output
from leaseq.cli.server import Server, in_group, on_server
from leaseq.worker.registry import WorkerInfo, live_workers

_SHOWN: Final = 3  # items of a worker, in the table


@click.command(short_help="List the live workers, with the items that they hold.")
@click.argument("queue", required=False)
@on_server
@in_group
@output.as_json
def workers(*, queue: str | None, server: Server, group: str | None, as_json: bool) -> None:
    """List the live workers of the server, or those of QUEUE, with their states and items.

    A worker is starting, idle, busy or stopping.

    A worker reports every 10 seconds, and each line is its last report. So a worker that is idle here may have started
    an item since. For now, use `leaseq jobs list running` or `leaseq list QUEUE leased`. "works on" has the items of the
    report, and for how long they are held by now. A killed worker is listed for up to 30 seconds more. Loops made by
    hand and `leaseq lease` are not listed. Exits with 1 if there are none.

    \b
    Examples:
      leaseq workers
      leaseq workers orders --json | jq '.items[].id'
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    if group is not None and queue is None:
        raise click.UsageError("--group is for a QUEUE")
    wanted = (group or queue, queue)
    found = [each for each in live_workers(server.named()) if queue is None or wanted in each.queues]
    columns = ("worker", "client", "queues", "completed", "holds", "at most", "works on", "state")
    output.print_list(
        found,
        _row,
        columns,
        right_aligned=columns[3:6],
        as_dict=_as_dict,
        nothing="no worker lives",
        as_json=as_json,
    )


def _row(worker: WorkerInfo) -> tuple[Any, ...]:
    works = [f"{item.id} ({formatting.duration(item.seconds)})" for item in worker.items[:_SHOWN]]
    if worker.held > len(works):
        works.append(f"and {worker.held - len(works)} more")
    names = [name if name == group else f"{group}:{name}" for group, name in worker.queues]
    return (
        f"{worker.host}:{worker.pid}",
        worker.client,
        ", ".join(names),
        worker.completed,
        worker.held,
        worker.concurrency,
        ", ".join(works),
        worker.state,
    )


def _as_dict(worker: WorkerInfo) -> dict[str, Any]:
    """For JSON: the fields of WorkerInfo, and its state; a queue as in the registry: `group:name`."""
    queues = [f"{group}:{name}" for group, name in worker.queues]
    return dataclasses.asdict(worker) | {"state": worker.state, "queues": queues}
