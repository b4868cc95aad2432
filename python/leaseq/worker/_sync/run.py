# Generated from _aio/run.py by python/unasync.py: do not edit.
"""One run of a worker: leases, hands out, tells, until it is stopped."""

import sys
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from leaseq._sync import io
from leaseq._sync.queue import LeasedItem
from leaseq.errors import LeaseqError, QueueClosedError
from leaseq.worker import live, outage
from leaseq.worker._sync.crew import Crew, Handler
from leaseq.worker._sync.live import Announcer
from leaseq.worker._sync.source import Source
from leaseq.worker._sync.system import Aside
from leaseq.worker._sync.teller import Teller
from leaseq.worker._sync.tender import Tender
from leaseq.worker._sync.waiter import Waiter
from leaseq.worker.desk import Desk, End
from leaseq.worker.hooks import SafeHooks, logger
from leaseq.worker.outage import Outage
from leaseq.worker.plan import HOARD_SECS, Plan
from leaseq.worker.settings import Settings

NEVER = sys.maxsize

LAST_TRIES = 4
"""How often a worker that ends tries to tell what is left."""


class Brought(NamedTuple):
    """What was leased beside the main loop, with how many were asked for; `begun` has what was handed out, if it was."""

    items: list[LeasedItem]
    asked: int
    begun: list[LeasedItem] | None


