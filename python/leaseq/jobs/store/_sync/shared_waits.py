# Generated from _aio/shared_waits.py by tools/unasync.py: do not edit.
"""Waits for the ends of many jobs of one queue, over few connections."""

import math
import threading
from collections.abc import Iterable
from typing import Final

from leaseq import commands, flows
from leaseq._sync import concurrency
from leaseq._sync.queue import WorkQueue
from leaseq.durations import Duration, deadline_after
from leaseq.results import Outcome

DIRECT: Final = 16
"""Waits that block, each on a connection. One of the others asks for all the others, again and again."""

SHORTEST_PAUSE_SECS: Final = 0.02
LONGEST_PAUSE_SECS: Final = 0.25
"""Between two times of asking: doubled each time in which no job has ended."""


class _Wait:
    """One wait of the others, and what it waits for."""

    def __init__(self, job_id: str) -> None:
        self.id = job_id
        self.latest = Outcome(job_id, "none", 0, 0, 0, 0, b"")
        self.is_known = False
        self.is_over = False
        self.wake = concurrency.WakeEvent()

    def note(self, outcome: Outcome) -> None:
        """Record the state of the item. The wait ends too if the id now belongs to another item."""
        replaced = self.is_known and outcome.created not in {0, self.latest.created}
        self.latest = Outcome(self.id, "absent", 0, 0, 0, 0, b"") if replaced else outcome
        self.is_known = True
        self.is_over = not self.latest.pending


class SharedWaits:
    """The waits for jobs of one queue."""

    def __init__(self, queue: WorkQueue) -> None:
        self.queue = queue
        self._direct: set[object] = set()
        self._others: dict[_Wait, None] = {}
        self._leading = threading.Lock()  # never waited for
        self._arrival = concurrency.WakeEvent()

    def outcome(self, job_id: str, timeout: Duration | None) -> Outcome:
        """Return the outcome of a job once there is one, or what it is when it cannot have one or the time is over."""
        over = deadline_after(timeout, concurrency.now)
        if len(self._direct) >= DIRECT:
            return self._share(job_id, over)
        place = object()
        self._direct.add(place)
        try:
            (outcome,) = self.queue.executor.run(commands.outcome(self.queue.keys, [job_id]))
            left = over - concurrency.now()
            if not outcome.pending or left <= 0:
                return outcome
            flow = flows.outcome(
                self.queue.keys,
                job_id,
                timeout=None if left == math.inf else left,
                clock=concurrency.now,
                created=outcome.created,
            )
            return (self.queue.executor.drive(flow))[0]
        finally:
            self._direct.discard(place)

    def _share(self, job_id: str, over: float) -> Outcome:
        """Wait with the others for which one of them asks."""
        wait = _Wait(job_id)
        self._others[wait] = None
        try:
            while True:
                self._take_part(wait, over)
                if wait.is_over or (wait.is_known and concurrency.now() >= over):
                    return wait.latest
        finally:
            self._others.pop(wait, None)
            self._pass_on()

    def _take_part(self, wait: _Wait, over: float) -> None:
        """Ask for all unless another wait does, else sleep until there is an outcome, or until this one is to ask."""
        if self._leading.acquire(blocking=False):
            try:
                self._ask_until(wait, over)
            finally:
                self._leading.release()
        else:
            self._arrival.set()
            wait.wake.wait(min(flows.WAIT_CAP, max(0.0, over - concurrency.now())))

    def _ask_until(self, wait: _Wait, over: float) -> None:
        pause = SHORTEST_PAUSE_SECS
        while True:
            ended = self._ask()
            pause = SHORTEST_PAUSE_SECS if ended else min(2 * pause, LONGEST_PAUSE_SECS)
            left = over - concurrency.now()
            if wait.is_over or left <= 0:
                return
            concurrency.sleep(min(SHORTEST_PAUSE_SECS, left))
            self._arrival.wait(max(0.0, min(pause, left) - SHORTEST_PAUSE_SECS))

    def _ask(self) -> bool:
        """Ask for all jobs that are waited for. Return whether any has ended."""
        waits: dict[str, list[_Wait]] = {}
        for wait in list(self._others):
            if not wait.is_over:
                waits.setdefault(wait.id, []).append(wait)
        ended = False
        for outcome in self.queue.outcomes(list(waits)):
            for wait in waits[outcome.id]:
                wait.note(outcome)
                if wait.is_over:
                    wait.wake.set()
                    ended = True
        return ended

    def _pass_on(self) -> None:
        """Let another wait ask, unless one asks already."""
        if not self._leading.locked():
            for wait in _first(self._others):
                wait.wake.set()


def _first(waits: Iterable[_Wait]) -> list[_Wait]:
    """The first of the waits that are not over, if there is one."""
    return [wait for wait in list(waits) if not wait.is_over][:1]
