"""The ends of a lease: completing, with a result and follow-ups or without, releasing; and what became of an item."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from leaseq import _scripts
from leaseq.commands.additions import entry
from leaseq.commands.encoding import (
    Argument,
    Command,
    answers,
    checked_id,
    command,
    held,
    milliseconds,
    milliseconds_kept,
    result_key,
    seconds,
)
from leaseq.commands.handoff import Completion
from leaseq.errors import BadTypeError
from leaseq.item import LeasedItemBase
from leaseq.keys import QueueKeys
from leaseq.results import Completed, Outcome, Released

MAX_ERROR_BYTES = 8192
"""Bytes of an error's text that are kept; so no more characters than that need be sent."""


def complete(
    keys: QueueKeys, items: Sequence[LeasedItemBase], *, only_current: bool = False
) -> Command[list[bool]]:
    """Finish items, keeping what they keep; answers for each whether this call was the one."""
    arguments: list[Argument] = [len(items), *completions(items, only_current=only_current)]
    if any(item.keep for item in items):
        kept = complete_with(keys, [Completion(item, only_current=only_current) for item in items])
        return Command(
            kept.script,
            kept.keys,
            kept.arguments,
            lambda reply: [done.completed for done in kept.parse(reply)],
        )
    return command(
        _scripts.COMPLETE, keys, arguments, lambda reply: [answer == 1 for answer in answers(reply)]
    )


def completions(items: Sequence[LeasedItemBase], *, only_current: bool) -> list[Argument]:
    """The entries of complete and complete_and_lease."""
    # as text: a number takes three times as long to pack
    options: list[Argument] = ["1", "only_current", "1"] if only_current else ["0"]
    return [part for item in items for part in (*held(item), *options)]


def complete_with(keys: QueueKeys, finished: Sequence[Completion]) -> Command[list[Completed]]:
    """Finish items, keep their results and add their follow-ups."""
    targets: dict[str, tuple[int, QueueKeys]] = {}
    results: list[str] = []
    entries: list[Argument] = []
    for one in finished:
        options: list[Argument] = ["only_current", 1] if one.only_current else []
        if (keep := _keep(one.item, one.keep)) is not None:
            options += ["keep", keep]
            result = one.item.result if one.result is None else one.result
            if result is not None:
                options += ["result", result]
            results.append(result_key(keys, one.item.id))
        entries += [*held(one.item), len(options) // 2, *options, len(one.then)]
        for queue, item, added, _ in one.then:
            number, _ = targets.setdefault(queue.name, (len(targets) + 1, queue))
            entries += [number, *entry(item, added)]
    more_keys = [key for _, target in targets.values() for key in target.vector(_scripts.ADD)]

    def parse(reply: list[int]) -> list[Completed]:
        rest = iter(reply)
        return [Completed(next(rest) == 1, [_follow_up(next(rest)) for _ in one.then]) for one in finished]

    arguments = [len(finished), len(targets), *entries]
    return command(_scripts.COMPLETE_WITH, keys, arguments, parse, (*more_keys, *results))


@dataclass(frozen=True, slots=True)
class GivenBack:
    """An item that goes back, or with `dead` dies; see `release`."""

    item: LeasedItemBase
    delay: float = 0
    uncounted: bool = False
    error: str | None = None
    dead: bool = False


def release(
    keys: QueueKeys,
    items: Sequence[LeasedItemBase],
    *,
    delay: float = 0,
    uncounted: bool = False,
    error: str | None = None,
    dead: bool = False,
) -> Command[list[Released]]:
    """Give items back, or with `dead` let them die; answers for each where it went."""
    return release_each(keys, [GivenBack(item, delay, uncounted, error, dead) for item in items])


def release_each(keys: QueueKeys, given: Sequence[GivenBack]) -> Command[list[Released]]:
    """Give items back, each in its own way; answers for each where it went."""
    arguments: list[Argument] = [len(given)]
    results: list[str] = []
    for one in given:
        item, options = held(one.item), _release_options(one)
        if one.item.keep:
            options += ["keep", 0]
            results.append(result_key(keys, one.item.id))
        arguments += [*item, len(options) // 2, *options]
    return command(
        _scripts.RELEASE,
        keys,
        arguments,
        lambda reply: [word.decode() for word in answers(reply)],
        results,
    )


def _release_options(one: GivenBack) -> list[Argument]:
    options: list[Argument] = []
    if one.delay != 0:
        options += ["delay", milliseconds(one.delay, "delay")]
    if one.uncounted:
        options += ["uncounted", 1]
    if one.error is not None:
        options += ["error", _error(one.error)]
    if one.dead:
        options += ["dead", 1]
    return options


def outcome(keys: QueueKeys, ids: Sequence[str]) -> Command[list[Outcome]]:
    """What became of items; of fewer than were asked for where the answers are large (LQ-OUTCOME), at least one.

    Publishes the failures that nobody has published yet.
    """
    width = 6

    def parse(reply: list[Any]) -> list[Outcome]:
        outcomes = []
        for item_id, start in zip(ids, range(0, len(reply), width), strict=False):
            kind, created, ended, attempt, keep, content = reply[start : start + width]
            outcomes.append(
                Outcome(
                    item_id,
                    kind.decode(),
                    seconds(created),
                    seconds(ended),
                    attempt,
                    keep / 1000,
                    content,
                )
            )
        return outcomes

    arguments: list[Argument] = [len(ids), *map(checked_id, ids)]
    return command(_scripts.OUTCOME, keys, arguments, parse, [result_key(keys, item_id) for item_id in ids])


def publications(keys: QueueKeys, died: Sequence[str]) -> list[Command[list[Outcome]]]:
    """The calls that publish the failures of items, by asking for them (LQ-CLIENT-8)."""
    starts = range(0, len(died), _scripts.MAX_ENTRIES)
    return [outcome(keys, died[start : start + _scripts.MAX_ENTRIES]) for start in starts]


def _keep(item: LeasedItemBase, keep: float | None) -> int | None:
    """For how many milliseconds an outcome is kept, 0 for as long as the item says (LQ-CLIENT-7); None: not at all."""
    if keep is None:
        return 0 if item.keep else None
    return milliseconds_kept(keep, "keep") or None


def _error(error: str) -> bytes:
    if not isinstance(error, str):
        raise BadTypeError(f"an error must be a str, not {type(error).__name__}")
    return error[:MAX_ERROR_BYTES].encode(errors="backslashreplace")


def _follow_up(created: int) -> bool | None:
    return None if created < 0 else created > 0
