"""Looking after a queue: taking items out, dead letters, cleaning, limits."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from leaseq import _scripts
from leaseq.commands import codecs
from leaseq.commands.encoding import Command, command
from leaseq.durations import Duration
from leaseq.keys import QueueKeys
from leaseq.results import DeepClean, LightClean, State


def remove(keys: QueueKeys, ids: Sequence[str]) -> Command[list[State]]:
    """Remove items in any state; answers for each the state it was in."""
    return command(_scripts.REMOVE, keys, codecs.remove_arguments(ids), codecs.remove_reply)


def revive(keys: QueueKeys, ids: Sequence[str]) -> Command[list[bool]]:
    """Make dead items ready again; answers for each whether it was dead."""
    return command(_scripts.REVIVE, keys, codecs.revive_arguments(ids), codecs.revive_reply)


def promote(keys: QueueKeys, ids: Sequence[str]) -> Command[list[bool]]:
    """Make delayed items ready now; answers for each whether it was delayed."""
    return command(_scripts.PROMOTE, keys, codecs.promote_arguments(ids), codecs.promote_reply)


def purge(keys: QueueKeys, ids: Sequence[str], older_than: Duration = 0) -> Command[list[bool]]:
    """Delete items that have been dead for `older_than` seconds; returns for each whether it was."""
    return command(_scripts.PURGE, keys, codecs.purge_arguments(older_than, ids), codecs.purge_reply)


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
        promoted, reclaimed, gone, expired, pruned, wait, died = codecs.light_clean_reply(reply)
        left = wait if wait >= 0 else None
        return Cleaned(LightClean(promoted, reclaimed, gone, expired, pruned, left), left, tuple(died))

    return command(_scripts.LIGHT_CLEAN, keys, codecs.light_clean_arguments(limit), parse)


class DeepCleaned(NamedTuple):
    """One page of a deep clean: the next cursor ("0" at the end) and the repairs by kind."""

    cursor: str
    done: DeepClean


def deep_clean(keys: QueueKeys, cursor: str, limit: int, *, dry_run: bool = False) -> Command[DeepCleaned]:
    """Repair one page."""

    def parse(reply: list[Any]) -> DeepCleaned:
        following, repairs = codecs.deep_clean_reply(reply)
        return DeepCleaned(following, DeepClean({kind: count for kind, count in repairs.items() if count}))

    return command(_scripts.DEEP_CLEAN, keys, codecs.deep_clean_arguments(cursor, limit, dry_run), parse)


def delete(keys: QueueKeys) -> Command[bool]:
    """Delete a queue that holds nothing; answers whether there was one."""
    return command(_scripts.DELETE, keys, (), codecs.delete_reply)


def configure(
    keys: QueueKeys,
    *,
    max_data: int | None = None,
    max_items: int | None = None,
    max_attempts: int | None = None,
    paused: bool | None = None,
) -> Command[None]:
    """Set limits of the queue, those that are given."""
    options = codecs.configure_options(
        max_data=max_data, max_items=max_items, max_attempts=max_attempts, paused=paused
    )
    return command(_scripts.CONFIGURE, keys, codecs.configure_arguments(options), lambda _: None)
