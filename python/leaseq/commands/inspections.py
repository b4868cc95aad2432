"""Looking at a queue without changing it."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from leaseq import _scripts
from leaseq.commands.encoding import Argument, Command, checked_id, command, pairs, seconds, whole
from leaseq.errors import BadTypeError
from leaseq.keys import QueueKeys
from leaseq.results import ItemInfo, ListedItem, Page, QueueStats

_COUNTS = frozenset(field.name for field in fields(QueueStats))
"""What is known by name; what a later protocol tells more is skipped (LQ-READ-7)."""


def stats(keys: QueueKeys) -> Command[QueueStats]:
    """Counts and counters."""

    def parse(reply: list[Any]) -> QueueStats:
        numbers = {name: number for key, number in pairs(reply) if (name := key.decode()) in _COUNTS}
        numbers["now"] = seconds(numbers["now"])
        numbers["waited"] = seconds(numbers["waited"])
        numbers["paused"] = numbers["paused"] == 1
        return QueueStats(**numbers)

    return command(_scripts.STATS, keys, [], parse)


def inspect(keys: QueueKeys, ids: Sequence[str]) -> Command[list[ItemInfo]]:
    """What is known of items."""
    width = 11

    def parse(reply: list[Any]) -> list[ItemInfo]:
        return [
            _item_info(item_id, *reply[start : start + width])
            for item_id, start in zip(ids, range(0, len(reply), width), strict=True)
        ]

    arguments: list[Argument] = [len(ids), *map(checked_id, ids)]
    return command(_scripts.INSPECT, keys, arguments, parse)


def _item_info(
    item_id: str, state: bytes, time: int, attempt: int, token: int, created: int, *more: Any
) -> ItemInfo:
    size, priority, max_attempts, keep, expires, error = more
    return ItemInfo(
        item_id,
        state.decode(),  # type: ignore[arg-type]
        seconds(time),
        attempt,
        token,
        seconds(created),
        size,
        priority,
        max_attempts,
        keep / 1000,
        seconds(expires),
        error.decode(errors="replace"),
    )


def list_items(
    keys: QueueKeys, state: str, offset: int, limit: int, *, backward: bool = False
) -> Command[Page]:
    """One page of the items in a state, or of those whose outcome is kept."""

    def parse(reply: list[Any]) -> Page:
        listed = [ListedItem(item_id.decode(), seconds(time)) for item_id, time in pairs(reply[1:])]
        return Page(reply[0], listed)

    if not isinstance(state, str):
        raise BadTypeError(f"the state must be a str, not {type(state).__name__}")
    order = "backward" if backward else "forward"
    arguments: list[Argument] = [state, whole(offset, "offset"), whole(limit, "limit"), order]
    return command(_scripts.LIST, keys, arguments, parse)
