"""A history held against the reference model, in the order in which the server ran it.

Every script of the protocol is one step, so no order has to be searched for: the model makes the same calls in the same
order, and every reply, every answer of a client and what is left at the end must be what it says.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance.history.expected_answers import UnexplainedError, expected, given
from leaseq_conformance.history.model_calls import FORGE, UnreadableError, duration_of, run
from leaseq_conformance.model.base import NEVER, RefusedError, listed
from leaseq_conformance.model.codec import EPOCH
from leaseq_conformance.model.queue import Queue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from leaseq_conformance.history.record import Call, History, Ran, Sent

TICKING: Final = ("promoted", "reclaimed")
PASSING_ON: Final = {"settle"}
"""Scripts that a waiter calls when it leaves. Their replies are no part of its answer."""
LEASING: Final = {"lease", "complete_and_lease"}
"""Scripts whose reply starts with wait, deadline and the number of leases."""


def check(history: History) -> list[str]:
    """Return what is wrong with a history, in words; nothing where all of it is right."""
    replay = _Replay(history)
    replay.follow()
    return [*replay.wrong, *_answers(history, replay.places), *_order(history, replay.places), *replay.rest()]


class _Replay:
    """The model, and which command was run at which place."""

    def __init__(self, history: History) -> None:
        self.wrong: list[str] = []
        self.places: dict[int, int] = {}  # number of a command -> its place in the server's order
        self._history = history
        self._queue = Queue()
        self._now = max(EPOCH, history.began)  # a time that is surely not after the server's
        self._waiting: dict[tuple[str, tuple[bytes, ...]], list[Sent]] = {}
        for sent in sorted(history.sent, key=lambda one: one.number):
            if sent.passed:
                self._waiting.setdefault((sent.script, tuple(sent.argv)), []).append(sent)
        self._forged = [call for call in history.calls if call.method == FORGE]

    def follow(self) -> None:
        """Make every call."""
        for place, ran in enumerate(self._history.ran):
            try:
                self._step(place, ran)
            except RefusedError as error:
                self.wrong.append(f"step {place}: {_shown(ran)}: the model refuses it with {error}")
            except UnreadableError as error:
                self.wrong.append(f"step {place}: {error}")

    def _step(self, place: int, ran: Ran) -> None:
        if ran.script == FORGE:
            reply = run(self._queue, FORGE, ran.argv, 0)
            answer = self._forged.pop(0).answer if self._forged else None
            if answer != {"ok": _word(reply)}:
                self.wrong.append(f"step {place}: {_shown(ran)}: {answer}, the model says {reply!r}")
            return
        candidates = self._waiting.get((ran.script, tuple(ran.argv)), [])
        if not candidates:
            self.wrong.append(f"step {place}: {_shown(ran)} was run, and no client sent it")
            run(self._queue, ran.script, ran.argv, self._now)
            return
        # Equal calls do equal things, so it does not matter which of them this was, but for what it was answered.
        first = None
        for sent in candidates:
            queue, reply, why = self._made(ran, sent)
            first = first or (sent, queue, reply, why)
            if not why:
                break
        else:
            assert first is not None
            sent, queue, reply, why = first
            self.wrong.append(f"step {place}: {sent.actor}: {_shown(ran)}: {why}")
        candidates.remove(sent)
        self.places[sent.number] = place
        self._queue = queue
        self._now = max(self._now, _time_in_reply(ran, sent.reply) or 0)
        if self._now > self._history.ended > 0:
            self.wrong.append(f"step {place}: {sent.actor}: {_shown(ran)}: its deadline is too late")
            self._now = self._history.ended

    def _made(self, ran: Ran, sent: Sent) -> tuple[Queue, Any, str]:
        """A copy of the queue after the call, its reply, and why that is not what the server answered."""
        known = sent.reply
        now = max(self._now, _time_in_reply(ran, known) or 0)
        queue = copy.deepcopy(self._queue)
        before = sum(queue.counters[name] for name in TICKING)
        reply = run(queue, ran.script, ran.argv, now)
        tick = _first_tick(ran, known)
        if tick is not None and (model_tick := _first_tick(ran, reply)) is not None and tick > model_tick:
            # the clock ran on in calls that do not tell their time
            ticks = sum(queue.counters[name] for name in TICKING) - before + 1
            queue = copy.deepcopy(self._queue)
            if queue.state is not None:
                queue.state.clock = tick - ticks
            else:
                now = tick
            reply = run(queue, ran.script, ran.argv, now)
        if sent.error is not None:
            return queue, reply, f"it was answered the error {sent.error!r}, the model says {reply!r}"
        if known is None or _same(ran.script, known, reply):
            return queue, reply, ""
        return queue, reply, f"it was answered {known!r}, the model says {reply!r}"

    def rest(self) -> Iterator[str]:
        """Check that every answered call was run, and that the keys are as the model has them."""
        for sent in self._history.sent:
            if sent.reply is not None and sent.number not in self.places:
                yield f"{sent.actor}: {sent.script} {sent.argv} was answered {sent.reply!r} and never run"
        left = self._history.left
        for item_id in sorted({*left, *(key.decode() for key in self._queue.items)}):
            item = self._queue.items.get(item_id.encode())
            held = left.get(item_id)
            expected_item = (item.where, item.data, item.attempt, item.token) if item else None
            actual = (held.where, held.data, held.attempt, held.token) if held else None
            if expected_item != actual:
                yield f"at the end {item_id} is {actual or 'gone'}, the model says {expected_item or 'gone'}"


def _answers(history: History, places: dict[int, int]) -> Iterator[str]:
    """Check that each client returned what the server answered."""
    of: dict[int, list[Sent]] = {}
    for sent in sorted(history.sent, key=lambda one: one.number):
        of.setdefault(sent.call, []).append(sent)
    for call in history.calls:
        if call.method != FORGE and call.answer is not None:
            problem = _answer(call, of.get(call.number, []), places)
            if problem:
                yield f"call {call.number} of {call.actor}, {call.method} {call.args}: {problem}"


def _asked(args: Any, name: str = "") -> set[bytes]:
    """The words that a call has to send: its ids, tokens, data, numbers, and the names of what is true."""
    if isinstance(args, dict):
        return set().union(
            *(_asked(part, key) for key, part in args.items() if key not in {"wait_ms", "queue"})
        )
    if isinstance(args, list):
        return set().union(*(_asked(part, name) for part in args))
    if isinstance(args, bool):
        return {name.encode()} if args else set()
    return {args if isinstance(args, bytes) else str(args).encode()}


def _answer(call: Call, of: list[Sent], places: dict[int, int]) -> str:
    answer = call.answer or {}
    looks = [sent for sent in of if sent.script not in PASSING_ON]
    missing = sorted(_asked(call.args) - set(looks[0].argv)) if looks else []
    if missing:
        return f"it sent {looks[0].script} {looks[0].argv}, where {missing[0]!r} is missing"
    if "ok" not in answer:
        ran = [
            sent
            for sent in of
            if sent.number in places and sent.error is None and sent.script not in PASSING_ON
        ]
        if not call.fault:
            return f"it failed though nothing was done to it: {answer}"
        if answer["error"]["definite"] and ran:
            return f"its error says that it did nothing, and the server ran {ran[0].script} (LQ-ERROR-4)"
        if len(ran) > 1 and call.method not in {"lease", "wait_outcome"}:
            return "the server ran it more than once (LQ-CLIENT-1)"
        return ""
    lost = [sent for sent in of if not sent.delivered]
    if lost:
        return f"it was answered {answer['ok']}, though the reply to {lost[0].script} was lost (LQ-CLIENT-1)"
    refused = next((sent for sent in of if sent.error is not None), None)
    if refused is not None:
        return f"it was answered {answer['ok']}, and the server refused {refused.script}: {refused.error}"
    try:
        right = expected(call.method, [sent.reply for sent in looks], args=call.args)
    except UnexplainedError as error:
        return str(error)
    actual = given(call.method, answer["ok"])
    return "" if right == actual else f"the client told {actual}, the server {right}"


def _order(history: History, places: dict[int, int]) -> Iterator[str]:
    """Check that calls that ended before others started were also run before them.

    Who leaves settles in the background, during whichever call comes next: that is no part of the call.
    """
    calls = {call.number: call for call in history.calls}
    latest: Call | None = None
    known = (one for one in history.sent if one.number in places and one.script not in PASSING_ON)
    for sent in sorted(known, key=lambda one: places[one.number]):
        call = calls[sent.call]
        if latest is not None and call.end is not None and call.end < latest.begin:
            yield f"call {call.number} was over before call {latest.number} started, and was run after it"
        if latest is None or call.begin > latest.begin:
            latest = call


def _time_in_reply(ran: Ran, reply: Any) -> int | None:
    """The server's time during a call, where its reply tells it."""
    if ran.script in LEASING and reply and reply[2]:
        return int(reply[1]) - duration_of(ran.script, ran.argv)
    if ran.script == "extend" and reply is not None:
        for entry, deadline in enumerate(listed(reply)):
            if isinstance(deadline, int) and deadline > 0:
                return deadline - duration_of("extend", ran.argv, entry)
    return None


