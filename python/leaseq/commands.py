"""Every call as a value: the script, its keys and arguments, and how to read the reply. No I/O here.

Key and argument order come from the manifest; values are only brought into their wire form: ids and data as bytes,
durations in milliseconds, tokens in microseconds. Whether a value is allowed is for the script to say (LQ-CALL-1).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from leaseq import _scripts
from leaseq._scripts import Script
from leaseq.errors import BadArgumentError, BadTypeError
from leaseq.item import Item, LeasedItemBase
from leaseq.keys import QueueKeys
from leaseq.results import DeepClean, ItemInfo, LightClean, ListedItem, Page, QueueStats, Released, State

LONGEST = 10**12
"""More seconds than any duration or time of the protocol, few enough to write as a number of 16 digits."""

Argument = bytes | str | int
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Command(Generic[T]):
    """One call of a script."""

    script: Script
    keys: tuple[str, ...]
    arguments: tuple[Argument, ...]
    parse: Callable[[Any], T]

    def evalsha(self) -> tuple[Argument, ...]:
        """The call by digest, as a Redis command."""
        return ("EVALSHA", self.script.sha1, len(self.keys), *self.keys, *self.arguments)

    def eval(self) -> tuple[Argument, ...]:
        """The call with the script's text, for a server that does not know it."""
        return ("EVAL", self.script.source, len(self.keys), *self.keys, *self.arguments)


class Taken(NamedTuple):
    """One leased item of a reply: id, data, token, attempt."""

    id: str
    data: bytes
    token: int
    attempt: int


class LeaseReply(NamedTuple):
    """What lease answers.

    `wait` is the time in seconds until something is leasable, None when nothing will be; `asked` is when the call was
    sent, on the client's own clock: the wait cap counts from there (LQ-BLOCK-2). `completed` is what complete_and_lease
    answers for the items that it finished.
    """

    wait: float | None
    deadline: float
    items: list[Taken]
    asked: float = 0.0
    completed: tuple[bool, ...] = ()


