"""The command `leaseq add`: reads items from arguments, files or lines and adds them."""

import itertools
import os
from collections.abc import Callable
from io import BufferedReader
from typing import Any

import click

from leaseq import WorkQueue, flows
from leaseq.cli import add_input, output
from leaseq.cli.add_input import Entry
from leaseq.cli.bulk_add import Adder
from leaseq.cli.exit_codes import ExitCode
from leaseq.cli.params import duration, moment
from leaseq.cli.progress import progress
from leaseq.cli.server import on_queue
from leaseq.errors import BadArgumentError
from leaseq.item import Item

ReadLine = Callable[[int, bytes], Entry]
"""Makes an entry of the number and the text of a line."""


@click.command()
@on_queue
@click.argument("data", nargs=-1)
@click.option(
    "--file",
    "-f",
    "files",
    multiple=True,
    type=click.File("rb"),
    help="A file as data of an item; - is stdin.",
)
@click.option(
    "--lines", type=click.File("rb"), help="A file with the data of an item on each line; - is stdin."
)
@click.option(
    "--json-lines",
    type=click.File("rb"),
    help="A file with an item in JSON on each line; - is stdin. Keys: one of data, data_base64 and data_json;"
    " if you like, id, headers, content_type, and these options with _ for -: delay, not_before, priority, ...",
)
@click.option("--id", "item_id", help="The item's id, for a single one. [default: a random UUID]")
@click.option(
    "--header", "headers", multiple=True, metavar="NAME=VALUE", help="A header; may be given 16 times."
)
@click.option("--content-type", help="What the data is, such as application/json.")
@click.option(
    "--delay", type=duration, help="Lease it no earlier than this time from now, such as 30s, 5m, 2h."
)
@click.option(
    "--not-before", type=moment, help="Lease it no earlier than this time, such as 2026-12-24T18:00:00Z."
)
@click.option("--priority", type=click.IntRange(-7, 7), help="Higher first. [default: 0]")
@click.option(
    "--max-attempts",
    type=click.IntRange(0, 65534),
    help="It becomes a dead letter after this many leases; 0: no limit.",
)
@click.option("--expires-in", type=duration, help="Delete it if it is not leased in this time.")
@click.option(
    "--dead-on-expiry",
    is_flag=True,
    default=None,
    help="With --expires-in: make it a dead letter, do not delete it.",
)
@click.option("--keep", type=duration, help="Keep its outcome for this time.")
@click.option("--wait", is_flag=True, help="If the queue is full, wait for room.")
@output.as_json
def add(
    *,
    queue: WorkQueue,
    data: tuple[str, ...],
    files: tuple[BufferedReader, ...],
    lines: BufferedReader | None,
    json_lines: BufferedReader | None,
    item_id: str | None,
    headers: tuple[str, ...],
    content_type: str | None,
    wait: bool,
    as_json: bool,
    **given: Any,
) -> int:
    """Add an item to QUEUE for each DATA.

    An item whose id exists is not changed, and the exit code is 1.

    \b
    Examples:
      leaseq add orders "two books" --id order-1 --delay 5m
      leaseq add orders --file scan.pdf --content-type application/pdf
      find . -name '*.wav' | leaseq add sounds --lines -
      leaseq add orders --json-lines orders.jsonl --priority 3
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    streams = [stream for stream in (lines, json_lines) if stream is not None]
    item_options = {"headers": _headers(headers), "content_type": content_type}
    if len(data) + len(files) + len(streams) == 0:
        raise click.UsageError("say what to add: DATA, --file, --lines or --json-lines")
    if streams and (len(streams) > 1 or data or files or item_id or any(item_options.values())):
        raise click.UsageError(
            "--lines and --json-lines stand alone: no DATA, --file, --id, --header, --content-type"
        )
    if item_id is not None and len(data) + len(files) > 1:
        raise click.UsageError("--id is for a single item")

    def on_added(entry: Entry, added: bool) -> None:
        if as_json:
            output.record({"id": entry.item.id, "added": added})
        elif not streams:
            output.line(f"{'added' if added else 'exists'} {entry.item.id}")

    options = {name: value for name, value in given.items() if value is not None}
    adder = Adder(queue, on_added, options, wait=wait)
    if streams:
        _add_lines(adder, streams[0], add_input.from_line if lines else add_input.from_json_line)
        if not as_json:
            output.line(f"{adder.added} added, {adder.existed} exist")
    else:
        # the bytes that the shell gave: an argument need not be UTF-8
        contents = (*map(os.fsencode, data), *(file.read() for file in files))
        adder.add(Entry(Item(each, item_id, **item_options)) for each in contents)  # type: ignore[arg-type] # values of two types
    return ExitCode.NO if adder.existed else ExitCode.DONE


def _headers(given: tuple[str, ...]) -> dict[str, str]:
    for header in given:
        if "=" not in header:
            raise click.BadParameter(f"{header!r} is not NAME=VALUE", param_hint="'--header'")
    return dict(header.split("=", 1) for header in given)


def _add_lines(adder: Adder, stream: BufferedReader, read_line: ReadLine) -> None:
    done = 0
    with progress(_length(stream)) as show:
        for part in itertools.chain.from_iterable(map(flows.chunks, add_input.lines(stream))):
            adder.add(_entries(adder, read_line, part))
            done += sum(len(line) + 1 for _, line in part)
            show(done, f"{adder.added} added, {adder.existed} exist")


def _entries(adder: Adder, read_line: ReadLine, chunk: list[tuple[int, bytes]]) -> list[Entry]:
    """Return the entries of these lines. If one is wrong, add those before it and raise CommandError."""
    entries: list[Entry] = []
    for number, line in chunk:
        try:
            entries.append(read_line(number, line))
        except BadArgumentError as error:
            adder.add(entries)
            raise adder.refusal(error, f"line {number}") from error
    return entries


def _length(stream: BufferedReader) -> int | None:
    """Return how many bytes there are to read; None if that is not known, as of a pipe."""
    try:
        return os.fstat(stream.fileno()).st_size or None
    except (OSError, ValueError):
        return None
