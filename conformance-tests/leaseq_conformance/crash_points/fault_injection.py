"""One fault at one crash point of an operation, and what must be true afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from leaseq_conformance.crash_points.operations import GROUPS
from leaseq_conformance.crash_points.rehearsal import CLIENT
from leaseq_conformance.queue_admin import drain_queue, expire_everything
from leaseq_conformance.scenarios import key_inspector, values
from leaseq_conformance.verdict import FailedError

if TYPE_CHECKING:
    import redis

    from leaseq_conformance.adapter_process import Answer
    from leaseq_conformance.crash_points.rehearsal import CrashPoint, Rehearsal, Snapshot
    from leaseq_conformance.fault_proxy import Action, Command, When

Fault = Literal["drop", "kill"]
ACTIONS: Final[dict[Fault, Action]] = {"drop": "disconnect", "kill": "kill"}
BEHIND_THE_CALL: Final = ("settle", "outcome")
"""Scripts that a client also calls behind the answer, where a lost reply is no error of the operation."""


class FaultInjection:
    """The operation with one fault.

    Args:
        fault: `drop` resets the connection, `kill` kills the client.
        when: before the server gets the command, or after it has answered.
    """

    def __init__(
        self, rehearsal: Rehearsal, client: redis.Redis, point: CrashPoint, fault: Fault, when: When
    ) -> None:
        self._rehearsal = rehearsal
        self._client = client
        self._point = point
        self._fault: Fault = fault
        self._when: When = when

    def run(self, patience: float) -> None:
        """Run the operation, let the fault happen and look at the answer and the queues.

        Raises:
            FailedError: something is not as it must be.
        """
        rehearsal = self._rehearsal
        breakpoint_ = rehearsal.add_breakpoint(
            self._point.label, self._when, ACTIONS[self._fault], self._point.nth
        )
        pending = rehearsal.begin()
        if not rehearsal.next_command(breakpoint_, pending):
            return  # it took fewer commands than undisturbed: some are sent behind the answer, or as often as it waits
        command = breakpoint_.wait()
        rehearsal.next_command(None, pending)
        if self._fault == "drop":
            self._check_answer(command, pending.answer(patience))
        self._check_queues(command)
        self._work_to_the_end()

    def _check_answer(self, command: Command, answer: Answer) -> None:
        method = self._rehearsal.operation.call[0]
        if command.script is None or (command.script in BEHIND_THE_CALL and command.script not in method):
            return  # greetings and blocks may be sent again, and what is sent behind the answer may fail
        if answer.kind != "error":
            raise FailedError(
                f"its connection was lost, and it answered {answer.kind}: {values.shown(answer.value)}"
            )
        if answer.value["definite"]:
            raise FailedError(
                "its connection was lost after the call was sent, but its error is definite (LQ-ERROR-4)"
            )
        sent = self._rehearsal.proxy.commands_of(CLIENT, command.label)
        if any(
            (later.keys, later.argv) == (command.keys, command.argv)
            for later in sent
            if later.number > command.number
        ):
            raise FailedError(f"its connection was lost, and it sent {command.label} again (LQ-CLIENT-1)")

    def _check_queues(self, command: Command) -> None:
        for queue in GROUPS:
            broken = key_inspector.broken(self._client, self._rehearsal.prefix(queue))
            if broken:
                raise FailedError(f"invariants of {queue} are broken: {'; '.join(broken)}")
        if command.script is None or self._rehearsal.operation.meanwhile:
            return
        expected = self._point.before if self._when == "before" else self._point.behind
        found = self._rehearsal.snapshot()
        if expected is not None and found != expected:
            raise FailedError(
                f"the queues are not as they were undisturbed {'before' if self._when == 'before' else 'behind'} the command",
                difference=_difference(expected, found),
            )

    def _work_to_the_end(self) -> None:
        """Every item that is left can be completed, once."""
        for queue in GROUPS:
            prefix = self._rehearsal.prefix(queue)
            expire_everything(self._client, prefix)
            left = set(key_inspector.read(self._client, prefix).items)
            completed = drain_queue(self._client, prefix)
            if sorted(completed) != sorted(left):
                raise FailedError(f"{queue} holds {sorted(left)}, but {sorted(completed)} could be completed")
            if key_inspector.read(self._client, prefix).items:
                raise FailedError(f"items are left in {queue} when all were completed")


def _difference(expected: Snapshot, found: Snapshot) -> str:
    def line(queue: str, name: str, wanted: Any, got: Any) -> str:
        return f"{queue}.{name}: expected {wanted!r}\n{' ' * len(queue + name)}     found {got!r}"

    return "\n".join(
        line(queue, name, wanted[name], got[name])
        for queue, wanted, got in zip(GROUPS, expected, found, strict=True)
        for name in wanted
        if wanted[name] != got[name]
    )
