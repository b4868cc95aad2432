"""Operations of several steps, without I/O: generators of requests, driven by a short sync and a short async driver."""

import math
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from leaseq import commands
from leaseq._scripts import MAX_ENTRIES, WAIT_CAP_MS
from leaseq.backoff import Backoff
from leaseq.commands import Command, LeaseReply
from leaseq.commands.additions import Options
from leaseq.durability import Confirmed, Durability
from leaseq.durations import Duration, deadline_after
from leaseq.errors import BadTypeError, LeaseqError, NotDurableError
from leaseq.item import Item
from leaseq.keys import QueueKeys
from leaseq.results import Outcome

WAIT_CAP = WAIT_CAP_MS / 1000
"""The longest time in seconds that a client blocks before it calls again (LQ-BLOCK-2)."""

CHUNK_BYTES = 4 * 1024 * 1024
"""About how much data one add carries, so that no call keeps the server for long."""

REPLY_GRACE = 5.0
"""Seconds that a reply may take once a block should be over; then the connection is given up."""

backoff = Backoff()
"""Seconds until an item is leased again whose `with` block failed."""

Member = TypeVar("Member")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Wait(Generic[T]):
    """Block for at most `seconds`, then run a command on the same connection; returns its answer.

    `block` is the blocking command without its time: a push to one of its keys ends it. With too
    little time for a block, the command runs after that time. Should the flow end here, with an error or interrupted,
    the caller runs `settles`, which put back the wake-up that may have been taken.

    `pipelined` sends the command with the block, so that the server runs it as soon as that is over.
    """

    block: tuple[str, ...]
    seconds: float
    then: Command[T]
    settles: tuple[Command[bool], ...] = ()
    pipelined: bool = False


@dataclass(frozen=True, slots=True)
class Leave:
    """Settle: this waiter goes away. Has no answer."""

    settles: tuple[Command[bool], ...]


Flow = Generator[Command[T] | Wait[T] | Leave, T | None, T]
"""Requests, and the answer to each: of a command or a wait what the command answers, of Leave nothing."""


def lease_any(
    queues: Sequence[QueueKeys],
    count: int,
    lease_secs: float,
    *,
    wait_until: float | None,
    clock: Callable[[], float],
    last_reply: LeaseReply | None = None,
    pipelined: bool = False,
) -> Flow[LeaseReply]:
    """Lease from the first of several queues of one group that has an item; `last_reply` is the one before.

    The call that leases from one settles the others (LQ-BLOCK-7). With `pipelined` a lease is sent with each block that
    ends at no time that matters: only a lease behind a block that is over makes the server notice that in time.
    """
    one = len(queues) == 1
    take = (
        commands.lease(queues[0], count, lease_secs) if one else commands.lease_any(queues, count, lease_secs)
    )
    if last_reply is not None and last_reply.wait is not None:  # others were asked meanwhile
        last_reply = replace(last_reply, wait=max(0.0, last_reply.sent_at + last_reply.wait - clock()))
    return lease_until(take, queues, wait_until, clock, last_reply, pipelined=pipelined)


def lease_until(
    take: Command[LeaseReply],
    queues: Sequence[QueueKeys],
    wait_until: float | None,
    clock: Callable[[], float],
    reply: LeaseReply | None,
    *,
    pipelined: bool = False,
) -> Flow[LeaseReply]:
    """Run a call that leases, again and again until it brings items or until `wait_until` (None: it does not wait).

    `reply` is what its first run answered, if that was done. A waiter that leaves empty-handed settles (LQ-BLOCK-6).
    """
    if reply is None:
        reply = answered((yield take))
    if reply.items:
        return reply
    settles = tuple(commands.settle(keys) for keys in queues)
    pop = ("BLPOP", *(keys.key("wake") for keys in queues))
    waited = False
    while not reply.items:
        if reply.wait == 0:
            # More was due than one call moves, and none of it became ready: call again.
            reply = answered((yield Wait(pop, 0, take, settles) if waited else take))
            continue
        remaining = -1 if wait_until is None else wait_until - clock()
        if remaining <= 0:
            break
        server_wait = WAIT_CAP if reply.wait is None else reply.wait
        pause = min(remaining, server_wait, reply.sent_at + WAIT_CAP - clock())
        waited = True
        timed = min(remaining, server_wait) < WAIT_CAP
        reply = answered((yield Wait(pop, pause, take, settles, pipelined and not timed)))
    if waited and not reply.items:
        yield Leave(settles)
    return reply


def element_of(key: str) -> tuple[str, ...]:
    """Return the block on a list that leaves it as it is, so that its element wakes any number of waiters (LQ-BLOCK-12)."""
    return ("BLMOVE", key, key, "LEFT", "LEFT")


