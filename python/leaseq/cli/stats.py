"""`leaseq stats`."""

import dataclasses
import itertools
import time
from collections.abc import Iterator
from typing import Any, Final

import click
from rich.live import Live
from rich.table import Table

from leaseq import QueueStats, WorkQueue, formatting
from leaseq.cli import output
from leaseq.cli.live_stats import LiveStats
from leaseq.cli.params import duration
from leaseq.cli.server import on_queue, stats_of
from leaseq.keys import RegisteredQueue
from leaseq.results import STATES

_FIELDS: Final = tuple(field.name for field in dataclasses.fields(QueueStats))
_MIN_INTERVAL: Final = 0.1  # seconds between two looks, at least


@click.command()
@on_queue
@click.option("--watch", is_flag=True, help="Look again and again, until Ctrl-C.")
@click.option(
    "--every", type=duration, default="1s", show_default=True, help="With --watch: how often, 100ms or more."
)
@click.option("--count", type=click.IntRange(1), help="With --watch: stop after this many looks.")
@output.as_json
def stats(*, queue: WorkQueue, watch: bool, every: float, count: int | None, as_json: bool) -> None:
    """Show the counts of QUEUE: items by state, counters, limits.

    \b
    Examples:
      leaseq stats orders
      leaseq stats orders --json | jq .ready
      leaseq stats orders --watch
      leaseq stats orders --watch --every 1m --json >> orders.jsonl
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    if every < _MIN_INTERVAL:
        raise click.BadParameter("that is too often: 100ms or more", param_hint="'--every'")
    found = stats_of(queue)
    if watch:
        _watch(queue, _samples(queue, found, every, count), as_json=as_json)
    elif as_json:
        output.document(as_dict(queue, found))
    else:
        output.show(render(found))


def _samples(queue: WorkQueue, first: QueueStats, every: float, count: int | None) -> Iterator[QueueStats]:
    yield first
    for _ in itertools.count() if count is None else range(count - 1):
        time.sleep(every)
        yield queue.stats()


def _watch(queue: WorkQueue, samples: Iterator[QueueStats], *, as_json: bool) -> None:
    """Show each look: as a picture that moves in a terminal, as a line of JSON, or as a line for a log."""
    console = output.console()
    if as_json:
        for sample in samples:
            output.record(as_dict(queue, sample))
    elif console.is_terminal:
        history = LiveStats(queue.name)
        with Live(console=console, auto_refresh=False) as live:
            for sample in samples:
                history.add(sample)
                live.update(history.render(), refresh=True)
    else:
        for sample in samples:
            counts = ", ".join(f"{getattr(sample, state)} {state}" for state in STATES)
            output.line(f"{formatting.moment(sample.now)}  {counts}{', PAUSED' if sample.paused else ''}")


def as_dict(queue: WorkQueue | RegisteredQueue, stats: QueueStats) -> dict[str, Any]:
    """For JSON: the fields of QueueStats, times in seconds, beside the queue's name and group."""
    return {"queue": queue.name, "group": queue.group, **{name: getattr(stats, name) for name in _FIELDS}}


def render(stats: QueueStats) -> Table:
    """A table of what there is."""
    limit = f" of {stats.max_items}" if stats.max_items else ""
    waited = f"the next has waited {formatting.duration(stats.waited)}" if stats.ready else ""
    rows: list[tuple[str, int, str]] = [
        ("ready", stats.ready, "PAUSED: nothing is leased" if stats.paused else waited),
        ("delayed", stats.delayed, f"{stats.due} due" if stats.due else ""),
        ("leased", stats.leased, f"{stats.overdue} overdue" if stats.overdue else ""),
        ("dead", stats.dead, "see leaseq dead list" if stats.dead else ""),
        (
            "items",
            stats.items,
            f"{stats.items - stats.dead}{limit} held, not counting dead ones" if limit else "",
        ),
    ]
    names = ("added", "completed", "reclaimed", "released", "died", "expired", "removed", "purged", "kept")
    rows += [(name, count, "") for name in names if (count := getattr(stats, name)) or name in names[:2]]
    return output.table(("", "items", ""), rows, right_aligned=("items",))
