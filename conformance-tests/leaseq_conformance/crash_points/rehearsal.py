"""One run of an operation through the proxy, command by command."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance.crash_points.operations import GROUPS
from leaseq_conformance.fault_proxy import ANY_CALL, Breakpoint
from leaseq_conformance.scenarios import key_inspector, values
from leaseq_conformance.verdict import FailedError

if TYPE_CHECKING:
    import redis

    from leaseq_conformance.adapter_pool import CaseSession
    from leaseq_conformance.adapter_process import Pending
    from leaseq_conformance.crash_points.operations import Call, Operation
    from leaseq_conformance.fault_proxy import Action, Command, When

CLIENT, OTHER = "client", "other"
OF_ITS_TIME: Final = ("created", "token", "expires")
"""Fields of a record that differ from run to run."""
POLL_SECS: Final = 0.005

Snapshot = list[dict[str, Any]]
"""The queues, in the order of GROUPS, without what differs from run to run."""


@dataclass(frozen=True)
class CrashPoint:
    """A command of the operation: the nth of its name, with the queues before and behind it.

    `before` and `behind` are None for a command that was not held while the queues were looked at.
    """

    label: str
    nth: int
    before: Snapshot | None = None
    behind: Snapshot | None = None

    @property
    def changes(self) -> bool:
        """True if the command changed a queue."""
        return self.before != self.behind


class OwnBreakpoint(Breakpoint):
    """A breakpoint for the commands of this operation: a client settles a queue of the case before in its own time."""

    def __init__(self, rehearsal: Rehearsal, label: str | None, when: When, action: Action, nth: int) -> None:
        super().__init__(CLIENT, label, when, action, nth)
        self._rehearsal = rehearsal

    def matches(self, command: Command) -> bool:
        """Return whether it stops this command."""
        return self._rehearsal.is_ours(command) and super().matches(command)


class Rehearsal:
    """An operation under way: its client, the other one, and the queues.

    Raises:
        AssertionError: a call that prepares the queues failed.
    """

    def __init__(
        self, operation: Operation, session: CaseSession, client: redis.Redis, patience: float
    ) -> None:
        self.operation = operation
        self.session = session
        self.proxy = session.proxy
        self._client = client
        self._patience = patience
        self._tokens: values.Saved = {}
        for queue, group in GROUPS.items():
            session.declare(queue, group)
        if not operation.fresh:  # a call that finds nothing opens the connection
            self._call(CLIENT, "s", ("lease", {"duration_ms": 1000}))
        for call in operation.before:
            self._call(CLIENT, "q", call)
        for item_id, after_ms in operation.forge.items():
            key_inspector.forge(client, session.prefix("q"), "deadline", item_id, after_ms)
        session.adapter(CLIENT, *GROUPS)
        client.script_flush()  # so that the EVAL that follows NOSCRIPT is a crash point too
        self.earlier = len(self.proxy.commands_of(CLIENT))

    def is_ours(self, command: Command) -> bool:
        """Return whether a command is about the queues of this case: every one is, but calls of scripts on other queues."""
        prefixes = tuple(self.prefix(queue).encode() for queue in GROUPS)
        return not command.keys or any(key.startswith(prefixes) for key in command.keys)

    def add_breakpoint(
        self, label: str | None, when: When, action: Action = "hold", nth: int = 1
    ) -> OwnBreakpoint:
        """Stop the nth command from now on that is about the queues of this case, and named so."""
        point = OwnBreakpoint(self, label, when, action, nth)
        self.proxy.add(point)
        return point

    def begin(self) -> Pending:
        """Start the operation."""
        return self._start(CLIENT, self.operation.queue, self.operation.call)

    def next_command(self, point: Breakpoint | None, pending: Pending) -> bool:
        """Wait until a command reaches the breakpoint (true) or the operation has its answer."""
        deadline = time.monotonic() + self._patience
        while point is None or not point.hit:
            if pending.done:
                return False
            if time.monotonic() > deadline:
                missing = "no answer" if point is None else "neither a command nor an answer"
                raise FailedError(f"{missing} came within {self._patience:.0f} s")
            self._make_other_calls()
            time.sleep(POLL_SECS)
        return True

    def snapshot(self) -> Snapshot:
        """The queues as they are now."""
        found = [
            key_inspector.picture(key_inspector.read(self._client, self.prefix(queue))) for queue in GROUPS
        ]
        for queue in found:
            for record in queue["records"].values():
                for name in OF_ITS_TIME:
                    record.pop(name)
        return found

    def prefix(self, queue: str) -> str:
        """Return the prefix of a queue's keys."""
        return self.session.prefix(queue)

    def _start(self, actor: str, queue: str | None, call: Call) -> Pending:
        method, args = call
        filled = values.filled(values.plain(args), self._tokens)
        return self.session.start(actor, queue, method, filled)

    def _call(self, actor: str, queue: str, call: Call) -> None:
        """Make a call and remember the tokens that it was given."""
        answer = self._start(actor, queue, call).answer(self._patience).ok
        for lease in answer["leases"] if isinstance(answer, dict) and "leases" in answer else ():
            self._tokens[values.text(lease["id"])] = lease["token"]

    def _make_other_calls(self) -> None:
        """Make the calls of the other client, once, when the operation blocks."""
        if not self.operation.meanwhile or self.proxy.commands_of(OTHER):
            return
        blocks = [command for name in ("BLPOP", "BLMOVE") for command in self.proxy.commands_of(CLIENT, name)]
        if any(command.sent and command.reply is None for command in blocks):
            for call in self.operation.meanwhile:
                self._call(OTHER, "q", call)


def crash_points(rehearsal: Rehearsal, patience: float) -> list[CrashPoint]:
    """Run the operation undisturbed and return its commands in their order, with the queues around those that were held.

    A command that is sent while another one is held, as a registration may be, is not held, and counts all the same.

    Raises:
        FailedError: it does not succeed.
    """
    held: dict[int, tuple[Snapshot, Snapshot]] = {}
    snapshot = rehearsal.snapshot()
    point = rehearsal.add_breakpoint(None, "after")
    pending = rehearsal.begin()
    while rehearsal.next_command(point, pending):
        command = point.wait()
        before, snapshot = snapshot, rehearsal.snapshot()
        held[command.number] = (before, snapshot)
        done, point = point, rehearsal.add_breakpoint(None, "after")
        done.resume()
    answer = pending.answer(patience)
    if answer.kind != "ok":
        raise FailedError(f"undisturbed, it was answered {answer.kind}: {values.shown(answer.value)}")
    sent = rehearsal.proxy.commands_of(CLIENT)[rehearsal.earlier :]
    commands = [command for command in sent if rehearsal.is_ours(command)]
    if not any(command.is_named(ANY_CALL) for command in commands):
        raise FailedError("undisturbed, it succeeded without calling a script")
    found: list[CrashPoint] = []
    count: Counter[str] = Counter()
    for command in commands:
        count[command.label] += 1
        found.append(CrashPoint(command.label, count[command.label], *held.get(command.number, ())))
    return found