def outcome(
    keys: QueueKeys,
    item_id: str,
    *,
    timeout: Duration | None,
    clock: Callable[[], float],
    created: float = 0.0,
) -> Flow[list[Outcome]]:
    """Return the outcome of an item: wait until it is completed or gone, or the time is over.

    A push to its list ends the block, which leaves the list as it is, so any number of waiters see it. `outcome` is called
    before each block and after the last, because that call also writes the failure of an item that died when its lease was
    reclaimed. `created` is what an earlier call said of the item that is waited for (LQ-BLOCK-13); 0: there was none.
    """
    command = commands.outcome(keys, [item_id])
    wait_until = deadline_after(timeout, clock)
    push = element_of(keys.result + item_id)
    found, awaited = answered((yield command)), created
    while True:
        awaited = awaited or found[0].created
        if found[0].created not in {0, awaited}:
            return [Outcome(item_id, "absent", 0, 0, 0, 0, b"")]  # another item of this id by now
        pause = min(WAIT_CAP, wait_until - clock())
        if found[0].finished or found[0].state == "absent" or pause <= 0:
            return found
        found = answered((yield Wait(push, pause, command)))


def add_when_room(
    keys: QueueKeys,
    items: Sequence[Item],
    options: Options,
    answers: list[bool | None],
    *,
    wait_until: float,
    clock: Callable[[], float],
    durable: Durability | None = None,
) -> Flow[Any]:
    """Add items of one call; if the queue is full, wait for room and add what is missing, until the time is over.

    `answers` receives an answer for each item, None if there was no room. An item that was added is not added again: it may be
    completed by now. A flow that waited settles at the end, also after success: there may be room for one more, and the
    wake-up was for one.

    With `durable` each call waits for it. Returns the first NotDurableError of a call that added something, or None; the flow
    goes on behind it.
    """
    settles = (commands.settle(keys),)
    pop = ("BLPOP", keys.key("room"))
    shortfalls: list[NotDurableError] = []
    answers += _added((yield _durably(commands.add(keys, items, options), durable)), shortfalls)
    waited = False
    while missing := [index for index, answer in enumerate(answers) if answer is None]:
        pause = min(WAIT_CAP, wait_until - clock())
        if pause <= 0:
            break
        waited = True
        again = _durably(commands.add(keys, [items[index] for index in missing], options), durable)
        added = _added((yield Wait(pop, pause, again, settles)), shortfalls)
        for index, answer in zip(missing, added, strict=True):
            answers[index] = answer
    if waited:
        yield Leave(settles)
    return next(iter(shortfalls), None)


def _durably(command: Command[Any], durable: Durability | None) -> Command[Any]:
    return command if durable is None else commands.durably(command, durable)


def _added(reply: Any, shortfalls: list[NotDurableError]) -> list[bool | None]:
    """The answers of an add; an error of its wait goes to `shortfalls`."""
    if not isinstance(reply, Confirmed):
        return list(answered(reply))
    if reply.shortfall is not None and any(answer is not None for answer in reply.answer):
        shortfalls.append(reply.shortfall)
    return list(reply.answer)


def interrupted(error: LeaseqError, answers: list[bool | None], count: int) -> None:
    """Give the error of a wait for room what is known of its items: those that were sent again are in doubt (LQ-CLIENT-2)."""
    missing = [index for index, answer in enumerate(answers) if answer is None]
    if error.definite or not missing:
        error.answers, error.in_doubt = list(answers), count
    else:
        error.answers = answers[: missing[0]]
        error.in_doubt = missing[-1] + 1 - missing[0]


def lease_deadline(timeout: Duration | None, clock: Callable[[], float], *, block: bool) -> float | None:
    """Return when to stop waiting for an item, None without a limit. For a lease, 0 is also without limit."""
    wait_until = deadline_after(timeout, clock)
    if not block:
        return None
    return wait_until if timeout else math.inf


def answered(reply: T | None) -> T:
    """The reply, which every request but Leave has."""
    if reply is None:
        raise RuntimeError("the driver answered a request with nothing")
    return reply


def require_iterable(members: Iterable[Member], what: str) -> Iterable[Member]:
    """The members, if it is several of them and not a single one. Raises BadTypeError."""
    if isinstance(members, str | bytes | bytearray | memoryview | Mapping) or not isinstance(
        members, Iterable
    ):
        raise BadTypeError(f"this takes several {what}, not one {type(members).__name__}")
    return members


def chunks(members: Iterable[Member], size: Callable[[Member], int] = lambda _: 0) -> Iterable[list[Member]]:
    """Split into what one call takes: at most 256 entries and about CHUNK_BYTES of data."""
    chunk: list[Member] = []
    weight = 0
    for member in members:
        own = size(member)
        weight += own
        if chunk and (weight > CHUNK_BYTES or len(chunk) == MAX_ENTRIES):
            yield chunk
            chunk, weight = [], own
        chunk.append(member)
    if chunk:
        yield chunk


def data_size(item: object) -> int:
    """Return what an item weighs in `chunks`; what is no Item is refused later, by name."""
    return len(item.data) if isinstance(item, Item) else 0
