"""The suite `history`: random runs of several clients, judged by the reference model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance.cases import Case
from leaseq_conformance.history import replay, workload
from leaseq_conformance.history.run import run as run_program
from leaseq_conformance.verdict import BrokenError, UnjudgedError, Verdict, failed, passed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leaseq_conformance.cases import Context
    from leaseq_conformance.history.record import Call, History

ALWAYS: Final = (
    "LQ-ADD-1",
    "LQ-COMPLETE-2",
    "LQ-EXTEND-2",
    "LQ-LEASE-2",
    "LQ-LEASE-3",
    "LQ-LEASE-9",
    "LQ-RELEASE-1",
)
_BODIES: Final[dict[str, dict[str, Any]]] = {
    "crowd": {"clients": 4, "steps": 40, "faults": 0.0},
    "faults": {"clients": 4, "steps": 40, "faults": 0.08},
}


def cases() -> Sequence[Case]:
    """One crowd that nothing happens to, and one whose replies are lost and whose processes are killed."""
    return [
        Case(
            "history/crowd",
            "four clients at random on eight items: some order of their calls explains every answer",
            ALWAYS,
            ("core",),
            _BODIES["crowd"],
        ),
        Case(
            "history/faults",
            "the same while replies are lost and processes killed: nothing is run twice, lost, or told wrongly",
            (*ALWAYS, "LQ-CLIENT-1", "LQ-ERROR-4"),
            ("core",),
            _BODIES["faults"],
        ),
    ]


def run(case: Case, context: Context) -> Verdict:
    """Run and judge one history of the context's seed."""
    return judge(record(context, context.seed, **case.body))


def record(context: Context, seed: int, **drawn: Any) -> History:
    """Run the programs that are drawn from a seed, on an empty queue."""
    drawn = {"actors": drawn["clients"], "steps": drawn["steps"], "faulty": drawn["faults"]}
    return run_program(workload.draw(seed, context.capabilities, **drawn), context)


def judge(history: History) -> Verdict:
    """The verdict on a history.

    Raises:
        BrokenError: an adapter broke its protocol.
        UnjudgedError: an answer did not come in time, or the server's order is not known.
    """
    for complaint in history.complaints:
        kind, _, text = complaint.partition(": ")
        raise BrokenError(text) if kind == "error" else UnjudgedError(text)
    wrong = replay.check(history)
    if wrong:
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        return failed(f"seed {history.seed}: {wrong[0]}{more}", [*wrong, *lines(history)])
    return passed(lines(history))


def lines(history: History) -> list[str]:
    """Return the calls of a history in the order in which they started, one line each, with times in milliseconds."""
    zero = history.calls[0].begin if history.calls else 0
    return [_line(call, zero) for call in history.calls]


def _line(call: Call, zero: int) -> str:
    begin = (call.begin - zero) / 1e6
    end = "" if call.end is None else f"{(call.end - zero) / 1e6:.1f}"
    answer = "no answer" if call.answer is None else call.answer.get("ok", call.answer)
    fault = f"  [{call.fault}]" if call.fault else ""
    return (
        f"{call.number:>4} {begin:9.1f}..{end:<9} {call.actor} {call.method} {call.args} -> {answer}{fault}"
    )
