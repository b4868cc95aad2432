"""`leaseq export`."""

import json
from typing import IO, Any

import click

from leaseq import WorkQueue
from leaseq.cli.progress import progress
from leaseq.cli.server import on_queue, stats_of


@click.command(short_help="Write all items of QUEUE as JSON lines.")
@on_queue
@click.option(
    "--output",
    "-o",
    "target",
    type=click.File("w", encoding="utf-8"),
    default="-",
    help="The file to write. [default: stdout]",
)
def export(*, queue: WorkQueue, target: IO[str]) -> None:
    """Write all items of QUEUE as JSON lines, which `leaseq import` reads. Changes nothing.

    If the queue is used during the export, an item can be missing or be written twice; a line on stderr then reports
    it. Pause the queue and stop its workers for an exact copy. The lines are described in
    docs/transfer.md.

    \b
    Examples:
      leaseq export orders > orders.jsonl
      leaseq export orders | gzip > orders.jsonl.gz
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    from leaseq.transfer import export_queue

    total = stats_of(queue).items
    line: dict[str, Any] = {}
    with progress(total) as on_progress:
        for count, line in enumerate(export_queue(queue)):
            target.write(json.dumps(line) + "\n")
            on_progress(count, f"{count} of {total}")
    moved = "; the queue was used meanwhile: items can be missing or twice" if line["changed"] else ""
    click.echo(f"{line['items']} items{moved}", err=True)
