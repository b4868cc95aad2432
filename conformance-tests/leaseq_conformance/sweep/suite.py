"""The suite: for each operation four cases, killed or unanswered, before or after the server ran the command.

Nothing about a client is written down here. Each case first watches the operation once, call by call, with a picture of
the queue after each. Then it makes the operation anew for every command and strikes there: the nth of its name, for what a
client sends besides (greetings, the registry) may come earlier or later, or not at all. What is left must be the picture
before that call or behind it, the invariants must hold, and every item must still be completed, once.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, get_args

from leaseq_conformance.cases import Case, FailedError, VerdictError, passed
from leaseq_conformance.gate import ANY_CALL, Do, Point, When
from leaseq_conformance.own_hand import drain, end_everything
from leaseq_conformance.scenarios import keys, values
from leaseq_conformance.sweep.operations import LEASE, OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import redis

    from leaseq_conformance.actor import Answer, Pending
    from leaseq_conformance.cases import Context, Verdict
    from leaseq_conformance.crew import Shift
    from leaseq_conformance.gate import Command
    from leaseq_conformance.sweep.operations import Call, Operation

QUEUES: Final = ("q", "r")
STRUCK, OTHER = "struck", "other"
KILL_RULES: Final = ("LQ-FAIL-1", "LQ-FAIL-3", "LQ-ITEM-3", "LQ-COMPLETE-2")
DROP_RULES: Final = ("LQ-CLIENT-1", "LQ-ERROR-4", "LQ-COMPLETE-2")
LOST: Final = {"before": "lost-reply-repeated", "after": "lost-reply-definite"}
OF_ITS_TIME: Final = ("created", "token", "expires")
"""Fields of a record that differ from run to run."""
POLL_SECS: Final = 0.005
NEVER: Final = Point("nobody", None, "before", "hold", 1)
"""A point that no command reaches."""


def cases() -> Sequence[Case]:
    """Four for each operation."""
    return [
        _case(name, fate, when) for name in OPERATIONS for fate in ("kill", "drop") for when in get_args(When)
    ]


def _case(name: str, fate: str, when: str) -> Case:
    operation = OPERATIONS[name]
    what = "the client is killed" if fate == "kill" else "the connection is lost"
    where = (
        "before the server hears a command"
        if when == "before"
        else "when the server has run a command, its reply untold"
    )
    rules = KILL_RULES if fate == "kill" else DROP_RULES
    catches = ("in-two-steps",) if fate == "kill" else (LOST[when],)
    body = {"operation": name, "call": operation.call, "before": operation.before, "do": fate, "when": when}
    return Case(
        f"sweep/{name}-{fate}-{when}", f"{name}: {what} {where}", rules, operation.capabilities, catches, body
    )


def run(case: Case, context: Context) -> Verdict:
    """Watch the operation, then strike at each of its commands."""
    operation, do, when = OPERATIONS[case.body["operation"]], case.body["do"], case.body["when"]
    with context.server.client() as client:
        targets = _watch(operation, context, client)
        transcript: list[str] = []
        for number, target in enumerate(targets, 1):
            strike = _Strike(operation, context, client, target, f"{number} of {len(targets)}")
            transcript += strike.run(do, when)
    return passed(transcript)


@dataclass(frozen=True)
class _Target:
    """A command to strike: the nth of its name in the operation, and for a call pictures before it and behind it."""

    label: str
    nth: int
    before: list[Any] | None = None
    behind: list[Any] | None = None


def _prepare(operation: Operation, shift: Shift, client: redis.Redis, patience: float) -> values.Saved:
    """Make the queue that the operation finds; the tokens of what is leased."""
    shift.declare("q", "g")
    shift.declare("r", "g")
    tokens: values.Saved = {}
    if not operation.fresh:
        _begin(shift, STRUCK, "r", LEASE, tokens).answer(patience)  # finds nothing, and leaves a connection
    for call in operation.before:
        answer = _begin(shift, STRUCK, "q", call, tokens).answer(patience).ok
        for lease in answer["leases"] if isinstance(answer, dict) and "leases" in answer else ():
            tokens[values.text(lease["id"])] = lease["token"]
    for item_id, after_ms in operation.forge.items():
        keys.forge(client, shift.prefix("q"), "deadline", item_id, after_ms)
    shift.hand(STRUCK, *QUEUES)
    client.script_flush()  # so that the fallback to EVAL is swept too
    return tokens


def _begin(shift: Shift, actor: str, queue: str | None, call: Call, tokens: values.Saved) -> Pending:
    method, args = call
    return shift.start(actor, queue, method, values.filled(values.plain(args), tokens))


def _picture(shift: Shift, client: redis.Redis) -> list[Any]:
    """Both queues, without what differs from run to run."""
    pictures = [keys.picture(keys.read(client, shift.prefix(queue))) for queue in QUEUES]
    for picture in pictures:
        for record in picture["records"].values():
            for name in OF_ITS_TIME:
                record.pop(name)
    return pictures


def _watch(operation: Operation, context: Context, client: redis.Redis) -> list[_Target]:
    """The commands of the operation when nothing happens to it: its calls, then what is sent besides."""
    with context.the_crew.shift() as shift:
        tokens = _prepare(operation, shift, client, context.patience)
        earlier = len(shift.gate.of(STRUCK))
        targets: list[_Target] = []
        count: Counter[str] = Counter()
        picture = _picture(shift, client)
        point = shift.gate.point(STRUCK, ANY_CALL, "after")
        pending = _begin(shift, STRUCK, operation.queue, operation.call, tokens)
        while _next(operation, shift, point, pending, context.patience):
            label = point.reached().label
            before, picture = picture, _picture(shift, client)
            count[label] += 1
            targets.append(_Target(label, count[label], before, picture))
            done, point = point, shift.gate.point(STRUCK, ANY_CALL, "after")
            done.let_go()
        answer = pending.answer(context.patience)
        if answer.kind != "ok" or not targets:
            raise FailedError(f"with nothing wrong it answered {answer}", shift.transcript())
        for command in shift.gate.of(STRUCK)[earlier:]:
            if not command.is_named(ANY_CALL):
                count[command.label] += 1
                targets.append(_Target(command.label, count[command.label]))
        return targets


def _next(operation: Operation, shift: Shift, point: Point, pending: Pending, patience: float) -> bool:
    """Wait for the next command's reply (true) or for the end of the operation."""
    deadline = time.monotonic() + patience
    while not point.was_reached:
        if pending.done:
            return False
        if time.monotonic() > deadline:
            raise FailedError(f"neither a command nor an answer in {patience:.0f} s", shift.transcript())
        _meanwhile(operation, shift, patience)
        time.sleep(POLL_SECS)
    return True