def milliseconds(seconds: float, what: str) -> int:
    """A duration in the unit of the wire. Raises BadTypeError, BadArgumentError."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        message = f"{what} must be a number of seconds, not {type(seconds).__name__}"
        raise BadTypeError(message)
    if not -LONGEST <= seconds <= LONGEST:
        message = f"{what} is no number of seconds that a queue can count"
        raise BadArgumentError(message)
    return round(seconds * 1000)


def whole(number: int, what: str) -> int:
    """A whole number. Raises BadTypeError."""
    if isinstance(number, bool) or not isinstance(number, int):
        message = f"{what} must be an int, not {type(number).__name__}"
        raise BadTypeError(message)
    if abs(number) >= 10**16:
        message = f"{what} has more than 16 digits"
        raise BadArgumentError(message)
    return number


def add_options(
    *, delay: float = 0, not_before: float | None = None, priority: int = 0, max_attempts: int = 0
) -> tuple[str | int, ...]:
    """Name and value of each option that differs from its default."""
    pairs: list[str | int] = []
    if delay != 0:
        pairs += ["delay", milliseconds(delay, "delay")]
    if not_before is not None:
        pairs += ["not_before", milliseconds(not_before, "not_before")]
    if priority != 0:
        pairs += ["priority", whole(priority, "priority")]
    if max_attempts != 0:
        pairs += ["max_attempts", whole(max_attempts, "max_attempts")]
    return tuple(pairs)


def add(keys: QueueKeys, items: Sequence[Item], options: tuple[str | int, ...] = ()) -> Command[list[bool]]:
    """Add items, all with the same options; answers for each whether it was added."""
    arguments: list[Argument] = [len(items)]
    for item in items:
        if not isinstance(item, Item):
            message = f"add takes Item, not {type(item).__name__}: wrap the data, as in Item(b'data')"
            raise BadTypeError(message)
        arguments += [item.id, item.data, len(options) // 2, *options]
    return _command(_scripts.ADD, keys, arguments, lambda reply: [created > 0 for created in _answers(reply)])


def lease(keys: QueueKeys, count: int, lease_secs: float) -> Command[LeaseReply]:
    """Lease up to `count` items."""
    arguments = [whole(count, "count"), milliseconds(lease_secs, "lease_secs")]
    return _command(_scripts.LEASE, keys, arguments, _lease_reply)


def complete(
    keys: QueueKeys, items: Sequence[LeasedItemBase], *, only_current: bool = False
) -> Command[list[bool]]:
    """Finish items; answers for each whether this call was the one."""
    arguments: list[Argument] = [len(items), *_completions(items, only_current=only_current)]
    return _command(
        _scripts.COMPLETE, keys, arguments, lambda reply: [answer == 1 for answer in _answers(reply)]
    )


def complete_and_lease(
    keys: QueueKeys,
    items: Sequence[LeasedItemBase],
    count: int,
    lease_secs: float,
    *,
    only_current: bool = False,
) -> Command[LeaseReply]:
    """Finish items and lease the next, in one call."""
    arguments: list[Argument] = [whole(count, "count"), milliseconds(lease_secs, "lease_secs"), len(items)]
    arguments += _completions(items, only_current=only_current)

    def parse(reply: list[Any]) -> LeaseReply:
        split = len(reply) - len(items)
        completed = tuple(answer == 1 for answer in reply[split:])
        return _lease_reply(reply[:split])._replace(completed=completed)

    return _command(_scripts.COMPLETE_AND_LEASE, keys, arguments, parse)


def extend(keys: QueueKeys, leases: Sequence[tuple[LeasedItemBase, float]]) -> Command[list[float | None]]:
    """Move deadlines, each to so many seconds from now; answers the new deadline, None for a lost lease."""
    arguments: list[Argument] = [len(leases)]
    for item, lease_secs in leases:
        arguments += [*_held(item), milliseconds(lease_secs, "lease_secs")]
    return _command(
        _scripts.EXTEND,
        keys,
        arguments,
        lambda reply: [_seconds(at) if at else None for at in _answers(reply)],
    )


def release(
    keys: QueueKeys, items: Sequence[LeasedItemBase], *, delay: float = 0, uncounted: bool = False
) -> Command[list[Released]]:
    """Give items back; answers for each where it went."""
    options: list[Argument] = []
    if delay != 0:
        options += ["delay", milliseconds(delay, "delay")]
    if uncounted:
        options += ["uncounted", 1]
    arguments: list[Argument] = [len(items)]
    for item in items:
        arguments += [*_held(item), len(options) // 2, *options]
    return _command(
        _scripts.RELEASE, keys, arguments, lambda reply: [word.decode() for word in _answers(reply)]
    )


def remove(keys: QueueKeys, ids: Sequence[str]) -> Command[list[State]]:
    """Remove items in any state; answers for each the state it was in."""
    arguments: list[Argument] = [len(ids), *map(_id, ids)]
    return _command(
        _scripts.REMOVE, keys, arguments, lambda reply: [word.decode() for word in _answers(reply)]
    )


def settle(keys: QueueKeys) -> Command[bool]:
    """Pass on a wake-up that this waiter may have taken; answers whether one was put."""
    return _command(_scripts.SETTLE, keys, [], lambda reply: reply == 1)


class Cleaned(NamedTuple):
    """One light clean: what it did, and the time in seconds until something is due (0: more is left; None: never)."""

    done: LightClean
    wait: float | None


def light_clean(keys: QueueKeys, limit: int) -> Command[Cleaned]:
    """Promote due items and requeue expired leases, at most `limit` of each."""

    def parse(reply: list[int]) -> Cleaned:
        promoted, reclaimed, died, wait = reply
        return Cleaned(LightClean(promoted, reclaimed, died), _seconds(wait) if wait >= 0 else None)

    return _command(_scripts.LIGHT_CLEAN, keys, [whole(limit, "limit")], parse)


class DeepCleaned(NamedTuple):
    """One page of a deep clean: the next cursor ("0" at the end) and the repairs by kind."""

    cursor: str
    done: DeepClean


def deep_clean(keys: QueueKeys, cursor: str, limit: int, *, dry_run: bool = False) -> Command[DeepCleaned]:
    """Repair one page."""

    def parse(reply: list[Any]) -> DeepCleaned:
        kinds = {kind.decode(): count for kind, count in _pairs(reply[1:]) if count}
        return DeepCleaned(reply[0].decode(), DeepClean(kinds))

    return _command(_scripts.DEEP_CLEAN, keys, [cursor, whole(limit, "limit"), int(dry_run)], parse)


def stats(keys: QueueKeys) -> Command[QueueStats]:
    """Counts and counters."""

    def parse(reply: list[Any]) -> QueueStats:
        numbers = {name.decode(): number for name, number in _pairs(reply)}
        numbers["now"] = _seconds(numbers["now"])
        numbers["waited"] = _seconds(numbers["waited"])
        return QueueStats(**numbers)

    return _command(_scripts.STATS, keys, [], parse)


def inspect(keys: QueueKeys, ids: Sequence[str]) -> Command[list[ItemInfo]]:
    """What is known of items."""
    width = 8

    def parse(reply: list[Any]) -> list[ItemInfo]:
        infos = []
        for item_id, start in zip(ids, range(0, len(reply), width), strict=True):
            state, time, attempt, token, created, size, priority, max_attempts = reply[start : start + width]
            infos.append(
                ItemInfo(
                    item_id,
                    state.decode(),
                    _seconds(time),
                    attempt,
                    token,
                    _seconds(created),
                    size,
                    priority,
                    max_attempts,
                )
            )
        return infos

    arguments: list[Argument] = [len(ids), *map(_id, ids)]
    return _command(_scripts.INSPECT, keys, arguments, parse)


def list_items(
    keys: QueueKeys, state: str, offset: int, limit: int, *, backward: bool = False
) -> Command[Page]:
    """One page of the items in a state."""

    def parse(reply: list[Any]) -> Page:
        return Page(
            reply[0], [ListedItem(item_id.decode(), _seconds(time)) for item_id, time in _pairs(reply[1:])]
        )

    if not isinstance(state, str):
        message = f"the state must be a str, not {type(state).__name__}"
        raise BadTypeError(message)
    order = "backward" if backward else "forward"
    arguments: list[Argument] = [state, whole(offset, "offset"), whole(limit, "limit"), order]
    return _command(_scripts.LIST, keys, arguments, parse)


def configure(keys: QueueKeys, *, max_data: int) -> Command[None]:
    """Set the largest data of an item, in bytes."""
    arguments: list[Argument] = [1, "max_data", whole(max_data, "max_data")]
    return _command(_scripts.CONFIGURE, keys, arguments, lambda _: None)


def _command(
    script: Script, keys: QueueKeys, arguments: Iterable[Argument], parse: Callable[[Any], T]
) -> Command[T]:
    return Command(script, keys.vector(script), tuple(arguments), parse)


def _completions(items: Sequence[LeasedItemBase], *, only_current: bool) -> list[Argument]:
    options: list[Argument] = [1, "only_current", 1] if only_current else [0]
    arguments: list[Argument] = []
    for item in items:
        arguments += [*_held(item), *options]
    return arguments


def _held(item: LeasedItemBase) -> tuple[str, int]:
    """Id and token of a leased item."""
    if not isinstance(item, LeasedItemBase):
        message = f"this takes an item that lease gave, not {type(item).__name__}"
        raise BadTypeError(message)
    return item.id, whole(item.token, "the token of an item")


def _id(item_id: str) -> str:
    if not isinstance(item_id, str):
        message = f"an id must be str, not {type(item_id).__name__}"
        raise BadTypeError(message)
    return Item(b"", item_id).id


def _answers(reply: Any) -> list[Any]:
    """One entry answers bare, several with a list (LQ-CALL-4)."""
    return reply if isinstance(reply, list) else [reply]


def _pairs(flat: Sequence[Any]) -> Iterable[tuple[Any, Any]]:
    return zip(flat[::2], flat[1::2], strict=True)


def _seconds(microseconds: int) -> float:
    return microseconds / 1_000_000


def _lease_reply(reply: list[Any]) -> LeaseReply:
    wait, deadline, count = reply[:3]
    items = [
        Taken(reply[at].decode(), reply[at + 1], reply[at + 2], reply[at + 3])
        for at in range(3, 3 + 4 * count, 4)
    ]
    return LeaseReply(_seconds(wait) if wait >= 0 else None, _seconds(deadline), items)
