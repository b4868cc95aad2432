"""Histories told step by step: what the server answers comes from the reference model, or is a lie that a test tells."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from leaseq_conformance.history.expected_answers import expected
from leaseq_conformance.history.model_calls import FORGE, run
from leaseq_conformance.history.record import Call, History, Left, Ran, Sent
from leaseq_conformance.model.queue import Queue

if TYPE_CHECKING:
    from collections.abc import Callable

START = 1_800_000_000_000_000
HOUR = 3_600_000


@dataclass
class HistoryBuilder:
    """A history that grows; each call is over before the next starts."""

    history: History = field(default_factory=lambda: History(0, began=START, ended=START * 2))
    queue: Queue = field(default_factory=Queue)
    time: int = START
    _clock: int = 0

    def call(
        self,
        actor: str,
        script: str,
        argv: list[bytes],
        *,
        lie: Callable[[Any], Any] = lambda reply: reply,
        lost: bool = False,
        definite: bool = False,
        runs: int = 1,
        method: str = "",
        args: dict[str, Any] | None = None,
    ) -> Any:
        """Make a call; `lie` changes its reply, `lost` loses it, `runs` is how often the client has it run.

        `method` and `args` are those of the adapter protocol, where they do not follow from the script.
        """
        method = method or script
        self.time += 1000
        number = len(self.history.calls) + 1
        call = Call(number, actor, method, _args(script, argv) if args is None else args, self._tick())
        reply = None
        for _ in range(runs):
            reply = lie(run(self.queue, script, argv, self.time))
            sent = Sent(len(self.history.sent) + 1, actor, number, script, [], argv, passed=True, reply=reply)
            sent.delivered = not lost
            self.history.sent.append(sent)
            self.history.ran.append(Ran(script, [], argv))
        call.end = self._tick()
        if lost:
            error: dict[str, Any] = {"code": None, "definite": definite, "message": "", "answers": []}
            call.answer, call.fault = {"error": error}, "drop after"
        else:
            answer = expected(method, [reply], args=call.args)
            call.answer = {"ok": {"leases": answer} if script == "lease" else answer}
        self.history.calls.append(call)
        return reply

    def add(self, item_id: bytes, data: bytes = b"data", **how: Any) -> Any:
        return self.call("producer", "add", [b"1", item_id, data, b"0"], **how)

    def lease(self, actor: str, **how: Any) -> int:
        """The token."""
        reply = self.call(actor, "lease", [b"1", b"%d" % HOUR], **how)
        return int(reply[5]) if reply and reply[2] else 0

    def wait(self, actor: str, **how: Any) -> Any:
        """A lease that waits, and is answered at its first look."""
        args = {"count": 1, "duration_ms": HOUR, "wait_ms": 100}
        return self.call(actor, "lease", [b"1", b"%d" % HOUR], args=args, **how)

    def complete_and_lease(self, actor: str, item_id: bytes, token: int, **how: Any) -> Any:
        args = {"id": item_id, "token": str(token), "duration_ms": HOUR}
        argv = [b"1", b"%d" % HOUR, b"1", item_id, b"%d" % token, b"0"]
        return self.call(actor, "complete_and_lease", argv, args=args, **how)

    def keep(self, actor: str, item_id: bytes, token: int, result: bytes, **how: Any) -> Any:
        """Complete it and keep its result."""
        options = [b"2", b"keep", b"%d" % HOUR, b"result", result]
        argv = [b"1", b"0", item_id, b"%d" % token, *options, b"0"]
        return self.call(actor, "complete_with", argv, method="complete", **how)

    def hand_off(self, actor: str, item_id: bytes, token: int, follow_up: bytes, **how: Any) -> Any:
        argv = [b"1", b"1", item_id, b"%d" % token, b"0", b"1", b"1", follow_up, b"data", b"0"]
        return self.call(actor, "complete_with", argv, method="hand_off", **how)

    def outcome(self, actor: str, item_id: bytes, **how: Any) -> Any:
        return self.call(actor, "outcome", [b"1", item_id], args={"ids": [item_id]}, **how)

    def complete(self, actor: str, item_id: bytes, token: int, **how: Any) -> Any:
        return self.call(actor, "complete", [b"1", item_id, b"%d" % token, b"0"], **how)

    def extend(self, actor: str, item_id: bytes, token: int, **how: Any) -> Any:
        return self.call(actor, "extend", [b"1", item_id, b"%d" % token, b"%d" % HOUR], **how)

    def release(self, actor: str, item_id: bytes, token: int, **how: Any) -> Any:
        return self.call(actor, "release", [b"1", item_id, b"%d" % token, b"0"], **how)

    def forge(self, item_id: bytes) -> None:
        """End the time of an item."""
        reply = run(self.queue, FORGE, [item_id], 0)
        assert isinstance(reply, bytes)
        call = Call(len(self.history.calls) + 1, "forger", FORGE, {"id": item_id}, self._tick(), self._tick())
        call.answer = {"ok": reply.decode()}
        self.history.calls.append(call)
        self.history.ran.append(Ran(FORGE, [], [item_id]))

    def end(self) -> History:
        """The history, with what the model says is left."""
        for item_id, item in self.queue.items.items():
            self.history.left[item_id.decode()] = Left(item.where, item.data, item.attempt, item.token)
        return self.history

    def _tick(self) -> int:
        self._clock += 1_000_000
        return self._clock


def _args(script: str, argv: list[bytes]) -> dict[str, Any]:
    if script == "add":
        return {"items": [{"id": argv[1], "data": argv[2]}]}
    if script == "lease":
        return {"count": 1, "duration_ms": HOUR}
    return {"items": [{"id": argv[1], "token": argv[2].decode()}]}
