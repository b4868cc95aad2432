"""`leaseq pause`, `resume`, `configure`, `clean`, `delete`: looking after a queue."""

import time

import click

from leaseq import WorkQueue, formatting
from leaseq.cli import output
from leaseq.cli.audit import audited
from leaseq.cli.exit_codes import ExitCode
from leaseq.cli.patterns import on_queues
from leaseq.cli.server import on_queue, stats_of
from leaseq.results import DeepClean


@click.command()
@on_queues
@output.as_json
@audited
def pause(*, queue: WorkQueue, as_json: bool) -> None:
    """Stop leasing from QUEUE, for all workers, until `leaseq resume`. Items that are leased already are finished.

    QUEUE may be a pattern, such as "mail-*": then it is done to each queue that matches, in all groups or in --group.

    \b
    Examples:
      leaseq pause orders
      leaseq pause "*" --group shop
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    stats_of(queue)
    queue.pause()
    _report(queue, paused=True, as_json=as_json)


@click.command()
@on_queues
@output.as_json
@audited
def resume(*, queue: WorkQueue, as_json: bool) -> None:
    """End the pause of QUEUE: waiting workers get items at once.

    \b
    Example:
      leaseq resume orders
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    stats_of(queue)
    queue.resume()
    _report(queue, paused=False, as_json=as_json)


def _report(queue: WorkQueue, *, paused: bool, as_json: bool) -> None:
    if as_json:
        output.document({"queue": queue.name, "paused": paused})
    else:
        output.line(f"{queue.name} {'is paused' if paused else 'goes on'}")


@click.command(short_help="Set limits of QUEUE for all its clients.")
@on_queues
@click.option("--max-data", type=click.IntRange(1, 536870912), help="Bytes of data that an item may have.")
@click.option(
    "--max-items", type=click.IntRange(0, 4294967295), help="Items held, not counting dead ones; 0: no limit."
)
@click.option(
    "--max-attempts",
    type=click.IntRange(0, 65534),
    help="Leases after which an item becomes a dead letter; 0: never.",
)
@output.as_json
@audited
def configure(
    *, queue: WorkQueue, max_data: int | None, max_items: int | None, max_attempts: int | None, as_json: bool
) -> None:
    """Set the given limits of QUEUE, for all its clients, and show all limits. Items in the queue stay.

    \b
    Examples:
      leaseq configure orders --max-items 100000 --max-attempts 25
      leaseq configure orders
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    given = {"max_data": max_data, "max_items": max_items, "max_attempts": max_attempts}
    if all(value is None for value in given.values()):
        found = stats_of(queue)
    else:
        queue.configure(max_data=max_data, max_items=max_items, max_attempts=max_attempts)
        found = queue.stats()
    limits = {name: getattr(found, name) for name in given}
    if as_json:
        output.document({"queue": queue.name, **limits})
    else:
        output.show(output.facts((name, value) for name, value in limits.items()))


@click.command(short_help="Requeue expired leases, promote due items; repair damage.")
@on_queue
@click.option(
    "--deep", is_flag=True, help="Look through the whole queue for damage and repair it, page by page."
)
@click.option(
    "--rate",
    type=click.FloatRange(0.01, 10_000),
    default=100.0,
    show_default=True,
    metavar="PAGES",
    help="Pages of 256 entries a second that --deep looks through; the calls of others come in between.",
)
@click.option("--dry-run", is_flag=True, help="Change nothing; show what would be done.")
@output.as_json
def clean(*, queue: WorkQueue, deep: bool, rate: float, dry_run: bool, as_json: bool) -> None:
    """Requeue items of QUEUE whose lease expired, promote due items, delete expired items and outcomes; with --deep repair damage.

    Safe at any time, also several at once.

    \b
    Examples:
      leaseq clean orders
      leaseq clean orders --deep --dry-run
      leaseq clean orders --deep --rate 20
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    found = stats_of(queue)
    if deep:
        done = _deep_clean(queue, rate, dry_run=dry_run).repairs
    elif dry_run:
        done = {"promoted": found.due, "reclaimed": found.overdue}
    else:
        done = queue.light_clean().counts
    if as_json:
        output.document({"queue": queue.name, "dry_run": dry_run, "deep": deep, "done": done})
        return
    counts = [f"{count} {formatting.plain(kind)}" for kind, count in done.items() if count]
    output.line(f"{'to do: ' if dry_run and counts else ''}{', '.join(counts) or 'nothing to do'}")


def _deep_clean(queue: WorkQueue, rate: float, *, dry_run: bool) -> DeepClean:
    """Look through the queue, `rate` pages a second."""
    cursor, done = queue.deep_clean_page(dry_run=dry_run)
    while cursor != "0":
        time.sleep(1 / rate)
        cursor, page = queue.deep_clean_page(cursor, dry_run=dry_run)
        done = done.plus(page)
    return done


@click.command(short_help="Delete QUEUE, which must be empty.")
@on_queue
@output.as_json
@audited
def delete(*, queue: WorkQueue, as_json: bool) -> int:
    """Delete QUEUE with its limits, pause and counters, and take it out of the registry. Exits with 1 if there is no such queue.

    It is refused while the queue holds items, dead ones included, or outcomes that are kept. A later `leaseq add` makes a new queue.

    \b
    Example:
      leaseq delete orders
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    deleted = queue.delete()
    if as_json:
        output.document({"queue": queue.name, "deleted": deleted})
    else:
        output.line(f"{queue.name} {'is deleted' if deleted else 'does not exist'}")
    return ExitCode.DONE if deleted else ExitCode.NO
