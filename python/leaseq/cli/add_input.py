"""The input of `leaseq add`: arguments, files, lines, JSON lines."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from io import BufferedReader
from typing import Any, Final

import click

from leaseq.cli.params import duration, moment
from leaseq.errors import BadArgumentError
from leaseq.item import Item, from_base64

_READ: Final = 1 << 20
_OF_ITEM: Final = ("id", "headers", "content_type")
_DATA: Final = ("data", "data_base64", "data_json")
_OF_ADD: Final[dict[str, Callable[[Any], Any] | None]] = {
    "delay": duration,
    "not_before": moment,
    "priority": None,
    "max_attempts": None,
    "expires_in": duration,
    "dead_on_expiry": None,
    "keep": duration,
}
"""The options of `add_item`, and how each is read where a person may write it as text."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An item, the options of `add_item` that are its own, and where it stood."""

    item: Item
    options: dict[str, Any] = field(default_factory=dict)
    position: str = ""


def lines(stream: BufferedReader) -> Iterator[list[tuple[int, bytes]]]:
    """The numbered lines of a stream, as many at once as have come, so that none waits for the next to be written.

    Empty ones are left out.
    """
    parts: list[bytes] = []
    number = 0
    while chunk := stream.read1(_READ):
        parts.append(chunk)
        if b"\n" in chunk:
            *whole, rest = b"".join(parts).split(b"\n")
            parts = [rest]
            yield [(number + at, line) for at, line in _filled(whole)]
            number += len(whole)
    yield [(number + at, line) for at, line in _filled([b"".join(parts)])]


def _filled(found: list[bytes]) -> Iterator[tuple[int, bytes]]:
    for at, line in enumerate(found, start=1):
        if line := line.removesuffix(b"\r"):
            yield at, line


def from_line(number: int, line: bytes) -> Entry:
    """A line as data."""
    return Entry(Item(line), position=f"line {number}")


def from_json_line(number: int, line: bytes) -> Entry:
    """A line of JSON. Raises BadArgumentError."""
    try:
        return _from_fields(json.loads(line), f"line {number}")
    except json.JSONDecodeError as error:
        raise BadArgumentError(f"this is not JSON: {error}") from error
    except click.BadParameter as error:
        raise BadArgumentError(error.message) from error
    except (ValueError, TypeError, RecursionError) as error:
        raise BadArgumentError(str(error)) from error


def _from_fields(fields: Any, position: str) -> Entry:
    known = (*_OF_ITEM, *_DATA, *_OF_ADD)
    if not isinstance(fields, dict) or len(fields.keys() & set(_DATA)) != 1 or fields.keys() - set(known):
        raise BadArgumentError(
            "an item is an object with one of data, data_base64 and data_json, and if you like"
            f" {', '.join((*_OF_ITEM, *_OF_ADD))}"
        )
    own = {name: fields[name] for name in _OF_ITEM if fields.get(name) is not None}
    options = {
        name: read(fields[name]) if read else fields[name]
        for name, read in _OF_ADD.items()
        if fields.get(name) is not None
    }
    if "data_json" in fields:
        return Entry(Item.from_json_data(fields["data_json"], **own), options, position)
    data = fields["data"] if "data" in fields else from_base64(fields["data_base64"])
    return Entry(Item(data, **own), options, position)