def _meanwhile(operation: Operation, shift: Shift, patience: float) -> None:
    """What somebody else does, once, when the operation blocks."""
    if operation.meanwhile is None or shift.gate.of(OTHER):
        return
    if any(command.sent and command.reply is None for command in shift.gate.of(STRUCK, "BLPOP")):
        method, args = operation.meanwhile
        shift.call(OTHER, "q", method, patience, values.plain(args))


@dataclass
class _Strike:
    """The operation, struck at its command of this number."""

    operation: Operation
    context: Context
    client: redis.Redis
    target: _Target
    place: str

    def run(self, do: str, when: When) -> tuple[str, ...]:
        """Strike, and look at what is left; the transcript."""
        with self.context.the_crew.shift() as shift:
            try:
                self._strike(shift, do, when)
            except VerdictError as error:
                error.args = (f"at command {self.place}: {error}",)
                error.transcript = shift.transcript()
                raise
            return shift.transcript()

    def _strike(self, shift: Shift, do: str, when: When) -> None:
        tokens = _prepare(self.operation, shift, self.client, self.context.patience)
        fate: Do = "kill" if do == "kill" else "drop"
        point = shift.gate.point(STRUCK, self.target.label, when, fate, self.target.nth)
        pending = _begin(shift, STRUCK, self.operation.queue, self.operation.call, tokens)
        if not _next(self.operation, shift, point, pending, self.context.patience):
            return  # with fewer commands than when it was watched: in the background, or where it waits
        struck = point.reached()
        while not pending.done and _next(self.operation, shift, NEVER, pending, self.context.patience):
            pass
        answer = pending.answer(self.context.patience)
        if do == "drop":
            self._look_at_answer(shift, struck, answer)
        self._look_at_keys(shift, struck, when)
        self._work_to_the_end(shift)

    def _look_at_answer(self, shift: Shift, struck: Command, answer: Answer) -> None:
        if struck.script in {None, "settle"}:
            return  # greetings and blocks may be made again, and a settle that fails is no error
        if answer.kind != "error":
            raise FailedError(
                f"its connection was lost, and it answered {answer.kind}: {values.shown(answer.value)}"
            )
        if answer.value["definite"]:
            raise FailedError(
                "the connection was lost when the call was sent, and it says that it knows the effect"
            )
        again = [later for later in shift.gate.of(STRUCK, struck.label) if later.number > struck.number]
        if again:
            raise FailedError(f"it sent {struck.label} again")

    def _look_at_keys(self, shift: Shift, struck: Command, when: When) -> None:
        for queue in QUEUES:
            broken = keys.broken(self.client, shift.prefix(queue))
            if broken:
                raise FailedError(f"invariants of {queue}: {'; '.join(broken)}")
        if struck.script is None or self.operation.meanwhile is not None:
            return
        expected = self.target.before if when == "before" else self.target.behind
        found = _picture(shift, self.client)
        if expected is not None and found != expected:
            raise FailedError(
                "the queue is neither as before the command nor as behind it",
                difference=_difference(expected, found),
            )

    def _work_to_the_end(self, shift: Shift) -> None:
        for queue in QUEUES:
            prefix = shift.prefix(queue)
            end_everything(self.client, prefix)
            left = set(keys.read(self.client, prefix).items)
            completed = drain(self.client, prefix)
            if sorted(completed) != sorted(left):
                raise FailedError(f"of {sorted(left)} in {queue}, {sorted(completed)} could be completed")
            if keys.read(self.client, prefix).items:
                raise FailedError(f"items are left in {queue}")


def _difference(expected: list[Any], found: list[Any]) -> str:
    return "\n".join(
        f"{queue}.{name}: expected {wanted[name]!r}\n{' ' * len(queue + name)}     found {got[name]!r}"
        for queue, wanted, got in zip(QUEUES, expected, found, strict=True)
        for name in wanted
        if wanted[name] != got[name]
    )