class Run:
    """One run. `work` runs once; `stop` is called from anywhere, a second time to end at once."""

    def __init__(
        self, source: Source, handler: Handler, settings: Settings, hooks: SafeHooks, name: str
    ) -> None:
        self._source = source
        self._handler = handler
        self._settings = settings
        self._hooks = hooks
        self._name = name
        self._guard = io.Guard()
        # who completes before the handler runs must not take more than it runs now
        self._plan = Plan(settings.concurrency, group=settings.group, ahead=not settings.at_most_once)
        self.desk = Desk(settings, self._plan, hooks, self._guard)
        self._teller = Teller(self.desk, settings.lease_secs)
        self._crew = Crew(self._handle if hooks.per_item else handler, settings.concurrency, self._ended)
        self.tender = Tender(settings, self.desk, self._crew, hooks, self._heard)
        self.announcer = Announcer(source.queues[0].transport.client, name, self._say)
        self._outage = Outage()
        self._bell = io.Bell()
        self._waiter = Waiter(source, self._outage, self._heard, self._bring, self._bell.ring)
        self._brought: deque[Brought] = deque()
        self._bringing = False
        self._ends: deque[End] = deque()
        self._ring_at = NEVER
        self._last_end = 0.0
        self._to_begin: deque[list[LeasedItem]] = deque()
        self._dry = False
        self._empty = False
        self._failures = 0
        self._failure: Exception | None = None
        self._stops = 0
        self._grace_ends: float | None = None

    @property
    def stopping(self) -> bool:
        """Whether it leases no more."""
        return self._stops > 0

    def stop(self, *, at_once: bool = False) -> None:
        """Lease no more, and end when the handlers have, or the grace time is over; a second time: now."""
        self._stops = 2 if at_once or self._stops else 1
        self._bell.ring()

    def work(self) -> int:
        """Work; answers how many items were completed. Raises what cannot be got over: QueueClosedError."""
        self._crew.start()
        loops = [self._waiter, self.tender, *([self.announcer] if self._settings.announce else [])]
        asides = [Aside(self._never_silently(loop.run)) for loop in loops]
        try:
            self._pump()
        finally:
            self._stops = self._stops or 1
            for aside, loop in zip(asides, loops, strict=True):
                loop.end()
                aside.end()
            self._wind_up()
            if self._settings.announce:
                self.announcer.leave()
        if self._failure is not None:
            raise self._failure
        return self.desk.completed_count

    def _pump(self) -> None:
        while True:
            self._collect()
            if self.stopping:
                self._begin_to_stop()
            if self._is_over():
                return
            try:
                idle = self._step()
            except QueueClosedError as error:
                self._failure = error
            except LeaseqError as error:
                self._heard(error)
                self._failures += 1
                self._sleep(outage.pause(self._failures), NEVER)
            else:
                if idle is not None:
                    self._sleep(*idle)

    def _is_over(self) -> bool:
        if self._failure is not None or self._stops > 1:
            return True
        if not self.stopping:
            return self._empty and self._is_done()
        return self._is_done() or (self._grace_ends is not None and io.now() >= self._grace_ends)

    def _is_done(self) -> bool:
        waiting = (self._bringing, self._plan.outstanding, self._ends, self._brought, self._to_begin)
        return not (any(waiting) or self.desk.completions or self.desk.returns)

    def _step(self) -> tuple[float | None, int] | None:
        """Do one thing. If there is nothing to do: for how long, or for how many ends, to sleep."""
        desk = self.desk
        if self._to_begin:
            self._begin_first()
        elif desk.returns:
            self._teller.give_back()
            self._worked()
        else:
            want = self._want()
            wait = self._plan.pause(io.now(), len(desk.completions)) if desk.completions else None
            if desk.completions and (want or not wait):
                self._complete(want)
            elif want:
                self._lease(want)
            else:
                return self._idle(wait)
        return None

    def _want(self) -> int:
        """How many items to lease without waiting."""
        if self.stopping or self._waiter.asked or self._brought:
            return 0
        want = self._plan.want()
        if want and self._dry:
            if self._settings.burst:
                return want if self._is_done() else 0
            self._waiter.ask(want)
            return 0
        return want

    def _idle(self, wait: float | None) -> tuple[float | None, int]:
        pause, ring_at = wait, 1
        if wait is not None:
            ring_at = max(1, self._plan.enough() - len(self.desk.completions))
        if self._crew.waiting():
            pause = min(HOARD_SECS, HOARD_SECS if pause is None else pause)
        if self._grace_ends is not None:
            left = max(0.0, self._grace_ends - io.now())
            pause = left if pause is None else min(pause, left)
        return pause, ring_at

    def _sleep(self, pause: float | None, ring_at: int) -> None:
        """Sleep, or until so many ends have been told; what else is to be seen to rings."""
        self._ring_at = ring_at
        if len(self._ends) < ring_at and not self._brought and (pause is None or pause > 0):
            self._bell.wait(pause)
        self._ring_at = NEVER

    def _complete(self, want: int) -> None:
        queue = self._source.one
        if want and queue is not None and not self._settings.at_most_once:
            items = self._teller.complete_and_lease(queue, want)
            self._worked()
            if items is not None:
                self._leased(items, want)
        else:
            self._teller.complete()
            self._worked()

    def _lease(self, want: int) -> None:
        last_look = self._settings.burst and self._is_done()
        items = self._source.take(want)
        self._worked()
        self._empty = last_look and not items
        self._leased(items, want)

    def _leased(self, items: list[LeasedItem], want: int) -> None:
        self._dry = len(items) < want
        if items:
            self._to_begin.append(self.desk.leased(items))

    def _begin_first(self) -> None:
        """Hand out what was leased."""
        items = self._to_begin[0]
        if self._settings.at_most_once and items:
            items = self._teller.complete_first(items[0].queue, items)
            self._worked()
        self._to_begin.popleft()
        self.desk.begun(items)
        self._last_end = io.now()
        self._crew.put(items)

    def _bring(self, items: list[LeasedItem], asked: int) -> None:
        """Called by the loop that waits: hands out what it leased, since waking this one first would take its time."""
        # before the look at whether it stops: the main loop stops before it looks at this
        self._bringing = True
        if self.stopping or self._settings.at_most_once:
            self._brought.append(Brought(items, asked, begun=None))
        else:
            begun = self.desk.leased(items)
            self._brought.append(Brought(items, asked, begun))  # before a handler can end
            self._crew.put(begun)
        self._bringing = False

    def _book(self, brought: Brought) -> None:
        if brought.begun is None:
            self._leased(brought.items, brought.asked)
            return
        self._dry = len(brought.items) < brought.asked
        self.desk.begun(brought.begun)
        self._last_end = io.now()

    def _collect(self) -> None:
        # in this order: what has ended or waits for a handler was brought before
        ends = [self._ends.popleft() for _ in range(len(self._ends))]
        waiting = self._crew.waiting()
        while self._brought:
            self._book(self._brought.popleft())
        now = io.now()
        if ends:
            self.desk.collect(ends, now)
            self._last_end = now
            if self._settings.burst:
                self._dry = False  # handlers may have added items
        elif waiting and now - self._last_end >= HOARD_SECS and not self._settings.at_most_once:
            # others may begin these now
            self._plan.measured(1, now - self._last_end)
            self.desk.withdrawn(self._crew.withdraw())

    def _begin_to_stop(self) -> None:
        if self._grace_ends is None:
            self._grace_ends = io.now() + self._settings.grace_secs
            logger.info("worker %s stops: %d items are being worked on", self._name, self._plan.outstanding)
            self.announcer.hurry()
        while self._to_begin:
            self.desk.not_begun(self._to_begin.popleft())
        if not self._settings.at_most_once:  # else they are completed already, and have to run
            self.desk.withdrawn(self._crew.withdraw())

    def _wind_up(self) -> None:
        """Give back what is left, as well as it can be done."""
        self._crew.abandon()
        self._collect()
        self.desk.withdrawn(self._crew.withdraw())
        self.desk.give_up()
        self._crew.end()
        for attempt in range(1, LAST_TRIES + 1):
            try:
                while self.desk.completions:
                    self._teller.complete()
                while self.desk.returns:
                    self._teller.give_back()
            except LeaseqError as error:
                if attempt == LAST_TRIES or isinstance(error, QueueClosedError):
                    logger.error(
                        "worker %s: %d items wait for their deadlines: %s", self._name, self.desk.count, error
                    )
                    return
                io.sleep(outage.pause(attempt))
            else:
                return

    def _ended(self, end: End) -> None:
        """A handler tells that it has ended; the main loop is woken where that is worth it."""
        self._ends.append(end)
        if len(self._ends) >= self._ring_at:
            self._ring_at = NEVER
            self._bell.ring()

    def _say(self, started: float) -> str:
        """What is said of this worker."""
        return live.written(
            started=started,
            stopping=self.stopping,
            concurrency=self._settings.concurrency,
            completed=self.desk.completed_count,
            queues=[(queue.group, queue.name) for queue in self._source.queues],
            held=self.desk.held(),
            now=io.now(),
        )

    def _handle(self, item: LeasedItem) -> None:
        with self._hooks.context(item):
            self._handler(item)

    def _worked(self) -> None:
        self._failures = 0
        if self._outage.lasts:
            self._heard(None)

    def _heard(self, error: LeaseqError | None) -> None:
        """A call has failed, or worked."""
        with self._guard:
            now = io.now()
            first = error is not None and self._outage.begins(now)
            seconds = self._outage.ends(now) if error is None else None
        if first and error is not None:
            logger.warning("worker %s goes on trying: %s", self._name, error)
            self._hooks.tell("server_away", error)
        if seconds is not None:
            logger.info("worker %s: the server answers again, after %.1f s", self._name, seconds)
            self._hooks.tell("server_back", seconds)

    def _never_silently(self, loop: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            try:
                loop()
            except Exception as error:  # noqa: BLE001 (raised where the run ends)
                self._failure = self._failure or error
                self._bell.ring()

        return run
