"""An exhaustive model of wake-ups: workers that sleep in ``BLPOP wake`` and the rules that wake them.

The queue's scripts cannot block, so a worker that leased nothing relies on another client to put an element on ``wake``.
Here are the transitions of a small system (workers, queues, items, time, cancellation, client death, lost replies);
``model_settle_check`` visits all its states.

How the world is drawn:

* Time is discrete and relative to now; it may pass at any moment, also while awake workers are slow, but never past
  the timer of a sleeping worker.
* An item is READY or carries the time that is left until it becomes leasable. A delayed item and a leased one differ
  in nothing that matters here, so both are "timed"; any client may complete, release or extend one at any moment.
* A script is one atomic step, and it ends, as in Redis, by handing the element it put to one of the blocked clients.
  Which one is left open, which covers every order of arrival.
* A dead client is an idle client that leaves ``grace`` behind, and possibly a block that the server still serves (ZOMBIE).
  A client whose wake-up was lost on the way sleeps on until its timer (DEAF).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CAP = 2
"""The longest a worker sleeps without asking again (the protocol's 4 s, in ticks)."""
READY = -1
NEVER = 99


class Phase(IntEnum):
    """Phase of a worker."""

    IDLE = 0  # not waiting: working, gone or dead
    LEASE = 1  # awake: leases from queues[at], then the next; blocks after the last
    BLOCK = 2  # asleep in BLPOP until `timer`
    SETTLE = 3  # awake: calls settle on each queue of `todo`, then is idle
    DEAF = 4  # believes to be in BLPOP until `timer`; the server's answer was lost
    ZOMBIE = 5  # dead, the server does not know it yet


class Worker(NamedTuple):
    """A client that leases with blocking; `queues` are those it waits on, in its order."""

    queues: tuple[int, ...]
    phase: Phase = Phase.IDLE
    at: int = 0
    timer: int = 0
    todo: tuple[int, ...] = ()


class Queue(NamedTuple):
    """State of one queue on the server, and the checker's `grace` (ticks left)."""

    items: tuple[int, ...] = ()
    next: int = NEVER
    wake: bool = False
    paused: bool = False
    grace: int = 0


class State(NamedTuple):
    """The whole world, times relative to now."""

    queues: tuple[Queue, ...]
    workers: tuple[Worker, ...]


class Step(NamedTuple):
    """One transition; `own` marks a request that a worker makes on its own account."""

    label: str
    state: State
    own: bool = False


Outcome = tuple[str, State]
"""A transition: its name, and the state that it leads to."""


class Call(NamedTuple):
    """A script run by a client that does not wait; `near` as in Model.script."""

    script: str
    what: str
    queue: Queue
    near: bool = False


@dataclass(frozen=True)
class Rules:
    """The rules of settle; the default is the protocol, every other value is a mutant.

    A script puts one element on an empty `wake` when it ends with something `ready` (and the queue not paused) and
    its name is in `ready`, or with the bound `next` no more than `window` away and its name is in `near` (for add and
    extend: if they made `next` nearer; release with a delay is drawn as an extend). A waiter that goes without an item
    calls "leave" on all its queues; a waiter that leased from one of several calls "other" on the rest.
    """

    ready: frozenset[str] = frozenset({"add", "lease", "release", "clean", "resume", "leave", "other"})
    near: frozenset[str] = frozenset({"lease", "add", "extend", "leave", "other"})
    window: int = CAP
    # What an empty lease tells: the true time, which it stores as `next` ("store"), the stored `next` ("bound"), or the
    # true time without storing it ("exact").
    reported_time: str = "store"
    # A delay or extend counts as `near` only if it is earlier than the stored `next` ("bound") or the true one ("exact").
    earlier: str = "bound"
    empty_puts: bool = False  # an empty lease puts too
    timers: bool = True  # a sleeper uses the time it was given
    cap: bool = True  # a sleeper asks again after CAP
    cap_from_lease: bool = True  # CAP counts from the first lease call, not from BLPOP
    ended: bool = True  # a leaver settles after the server ended its block
    paused_promotes: bool = True  # a lease on a paused queue promotes and reclaims too
    paused_near: bool = True  # `near` holds for a paused queue too
    limit: int = NEVER  # how many items one call promotes and reclaims


@dataclass(frozen=True)
class World:
    """The size of one exploration.

    How many items each queue has at most, which queues each worker waits on, the delays and lease durations (as time
    passes those in between arise as well), and which events occur.
    """

    items: tuple[int, ...]
    workers: tuple[tuple[int, ...], ...]
    durations: tuple[int, ...] = (1, CAP + 1)
    faults: bool = False
    pausing: bool = False
    grace: int = CAP


def _exact(queue: Queue) -> int:
    return min((t for t in queue.items if t != READY), default=NEVER)


def _items(queue: Queue, items: Iterable[int], bound: int) -> Queue:
    return queue._replace(items=tuple(sorted(items)), next=bound)


def _promote(queue: Queue, limit: int) -> Queue:
    if queue.next > 0:
        return queue
    due = min(queue.items.count(0), limit)
    items = list(queue.items)
    for _ in range(due):
        items[items.index(0)] = READY
    queue = _items(queue, items, 0)
    return queue._replace(next=_exact(queue))


def _with_queue(state: State, q: int, queue: Queue) -> State:
    return State((*state.queues[:q], queue, *state.queues[q + 1 :]), state.workers)


def _with_worker(state: State, n: int, worker: Worker) -> State:
    # Sorted: workers that do the same are interchangeable.
    return State(state.queues, tuple(sorted((*state.workers[:n], worker, *state.workers[n + 1 :]))))


def _older(time: int) -> int:
    return time if time in {READY, NEVER, 0} else time - 1


def name_of(worker: Worker) -> str:
    """Name a worker by the queues it waits on."""
    return "w" + "".join(map(str, worker.queues))


class Model:
    """The transitions of one World under some Rules."""

    def __init__(self, world: World, rules: Rules) -> None:
        """Start with empty queues and idle workers."""
        self.world = world
        self.rules = rules
        workers = tuple(sorted(Worker(queues) for queues in world.workers))
        self.start = State(tuple(Queue() for _ in world.items), workers)

    def fault(self, state: State, queues: tuple[int, ...]) -> State:
        """Start the grace: what was known to a client about these queues is lost."""
        grace = self.world.grace
        marked = [x._replace(grace=grace) if q in queues else x for q, x in enumerate(state.queues)]
        return State(tuple(marked), state.workers)

    # The server

    def script(
        self, state: State, q: int, name: str, queue: Queue, *, near: bool = False
    ) -> Iterator[Outcome]:
        """End a script: store the queue, put an element where the rules say so, hand it to a blocked client."""
        rules = self.rules
        put = (
            name == "spin"
            or (name in rules.ready and READY in queue.items and not queue.paused)
            or (
                near
                and name in rules.near
                and queue.next <= rules.window
                and (rules.paused_near or not queue.paused)
            )
        )
        if queue.wake or not put:
            yield "", _with_queue(state, q, queue)
            return
        waiting = {
            w: n
            for n, w in enumerate(state.workers)
            if q in w.queues
            and (w.phase in {Phase.BLOCK, Phase.ZOMBIE} or (w.phase == Phase.SETTLE and w.timer))
        }
        if not waiting:
            yield ", puts", _with_queue(state, q, queue._replace(wake=True))
        for n in waiting.values():
            yield from self.deliver(_with_queue(state, q, queue), q, n)

    def deliver(self, state: State, q: int, n: int) -> Iterator[Outcome]:
        """Hand an element of queue q to the blocked client n."""
        worker = state.workers[n]
        name = name_of(worker)
        if worker.phase == Phase.ZOMBIE:
            yield f", wakes the dead {name}", self.fault(_with_worker(state, n, Worker(worker.queues)), (q,))
        elif worker.phase == Phase.SETTLE:
            yield f", wakes {name} that has left", _with_worker(state, n, worker._replace(timer=0))
        else:
            yield f", wakes {name}", _with_worker(state, n, self.awake(worker))
            if self.world.faults:
                deaf = _with_worker(state, n, worker._replace(phase=Phase.DEAF))
                yield f", wake-up of {name} lost", self.fault(deaf, worker.queues)

    def lease(self, queue: Queue) -> Iterator[tuple[int, Queue]]:
        """Promote and reclaim, then take one item for each possible duration; 0 is: nothing taken."""
        if self.rules.paused_promotes or not queue.paused:
            queue = _promote(queue, self.rules.limit)
        if READY in queue.items and not queue.paused:
            left = list(queue.items)
            left.remove(READY)
            for duration in self.world.durations:
                yield duration, _items(queue, [*left, duration], min(queue.next, duration))
        elif self.rules.reported_time == "store":
            yield 0, queue._replace(next=_exact(queue))
        else:
            yield 0, queue

    # The workers

    def awake(self, worker: Worker) -> Worker:
        """Start a round of leases over all queues of the worker."""
        cap = CAP if self.rules.cap and self.rules.cap_from_lease else NEVER
        return Worker(worker.queues, Phase.LEASE, 0, cap)

    def lease_next(self, state: State, n: int) -> Iterator[Outcome]:
        """Worker n leases from the next of its queues."""
        worker, rules = state.workers[n], self.rules
        q = worker.queues[worker.at]
        others = tuple(x for x in worker.queues if x != q)
        for duration, queue in self.lease(state.queues[q]):
            if duration:
                done = Worker(worker.queues, Phase.SETTLE, 1, 0, others) if others else Worker(worker.queues)
                what, name = f"an item for {duration}", "lease"
            else:
                reported_time = _exact(queue) if rules.reported_time == "exact" else queue.next
                timer = min(worker.timer, reported_time) if rules.timers else worker.timer
                done = worker._replace(at=worker.at + 1, timer=timer)
                what, name = (
                    f"nothing, told {reported_time}",
                    "spin" if rules.empty_puts and reported_time <= CAP else "nothing",
                )
            for note, new in self.script(_with_worker(state, n, done), q, name, queue, near=duration > 0):
                yield f" leases from q{q}: {what}{note}", new

    def block(self, state: State, n: int) -> Iterator[Outcome]:
        """Send BLPOP: take the first element there is, else sleep."""
        worker = state.workers[n]
        timer = min(worker.timer, CAP) if self.rules.cap else worker.timer
        asleep = Worker(worker.queues, Phase.BLOCK, 0, timer)
        state = _with_worker(state, n, asleep)
        for q in worker.queues:
            if state.queues[q].wake:
                popped = _with_queue(state, q, state.queues[q]._replace(wake=False))
                yield from self.deliver(popped, q, state.workers.index(asleep))
                return
        yield " blocks", state

    def settle(self, state: State, n: int) -> Iterator[Outcome]:
        """Worker n calls settle on the next queue of its list, then is done or does the next."""
        worker = state.workers[n]
        gone = Worker(worker.queues)
        if not worker.todo:
            yield " ends its block", _with_worker(state, n, gone)
            return
        q, todo = worker.todo[0], worker.todo[1:]
        after = _with_worker(state, n, worker._replace(todo=todo) if todo or worker.timer else gone)
        name = "other" if worker.at else "leave"
        for note, new in self.script(after, q, name, state.queues[q], near=True):
            yield f" settles q{q}{note}", new

    def own_steps(self, state: State, n: int) -> Iterator[Outcome]:
        """Yield the next steps of worker n."""
        worker = state.workers[n]
        match worker.phase:
            case Phase.LEASE if worker.at < len(worker.queues):
                yield from self.lease_next(state, n)
            case Phase.LEASE:
                yield from self.block(state, n)
            case Phase.SETTLE:
                yield from self.settle(state, n)
            case Phase.BLOCK | Phase.DEAF if worker.timer == 0:
                yield "'s timer ends", _with_worker(state, n, self.awake(worker))

    def events(self, state: State, n: int) -> Iterator[Outcome]:
        """Yield the events that may happen to worker n."""
        worker = state.workers[n]
        gone = _with_worker(state, n, Worker(worker.queues))
        if worker.phase == Phase.IDLE:
            yield " starts to wait", _with_worker(state, n, self.awake(worker))
            return
        if worker.phase == Phase.ZOMBIE:
            yield ": the server notices its death", gone
            return
        if worker.phase != Phase.SETTLE:
            listed = int(worker.phase == Phase.BLOCK and not self.rules.ended)
            leaver = Worker(worker.queues, Phase.SETTLE, 0, listed, worker.queues)
            yield " is cancelled or times out", _with_worker(state, n, leaver)
        if self.world.faults:
            lost = worker.todo if worker.phase == Phase.SETTLE else worker.queues
            yield " dies", self.fault(gone, lost)
            if worker.phase == Phase.BLOCK:
                zombie = _with_worker(state, n, worker._replace(phase=Phase.ZOMBIE))
                yield " dies unnoticed", self.fault(zombie, lost)

    # The rest of the world

    def calls(self, queue: Queue, room: int) -> Iterator[Call]:
        """Calls that do not wait: producers, holders of leases, the cleaner, an operator."""
        if len(queue.items) < room:
            yield Call("add", "add", _items(queue, [*queue.items, READY], queue.next))
            yield from self.timed(queue, "add", "add delayed", queue.items)
        for item in dict.fromkeys(queue.items):
            left = list(queue.items)
            left.remove(item)
            yield Call("complete", f"complete or remove [{item}]", _items(queue, left, queue.next))
            if item != READY:
                yield Call("release", f"release [{item}]", _items(queue, [*left, READY], queue.next))
                yield from self.timed(queue, "extend", f"extend or release with delay [{item}] to", left)
        cleaned = _promote(queue, self.rules.limit)
        yield Call("clean", "light_clean", cleaned._replace(next=_exact(cleaned)))
        if self.world.pausing:
            name = "resume" if queue.paused else "pause"
            yield Call(name, name, queue._replace(paused=not queue.paused))
        for duration, leased in self.lease(queue):
            yield Call("lease", f"lease without blocking, {duration or 'nothing'}", leased, duration > 0)

    def timed(self, queue: Queue, name: str, what: str, others: Iterable[int]) -> Iterator[Call]:
        """Put an item beside the others that becomes leasable after each of the durations."""
        earliest = _exact(queue) if self.rules.earlier == "exact" else queue.next
        for time in self.world.durations:
            changed = _items(queue, [*others, time], min(queue.next, time))
            yield Call(name, f"{what} {time}", changed, time < earliest)

    def steps(self, state: State) -> Iterator[Step]:
        """Every transition out of a state."""
        for n, worker in enumerate(state.workers):
            if n == 0 or worker != state.workers[n - 1]:
                for note, new in self.own_steps(state, n):
                    yield Step(name_of(worker) + note, new, own=True)
                for note, new in self.events(state, n):
                    yield Step(name_of(worker) + note, new)
        for q, queue in enumerate(state.queues):
            for name, what, changed, near in self.calls(queue, self.world.items[q]):
                if changed != queue:
                    for note, new in self.script(state, q, name, changed, near=near):
                        yield Step(f"{what} on q{q}{note}", new)
        asleep = {Phase.BLOCK, Phase.DEAF}
        if all(w.timer for w in state.workers if w.phase in asleep):
            queues = tuple(
                Queue(tuple(map(_older, x.items)), _older(x.next), x.wake, x.paused, _older(x.grace))
                for x in state.queues
            )
            workers = tuple(sorted(_later(w) for w in state.workers))
            yield Step("time passes", State(queues, workers))


def _later(worker: Worker) -> Worker:
    if worker.phase in {Phase.IDLE, Phase.SETTLE}:
        return worker
    if worker.phase == Phase.ZOMBIE and worker.timer == 0:
        return Worker(worker.queues)  # the server has timed its block out
    return worker._replace(timer=_older(worker.timer))