def _first_tick(ran: Ran, reply: Any) -> int | None:
    """The first value of the queue's own clock that a reply tells."""
    if ran.script in LEASING and reply and reply[2]:
        return int(reply[5])
    if ran.script == "complete_with" and reply is not None:
        return next((answer for answer in listed(reply) if isinstance(answer, int) and answer > 1), None)
    if ran.script == "add" and reply is not None:
        return next((answer for answer in listed(reply) if isinstance(answer, int) and answer > 0), None)
    return None


def _same(script: str, known: Any, expected_reply: Any) -> bool:
    """Return whether two replies are equal, but for what depends on the time of the call.

    Of a time to wait the kind has to be the same: never, at once, later. The time at which an item ended is given to the microsecond by
    no other reply. Whether a wake-up was passed on depends on who took the last one, which is no script.
    """
    if script in PASSING_ON:
        return known in (0, 1)
    if script == "outcome" and isinstance(known, list):
        return bool(_without_end(known) == _without_end(expected_reply))
    if script in LEASING and isinstance(known, list) and known[2:3] == [0]:
        return bool(
            expected_reply[2] == 0
            and _kind(known[0]) == _kind(expected_reply[0])
            and known[3:] == expected_reply[3:]
        )
    if script == "light_clean" and isinstance(known, list):
        return bool(
            known[:5] == expected_reply[:5]
            and _kind(known[5]) == _kind(expected_reply[5])
            and known[6:] == expected_reply[6:]
        )
    return bool(known == expected_reply)


def _without_end(reply: list[Any]) -> list[Any]:
    """Replies of outcome with the times of ends as what they are: 0, or some time."""
    return [part > 0 if place % 6 == 2 else part for place, part in enumerate(reply)]


def _kind(wait: int) -> int:
    return (wait > 0) - (wait < 0) if wait < NEVER else 0


def _word(reply: Any) -> str:
    return reply.decode() if isinstance(reply, bytes) else str(reply)


def _shown(ran: Ran) -> str:
    words = " ".join(part.decode("utf-8", "backslashreplace") for part in ran.argv)
    return f"{ran.script} {words if len(words) <= 200 else words[:200] + '...'}"
