"""Completing items, with results to keep and items that follow, or without."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

from leaseq import _scripts
from leaseq._scripts import MAX_ENTRIES, MAX_FOLLOW_UPS, MAX_TARGETS
from leaseq.commands import codecs
from leaseq.commands.additions import Options, entry
from leaseq.commands.encoding import (
    Argument,
    Command,
    command,
    for_one,
    milliseconds_kept,
)
from leaseq.durations import Duration, Time
from leaseq.errors import BadArgumentError, BadTypeError, CrossGroupError
from leaseq.item import Bytes, Item, LeasedItemBase, as_bytes
from leaseq.keys import NamedQueue, QueueKeys
from leaseq.results import Completed


class AddOptions(TypedDict, total=False):
    """The options of `add_item`, as a dict. Durations are seconds or a timedelta.

    Attributes:
        delay: time before the item can be leased.
        not_before: the time before which it cannot be leased, instead of `delay`: seconds since 1970 or a datetime with a
            time zone.
        priority: -7 to 7, higher first.
        max_attempts: leases after which it becomes a dead letter; 0: no limit; None: as the queue is configured.
        expires_in: time after which it is deleted if no worker has leased it. None: never.
        dead_on_expiry: if true, it becomes a dead letter instead of being deleted.
        keep: time for which its outcome is kept after its end. None: not at all.
    """

    delay: Duration
    not_before: Time | None
    priority: int
    max_attempts: int | None
    expires_in: Duration | None
    dead_on_expiry: bool
    keep: Duration | None


FollowUp = tuple[NamedQueue, Item] | tuple[NamedQueue, Item, AddOptions]
"""A follow-up: a WorkQueue of the same group, the item to add to it, and options of `add_item` if there are any."""


class Follow(NamedTuple):
    """A follow-up that was looked at."""

    queue: QueueKeys
    item: Item
    options: Options
    place: Hashable


class Completion:
    """An item to complete with `complete_items`; the arguments are those of `complete`.

    Attributes:
        item: the item to complete.
        result: the result to keep; None: `item.result`.
        keep: as it is sent, not as the argument: seconds for which the outcome is kept; 0: those that the item was added
            with (LQ-CLIENT-7); None: it is not kept.
        then: the follow-ups, checked, each with the attributes `queue`, `item` and `options`.
        only_current: true if this lease must still be the current one.
        plain: true if it says nothing of an outcome and has no follow-ups.

    Raises BadTypeError, BadArgumentError.
    """

    __slots__ = ("item", "keep", "only_current", "plain", "result", "then")

    def __init__(
        self,
        item: LeasedItemBase,
        *,
        result: Bytes | None = None,
        keep: Duration | None = None,
        then: Iterable[FollowUp] = (),
        only_current: bool = False,
    ) -> None:
        if not isinstance(item, LeasedItemBase):
            raise BadTypeError(f"this takes an item that lease gave, not {type(item).__name__}")
        self.item = item
        keep_secs: Duration | None
        if keep is None:
            keep_secs = 0 if item.keep else None
        else:
            keep_secs = keep if milliseconds_kept(keep, "keep") else None
        self.keep = keep_secs
        self.only_current = only_current
        self.result: bytes | None = None
        self.then: Sequence[Follow] = ()
        self.plain = result is None and keep is None and then == ()
        if not self.plain:
            self.result = None if result is None else as_bytes(result, "a result")
            self.then = _follows(then)

    def __repr__(self) -> str:
        return f"<Completion {self.item.id!r}, {len(self.then)} follow-ups>"


_ONLY_CURRENT = codecs.complete_options(only_current=True)


def complete(keys: QueueKeys, completions: Sequence[Completion]) -> Command[list[Any]]:
    """Complete items, keep their results and add their follow-ups.

    Returns for each whether this call completed it: a bool, or a `Completed` if it has follow-ups.
    """
    if len(completions) == 1 and completions[0].plain and not completions[0].only_current:
        item = completions[0].item
        alone = None if item.keep else for_one(_scripts.COMPLETE, keys, item, _completed)
        if alone is not None:
            return alone
    entries = []
    for one in completions:
        if not one.plain or one.item.keep:
            return _complete_with(keys, completions)
        entries.append(
            codecs.complete_entry(one.item.id, one.item.token, _ONLY_CURRENT if one.only_current else ())
        )
    return command(_scripts.COMPLETE, keys, codecs.complete_arguments(entries), codecs.complete_reply)


def _completed(reply: Any) -> list[bool]:
    return [reply == 1]


def _complete_with(keys: QueueKeys, completions: Sequence[Completion]) -> Command[list[bool | Completed]]:
    targets: dict[str, tuple[int, QueueKeys]] = {}
    results: list[str] = []
    entries: list[tuple[Argument, ...]] = []
    for one in completions:
        result = None
        if one.keep is not None:
            result = one.item.result if one.result is None else one.result
            results.append(keys.result + one.item.id)
        options = codecs.complete_with_options(only_current=one.only_current, keep=one.keep, result=result)
        follow_ups = []
        for queue, item, added, _ in one.then:
            number, _ = targets.setdefault(queue.name, (len(targets) + 1, queue))
            follow_ups.append(codecs.complete_with_follow_up(number, entry(item, added)))
        entries.append(codecs.complete_with_entry(one.item.id, one.item.token, options, follow_ups))
    more_keys = [key for _, target in targets.values() for key in target.vector(_scripts.ADD)]

    def parse(reply: list[int]) -> list[bool | Completed]:
        answers = codecs.complete_with_reply(reply, [len(one.then) for one in completions])
        return [
            Completed(won, [_follow_up(created) for created in added]) if added else won
            for won, added in answers
        ]

    arguments = codecs.complete_with_arguments(entries, len(targets))
    return command(_scripts.COMPLETE_WITH, keys, arguments, parse, (*more_keys, *results))


def _follow_up(created: float) -> bool | None:
    return None if created < 0 else created > 0


def batches(completions: Iterable[Completion], max_bytes: int) -> Iterator[list[Completion]]:
    """Split into what one call takes. An entry that alone is too much comes alone: the script refuses it."""
    batch: list[Completion] = []
    follows = size = 0
    queues: set[str] = set()
    for one in completions:
        if not isinstance(one, Completion):
            raise BadTypeError(
                f"this takes Completion, not {type(one).__name__}: wrap the item, as in Completion(item)"
            )
        weight, targets = _weight(one), {follow.queue.name for follow in one.then}
        fits = (
            len(batch) < MAX_ENTRIES
            and follows + len(one.then) <= MAX_FOLLOW_UPS
            and size + weight <= max_bytes
            and len(queues | targets) <= MAX_TARGETS
        )
        if batch and not fits:
            yield batch
            batch, follows, size, queues = [], 0, 0, set()
        batch.append(one)
        follows += len(one.then)
        size += weight
        queues |= targets
    if batch:
        yield batch


def check_targets(keys: QueueKeys, place: Hashable, completions: Iterable[Completion]) -> None:
    """Refuse what no call can reach, before the first is sent (LQ-CLIENT-9). Raises CrossGroupError."""
    for one in completions:
        for queue, _, _, other in getattr(one, "then", ()):  # what is no Completion is refused later, by name
            if queue.group != keys.group:
                raise CrossGroupError(
                    f"queue {queue.name!r} of group {queue.group!r} cannot take a follow-up of queue {keys.name!r} of"
                    f" group {keys.group!r}: create both with the same group=, as in"
                    f" WorkQueue({queue.name!r}, ..., group={keys.group!r})"
                )
            if isinstance(place, tuple) and isinstance(other, tuple) and place[:2] != other[:2]:
                raise CrossGroupError(
                    f"queue {queue.name!r} is on another server or database than queue {keys.name!r} and cannot take a"
                    " follow-up of it: create both with the same URL or client"
                )


def _weight(one: Completion) -> int:
    result = one.item.result if one.result is None else one.result
    return len(result or b"") + sum(len(follow.item.data) for follow in one.then)


def _follows(then: Iterable[FollowUp]) -> list[Follow]:
    given: Any = then
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise BadTypeError(f"then takes follow-ups, as in [(queue, item)], not {type(given).__name__}")
    return [_follow(one) for one in given]


def _follow(one: Any) -> Follow:
    if not isinstance(one, tuple | list) or len(one) not in {2, 3}:
        raise BadTypeError(
            f"a follow-up is (queue, item) or (queue, item, options), not {type(one).__name__}"
        )
    queue, item, *rest = one
    if not isinstance(queue, NamedQueue):
        raise BadTypeError(f"a follow-up goes to a WorkQueue, not to {type(queue).__name__}")
    if not isinstance(item, Item):
        raise BadTypeError(
            f"a follow-up is an Item, not {type(item).__name__}: wrap the data, as in Item(b'data')"
        )
    return Follow(queue.keys, item, _options(rest[0]) if rest else (), queue.place)


def _options(options: Any) -> Options:
    if not isinstance(options, Mapping):
        raise BadTypeError(f"the options of a follow-up are a mapping, not {type(options).__name__}")
    if unknown := set(options) - set(AddOptions.__annotations__):
        raise BadArgumentError(f"add_item has no option {min(map(str, unknown))!r}")
    return codecs.add_options(**options)
