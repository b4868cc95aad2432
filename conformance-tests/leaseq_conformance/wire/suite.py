"""The suite of wire cases, as the runner takes it."""

import json
import time
from collections.abc import Sequence
from typing import Any, Final

from leaseq_conformance.adapter_pool import CaseSession
from leaseq_conformance.adapter_process import AdapterError, AdapterFaultError, Answer, NoAnswerError
from leaseq_conformance.cases import BrokenError, Case, Context, FailedError, UnjudgedError, Verdict, passed
from leaseq_conformance.scenarios.values import MismatchError, match, plain, shown
from leaseq_conformance.wire.load import load_all
from leaseq_conformance.wire.plan import CALLS, Plan
from leaseq_conformance.wire.words import expanded

ACTOR: Final = "client"
KEPT_UP_SECS: Final = 0.1
"""A step without its block that took so long as the block, but for this, says nothing: the machine stalled."""
GRACE_SECS: Final = 5.0
"""How long what is sent behind an answer is waited for before the client is ended."""

VERDICTS: Final = (FailedError, BrokenError, UnjudgedError)
Step = dict[str, Any]


def cases() -> Sequence[Case]:
    """All wire cases."""
    return load_all()


def run(case: Case, context: Context) -> Verdict:
    """Run a case."""
    with context.session() as session:
        for queue, group in case.body["queues"].items():
            session.declare(queue, group)
        session.adapter(ACTOR, *case.body["queues"])
        took: set[int] = set()
        for number, step in enumerate(case.body["steps"], 1):
            session.note(
                f"step {number}: {json.dumps({name: step[name] for name in step if name != 'sent'})}"
            )
            try:
                _play(step, session, context.patience, took)
            except (FailedError, UnjudgedError, AdapterFaultError) as error:
                judged = next(kind for kind in VERDICTS if isinstance(error, kind))
                raise judged(f"step {number}: {error}", session.transcript()) from error
        return passed(session.transcript())


def _play(step: Step, session: CaseSession, patience: float, took: set[int]) -> None:
    plan = Plan(ACTOR, step["sent"], session.prefix, session.adapter(ACTOR).listener.port)
    session.proxy.add(plan)
    began = time.monotonic()
    try:
        answer = _answer(step, session, patience)
        secs = time.monotonic() - began
        try:
            _check(step, answer, plan)
            _wait_for_the_rest(session, plan, patience)
        except FailedError as error:
            if not plan.blocked() and secs > _time_to_block(step):
                raise UnjudgedError(f"the machine did not keep up: {error}") from error
            raise
    except AdapterError as error:
        # what was answered to the wrong command may have confused the adapter: the command is what counts
        if plan.wrong or ("in_time" in step and isinstance(error, NoAnswerError)):
            raise FailedError(plan.wrong or f"no answer in {patience:.0f} s") from error
        raise
    finally:
        session.proxy.remove(plan)
        took |= plan.took
    seen = [command for command in session.proxy.commands_of(ACTOR) if command.name in CALLS]
    unasked = [command for command in seen if command.number not in took]
    if plan.wrong or unasked:
        raise FailedError(plan.wrong or f"between the steps the client sent {unasked[0].describe()}")


def _wait_for_the_rest(session: CaseSession, plan: Plan, patience: float) -> None:
    """What is sent behind the answer, in the background: no later than the client's end, for which it waits."""
    if plan.finished(GRACE_SECS):
        return
    session.adapter(ACTOR).process.end(patience)
    if not plan.finished(0):
        raise FailedError(f"the client never sent {', '.join(plan.missing())}")
    raise UnjudgedError("the machine did not keep up: the client sent the rest when it was ended only")


def _answer(step: Step, session: CaseSession, patience: float) -> Answer:
    if "open" in step:
        name, group = step["open"]["name"], step["open"].get("group")
        return session.adapter(ACTOR).process.open("opened", name, group)
    args = plain(expanded(step.get("args", {})))
    queue = None if step["call"] == "lease_any" else step.get("queue", "q")
    return session.start(ACTOR, queue, step["call"], args).answer(patience)


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


def _time_to_block(step: Step) -> float:
    """Seconds after which a client that is right may have had no time left for its blocks."""
    blocks = [exchange for lane in step["sent"].values() for exchange in lane if "block" in exchange]
    return min(float(block["most_secs"]) for block in blocks) - KEPT_UP_SECS
