# Generated from _aio/worker_loop.py by tools/unasync.py: do not edit.
"""One run of a worker: it leases items, hands them out and reports their ends, until it is stopped."""

import sys
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from leaseq._sync import concurrency
from leaseq._sync.queue import LeasedItem
from leaseq.errors import (
    AccessDeniedError,
    BadArgumentError,
    LeaseqError,
    QueueClosedError,
    ReplyLostError,
    UnavailableError,
)
from leaseq.worker import presence, server_health
from leaseq.worker._sync.background import BackgroundLoop
from leaseq.worker._sync.completer import Completer
from leaseq.worker._sync.fetcher import Fetcher
from leaseq.worker._sync.handler_pool import Handler, HandlerPool
from leaseq.worker._sync.heartbeater import ItemHeartbeater
from leaseq.worker._sync.presence import PresenceReporter
from leaseq.worker._sync.source import Source
from leaseq.worker.hooks import SafeHooks, logger
from leaseq.worker.in_flight import HandlerResult, InFlight
from leaseq.worker.prefetch import HOARD_SECS, Prefetcher
from leaseq.worker.server_health import ServerHealth
from leaseq.worker.settings import Readiness, Settings

NEVER = sys.maxsize

FOR_A_PERSON = (AccessDeniedError, BadArgumentError)
"""Refusals because of a user or a setting. At the start of a worker, only a person can mend them (LQ-WORK-14)."""

LAST_TRIES = 4
"""The number of times that a worker that ends tries to report what is left."""


class Delivery(NamedTuple):
    """Items leased beside the main loop, and the number that was requested.

    `dispatched` has the items that were handed out already.
    """

    items: list[LeasedItem]
    requested: int
    dispatched: list[LeasedItem] | None


