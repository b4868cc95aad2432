"""The ends of a lease: completing, with a result and follow-ups or without, releasing; and what became of an item."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from leaseq import _scripts
from leaseq.commands import codecs
from leaseq.commands.additions import entry
from leaseq.commands.encoding import Argument, Command, command, held, milliseconds_kept, result_key
from leaseq.commands.handoff import Completion
from leaseq.errors import BadTypeError
from leaseq.item import LeasedItemBase
from leaseq.keys import QueueKeys
from leaseq.results import Completed, Outcome, Released


def complete(
    keys: QueueKeys, items: Sequence[LeasedItemBase], *, only_current: bool = False
) -> Command[list[bool]]:
    """Finish items, keeping what they keep; answers for each whether this call was the one."""
    entries = completions(items, only_current=only_current)
    if any(item.keep for item in items):
        kept = complete_with(keys, [Completion(item, only_current=only_current) for item in items])
        return Command(
            kept.script,
            kept.keys,
            kept.arguments,
            lambda reply: [done.completed for done in kept.parse(reply)],
        )
    return command(_scripts.COMPLETE, keys, codecs.complete_arguments(entries), codecs.complete_reply)


def completions(items: Sequence[LeasedItemBase], *, only_current: bool) -> list[tuple[Argument, ...]]:
    """The entries of complete and complete_and_lease."""
    options = codecs.complete_options(only_current=only_current)
    return [codecs.complete_entry(*held(item), options) for item in items]


def complete_with(keys: QueueKeys, finished: Sequence[Completion]) -> Command[list[Completed]]:
    """Finish items, keep their results and add their follow-ups."""
    targets: dict[str, tuple[int, QueueKeys]] = {}
    results: list[str] = []
    entries: list[tuple[Argument, ...]] = []
    for one in finished:
        keep = _keep(one.item, one.keep)
        result = None
        if keep is not None:
            result = one.item.result if one.result is None else one.result
            results.append(result_key(keys, one.item.id))
        options = codecs.complete_with_options(only_current=one.only_current, keep=keep, result=result)
        follow_ups = []
        for queue, item, added, _ in one.then:
            number, _ = targets.setdefault(queue.name, (len(targets) + 1, queue))
            follow_ups.append(codecs.complete_with_follow_up(number, entry(item, added)))
        entries.append(codecs.complete_with_entry(*held(one.item), options, follow_ups))
    more_keys = [key for _, target in targets.values() for key in target.vector(_scripts.ADD)]

    def parse(reply: list[int]) -> list[Completed]:
        answers = codecs.complete_with_reply(reply, [len(one.then) for one in finished])
        return [Completed(won, [_follow_up(created) for created in added]) for won, added in answers]

    arguments = codecs.complete_with_arguments(entries, len(targets))
    return command(_scripts.COMPLETE_WITH, keys, arguments, parse, (*more_keys, *results))


@dataclass(frozen=True, slots=True)
class ReleaseRequest:
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
    return release_each(keys, [ReleaseRequest(item, delay, uncounted, error, dead) for item in items])


def release_each(keys: QueueKeys, given: Sequence[ReleaseRequest]) -> Command[list[Released]]:
    """Give items back, each in its own way; answers for each where it went."""
    entries = []
    results: list[str] = []
    for one in given:
        id_and_token = held(one.item)
        options = codecs.release_options(
            delay=one.delay,
            uncounted=one.uncounted,
            error=None if one.error is None else _error(one.error),
            dead=one.dead,
            keep=0 if one.item.keep else None,
        )
        if one.item.keep:
            results.append(result_key(keys, one.item.id))
        entries.append(codecs.release_entry(*id_and_token, options))
    return command(_scripts.RELEASE, keys, codecs.release_arguments(entries), codecs.release_reply, results)


def outcome(keys: QueueKeys, ids: Sequence[str]) -> Command[list[Outcome]]:
    """Return outcomes; for fewer ids than given if the contents are large (LQ-OUTCOME-9), at least one.

    Writes failures that are not written yet.
    """

    def parse(reply: list[Any]) -> list[Outcome]:
        return [
            Outcome(item_id, *known) for item_id, known in zip(ids, codecs.outcome_reply(reply), strict=False)
        ]

    arguments = codecs.outcome_arguments(ids)
    return command(_scripts.OUTCOME, keys, arguments, parse, [result_key(keys, item_id) for item_id in ids])


def publications(keys: QueueKeys, died: Sequence[str]) -> list[Command[list[Outcome]]]:
    """The calls that publish the failures of items, by asking for them (LQ-CLIENT-8)."""
    starts = range(0, len(died), _scripts.MAX_ENTRIES)
    return [outcome(keys, died[start : start + _scripts.MAX_ENTRIES]) for start in starts]


def _keep(item: LeasedItemBase, keep: float | None) -> float | None:
    """For how many seconds an outcome is kept, 0 for as long as the item says (LQ-CLIENT-7); None: not at all."""
    if keep is None:
        return 0 if item.keep else None
    return keep if milliseconds_kept(keep, "keep") else None


def _error(error: str) -> bytes:
    if not isinstance(error, str):
        raise BadTypeError(f"an error must be a str, not {type(error).__name__}")
    # as many bytes are kept: no more characters than that need be sent
    return error[: _scripts.MAX_ERROR_BYTES].encode(errors="backslashreplace")


def _follow_up(created: float) -> bool | None:
    return None if created < 0 else created > 0
