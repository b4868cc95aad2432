"""The calls that look at a queue without changing it: stats, inspect, list."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from leaseq import _scripts
from leaseq.commands import codecs
from leaseq.commands.encoding import Command, command
from leaseq.errors import BadTypeError
from leaseq.keys import QueueKeys
from leaseq.results import ItemInfo, ListedItem, ListState, Page, QueueStats

_COUNTS = frozenset(field.name for field in fields(QueueStats))
"""The fields of `stats` that this client knows. A newer server may send others; they are skipped (LQ-READ-7)."""


def stats(keys: QueueKeys) -> Command[QueueStats]:
    """Return the call that reads the counts and counters of a queue."""

    def parse(reply: list[Any]) -> QueueStats:
        known = {name: value for name, value in codecs.stats_reply(reply).items() if name in _COUNTS}
        return QueueStats(**known)

    return command(_scripts.STATS, keys, [], parse)


def inspect(keys: QueueKeys, ids: Sequence[str]) -> Command[list[ItemInfo]]:
    """Return the call that reads what is known of items."""

    def parse(reply: list[Any]) -> list[ItemInfo]:
        return [
            # the last value is the error
            ItemInfo(item_id, *values[:-1], values[-1].decode(errors="replace"))
            for item_id, values in zip(ids, codecs.inspect_reply(reply), strict=True)
        ]

    return command(_scripts.INSPECT, keys, codecs.inspect_arguments(ids), parse)


def list_items(
    keys: QueueKeys, state: ListState, offset: int, limit: int, *, backward: bool = False
) -> Command[Page]:
    """Return the call that reads a page of the items in a state; "kept": of the items whose outcome is kept."""

    def parse(reply: list[Any]) -> Page:
        total, listed = codecs.list_reply(reply)
        return Page(total, [ListedItem(*each) for each in listed])

    if not isinstance(state, str):
        raise BadTypeError(f"the state must be a str, not {type(state).__name__}")
    arguments = codecs.list_arguments(state, offset, limit, "backward" if backward else "forward")
    return command(_scripts.LIST, keys, arguments, parse)