class WorkerLoop:
    """One run of a worker. `work` runs once; `stop` can be called from anywhere, a second time to end at once."""

    def __init__(
        self, source: Source, handler: Handler, settings: Settings, hooks: SafeHooks, name: str
    ) -> None:
        self._source = source
        self._settings = settings
        self._hooks = hooks
        self._name = name
        self._guard = concurrency.Guard()
        # who completes before the handler runs must not take more than it runs now
        self._prefetcher = Prefetcher(settings.concurrency, ahead=not settings.at_most_once)
        self.in_flight = InFlight(settings, self._prefetcher, hooks, self._guard)
        self._completer = Completer(self.in_flight, settings.lease_secs)
        self._pool = HandlerPool(
            handler, settings.concurrency, self._ended, hooks.context if hooks.per_item else None
        )
        self.heartbeater = ItemHeartbeater(settings, self.in_flight, self._pool, hooks, self._on_call_result)
        self.presence_reporter = PresenceReporter(
            source.queues[0].executor.client, name, self._status, self._steer
        )
        self._server_health = ServerHealth()
        self._wake_event = concurrency.WakeEvent()
        self._fetcher = Fetcher(
            source, self._server_health, self._on_call_result, self._deliver, self._wake_event.set
        )
        self._deliveries: deque[Delivery] = deque()
        self._delivering = False
        self._ends = self.in_flight.ends
        self._wake_at = NEVER
        self._last_end = 0.0
        self._to_begin: deque[list[LeasedItem]] = deque()
        self._dry = False
        self._empty = False
        self._failures = 0
        self._has_worked = False
        self._failure: Exception | None = None
        self._drains = False
        self._quiet = False
        self._stopped_by_wish = False
        self._stops = 0
        self._stop_announced = False
        self._grace_ends: float | None = None

    @property
    def stopping(self) -> bool:
        """True if it leases no more."""
        return self._drains or self._stops > 0

    @property
    def readiness(self) -> Readiness:
        """The state it is in: see `Worker.readiness`."""
        if self.stopping:
            return "stopping"
        if self._server_health.is_down:
            return "away"
        if self._quiet:
            return "quiet"
        return "starting" if self.answered_at is None else "leasing"

    @property
    def answered_at(self) -> float | None:
        """When a call last worked, on this process's clock. While nothing is ready, only its announcements are answered."""
        answers = (self._server_health.answered_at, self.presence_reporter.answered_at)
        return max((answer for answer in answers if answer is not None), default=None)

    def drain(self) -> None:
        """Stop leasing, and end when the handlers have ended, however long they take."""
        self._drains = True
        self._wake_event.set()

    def stop(self, *, at_once: bool = False) -> None:
        """Stop leasing, and end when the handlers have ended or the grace time is over; on a second call, end at once."""
        again = self._stops and not self._stopped_by_wish
        self._stopped_by_wish = False
        self._stops = 2 if at_once or again else 1
        if not self._settings.at_most_once:  # else they are completed already, and have to run
            self._pool.stop()
        self._wake_event.set()

    def work(self) -> int:
        """Work until stopped. Return the number of completed items. Raises QueueClosedError."""
        self._pool.start()
        loops = [
            self._fetcher,
            self.heartbeater,
            *([self.presence_reporter] if self._settings.announce else []),
        ]
        background_loops = [BackgroundLoop(self._supervised(loop.run)) for loop in loops]
        try:
            self._main_loop()
        finally:
            self._stops = self._stops or 1
            for background_loop, loop in zip(background_loops, loops, strict=True):
                loop.end()
                background_loop.end()
            self._wind_up()
            if self._settings.announce:
                self.presence_reporter.unregister()
        if self._failure is not None:
            raise self._failure
        return self.in_flight.completed_count

    def _main_loop(self) -> None:
        while True:
            self._collect()
            if self.stopping:
                self._begin_to_stop()
            elif self._quiet:
                self._give_back_unstarted()
            if self._is_over():
                return
            try:
                idle = self._step()
            except QueueClosedError as error:
                self._failure = error
            except LeaseqError as error:
                self._on_call_result(error)
                self._failures += 1
                self._sleep(server_health.pause(self._failures), NEVER)
                self.in_flight.give_up_overdue(concurrency.now())
            else:
                if idle is not None:
                    self._sleep(*idle)

    def _is_over(self) -> bool:
        if self._failure is not None or self._stops > 1:
            return True
        if not self.stopping:
            return self._empty and self._is_done()
        return self._is_done() or (self._grace_ends is not None and concurrency.now() >= self._grace_ends)

    def _is_done(self) -> bool:
        waiting = (
            self._delivering,
            self._prefetcher.outstanding,
            self._ends,
            self._deliveries,
            self._to_begin,
        )
        return not (any(waiting) or self.in_flight.completions or self.in_flight.returns)

    def _step(self) -> tuple[float | None, int] | None:
        """Do one thing.

        If there is nothing to do, return how long to sleep, and the number of ends that end the sleep; otherwise
        None.
        """
        in_flight = self.in_flight
        if self._to_begin:
            self._begin_first()
        elif in_flight.returns and not (
            in_flight.completions and self._failures % 2
        ):  # one kind holds up no other
            self._completer.release_returned()
            self._worked()
        else:
            fetch_count = self._fetch_count()
            wait = (
                self._prefetcher.pause(concurrency.now(), len(in_flight.completions))
                if in_flight.completions
                else None
            )
            if in_flight.completions and (fetch_count or not wait):
                self._complete(fetch_count)
            elif fetch_count:
                self._lease(fetch_count)
            else:
                return self._idle(wait)
        return None

    def _fetch_count(self) -> int:
        """Return how many items to lease without waiting."""
        if self.stopping or self._quiet or self._fetcher.requested or self._deliveries:
            return 0
        fetch_count = self._prefetcher.fetch_count()
        if fetch_count and self._dry:
            if self._settings.burst:
                return fetch_count if self._is_done() else 0
            self._fetcher.request(fetch_count)
            return 0
        return fetch_count

    def _idle(self, wait: float | None) -> tuple[float | None, int]:
        pause, wake_at = wait, 1
        if wait is not None:
            wake_at = max(1, self._prefetcher.flush_threshold() - len(self.in_flight.completions))
        if self._pool.waiting():
            pause = min(HOARD_SECS, HOARD_SECS if pause is None else pause)
        if self._grace_ends is not None:
            left = max(0.0, self._grace_ends - concurrency.now())
            pause = left if pause is None else min(pause, left)
        return pause, wake_at

    def _sleep(self, pause: float | None, wake_at: int) -> None:
        """Sleep until that many handlers have ended, the time is over, or another event wakes it."""
        self._wake_at = wake_at
        if len(self._ends) < wake_at and not self._deliveries and (pause is None or pause > 0):
            self._wake_event.wait(pause)
        self._wake_at = NEVER

    def _complete(self, fetch_count: int) -> None:
        queue = self._source.one
        if fetch_count and queue is not None and not self._settings.at_most_once:
            items = self._completer.complete_and_lease(queue, fetch_count)
            self._worked()
            if items is not None:
                self._leased(items, fetch_count)
        else:
            self._completer.complete()
            self._worked()

    def _lease(self, fetch_count: int) -> None:
        last_fetch = self._settings.burst and self._is_done()
        items = self._source.take(fetch_count)
        if items:  # a lease of nothing only reads, which a server that refuses writes allows
            self._worked()
        else:
            self._server_health.answered_at = concurrency.now()
        self._empty = last_fetch and not items
        self._leased(items, fetch_count)

    def _leased(self, items: list[LeasedItem], fetch_count: int) -> None:
        self._dry = len(items) < fetch_count
        if items:
            self._to_begin.append(self.in_flight.leased(items, concurrency.now()))

    def _begin_first(self) -> None:
        """Hand out what was leased."""
        items = self._to_begin[0]
        if self._settings.at_most_once and items:
            items = self._completer.complete_first(items[0].queue, items)
            self._worked()
        self._to_begin.popleft()
        self._prefetcher.outstanding += len(items)
        self._last_end = concurrency.now()
        self._pool.put(items)

    def _deliver(self, items: list[LeasedItem], requested: int) -> None:
        """Called by the loop that waits: hands out what it leased, since waking this one first would take its time."""
        # before the look at whether it stops: the main loop stops before it looks at this
        self._delivering = True
        if self.stopping or self._quiet or self._settings.at_most_once:
            self._deliveries.append(Delivery(items, requested, dispatched=None))
        else:
            dispatched = self.in_flight.leased(items, concurrency.now())
            self._deliveries.append(Delivery(items, requested, dispatched))  # before a handler can end
            self._pool.put(dispatched)
        self._delivering = False

    def _account(self, delivery: Delivery) -> None:
        if delivery.dispatched is None:
            self._leased(delivery.items, delivery.requested)
            return
        self._dry = len(delivery.items) < delivery.requested
        self._prefetcher.outstanding += len(delivery.dispatched)
        self._last_end = concurrency.now()

    def _collect(self) -> None:
        # in this order: what has ended or waits for a handler was brought before
        ends = [self._ends.popleft() for _ in range(len(self._ends))]
        waiting = self._pool.waiting()
        while self._deliveries:
            self._account(self._deliveries.popleft())
        now = concurrency.now()
        if ends:
            self.in_flight.collect(ends, now)
            self._last_end = now
            if self._settings.burst:
                self._dry = False  # handlers may have added items
        elif waiting and now - self._last_end >= HOARD_SECS and not self._settings.at_most_once:
            # others may start these now
            self._prefetcher.record_durations(1, now - self._last_end)
            self.in_flight.withdrawn(self._pool.withdraw())

    def _begin_to_stop(self) -> None:
        if self._stops and self._grace_ends is None:
            self._grace_ends = concurrency.now() + self._settings.grace_secs
        if not self._stop_announced:
            self._stop_announced = True
            logger.info(
                "worker %s stops: %d items are being worked on", self._name, self._prefetcher.outstanding
            )
            self.presence_reporter.report_now()
        self._give_back_unstarted()

    def _give_back_unstarted(self) -> None:
        while self._to_begin:
            self.in_flight.undispatched(self._to_begin.popleft())
        if not self._settings.at_most_once:
            self.in_flight.withdrawn(self._pool.withdraw())

    def _wind_up(self) -> None:
        """Give back what is left, as well as it can be done."""
        self.in_flight.warn_of_unfinished()
        self._pool.abandon()
        self._collect()
        self.in_flight.withdrawn(self._pool.withdraw())
        self.in_flight.release_all()
        self._pool.end()
        for attempt in range(1, LAST_TRIES + 1):
            failure = self._report_left()
            if failure is None:
                return
            if attempt == LAST_TRIES or isinstance(failure, QueueClosedError):
                logger.error(
                    "worker %s: %d items wait for their deadlines: %s",
                    self._name,
                    self.in_flight.count,
                    failure,
                )
                return
            concurrency.sleep(server_health.pause(attempt))
            self.in_flight.give_up_overdue(concurrency.now())

    def _report_left(self) -> LeaseqError | None:
        """Report each end that is left; of a queue that refuses, the first alone. Return an error, if there was one."""
        failure: LeaseqError | None = None
        for next_queue, report in (
            (self.in_flight.next_to_complete, self._completer.complete),
            (self.in_flight.next_to_release, self._completer.release_returned),
        ):
            refused = set()
            while (queue := next_queue()) is not None and queue not in refused:
                try:
                    report()
                except (UnavailableError, ReplyLostError, QueueClosedError) as error:  # for all of them
                    return error
                except LeaseqError as error:
                    refused.add(queue)
                    failure = error
        return failure

    def _ended(self, end: HandlerResult) -> None:
        """Record that a handler has ended. Wake the main loop if enough handlers have."""
        self._ends.append(end)
        if len(self._ends) >= self._wake_at:
            self._wake_at = NEVER
            self._wake_event.set()

    def _steer(self, wish: bytes | None) -> None:
        """Do what a program wishes that steers this worker from elsewhere (LQ-WORKER-6)."""
        if wish == b"stop" and not self.stopping:
            logger.info("worker %s stops by a wish on the server", self._name)
            self.stop()
            self._stopped_by_wish = True  # a signal behind that is the first stop, and not the second
        quiet = wish == b"quiet"
        if quiet != self._quiet:
            self._quiet = quiet
            logger.info(
                "worker %s %s by a wish on the server", self._name, "is quiet" if quiet else "resumes"
            )
            self.presence_reporter.report_now()
            self._wake_event.set()

    def _status(self, started: float, reported: float) -> str:
        """Return the announcement of this worker."""
        return presence.encode(
            started=started,
            reported=reported,
            stopping=self.stopping,
            quiet=self._quiet,
            concurrency=self._settings.concurrency,
            completed=self.in_flight.completed_count,
            queues=[(queue.group, queue.name) for queue in self._source.queues],
            held=self.in_flight.held(),
            now=concurrency.now(),
        )

    def _worked(self) -> None:
        self._failures = 0
        self._has_worked = True
        self._server_health.answered_at = concurrency.now()
        if self._server_health.is_down:
            self._on_call_result(None)

    def _on_call_result(self, error: LeaseqError | None) -> None:
        """Record that a call has failed with an error, or worked."""
        if isinstance(error, FOR_A_PERSON) and not self._has_worked:
            self._failure = self._failure or error
            self._wake_event.set()
            return
        with self._guard:
            self._has_worked |= error is None
            now = concurrency.now()
            first = error is not None and self._server_health.mark_down(now)
            seconds = self._server_health.mark_up(now) if error is None else None
        if first and error is not None:
            logger.warning("worker %s goes on trying: %s", self._name, error)
            self._hooks.emit("server_away", error)
        if seconds is not None:
            logger.info("worker %s: the server answers again, after %.1f s", self._name, seconds)
            self._hooks.emit("server_back", seconds)

    def _supervised(self, loop: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            try:
                loop()
            except Exception as error:  # noqa: BLE001 (raised where the run ends)
                self._failure = self._failure or error
                self._wake_event.set()

        return run
