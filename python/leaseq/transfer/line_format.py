"""The lines of an export, version 1: a header, a line for each item, an end. docs/transfer.md is their description."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from leaseq.commands import add_options
from leaseq.commands.additions import Options
from leaseq.errors import BadArgumentError, LeaseqError
from leaseq.item import Item, data_fields, from_base64
from leaseq.results import ItemInfo, QueueStats
from leaseq.transfer.records import Stored

VERSION: Final = 1
VERSION_FIELD: Final = "leaseq_export"
"""The field that only a header has; its value is the version."""

_TIMES: Final = {"delayed": "due", "leased": "lease_ends", "dead": "died", "ready": "ready_since"}
"""The name of an item's time, by its state."""

_FAR_SECS: Final = 1e12
"""Further than any time that leaseq takes."""

Line = dict[str, Any]


def header(name: str, group: str, stats: QueueStats) -> Line:
    """The first line: whose items these are, and the limits of that queue."""
    limits = {"max_data": stats.max_data, "max_items": stats.max_items, "max_attempts": stats.max_attempts}
    return {
        VERSION_FIELD: VERSION,
        "queue": name,
        "group": group,
        "time": stats.now,
        "limits": limits,
        "paused": stats.paused,
    }


def end(items: int, *, changed: bool) -> Line:
    """The last line: without it an export was cut. `changed`: the queue moved on while it was read."""
    return {"end": True, "items": items, "changed": changed}


def item_line(info: ItemInfo, stored: Stored) -> Line:
    """An item. What is as it is by default is left out."""
    line: Line = {"id": info.id, **data_fields(stored.data), "state": info.state, "created": info.created}
    if info.state in _TIMES:
        line[_TIMES[info.state]] = info.time
    optional = {
        "priority": info.priority,
        "keep": info.keep,
        "expires": stored.expires,
        "dead_on_expiry": stored.dead_on_expiry,
        "headers": stored.headers,
        "attempt": info.attempt,
        "token": info.token,
        "error": info.error,
    }
    line |= {name: value for name, value in optional.items() if value}
    # 0 and "" say something here
    line |= {} if stored.max_attempts is None else {"max_attempts": stored.max_attempts}
    line |= {} if stored.content_type is None else {"content_type": stored.content_type}
    return line


def parse(text: str | bytes) -> Line:
    """A line as its fields. Raises BadArgumentError."""
    try:
        line = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadArgumentError(f"this is not JSON: {error}") from error
    if not isinstance(line, dict):
        raise BadArgumentError("this is no JSON object")
    return line


def check_header(line: Line) -> None:
    """See that this is the header of an export that can be read. Raises BadArgumentError."""
    version = line.get(VERSION_FIELD)
    if version is None:
        raise BadArgumentError(
            f'this is no export of leaseq: its first line has no "{VERSION_FIELD}"; plain items are for `leaseq add`'
        )
    if version != VERSION:
        raise BadArgumentError(
            f"this export has version {version!r}, and this leaseq reads version {VERSION}: update leaseq"
        )


@dataclass(frozen=True, slots=True)
class Entry:
    """An item of an export, ready to be added, and what of it stays behind."""

    item: Item
    options: Options
    """As `add` takes them; the time to expire counts from the `now` that `entry` got."""

    number: int
    """Of its line."""

    line: Line
    """As it was written."""

    lease: bool
    """True if it was leased: it is due when that lease ends."""

    restarted: bool
    """True if it had been leased: its attempts start again."""

    error: bool
    """True if it had a last error, which is not carried."""

    @property
    def expires(self) -> bool:
        """True if it expires."""
        return bool(self.line.get("expires"))

    def counted_from(self, now: float) -> "Entry | None":
        """Return it with the time to expire that is left at `now`; None where that time has come."""
        if not self.expires:
            return self
        return (
            None if _number(self.line, "expires") <= now else replace(self, options=_options(self.line, now))
        )


def entry(line: Line, number: int, now: float) -> Entry | None:
    """Return what to add for the line of an item; None where its time to expire has come. Raises BadArgumentError and others."""
    expires = _number(line, "expires")
    if expires and expires <= now:
        return None
    item = Item(_data(line), _text(line, "id"), headers=_headers(line), content_type=line.get("content_type"))
    return Entry(
        item,
        _options(line, now),
        number,
        line,
        line.get("state") == "leased",
        bool(line.get("attempt")),
        error=bool(line.get("error")),
    )


def _options(line: Line, now: float) -> Options:
    state, expires = line.get("state"), _number(line, "expires")
    due = (
        _number(line, "due" if state == "delayed" else "lease_ends") if state in {"delayed", "leased"} else 0
    )
    return add_options(
        not_before=due or None,
        priority=line.get("priority", 0),
        max_attempts=line.get("max_attempts"),
        # less than a millisecond would be none
        expires_in=max(0.001, expires - now) if expires else None,
        dead_on_expiry=bool(line.get("dead_on_expiry")),
        keep=_number(line, "keep") or None,
    )


def at(number: int, error: LeaseqError) -> LeaseqError:
    """The same error, which says the line."""
    named = type(error)(f"line {number}: {error}")
    named.definite = error.definite
    return named


def _data(line: Line) -> bytes:
    if "data_base64" in line:
        return from_base64(_text(line, "data_base64"))
    try:
        return _text(line, "data").encode()
    except UnicodeEncodeError as error:
        raise BadArgumentError(f"data is a text that UTF-8 cannot hold: {error}") from error


def _text(line: Line, name: str) -> str:
    value = line.get(name)
    if not isinstance(value, str):
        raise BadArgumentError(
            f'an item has "id" and "data" (or "data_base64"), which are strings: see "{name}"'
        )
    return value


def _number(line: Line, name: str) -> float:
    value = line.get(name, 0)
    # Python reads NaN and Infinity too, which are no JSON
    if isinstance(value, bool) or not isinstance(value, int | float) or not -_FAR_SECS < value < _FAR_SECS:
        raise BadArgumentError(f'"{name}" is a number of seconds')
    return float(value)


def _headers(line: Line) -> Mapping[str, str] | None:
    headers = line.get("headers")
    if headers is not None and not isinstance(headers, dict):
        raise BadArgumentError('"headers" is an object of strings')
    return headers
