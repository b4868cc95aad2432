"""`leaseq import-redis-work-queue`."""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from leaseq import WorkQueue
from leaseq.cli import output
from leaseq.cli.exit_codes import CommandError, ExitCode
from leaseq.cli.progress import progress
from leaseq.cli.server import Server, on_server

if TYPE_CHECKING:
    from leaseq.transfer import Migration
    from leaseq.transfer.redis_work_queue import Counts


@click.command("import-redis-work-queue", short_help="Move a queue of MeVitae's redis-work-queue here.")
@click.argument("prefix")
@click.argument("queue")
@on_server
@click.option("--group", "-g", metavar="GROUP", help="The queue's group. [default: its name]")
@click.option("--from", "source", metavar="URL", help="The server of the original. [default: that of --url]")
@click.option("--waiting-only", is_flag=True, help="Leave out the items that workers of the original hold.")
@click.option("--dry-run", is_flag=True, help="Show what would be moved; change nothing.")
@output.as_json
def import_redis_work_queue(
    *,
    prefix: str,
    queue: str,
    server: Server,
    group: str | None,
    source: str | None,
    waiting_only: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Move the items of a queue of MeVitae's redis-work-queue, whose key prefix is PREFIX, to QUEUE.

    Stop the original's workers and cleaner first: while they hold leases this refuses to start. An item is deleted
    there only after it was added here. If this was interrupted, run it again. docs/from-redis-work-queue.md says how
    to move over step by step.

    \b
    Examples:
      leaseq import-redis-work-queue my_queue orders --dry-run
      leaseq import-redis-work-queue my_queue orders
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    from leaseq.transfer.migration import check_leases, migrate
    from leaseq.transfer.redis_work_queue import OriginalQueue

    with contextlib.ExitStack() as stack:
        target = stack.enter_context(server.queue(queue, group))
        # opened for the sake of its client: no call is made for it
        there = target if source is None else stack.enter_context(WorkQueue(queue, source, group=group))
        original = OriginalQueue(there.executor.client, prefix)
        counts = original.counts()
        if not counts.total:
            raise CommandError(
                f"nothing to move: {prefix}:queue and {prefix}:processing are empty; is PREFIX right?"
            )
        if dry_run:
            output.report(counts, _counted(counts), as_json=as_json)
            if not waiting_only:
                check_leases(counts)
            return ExitCode.DONE
        total = counts.waiting + counts.claimed if waiting_only else counts.total
        with progress(total) as on_progress:
            done = migrate(
                original,
                target,
                waiting_only=waiting_only,
                on_progress=lambda done: on_progress(
                    done.added + done.exist + done.left, f"{done.added} added"
                ),
            )
    output.report(done, summary_lines(done, original.claimed_key), as_json=as_json)
    return ExitCode.NO if done.refused else ExitCode.DONE


def _counted(counts: "Counts") -> Iterator[str]:
    yield f"{counts.waiting} wait, {counts.processing} were taken by workers, {counts.leased} under a lease"
    if counts.cleaning:
        yield f"{counts.cleaning} are with the original's cleaner"
    if counts.stranded:
        yield f"{counts.stranded} are in no list: their producers died while they added them"
    if counts.claimed:
        yield f"{counts.claimed} are on their way: an import before this did not end, or left them"


def summary_lines(done: "Migration", claimed_key: str) -> Iterator[str]:
    """Yield what became of the ids, line by line."""
    yield f"{done.added} added, {done.exist} exist"
    if done.without_data:
        yield f"{done.without_data} have no data and stay in {claimed_key}: the original leaves them when it completes"
    if done.refused:
        yield f"{done.refused} are not taken and stay in {claimed_key}:"
    yield from (f"  {why}" for why in done.why)
    if done.left > len(done.why):
        yield f"  and {done.left - len(done.why)} more"
