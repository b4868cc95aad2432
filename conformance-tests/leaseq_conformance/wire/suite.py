"""The suite of wire cases, as the runner takes it."""

import contextlib
import json
import threading
import time
from collections.abc import Collection, Sequence
from typing import Any, Final

from leaseq_conformance.adapter_pool import CaseSession
from leaseq_conformance.adapter_process import AdapterError, AdapterFaultError, Answer, NoAnswerError, Pending
from leaseq_conformance.cases import Case, Context
from leaseq_conformance.scenarios.values import MismatchError, match, plain, shown
from leaseq_conformance.verdict import BrokenError, FailedError, UnjudgedError, Verdict, passed
from leaseq_conformance.wire.load import OF_NO_QUEUE, load_all
from leaseq_conformance.wire.notation import expanded
from leaseq_conformance.wire.plan import CALLS, Exchange, Interrupt, Plan, SilentReplies

ACTOR: Final = "client"
MAX_STALL_SECS: Final = 0.1
"""A step without its block that took so long as the block, but for this, says nothing: the machine stalled."""
GRACE_SECS: Final = 5.0
"""Seconds to wait for commands that a client sends after its answer. Then the client is ended."""
LEAVING_SECS: Final = 0.25
"""Seconds to wait for a call that was ended. Then the reply that is on its way to it is delivered."""

VERDICTS: Final = (FailedError, BrokenError, UnjudgedError)
Step = dict[str, Any]


def cases() -> Sequence[Case]:
    """All wire cases."""
    return load_all()


def run(case: Case, context: Context) -> Verdict:
    """Run a case."""
    with context.session() as session:
        for queue, group in case.body["queues"].items():
            session.declare(queue, **({"group": group} if isinstance(group, str) else group))
        if case.body.get("cluster"):
            session.cluster_adapter(ACTOR)
        session.adapter(ACTOR)
        steps = Steps(session, context.patience, (*CALLS, *case.body.get("watch", ())))
        for number, step in enumerate(case.body["steps"], 1):
            session.note(
                f"step {number}: {json.dumps({name: step[name] for name in step if name != 'sent'})}"
            )
            try:
                session.adapter(ACTOR, *case.body["queues"])
                steps.play(step)
            except (FailedError, UnjudgedError, AdapterFaultError) as error:
                judged = next(kind for kind in VERDICTS if isinstance(error, kind))
                raise judged(f"step {number}: {error}", session.transcript()) from error
        steps.end()
        return passed(session.transcript())


class Ending:
    """Ends the call of a step as a user would, when an exchange says so: by a cancel, or by closing the queue.

    A client that cannot end a single call has its queue closed.
    """

    def __init__(self, step: Step, session: CaseSession, patience: float) -> None:
        args = step.get("args", {})
        self._queue: str = args.get("queues", [step.get("queue", "q")])[0]
        self._session = session
        self._patience = patience
        self._call: Pending | None = None
        self._begun = threading.Event()
        self._closing: Pending | None = None

    def begin(self, call: Pending) -> None:
        """This is the call."""
        self._call = call
        self._begun.set()

    def interrupt(self, how: str) -> None:
        """End it; returns when it has its answer, or a little later."""
        self._begun.wait(self._patience)
        call = self._call
        if call is None:
            return
        if how == "close_client":
            self._closing = self._session.close_client(ACTOR)
        elif how == "close" or call.cancel().answer(self._patience).kind == "unsupported":
            adapter = self._session.adapter(ACTOR)
            adapter.opened.discard(self._queue)
            self._closing = adapter.process.send({"op": "close", "queue": self._queue})
        with contextlib.suppress(AdapterError):
            call.answer(LEAVING_SECS)

    def finish(self) -> None:
        """Wait until the queue is closed."""
        if self._closing is not None:
            self._closing.answer(self._patience)


