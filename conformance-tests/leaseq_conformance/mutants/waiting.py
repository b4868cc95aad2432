"""Clients that wait in the wrong way, or leave without a trace."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from leaseq import errors, flows
from leaseq._sync import io, waiting
from leaseq_conformance.mutants.registry import everywhere, mutant, patch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import redis

    from leaseq.commands import Command, LeaseReply
    from leaseq.keys import QueueKeys


@mutant("LQ-BLOCK-1", "wire/wait-blocks")
def polls() -> None:
    """Leases again and again with a pause between, and blocks nowhere."""

    def poll(self: waiting.Waiting, wait: Any, held: Any) -> Any:
        time.sleep(min(wait.seconds, 0.05))
        return self._calls.talk(lambda wire: self._take(wait.then, wait.settles, wire), held)

    patch(waiting.Waiting, "_wait", poll)


@mutant("LQ-BLOCK-2", "wire/wait-time-of-the-block")
def timeout_ignored() -> None:
    """Blocks for the whole cap, whatever time its user gave it and whatever it was told."""
    own = waiting.Waiting._block

    def block(self: waiting.Waiting, wait: Any, wire: Any) -> bool:
        return own(self, flows.Wait(wait.block, flows.WAIT_CAP, wait.then, wait.settles), wire)

    patch(waiting.Waiting, "_block", block)


@mutant("LQ-BLOCK-3", "wire/wait-short")
def block_in_whole_seconds() -> None:
    """Gives BLPOP whole seconds, so that less than half of one becomes 0, which is for ever."""

    def block(self: waiting.Waiting, wait: Any, wire: Any) -> bool:
        wire.send(*wait.block, f"{wait.seconds:.0f}")
        try:
            self._woken(wire, wait.seconds)
        except io.NothingYetError:
            return True
        return False

    patch(waiting.Waiting, "_block", block)


@mutant("LQ-BLOCK-4", "wire/lease-wait-0")
def wait_0_is_nothing() -> None:
    """Takes a lease that gives nothing for the end, also where it says to call again at once."""

    def lease_on(
        take: Command[LeaseReply],
        queues: Sequence[QueueKeys],
        over: float | None,
        clock: Callable[[], float],
        reply: LeaseReply | None,
        *,
        at_once: bool = False,
    ) -> flows.Flow[LeaseReply]:
        if over is not None:
            return (yield from own(take, queues, over, clock, reply, at_once=at_once))
        return reply or flows.answered((yield take))

    own = flows.lease_on
    patch(flows, "lease_on", lease_on)


@mutant("LQ-BLOCK-5", "wire/wait-unblocked")
def broken_block_ends_the_wait() -> None:
    """Reports an error when a block ends in one that says to look again."""
    own = waiting.Waiting._block_and_take

    def block_and_take(self: waiting.Waiting, wait: Any, wire: Any) -> Any:
        try:
            return own(self, wait, wire)
        except waiting._BrokenWaitError as error:
            raise errors.ReplyLostError("the wait broke") from error

    patch(waiting.Waiting, "_block_and_take", block_and_take)

    def woken(_self: waiting.Waiting, wire: Any, seconds: float) -> bool:
        return wire.read_within(seconds) is not None

    patch(waiting.Waiting, "_woken", woken)


@mutant("LQ-BLOCK-6", "wire/wait-settles-at-the-end")
def leaves_without_settling() -> None:
    """Stops waiting when its time is up, and passes no wake-up on."""
    patch(waiting.Waiting, "_pass_on", lambda _self, _settles: None)


@mutant("LQ-BLOCK-7", "wire/wait-on-two-groups")
def losers_not_settled() -> None:
    """Waits on queues of several groups, leases from one, and forgets the others."""

    def leave(_self: waiting.Waiting, wire: io.Wire, _command: Any, _settles: Any, **_how: bool) -> None:
        wire.cut()

    patch(waiting.Waiting, "_leave_behind", leave)
    patch(waiting.Waiting, "_pass_on_later", lambda _self, _settles: None)
    patch(waiting.Waiting, "_let_go", lambda _self, _command, _settles, _held: None)


@mutant("LQ-BLOCK-8", "wire/wait-until-told")
def late() -> None:
    """Sends the lease behind a block only when it has heard its end, and then some."""
    own = waiting.Waiting._block

    def block(self: waiting.Waiting, wait: Any, wire: Any) -> bool:
        if own(self, wait, wire):
            self._woken(wire, flows.REPLY_GRACE)
            time.sleep(wait.seconds + 2)
        return False

    patch(waiting.Waiting, "_block", block)


@mutant("LQ-BLOCK-9", "wire/wait-silent-connection")
def silence_trusted() -> None:
    """Waits for the end of a block for ever, on a connection that may be gone."""
    everywhere(flows.REPLY_GRACE, 10.0**6)


@mutant("LQ-BLOCK-10", "wire/wait-refused")
def refusal_goes_on() -> None:
    """Leases again after every error of a block: thousands of calls a second on a server that refuses them all."""

    def refused(_self: waiting.Waiting, _error: redis.ResponseError, **_how: bool) -> Exception:
        return waiting._BrokenWaitError(0)

    patch(waiting.Waiting, "_refused", refused)


@mutant("LQ-BLOCK-11", "wire/wait-lease-lost")
def lease_behind_the_block_repeated() -> None:
    """Leases again where the connection broke behind a block, though a lease was sent there already."""
    own = waiting.Waiting._block_and_take

    def block_and_take(self: waiting.Waiting, wait: Any, wire: Any) -> Any:
        try:
            return own(self, wait, wire)
        except errors.ReplyLostError as error:
            raise waiting._BrokenWaitError(0) from error

    patch(waiting.Waiting, "_block_and_take", block_and_take)


@mutant("LQ-BLOCK-12", "wire/outcome-looks-first")
def outcome_blocks_first() -> None:
    """Blocks on an outcome before it has asked whether there is one."""

    def outcome(
        keys: QueueKeys, item_id: str, *, block: bool, timeout: float, clock: Callable[[], float]
    ) -> flows.Flow[list[Any]]:
        if block:
            from leaseq import commands
            from leaseq.commands.wire import result_key

            key = result_key(keys, item_id)
            push = ("BLMOVE", key, key, "LEFT", "LEFT")
            seconds = min(flows.WAIT_CAP, timeout or flows.WAIT_CAP)
            return flows.answered((yield flows.Wait(push, seconds, commands.outcome(keys, [item_id]))))
        return (yield from own(keys, item_id, block=block, timeout=timeout, clock=clock))

    own = flows.outcome
    patch(flows, "outcome", outcome)


@mutant("LQ-BLOCK-13", "scenarios/outcome-of-another-item")
def created_not_remembered() -> None:
    """Waits for the outcome of an id, and takes that of a later item of the id."""
    from leaseq.commands import finishing
    from leaseq.results import Outcome

    class Alike(float):
        """A time of creation that equals every other."""

        def __eq__(self, _other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 0

    def outcome(item_id: str, state: Any, created: float, *rest: Any) -> Any:
        return Outcome(item_id, state, Alike(created), *rest)

    patch(finishing, "Outcome", outcome)


@mutant("LQ-FAIL-2", "scenarios/waiter-killed")
def one_watches_for_all() -> None:
    """Lets the first waiter alone watch the deadlines: the others block for ever, also when that one was killed."""
    own = waiting.Waiting._block
    watches: list[bool] = []

    def block(self: waiting.Waiting, wait: Any, wire: Any) -> bool:
        if not watches:
            wire.send("SET", f"{wait.block[1]}:watched", "1", "NX")
            watches.append(wire.read() is not None)
        seconds = wait.seconds if watches[0] else 10.0**6
        return own(self, flows.Wait(wait.block, seconds, wait.then, wait.settles), wire)

    patch(waiting.Waiting, "_block", block)


def ask_otherwise(otherwise: Callable[[Any], Any]) -> None:
    """Change what a wait for room asks for: another request, or None for none."""
    own = flows.add_when_room

    def add_when_room(*given: Any, **options: Any) -> Any:
        flow, answer = own(*given, **options), None
        while True:
            try:
                request = otherwise(flow.send(answer))
            except StopIteration as end:
                return end.value
            answer = None if request is None else (yield request)

    patch(flows, "add_when_room", add_when_room)


@mutant("LQ-ROOM-2", "wire/room-blocks-on-room")
def room_awaited_on_wake() -> None:
    """Waits for room on the list of the workers, and takes their wake-ups."""

    def otherwise(request: Any) -> Any:
        if not isinstance(request, flows.Wait):
            return request
        command, room = request.block
        block = (command, room.removesuffix("room") + "wake")
        return flows.Wait(block, request.seconds, request.then, request.settles)

    ask_otherwise(otherwise)


@mutant("LQ-ROOM-3", "wire/room-settles")
def room_not_passed_on() -> None:
    """Got room, and does not look whether there is more of it for the next."""
    ask_otherwise(lambda request: None if isinstance(request, flows.Leave) else request)
