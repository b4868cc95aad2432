"""What a call that finishes items is given: the results to keep, and the items that follow."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypedDict

from leaseq._scripts import MAX_ENTRIES, MAX_FOLLOW_UPS, MAX_TARGETS
from leaseq.commands.additions import Options
from leaseq.commands.codecs import add_options
from leaseq.commands.encoding import milliseconds_kept
from leaseq.errors import BadArgumentError, BadTypeError, CrossGroupError
from leaseq.item import Bytes, Item, LeasedItemBase, as_bytes
from leaseq.keys import NamedQueue, QueueKeys


class AddOptions(TypedDict, total=False):
    """The options of `add_item`."""

    delay: float
    not_before: float | None
    priority: int
    max_attempts: int | None
    expires_in: float | None
    dead_on_expiry: bool
    keep: float | None


FollowUp = tuple[NamedQueue, Item] | tuple[NamedQueue, Item, AddOptions]
"""A queue of the same group, the item to add to it, and options of `add_item` if there are any."""


class Follow(NamedTuple):
    """A follow-up that was looked at."""

    queue: QueueKeys
    item: Item
    options: Options
    place: Hashable


class Completion:
    """An item to complete with `complete_items`; the arguments are those of `complete`.

    Raises BadTypeError, BadArgumentError.
    """

    __slots__ = ("item", "keep", "only_current", "result", "then")

    def __init__(
        self,
        item: LeasedItemBase,
        *,
        result: Bytes | None = None,
        keep: float | None = None,
        then: Iterable[FollowUp] = (),
        only_current: bool = False,
    ) -> None:
        if not isinstance(item, LeasedItemBase):
            raise BadTypeError(f"this takes an item that lease gave, not {type(item).__name__}")
        self.item = item
        self.result = None if result is None else as_bytes(result, "a result")
        if keep is not None:
            milliseconds_kept(keep, "keep")
        self.keep = keep
        self.then = _follows(then)
        self.only_current = only_current

    def __repr__(self) -> str:
        return f"<Completion {self.item.id!r}, {len(self.then)} follow-ups>"


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
    return add_options(**options)
