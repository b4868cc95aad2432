"""`leaseq workers`, `leaseq steer`: the live workers, and what they are to do."""

import dataclasses
from typing import Any, Final

import click

from leaseq import formatting
from leaseq.cli import audit, output
from leaseq.cli.server import Server, in_group, on_server
from leaseq.worker.presence import checked_id
from leaseq.worker.registry import WorkerInfo, live_workers, quiet_worker, resume_worker, stop_worker

_SHOWN: Final = 3  # items of a worker, in the table
_WISHES: Final = {"quiet": quiet_worker, "resume": resume_worker, "stop": stop_worker}


@click.command(short_help="List the live workers, with the items that they hold.")
@click.argument("queue", required=False)
@on_server
@in_group
@output.as_json
def workers(*, queue: str | None, server: Server, group: str | None, as_json: bool) -> None:
    """List the live workers of the server, or those of QUEUE, with their states and items.

    A worker is starting, idle, busy, quiet or stopping. To quiet, resume or stop one, use `leaseq steer`.

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


@click.command(short_help="Quiet, resume or stop live workers.")
@click.argument("wish", type=click.Choice(list(_WISHES)))
@click.argument("ids", metavar="WORKER...", nargs=-1, required=True)
@on_server
@output.as_json
def steer(*, wish: str, ids: tuple[str, ...], server: Server, as_json: bool) -> int:
    """Quiet, resume or stop live workers, by the names that `leaseq workers` lists.

    A quiet worker leases nothing and finishes what it runs, for a day or until `resume`. `stop` is as SIGTERM: a
    supervisor may start another worker, as `leaseq worker` does with its processes. A worker does so with its next
    report, within 15 seconds. Exits with 1 if a worker is not alive.

    \b
    Examples:
      leaseq steer quiet web-3:4711:1f0c2a9b
      leaseq workers orders --json | jq -r .id | xargs leaseq steer stop
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    with audit.logged_as({"options": {"wish": wish, "workers": list(ids)}}):
        for worker_id in ids:
            checked_id(worker_id)
        with server.opened("live workers") as client:
            answers = [_WISHES[wish](worker_id, client) for worker_id in ids]
        return output.answers(ids, answers, wish, "not alive:", as_json=as_json)


def _row(worker: WorkerInfo) -> tuple[Any, ...]:
    works = [f"{item.id} ({formatting.duration(item.seconds)})" for item in worker.items[:_SHOWN]]
    if worker.held > len(works):
        works.append(f"and {worker.held - len(works)} more")
    names = [formatting.queue(name, group) for group, name in worker.queues]
    return (
        worker.id,
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
