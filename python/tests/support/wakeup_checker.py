"""Visit every reachable state of ``model_settle`` and check what the wake-ups promise.

*Attended*: when something is leasable and a living worker sleeps on that queue, then something under way gets it
leased: an awake worker that is still to lease from or settle that queue, or a sleeper whose timer has run out. The
one exception is the ``grace``, the CAP after a client died, or lost its connection, with a wake-up or a timer in its
hands. (With no worker dead, work is therefore leased at once, or at its deadline.)

*No spin*: requests that workers make on their own account (lease, block, settle) never go round in a circle while
time stands still and no other worker does anything. So whatever is under way also arrives.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from support.wakeup_model import Model, Phase, Rules, State, Worker, World, name_of


@dataclass(frozen=True)
class Result:
    """`broken` is empty when every check held; else `trace` is a shortest way to the fault."""

    states: int
    broken: str = ""
    trace: tuple[str, ...] = ()


def _attends(worker: Worker, q: int) -> bool:
    """Return whether this worker is certain to lease from or settle queue q without waiting for others."""
    match worker.phase:
        case Phase.LEASE:
            return worker.timer == 0 or q in worker.queues[worker.at :]
        case Phase.SETTLE:
            return q in worker.todo
        case Phase.BLOCK | Phase.DEAF:
            return worker.timer == 0
        case _:
            return False


def neglected(state: State) -> str:
    """Name the queue where a worker sleeps beside leasable work that no client attends to, or return ''."""
    for q, queue in enumerate(state.queues):
        if queue.grace or queue.paused or not any(t <= 0 for t in queue.items):
            continue
        waiting = [w for w in state.workers if q in w.queues]
        asleep = any(w.phase in {Phase.BLOCK, Phase.DEAF} for w in waiting)
        if asleep and not any(_attends(w, q) for w in waiting):
            return f"a worker sleeps beside a leasable item of q{q}"
    return ""


def explore(world: World, rules: Rules) -> Result:
    """Visit every reachable state, nearest first; stop at the first that is wrong, then look for circles."""
    model = Model(world, rules)
    number = {model.start: 0}
    states = [model.start]
    came = [(0, "")]
    own: dict[int, list[int]] = {}

    def wrong(what: str, at: int) -> Result:
        lines: list[str] = []
        while at:
            lines.append(f"{came[at][1]:58} {_show(states[at])}")
            at = came[at][0]
        return Result(len(states), what, tuple(reversed(lines)))

    for at, state in enumerate(states):  # grows while it is read
        for label, new, is_own in model.steps(state):
            to = number.setdefault(new, len(states))
            if to == len(states):
                states.append(new)
                came.append((at, label))
                if what := neglected(new):
                    return wrong(what, to)
            if is_own:
                own.setdefault(at, []).append(to)
    circle = _circle(own)
    return (
        wrong("workers ask without end while nothing happens", min(circle)) if circle else Result(len(states))
    )


def _circle(own: dict[int, list[int]]) -> set[int]:
    """Take away, again and again, the states that no own request leads to; what is left is in or behind a circle."""
    into = Counter(to for targets in own.values() for to in targets)
    free = [at for at in own if not into[at]]
    for at in free:  # grows while it is read
        for to in own.pop(at, ()):
            into[to] -= 1
            if not into[to]:
                free.append(to)
    return set(own)


def _show(state: State) -> str:
    parts = [
        f"q{n}={list(x.items)} next={x.next}{' wake' * x.wake}{' paused' * x.paused}{' grace' * (x.grace > 0)}"
        for n, x in enumerate(state.queues)
    ]
    return "; ".join([*parts, *(f"{name_of(w)}:{w.phase.name.lower()}/{w.timer}" for w in state.workers)])
