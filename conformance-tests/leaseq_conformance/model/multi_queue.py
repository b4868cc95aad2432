"""The calls of the reference model that touch several queues: hand-off, and lease from the first that has something."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leaseq_conformance.model.base import BUDGET, CAP, check_id, require
from leaseq_conformance.model.codec import OUTCOMES, Outcome
from leaseq_conformance.model.outcomes import RESULT
from leaseq_conformance.model.queue import DECADE_MS, check_add

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leaseq_conformance.model.calls import Answer, Finish, Reply
    from leaseq_conformance.model.codec import State
    from leaseq_conformance.model.queue import Queue


def complete_with(now: int, source: Queue, targets: Sequence[Queue], entries: Sequence[Finish]) -> Reply:
    """Complete, keep results and add follow-ups. A queue may be source and target; each state is opened once."""
    states: dict[int, State] = {id(queue): queue._open_to_add(now) for queue in (source, *targets)}
    _check(now, states[id(source)], [states[id(queue)] for queue in targets], entries)
    answers: list[Answer] = []
    dues: dict[int, list[int]] = {}
    for entry in entries:
        won = _finish(now, source, states[id(source)], entry)
        answers.append(int(won or _is_repetition(source, entry)))
        for number, add in entry.then:
            queue = targets[number - 1]
            answer = -1
            if won:
                times: list[int] = []
                state = states[id(queue)]
                outcomes = bool(state.flags & OUTCOMES)
                answer = queue.put(state, now, add, times, limited=False)
                if outcomes:
                    queue.forget_kept([add], [answer])
                if answer > 0:
                    dues.setdefault(id(queue), []).extend(times)
            answers.append(answer)
    for queue in {id(queue): queue for queue in targets}.values():
        if id(queue) in dues:
            queue._nearer(states[id(queue)], dues[id(queue)])
    return answers


def _check(now: int, source: State, targets: Sequence[State], entries: Sequence[Finish]) -> None:
    require(len(targets) <= 16)
    require(sum(len(entry.then) for entry in entries) <= 256)
    for entry in entries:
        check_id(entry.id)
        require(entry.keep is None or 0 <= entry.keep <= DECADE_MS)
        require(entry.result is None or entry.keep is not None)
        require(len(entry.result or b"") <= (source.max_data or BUDGET), "TOO_LARGE")
        for number, add in entry.then:
            require(1 <= number <= len(targets))
            check_add(targets[number - 1], now, add)


def _finish(now: int, source: Queue, state: State, entry: Finish) -> bool:
    item = source.win(entry.id, entry.token, only_current=entry.only_current)
    if item is None:
        return False
    keep = 0 if entry.keep is None else entry.keep or item.keep
    if keep:
        result = entry.result or b""
        outcome = Outcome(RESULT, item.attempt, entry.token, item.created, now, result)
        source._keep(state, now, entry.id, outcome, keep)
    elif state.flags & OUTCOMES:
        source.kept.pop(entry.id, None)  # the failure of a dead item that is completed after all
    return True


def _is_repetition(source: Queue, entry: Finish) -> bool:
    """Return whether the lease that completed the item says so once more."""
    known = source.results.get(entry.id) if entry.id in source.kept else None
    return bool(entry.keep is not None and known and known.kind == RESULT and known.token == entry.token)


def lease_any(now: int, queues: Sequence[Queue], count: int, duration: int) -> Reply:
    """Lease from the first queue that gives something; the others are settled then.

    Items that died and keep an outcome are reported with minus the number of their queue.
    """
    states = [queue._open(now) for queue in queues]
    wait, died = -1, []
    for number, (queue, state) in enumerate(zip(queues, states, strict=True), 1):
        before = _moves(queue)
        reply = queue.take(state, now, count, duration)
        leased = reply[2]
        assert isinstance(leased, int)
        start = 3 + 4 * leased
        dead = [at for at in range(start, len(reply), 3) if reply[at] == 0]
        died += [part for at in dead for part in (-number, *reply[at + 1 : at + 3])]
        if leased:
            for other in queues:
                if other is not queue:
                    _pass_on(now, other)
            first_dead = dead[0] if dead else len(reply)
            return [number, *reply[:first_dead], *died]
        assert isinstance(reply[0], int)
        if reply[0] == 0 or _moves(queue) > before:
            return [0, 0, 0, 0, *died]  # more may be left there, and its turn comes before that of the next
        if wait < 0 or 0 < reply[0] < wait:
            wait = reply[0]
    return [0, wait, 0, 0, *died]


def _moves(queue: Queue) -> int:
    return sum(queue.counters[name] for name in ("promoted", "reclaimed", "died", "expired"))


def _pass_on(now: int, queue: Queue) -> None:
    """Pass on what a waiter knew of a queue that it no longer waits on."""
    state = queue._open(now)
    if queue._attended(state) or state.next_due <= now + CAP:
        queue._wake()
