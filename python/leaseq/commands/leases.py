"""Leasing items, and keeping what is leased."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from leaseq import _scripts
from leaseq.commands.completions import completions, publications, release
from leaseq.commands.encoding import Argument, Command, answers, command, held, milliseconds, seconds, whole
from leaseq.errors import BadArgumentError
from leaseq.item import LeasedItemBase, decoded
from leaseq.keys import QueueKeys
from leaseq.results import Released

MAX_LEASE_SECONDS = 30 * 86400
"""Seconds."""


Taken = tuple[str, bytes, int, int]
"""One leased item of a reply: id, data, token, attempt."""


@dataclass(slots=True)
class Extra:
    """What few items have besides."""

    keep: float = 0.0
    content_type: str | None = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class LeaseReply:
    """What lease answers.

    `wait` is the time in seconds until something is leasable, None when nothing will be; `asked` is when the call was
    sent, on the client's own clock: the wait cap counts from there (LQ-BLOCK-2). `completed` is what complete_and_lease
    answers for the items that it finished. `extras` has what items bring along, by their place in `items`. `queue` is
    the place of the queue that gave them, where the call named several; `died` has the ids of items that this call
    found dead and whose failure is to be published, by the place of their queue.
    """

    wait: float | None
    deadline: float
    items: list[Taken]
    asked: float = 0.0
    completed: tuple[bool, ...] = ()
    extras: Mapping[int, Extra] = field(default_factory=dict)
    queue: int = 0
    died: Mapping[int, Sequence[str]] = field(default_factory=dict)


def lease(keys: QueueKeys, count: int, lease_secs: float) -> Command[LeaseReply]:
    """Lease up to `count` items."""
    arguments = [whole(count, "count"), milliseconds(lease_secs, "lease_secs")]
    return command(_scripts.LEASE, keys, arguments, lease_reply, undo=partial(due_for_lost_reply, [keys]))


def lease_any(queues: Sequence[QueueKeys], count: int, lease_secs: float) -> Command[LeaseReply]:
    """Lease up to `count` items from the first of several queues of one group that has any."""

    def parse(reply: list[Any]) -> LeaseReply:
        return replace(lease_reply(reply[1:]), queue=max(0, reply[0] - 1))

    keys = [key for queue in queues for key in queue.vector(_scripts.LEASE)]
    arguments = (len(queues), whole(count, "count"), milliseconds(lease_secs, "lease_secs"))
    return Command(_scripts.LEASE_ANY, tuple(keys), arguments, parse, partial(due_for_lost_reply, queues))


def complete_and_lease(
    keys: QueueKeys,
    items: Sequence[LeasedItemBase],
    count: int,
    lease_secs: float,
    *,
    only_current: bool = False,
) -> Command[LeaseReply]:
    """Finish items, none of which keeps an outcome, and lease the next, in one call."""
    arguments: list[Argument] = [whole(count, "count"), milliseconds(lease_secs, "lease_secs"), len(items)]
    arguments += completions(items, only_current=only_current)

    def parse(reply: list[Any]) -> LeaseReply:
        split = len(reply) - len(items)
        given = lease_reply(reply[:split])
        given.completed = tuple([answer == 1 for answer in reply[split:]])
        return given

    return command(
        _scripts.COMPLETE_AND_LEASE, keys, arguments, parse, undo=partial(due_for_lost_reply, [keys])
    )


def check_lease_secs(lease_secs: float) -> None:
    """Refuse what `lease` would, before something else is done. Raises BadTypeError, BadArgumentError."""
    if not 1 <= milliseconds(lease_secs, "lease_secs") <= MAX_LEASE_SECONDS * 1000:
        raise BadArgumentError(f"lease_secs must be 0.001 to {MAX_LEASE_SECONDS} seconds")


def extend(keys: QueueKeys, leases: Sequence[tuple[LeasedItemBase, float]]) -> Command[list[float | None]]:
    """Move deadlines, each to so many seconds from now; answers the new deadline, None for a lost lease."""
    arguments: list[Argument] = [len(leases)]
    for item, lease_secs in leases:
        arguments += [*held(item), milliseconds(lease_secs, "lease_secs")]
    return command(
        _scripts.EXTEND, keys, arguments, lambda reply: [seconds(at) if at else None for at in answers(reply)]
    )


def settle(keys: QueueKeys) -> Command[bool]:
    """Pass on a wake-up that this waiter may have taken; answers whether one was put."""
    return command(_scripts.SETTLE, keys, [], lambda reply: reply == 1)


def lease_reply(reply: list[Any]) -> LeaseReply:
    """What lease answers: the items, then a triple (which item, name, value) for each thing that few have.

    A name that is not known is skipped, whatever the type of its value: a later protocol may tell more (LQ-LEASE-11).
    """
    wait, deadline, count = reply[:3]
    end = 3 + 4 * count
    ids = map(bytes.decode, reply[3:end:4])
    items = list(zip(ids, reply[4:end:4], reply[5:end:4], reply[6:end:4], strict=True))
    until_then = wait / 1_000_000 if wait >= 0 else None
    if len(reply) == end:
        return LeaseReply(until_then, deadline / 1_000_000, items)
    extras: dict[int, Extra] = {}
    died: dict[int, list[str]] = {}
    rest = reply[end:]
    for number, name, value in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        if number > 0:
            extra = extras.setdefault(number - 1, Extra())
            _READ.get(name, _header)(extra, name, value)
        elif name == b"died":  # 0, or of several queues minus the number of one
            died.setdefault(max(0, -number - 1), []).append(value.decode())
    return LeaseReply(until_then, seconds(deadline), items, extras=extras, died=died)


def give_back(keys: QueueKeys, reply: LeaseReply) -> list[Command[list[Released]]]:
    """What releases items that were leased and nobody will get: uncounted."""
    items = [LeasedItemBase(*taken, reply.deadline, 0) for taken in reply.items]
    return [release(keys, items, uncounted=True)] if items else []


def due_for_lost_reply(queues: Sequence[QueueKeys], reply: LeaseReply) -> list[Command[Any]]:
    """What is due for a reply that nobody gets: its items go back, and who died is asked for (LQ-CLIENT-8)."""
    due: list[Command[Any]] = [*give_back(queues[reply.queue], reply)]
    for place, died in reply.died.items():
        due += publications(queues[place], died)
    return due


def _keep(extra: Extra, _name: bytes, value: int) -> None:
    extra.keep = value / 1000


def _content_type(extra: Extra, _name: bytes, value: bytes) -> None:
    extra.content_type = decoded(value)


def _header(extra: Extra, name: bytes, value: bytes) -> None:
    if name.startswith(b"header:"):
        extra.headers[decoded(name.removeprefix(b"header:"))] = decoded(value)


_READ: dict[bytes, Callable[[Extra, bytes, Any], None]] = {b"keep": _keep, b"content_type": _content_type}
