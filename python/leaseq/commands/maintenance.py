"""Looking after a queue: taking items out, dead letters, cleaning, limits."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from leaseq import _scripts
from leaseq.commands.encoding import (
    Argument,
    Command,
    answers,
    checked_id,
    command,
    milliseconds,
    pairs,
    seconds,
    whole,
)
from leaseq.keys import QueueKeys
from leaseq.results import DeepClean, LightClean, State


def remove(keys: QueueKeys, ids: Sequence[str]) -> Command[list[State]]:
    """Remove items in any state; answers for each the state it was in."""
    arguments: list[Argument] = [len(ids), *map(checked_id, ids)]
    return command(_scripts.REMOVE, keys, arguments, lambda reply: [word.decode() for word in answers(reply)])


def revive(keys: QueueKeys, ids: Sequence[str]) -> Command[list[bool]]:
    """Make dead items ready again; answers for each whether it was dead."""
    arguments: list[Argument] = [len(ids), *map(checked_id, ids)]
    return command(_scripts.REVIVE, keys, arguments, lambda reply: [answer == 1 for answer in answers(reply)])


def purge(keys: QueueKeys, ids: Sequence[str], older_than: float = 0) -> Command[list[bool]]:
    """Drop items that have been dead for so many seconds; answers for each whether it was."""
    arguments: list[Argument] = [milliseconds(older_than, "older_than"), len(ids), *map(checked_id, ids)]
    return command(_scripts.PURGE, keys, arguments, lambda reply: [answer == 1 for answer in answers(reply)])


class Cleaned(NamedTuple):
    """One light clean: what it did, the time in seconds until something is due, and whose failure is to be published.

    `wait` is 0 when more is left, None when nothing will be due.
    """

    done: LightClean
    wait: float | None
    died: tuple[str, ...] = ()


def light_clean(keys: QueueKeys, limit: int) -> Command[Cleaned]:
    """Move what is due, requeue expired leases, drop what is over, at most `limit` of each."""

    def parse(reply: list[Any]) -> Cleaned:
        promoted, reclaimed, gone, expired, pruned, wait = reply[:6]
        left = seconds(wait) if wait >= 0 else None
        died = tuple(item_id.decode() for item_id in reply[6:])
        return Cleaned(LightClean(promoted, reclaimed, gone, expired, pruned, left), left, died)

    return command(_scripts.LIGHT_CLEAN, keys, [whole(limit, "limit")], parse)


class DeepCleaned(NamedTuple):
    """One page of a deep clean: the next cursor ("0" at the end) and the repairs by kind."""

    cursor: str
    done: DeepClean


def deep_clean(keys: QueueKeys, cursor: str, limit: int, *, dry_run: bool = False) -> Command[DeepCleaned]:
    """Repair one page."""

    def parse(reply: list[Any]) -> DeepCleaned:
        kinds = {kind.decode(): count for kind, count in pairs(reply[1:]) if count}
        return DeepCleaned(reply[0].decode(), DeepClean(kinds))

    return command(_scripts.DEEP_CLEAN, keys, [cursor, whole(limit, "limit"), int(dry_run)], parse)


def configure(
    keys: QueueKeys,
    *,
    max_data: int | None = None,
    max_items: int | None = None,
    max_attempts: int | None = None,
    paused: bool | None = None,
) -> Command[None]:
    """Set limits of the queue, those that are given."""
    options: list[Argument] = []
    for name, value in {"max_data": max_data, "max_items": max_items, "max_attempts": max_attempts}.items():
        if value is not None:
            options += [name, whole(value, name)]
    if paused is not None:
        options += ["paused", int(paused)]
    return command(_scripts.CONFIGURE, keys, [len(options) // 2, *options], lambda _: None)
