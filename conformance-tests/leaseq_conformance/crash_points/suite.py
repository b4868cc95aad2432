"""The suite `crash-points`: each operation with its connection dropped at every command, or its client killed between two.

Nothing about a client is written down here. Each case first runs the operation undisturbed, command by command, and takes a
snapshot of the queues behind each. Then it runs the operation anew for each command, with a fault there. A command is found
again as the nth of its name, because other commands of a client (greetings, the registry) may come earlier, later or not at
all. What is left must be the snapshot before the command or behind it, the invariants must hold, and every item must still be
completed, once.

A kill shows something only where an operation is half done, so a client is killed behind each command that changed a queue, but
for the last of its operation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance.cases import Case
from leaseq_conformance.crash_points.fault_injection import FaultInjection
from leaseq_conformance.crash_points.operations import OPERATIONS
from leaseq_conformance.crash_points.rehearsal import Rehearsal, crash_points
from leaseq_conformance.verdict import VerdictError, passed

if TYPE_CHECKING:
    from collections.abc import Sequence

    import redis

    from leaseq_conformance.cases import Context
    from leaseq_conformance.crash_points.fault_injection import Fault
    from leaseq_conformance.crash_points.operations import Operation
    from leaseq_conformance.crash_points.rehearsal import CrashPoint
    from leaseq_conformance.fault_proxy import When
    from leaseq_conformance.verdict import Verdict

DROP_RULES: Final = ("LQ-CLIENT-1", "LQ-ERROR-4", "LQ-COMPLETE-2")
KILL_RULES: Final = ("LQ-FAIL-1", "LQ-FAIL-3", "LQ-ITEM-3", "LQ-COMPLETE-2")
FAULTS: Final[dict[str, tuple[str, tuple[str, ...], Fault, When]]] = {
    "drop-before": (
        "its connection is dropped before the server gets a command",
        DROP_RULES,
        "drop",
        "before",
    ),
    "drop-after": ("its connection is dropped before it gets a reply", DROP_RULES, "drop", "after"),
    "kill": ("its client is killed between two commands that change a queue", KILL_RULES, "kill", "after"),
}


def cases() -> Sequence[Case]:
    """Three for each operation."""
    return [
        Case(
            f"crash-points/{name}-{kind}",
            f"{name}: {title}",
            rules,
            operation.capabilities,
            {"operation": name, "call": operation.call, "before": operation.before, "fault": kind},
        )
        for name, operation in OPERATIONS.items()
        for kind, (title, rules, _, _) in FAULTS.items()
    ]


def run(case: Case, context: Context) -> Verdict:
    """Find the crash points of the operation, then run it with a fault at each of them in turn."""
    operation, kind = OPERATIONS[case.body["operation"]], case.body["fault"]
    _, _, fault, when = FAULTS[kind]
    with context.server.client() as client:
        with context.session() as session:
            points = crash_points(Rehearsal(operation, session, client, context.patience), context.patience)
            transcript = [f"{point.label} {point.nth}" for point in points]
        chosen = _between_changes(points) if fault == "kill" else points
        for number, point in enumerate(chosen, 1):
            place = f"{point.label} ({number} of {len(chosen)})"
            transcript += _run_with_fault(operation, point, (fault, when), place, context, client)
    return passed(transcript)


def _between_changes(points: Sequence[CrashPoint]) -> list[CrashPoint]:
    return [point for point in points if point.changes][:-1]


def _run_with_fault(
    operation: Operation,
    point: CrashPoint,
    how: tuple[Fault, When],
    place: str,
    context: Context,
    client: redis.Redis,
) -> tuple[str, ...]:
    with context.session() as session:
        try:
            injection = FaultInjection(
                Rehearsal(operation, session, client, context.patience), client, point, *how
            )
            injection.run(context.patience)
        except VerdictError as error:
            message: Any = f"at command {place}: {error}"
            error.args = (message,)
            error.transcript = session.transcript()
            raise
        return session.transcript()
