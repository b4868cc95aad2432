"""The command `leaseq import`; `leaseq.transfer.importer` does the work."""

from collections.abc import Iterator
from typing import IO, TYPE_CHECKING

import click

from leaseq import WorkQueue
from leaseq.cli import output
from leaseq.cli.exit_codes import CommandError
from leaseq.cli.progress import progress
from leaseq.cli.server import on_queue

if TYPE_CHECKING:
    from leaseq.transfer import Imported


@click.command("import", short_help="Add to QUEUE what `leaseq export` wrote.")
@on_queue
@click.argument("source", metavar="[FILE]", type=click.File("rb"), default="-")
@click.option(
    "--revive-dead", is_flag=True, help="Add dead items too, as ready ones. [default: leave them out]"
)
@output.as_json
def import_(*, queue: WorkQueue, source: IO[bytes], revive_dead: bool, as_json: bool) -> None:
    """Add to QUEUE the items of FILE (or stdin), which `leaseq export` wrote.

    Items whose ids exist are not changed: if an import was interrupted, run it again. Attempts and tokens start again
    and last errors are dropped; their number is printed. The exit code is 1 if the file is incomplete.

    \b
    Examples:
      leaseq import orders orders.jsonl
      leaseq export orders --url redis://old | leaseq import orders --url redis://new
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    from leaseq.transfer import import_lines

    read = 0

    def lines() -> Iterator[bytes]:
        nonlocal read
        for line in source:
            read += 1
            yield line

    with progress(None) as on_progress:
        done = import_lines(
            queue,
            lines(),
            revive_dead=revive_dead,
            on_progress=lambda done: on_progress(read, f"{done.added} added, {done.exist} exist"),
        )
    output.report(done, summary_lines(done), as_json=as_json)
    if not done.complete:
        raise CommandError("the file has no end: its export was cut, items are missing")


def summary_lines(done: "Imported") -> Iterator[str]:
    """Yield what became of the items, line by line."""
    yield f"{done.added} added, {done.exist} exist"
    rest = {
        "were dead and are left out (--revive-dead adds them)": done.dead,
        "had expired and are left out": done.expired,
        "of those added had been leased: their attempts start again": done.restarted,
        "of those added had a last error, which stays behind": done.errors,
        "of those added were leased: they are due when that lease ends": done.held,
    }
    for text, count in rest.items():
        if count:
            yield f"{count} {text}"