class Steps:
    """The steps of a case, played one after the other."""

    def __init__(self, session: CaseSession, patience: float, watched: Collection[str]) -> None:
        self._session = session
        self._patience = patience
        self._watched = watched
        self._silent = SilentReplies()
        self._plan = self._plan_of({}, lambda _: None, [])
        session.proxy.add(self._plan)

    def play(self, step: Step) -> None:
        """Play a step. Raises FailedError, UnjudgedError and AdapterError."""
        session = self._session
        ending = Ending(step, session, self._patience)
        patience = max(self._patience, float(step.get("in_time", 0)))
        plan = self._replace_plan(step, ending)
        began = time.monotonic()
        try:
            answer = _answer(step, session, patience, ending)
            secs = time.monotonic() - began
            try:
                _check(step, answer, plan)
                _wait_for_the_rest(session, plan, self._patience)
                ending.finish()
            except FailedError as error:
                if _was_slow(step, plan, session, began):
                    raise UnjudgedError(f"the machine did not keep up: {error}") from error
                if not plan.is_wrong_block and not plan.blocked() and secs > _time_to_block(step):
                    raise UnjudgedError(f"the machine did not keep up: {error}") from error
                raise
        except AdapterError as error:
            # what was answered to the wrong command may have confused the adapter: the command is what counts
            if plan.wrong or ("in_time" in step and isinstance(error, NoAnswerError)):
                raise FailedError(plan.wrong or f"no answer in {patience:.0f} s") from error
            raise
        if plan.wrong:
            raise FailedError(plan.wrong)

    def _replace_plan(self, step: Step, ending: Ending) -> Plan:
        """The plan of a step, in the place of the one before."""
        before = self._plan
        plan = self._plan = self._plan_of(step["sent"], ending.interrupt, before.optional())
        self._session.proxy.replace(before, plan)
        if before.wrong:
            raise FailedError(f"between the steps: {before.wrong}")
        return plan

    def _plan_of(self, sent: dict[str, list[Exchange]], interrupt: Interrupt, late: list[Exchange]) -> Plan:
        session = self._session
        port = session.adapter(ACTOR).listener.port
        return Plan(ACTOR, sent, session.prefix, port, self._silent, interrupt, self._watched, late)

    def end(self) -> None:
        """The case is over, and what the client still waits for ends. Raises FailedError."""
        if self._plan.wrong:
            raise FailedError(self._plan.wrong, self._session.transcript())
        self._silent.end()


def _was_slow(step: Step, plan: Plan, session: CaseSession, since: float) -> bool:
    """Return whether the harness itself was late where the time of an exchange is judged."""
    timed = any("most_ms" in exchange for sequence in step["sent"].values() for exchange in sequence)
    return timed and bool(plan.wrong) and session.longest_stall(since) > MAX_STALL_SECS


def _wait_for_the_rest(session: CaseSession, plan: Plan, patience: float) -> None:
    """Wait for commands that are sent in the background behind the answer, at most until the client's end."""
    if plan.finished(GRACE_SECS):
        return
    session.adapter(ACTOR).process.stop(patience)
    if not plan.finished(0):
        raise FailedError(f"the client never sent {', '.join(plan.missing())}")
    raise UnjudgedError("the machine did not keep up: the client sent the rest when it was ended only")


def _answer(step: Step, session: CaseSession, patience: float, ending: Ending) -> Answer:
    if "open" in step:
        name, group = step["open"]["name"], step["open"].get("group")
        return session.adapter(ACTOR).process.open("opened", name, group)
    if "close_client" in step:
        return session.close_client(ACTOR).answer(patience)
    args = plain(expanded(step.get("args", {})))
    queue = None if step["call"] in OF_NO_QUEUE else step.get("queue", "q")
    pending = session.start(ACTOR, queue, step["call"], args)
    ending.begin(pending)
    return pending.answer(patience)


def _check(step: Step, answer: Answer, plan: Plan) -> None:
    if plan.wrong:
        raise FailedError(plan.wrong)
    wanted = step.get("either", [step])
    mismatches: list[str] = []
    for one in wanted:
        try:
            _check_one(one, answer)
        except MismatchError as error:
            mismatches.append(str(error))
    if len(mismatches) == len(wanted):
        raise FailedError("; nor: ".join(mismatches))


def _check_one(wanted: Step, answer: Answer) -> None:
    kind = next(name for name in ("ok", "error", "cancelled") if name in wanted)
    if answer.kind != kind:
        raise MismatchError(
            f"answered {answer.kind} {shown(answer.value)}, expected {kind} {shown(wanted[kind])}"
        )
    if kind == "cancelled":
        return
    expected = plain(expanded(wanted[kind]))
    if kind == "error":
        text, needed = expected.pop("without", None), expected.pop("with", "")
        if text is not None and text in str(answer.value):
            raise MismatchError(f"the error holds {text!r}: {answer.value}")
        if needed not in str(answer.value):
            raise MismatchError(f"the error does not say {needed!r}: {answer.value}")
    match(expected, answer.value, {})


def _time_to_block(step: Step) -> float:
    """Seconds after which a client that is right may have had no time left for its blocks."""
    exchanges = [exchange for sequence in step["sent"].values() for exchange in sequence]
    held = sum(float(exchange.get("after_ms", 0)) for exchange in exchanges) / 1000
    return min(float(each["most_secs"]) for each in exchanges if "block" in each) + held - MAX_STALL_SECS
