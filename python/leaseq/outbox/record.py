"""The item of a row: JSON, as a line of an export has it (docs/transfer.md)."""

import json
import time
from typing import Any, Final, TypedDict, cast

from leaseq import commands
from leaseq.commands.additions import Options
from leaseq.commands.completions import AddOptions
from leaseq.errors import BadArgumentError, BadIdError, BadTypeError
from leaseq.item import MAX_ID_BYTES, Item, data_fields
from leaseq.jobs.aio import App as AsyncApp
from leaseq.jobs.app import App
from leaseq.jobs.call import Call
from leaseq.jobs.settings import Settings
from leaseq.keys import QueueKeys
from leaseq.transfer import line_format

SECONDS: Final = 1000
"""Milliseconds, in which options are sent."""


class Columns(TypedDict):
    """The columns of a new row. Times are seconds since 1970 by the clock of the program that writes it."""

    item_id: str
    queue: str
    queue_group: str
    item: str
    created: float


def settings_of(app: App | AsyncApp | None) -> Settings:
    """Return what an App knows. Raises BadTypeError, BadArgumentError."""
    given: object = app
    if isinstance(given, App | AsyncApp):
        return given.program.clients.settings
    if given is None:
        raise BadArgumentError("this outbox has no App, which jobs need: make it with Outbox(app)")
    raise BadTypeError(f"an outbox takes an App, not {type(given).__name__}")


def of_call(call: Call[Any], settings: Settings) -> Columns:
    """Return the row of a job. Raises BadTypeError, BadArgumentError, BadIdError, SerializationError and others."""
    given: object = call
    if not isinstance(given, Call):
        raise BadTypeError(f"an outbox takes a call, as in fn.call(1), not {type(given).__name__}")
    if call.options.once:
        raise BadArgumentError(
            f"{call.function} is unique or throttled, which only an enqueue can look at: give unique=False and throttle=None, and"
            " an id if one job is to be there"
        )
    if settings.headers:
        call = call.with_headers(settings.headers)
    now = time.time()
    item = call.item(settings)
    return _row(item, call.options.counted_from(now), call.options.queue, settings.group, now)


def of_item(item: Item, queue: str, group: str | None, options: Options) -> Columns:
    """Return the row of a plain item. Raises BadTypeError, BadIdError, BadNameError."""
    if not isinstance(item, Item):
        raise BadTypeError(
            f"this takes an Item, not {type(item).__name__}: wrap the data, as in Item(b'data')"
        )
    keys = QueueKeys(queue, group)
    return _row(item, options, keys.name, keys.group, time.time())


def _row(item: Item, options: Options, queue: str, group: str, now: float) -> Columns:
    return Columns(
        item_id=_checked_id(item),
        queue=queue,
        queue_group=group,
        item=written(item, options, now),
        created=now,
    )


def written(item: Item, options: Options, now: float) -> str:
    """Return an item with options as they are sent, as text. Delays and times to expire count from `now`, seconds since 1970."""
    words = [str(word) for word in options]
    given = dict(zip(words[::2], words[1::2], strict=True))
    secs = {
        name: int(given[name]) / SECONDS
        for name in ("delay", "not_before", "expires_in", "keep")
        if name in given
    }
    due = secs.get("not_before", now + secs["delay"] if "delay" in secs else 0.0)
    optional: dict[str, Any] = {
        "due": due,
        "priority": int(given.get("priority", 0)),
        "keep": secs.get("keep", 0.0),
        "expires": now + secs["expires_in"] if "expires_in" in secs else 0.0,
        "dead_on_expiry": "expires_to" in given,
        "headers": dict(item.headers),
    }
    line: dict[str, Any] = {
        "id": item.id,
        **data_fields(item.data),
        "state": "delayed" if due else "ready",
        **{name: value for name, value in optional.items() if value},
    }
    # 0 and "" say something here
    if "max_attempts" in given:
        line["max_attempts"] = int(given["max_attempts"])
    if item.content_type is not None:
        line["content_type"] = item.content_type
    return json.dumps(line, separators=(",", ":"))


def read(text: str, now: float) -> tuple[Item, Options] | None:
    """Return the item of a row and its options; None if its time to expire has come. `now` is the server's time.

    An item that is to be dead when it expires is returned in any case. Raises BadArgumentError and others.
    """
    line = line_format.parse(text)
    expires = line.get("expires")
    if line.get("dead_on_expiry") and isinstance(expires, int | float):
        now = min(now, expires - 1 / SECONDS)
    entry = line_format.entry(line, 0, now)
    if entry is None:
        return None
    _checked_id(entry.item)
    return entry.item, entry.options


def _checked_id(item: Item) -> str:
    """Return the id of an item. Raises BadIdError: one such id would make the server refuse a call for many."""
    if not 1 <= len(item.id.encode()) <= MAX_ID_BYTES or "\0" in item.id:
        raise BadIdError(f"an id is 1 to {MAX_ID_BYTES} bytes of UTF-8 without NUL; not {item.id[:100]!r}")
    return item.id


def options_of(given: AddOptions) -> Options:
    """Return options of `add_item` as they are sent. Raises BadTypeError, BadArgumentError."""
    return commands.add_options(**cast("dict[str, Any]", given))
