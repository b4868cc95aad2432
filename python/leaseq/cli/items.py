"""`leaseq peek`, `inspect`, `list`: items, without taking or changing any."""

import dataclasses
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import click

from leaseq import ItemInfo, ListedItem, WorkQueue, formatting
from leaseq._sync.pages import pages
from leaseq.cli import output
from leaseq.cli.exit_codes import ExitCode
from leaseq.cli.server import data_of, on_queue, stats_of
from leaseq.item import data_fields
from leaseq.results import STATES

_TIMES: Final = {"ready": "ready", "delayed": "due", "leased": "lease ends", "dead": "died"}
"""The meaning of the time of an item, by its state."""


@click.command(short_help="Show the items of QUEUE that are leased next.")
@on_queue
@click.option("--count", type=click.IntRange(1, 256), default=1, show_default=True, help="How many.")
@output.as_json
def peek(*, queue: WorkQueue, count: int, as_json: bool) -> None:
    """Show the items of QUEUE that are leased next, with their data; they stay where they are.

    Exits with 1 if nothing is ready.

    \b
    Examples:
      leaseq peek orders
      leaseq peek orders --count 5 --json
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    now = stats_of(queue).now
    infos = queue.inspect_items([each.id for each in queue.list_items("ready", limit=count).items])
    columns = ("id", "waits", "priority", "attempts", "size", "data")
    output.print_list(
        infos,
        lambda info: (
            info.id,
            formatting.duration(now - info.time),
            info.priority,
            info.attempt,
            formatting.size(info.size),
            formatting.preview(data_of(queue, info.id)),
        ),
        columns,
        right_aligned=columns[1:5],
        as_dict=lambda info: dataclasses.asdict(info) | data_fields(data_of(queue, info.id)),
        nothing="nothing is ready",
        as_json=as_json,
    )


@click.command()
@on_queue
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@click.option("--data", "with_data", is_flag=True, help="Show the data too.")
@output.as_json
def inspect(*, queue: WorkQueue, ids: tuple[str, ...], with_data: bool, as_json: bool) -> int:
    """Show everything about items of QUEUE. Exits with 1 if an item does not exist.

    \b
    Examples:
      leaseq inspect orders order-1
      leaseq inspect orders order-1 --json | jq .token
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    infos = queue.inspect_items(ids)
    for number, info in enumerate(infos):
        data = data_of(queue, info.id) if with_data else None
        if as_json:
            output.record(dataclasses.asdict(info) | ({} if data is None else data_fields(data)))
        else:
            if number:
                output.line("")
            output.show(output.facts(_facts(info, data)))
    return ExitCode.NO if any(info.state == "absent" for info in infos) else ExitCode.DONE


DEFAULT_LIMIT = 100
"""Items that `leaseq list` shows if neither --limit nor --all is given."""


@click.command("list", short_help="List the items of QUEUE in a STATE.")
@on_queue
@click.argument("state", type=click.Choice((*STATES, "kept")))
@click.option(
    "--limit", type=click.IntRange(min=1), help="At most this many; 100 if neither this nor --all is given."
)
@click.option("--all", "everything", is_flag=True, help="All of them.")
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Skip this many at the start.")
@click.option("--backward", is_flag=True, help="Last first.")
@output.as_json
def list_(
    *,
    queue: WorkQueue,
    state: Any,
    limit: int | None,
    everything: bool,
    offset: int,
    backward: bool,
    as_json: bool,
) -> None:
    """List the items of QUEUE in a STATE, next first; "kept" are ids whose outcome is kept.

    If there are more than it shows, a line on stderr says how to see them. Exits with 1 if there are none. While others work, an item may be missed or listed twice.

    \b
    Examples:
      leaseq list orders leased
      leaseq list orders delayed --all --json | jq -r .id
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    if everything and limit is not None:
        raise click.UsageError("say --limit or --all, not both")
    now = stats_of(queue).now
    if everything or limit is not None:
        infos = _list_infos(queue, state, offset, limit, backward=backward)
    else:
        infos = _first_infos(queue, state, offset, backward=backward)
    columns: Any = (
        ("id", "forgotten") if state == "kept" else ("id", _TIMES[state], "priority", "attempts", "size")
    )
    output.print_list(
        infos,
        lambda each: _row(each, now),
        columns,
        right_aligned=columns[2:],
        nothing=f"nothing is {state}",
        as_json=as_json,
    )


def _first_infos(
    queue: WorkQueue, state: Any, offset: int, *, backward: bool
) -> Iterator[ItemInfo | ListedItem]:
    """Yield the first DEFAULT_LIMIT; if there are more, say on stderr how to see them."""
    for number, info in enumerate(_list_infos(queue, state, offset, DEFAULT_LIMIT + 1, backward=backward)):
        if number < DEFAULT_LIMIT:
            yield info
        else:
            more = f"say --all, --limit N or --offset {offset + DEFAULT_LIMIT}"
            click.echo(f"leaseq list: there are more; {more}", err=True)


def _row(info: ItemInfo | ListedItem, now: float) -> tuple[Any, ...]:
    row = (info.id, formatting.when(info.time - now))
    if isinstance(info, ListedItem):
        return row
    return (*row, info.priority, info.attempt, formatting.size(info.size))


def _list_infos(
    queue: WorkQueue, state: Any, offset: int, limit: int | None, *, backward: bool
) -> Iterator[ItemInfo | ListedItem]:
    """Yield the items in the state, page by page: all that is known of an item, or the id and time of an outcome."""
    max_items = sys.maxsize if limit is None else limit
    for page in pages(partial(queue.list_items, state, backward=backward), offset, max_items):
        if state == "kept":
            yield from page
        else:
            infos = queue.inspect_items([each.id for each in page])
            yield from (info for info in infos if info.state == state)


def _facts(info: ItemInfo, data: bytes | None) -> list[tuple[str, Any]]:
    facts: list[tuple[str, Any]] = [("id", info.id), ("state", info.state)]
    if info.state == "absent":
        return facts
    facts += [
        (_TIMES.get(info.state, "time"), formatting.moment(info.time)),
        ("created", formatting.moment(info.created)),
        ("attempts", f"{info.attempt} of {info.max_attempts}" if info.max_attempts else str(info.attempt)),
        ("token", str(info.token)),
        ("priority", str(info.priority)),
        ("size", formatting.size(info.size)),
    ]
    if info.expires:
        facts.append(("expires", formatting.moment(info.expires)))
    if info.keep:
        facts.append(("outcome kept for", formatting.duration(info.keep)))
    if info.error:
        facts.append(("last error", info.error))
    if data is not None:
        facts.append(("data", data.decode(errors="replace")))
    return facts
