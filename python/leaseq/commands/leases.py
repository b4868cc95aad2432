"""Leasing items, and keeping what is leased."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from leaseq import _scripts
from leaseq.commands import codecs
from leaseq.commands.encoding import Command, command, held, milliseconds
from leaseq.commands.outcomes import publications
from leaseq.commands.releases import ReleaseRequest, release_each
from leaseq.durations import Duration
from leaseq.errors import BadArgumentError
from leaseq.item import LeasedItemBase, decoded
from leaseq.keys import QueueKeys
from leaseq.results import Released

MAX_LEASE_SECONDS = _scripts.MAX_LEASE_MS // 1000


Taken = tuple[str, bytes, int, int]
"""One leased item of a reply: id, data, token, attempt."""


@dataclass(slots=True)
class Extra:
    """Properties that few items have."""

    keep: float = 0.0
    content_type: str | None = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class LeaseReply:
    """The answer of lease.

    `wait` is the time in seconds until something is leasable, None when nothing will be; `sent_at` is when the call was
    sent, on the client's own clock: the wait cap counts from there (LQ-BLOCK-2). `completed` is what complete_and_lease
    answers for the items that it finished. `extras` has what items bring along, by their place in `items`. `queue` is
    the place of the queue that gave them, where the call named several; `died` has the ids of items that this call
    found dead and whose failure is to be published, by the place of their queue.
    """

    wait: float | None
    deadline: float
    items: list[Taken]
    sent_at: float = 0.0
    completed: tuple[bool, ...] = ()
    extras: Mapping[int, Extra] = field(default_factory=dict)
    queue: int = 0
    died: Mapping[int, Sequence[str]] = field(default_factory=dict)


def lease(keys: QueueKeys, count: int, lease_secs: Duration) -> Command[LeaseReply]:
    """Lease up to `count` items."""
    arguments = codecs.lease_arguments(count, lease_secs)
    undo = partial(due_for_lost_reply, [keys])
    return command(_scripts.LEASE, keys, arguments, lease_reply, undo=undo, registers=True)


def lease_any(queues: Sequence[QueueKeys], count: int, lease_secs: Duration) -> Command[LeaseReply]:
    """Lease up to `count` items from the first of several queues of one group that has any."""

    def parse(reply: list[Any]) -> LeaseReply:
        number, wait, deadline, items, extras = codecs.lease_any_reply(reply)
        return replace(_leased(wait, deadline, items, extras), queue=max(0, number - 1))

    keys = [key for queue in queues for key in queue.vector(_scripts.LEASE)]
    arguments = codecs.lease_any_arguments(len(queues), count, lease_secs)
    undo = partial(due_for_lost_reply, queues)
    return Command(_scripts.LEASE_ANY, tuple(keys), tuple(arguments), parse, undo, registers=True)


def complete_and_lease(
    keys: QueueKeys,
    items: Sequence[LeasedItemBase],
    count: int,
    lease_secs: Duration,
    *,
    only_current: bool = False,
) -> Command[LeaseReply]:
    """Complete items that keep no outcome, and lease the next, in one call."""
    options = codecs.complete_and_lease_options(only_current=only_current)
    entries = [codecs.complete_and_lease_entry(*held(item), options) for item in items]
    arguments = codecs.complete_and_lease_arguments(count, lease_secs, entries)

    def parse(reply: list[Any]) -> LeaseReply:
        wait, deadline, leased, extras, completed = codecs.complete_and_lease_reply(reply, len(items))
        given = _leased(wait, deadline, leased, extras)
        given.completed = tuple(completed)
        return given

    undo = partial(due_for_lost_reply, [keys])
    return command(_scripts.COMPLETE_AND_LEASE, keys, arguments, parse, undo=undo, registers=True)


def check_lease_secs(lease_secs: Duration) -> None:
    """Refuse what `lease` would, before something else is done. Raises BadTypeError, BadArgumentError."""
    if not 1 <= milliseconds(lease_secs, "lease_secs") <= MAX_LEASE_SECONDS * 1000:
        raise BadArgumentError(f"lease_secs must be 0.001 to {MAX_LEASE_SECONDS} seconds")


def extend(keys: QueueKeys, leases: Sequence[tuple[LeasedItemBase, float]]) -> Command[list[float | None]]:
    """Move deadlines, each by its seconds from now; returns the new deadline, None for a lost lease."""
    entries = [codecs.extend_entry(*held(item), lease_secs) for item, lease_secs in leases]
    return command(
        _scripts.EXTEND,
        keys,
        codecs.extend_arguments(entries),
        lambda reply: [deadline or None for deadline in codecs.extend_reply(reply)],
    )


def settle(keys: QueueKeys) -> Command[bool]:
    """Pass on a wake-up that this waiter may have taken; answers whether one was put."""
    return command(_scripts.SETTLE, keys, (), codecs.settle_reply)


def lease_reply(reply: list[Any]) -> LeaseReply:
    """Return what lease answers."""
    return _leased(*codecs.lease_reply(reply))


def _leased(
    wait: float, deadline: float, items: list[Taken], extras: Sequence[tuple[int, bytes, Any]]
) -> LeaseReply:
    """Return what was leased, and with `extras` properties that few items have.

    Unknown names are skipped, with any type of value: a later protocol can have more (LQ-LEASE-11).
    """
    until_then = wait if wait >= 0 else None
    if not extras:
        return LeaseReply(until_then, deadline, items)
    found: dict[int, Extra] = {}
    died: dict[int, list[str]] = {}
    for number, name, value in extras:
        if number > 0:
            extra = found.setdefault(number - 1, Extra())
            if name == b"keep":
                extra.keep = value / 1000
            elif name == b"content_type":
                extra.content_type = decoded(value)
            elif name.startswith(b"header:"):
                extra.headers[decoded(name.removeprefix(b"header:"))] = decoded(value)
        elif name == b"died":  # 0, or of several queues minus the number of one
            died.setdefault(max(0, -number - 1), []).append(value.decode())
    return LeaseReply(until_then, deadline, items, extras=found, died=died)


def release_uncounted(keys: QueueKeys, reply: LeaseReply) -> list[Command[list[Released]]]:
    """The commands that release the items of a reply that arrived too late; their attempts do not count."""
    items = [LeasedItemBase(*taken, reply.deadline, 0) for taken in reply.items]
    return [release_each(keys, [ReleaseRequest(item, uncounted=True) for item in items])] if items else []


def due_for_lost_reply(queues: Sequence[QueueKeys], reply: LeaseReply) -> list[Command[Any]]:
    """The commands due for a reply that arrived too late: release its items, and write failures of dead ones (LQ-CLIENT-8)."""
    due: list[Command[Any]] = [*release_uncounted(queues[reply.queue], reply)]
    for place, died in reply.died.items():
        due += publications(queues[place], died)
    return due
