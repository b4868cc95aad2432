"""The suite of wire cases, as the runner takes it."""

import json
import time
from collections.abc import Sequence
from typing import Any, Final

from leaseq_conformance.actor import ActorError, AdapterFaultError, Answer, NoAnswerError
from leaseq_conformance.cases import BrokenError, Case, Context, FailedError, UnjudgedError, Verdict, passed
from leaseq_conformance.crew import Shift
from leaseq_conformance.scenarios.values import MismatchError, match, plain, shown
from leaseq_conformance.wire.load import load_all
from leaseq_conformance.wire.plan import CALLS, Plan
from leaseq_conformance.wire.words import expanded

ACTOR: Final = "client"
KEPT_UP_SECS: Final = 1.0
"""A step with a block that took longer than its time and this tells nothing when it goes wrong: the machine stalled."""
GRACE_SECS: Final = 5.0
"""How long what is sent behind an answer is waited for before the client is ended."""

Step = dict[str, Any]


def cases() -> Sequence[Case]:
    """All wire cases."""
    return load_all()


def run(case: Case, context: Context) -> Verdict:
    """Run a case."""
    with context.the_crew.shift() as shift:
        for queue, group in case.body["queues"].items():
            shift.declare(queue, group)
        shift.hand(ACTOR, *case.body["queues"])
        took: set[int] = set()
        for number, step in enumerate(case.body["steps"], 1):
            shift.note(f"step {number}: {json.dumps({name: step[name] for name in step if name != 'sent'})}")
            began = time.monotonic()
            try:
                _play(step, shift, context.patience, took)
            except (MismatchError, FailedError) as error:
                message, slow = f"step {number}: {error}", _too_slow(step, time.monotonic() - began)
                if slow:
                    raise UnjudgedError(
                        f"the machine did not keep up: {message}", shift.transcript()
                    ) from error
                raise FailedError(message, shift.transcript()) from error
            except AdapterFaultError as error:
                raise BrokenError(f"step {number}: {error}", shift.transcript()) from error
            except NoAnswerError as error:
                raise UnjudgedError(f"step {number}: {error}", shift.transcript()) from error
        return passed(shift.transcript())


def _play(step: Step, shift: Shift, patience: float, took: set[int]) -> None:
    hand = shift.hand(ACTOR)
    plan = Plan(ACTOR, step["sent"], shift.prefix, hand.door.port)
    shift.gate.add(plan)
    try:
        _check(step, _answer(step, shift, patience), plan)
        _wait_for_the_rest(shift, plan, patience)
    except ActorError as error:
        # what was answered to the wrong command may have confused the adapter: the command is what counts
        raise (FailedError(plan.wrong) if plan.wrong else error) from error
    finally:
        shift.gate.remove(plan)
        took |= plan.took
    if plan.wrong:
        raise FailedError(plan.wrong)
    unasked = [
        command for command in shift.gate.of(ACTOR) if command.name in CALLS and command.number not in took
    ]
    if unasked:
        raise FailedError(f"between the steps the client sent {unasked[0].line()}")


def _wait_for_the_rest(shift: Shift, plan: Plan, patience: float) -> None:
    """What is sent behind the answer, in the background: no later than the client's end, for which it waits."""
    if plan.finished(GRACE_SECS):
        return
    shift.hand(ACTOR).actor.end(patience)
    if not plan.finished(0):
        raise FailedError(f"the client never sent {plan.missing()}")
    raise UnjudgedError("the machine did not keep up: the client sent the rest when it was ended only")


def _answer(step: Step, shift: Shift, patience: float) -> Answer:
    if "open" in step:
        name, group = step["open"]["name"], step["open"].get("group")
        return shift.hand(ACTOR).actor.open("opened", name, group)
    args = plain(expanded(step.get("args", {})))
    queue = None if step["call"] == "lease_any" else step.get("queue", "q")
    return shift.start(ACTOR, queue, step["call"], args).answer(patience)


def _check(step: Step, answer: Answer, plan: Plan) -> None:
    if plan.wrong:
        raise FailedError(plan.wrong)
    wanted = step.get("either", [step])
    told: list[str] = []
    for one in wanted:
        try:
            _check_one(one, answer)
        except MismatchError as error:
            told.append(str(error))
    if len(told) == len(wanted):
        raise FailedError("; nor: ".join(told))


def _check_one(wanted: Step, answer: Answer) -> None:
    kind = "ok" if "ok" in wanted else "error"
    if answer.kind != kind:
        raise MismatchError(
            f"answered {answer.kind} {shown(answer.value)}, expected {kind} {shown(wanted[kind])}"
        )
    expected = plain(expanded(wanted[kind]))
    if kind == "error":
        text = expected.pop("without", None)
        if text is not None and text in str(answer.value):
            raise MismatchError(f"the error holds {text!r}: {answer.value}")
    match(expected, answer.value, {})


def _too_slow(step: Step, secs: float) -> bool:
    blocks = [exchange for lane in step["sent"].values() for exchange in lane if "block" in exchange]
    return bool(blocks) and secs > sum(block["most_secs"] for block in blocks) + KEPT_UP_SECS
