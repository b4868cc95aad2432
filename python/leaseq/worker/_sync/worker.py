# Generated from _aio/worker.py by tools/unasync.py: do not edit.
"""The worker, as a program uses it."""

import time
from collections.abc import Iterable

from leaseq._sync import concurrency
from leaseq.backoff import AnyBackoff
from leaseq.durations import Duration, seconds
from leaseq.errors import LeaseqError
from leaseq.worker import presence
from leaseq.worker._sync.background import run_with_signals
from leaseq.worker._sync.handler_pool import Handler, check_handler
from leaseq.worker._sync.source import Queues, Source
from leaseq.worker._sync.worker_loop import WorkerLoop
from leaseq.worker.hooks import Hooks, SafeHooks
from leaseq.worker.settings import Readiness, Settings, as_hook_list, checked_policy


class Worker:
    """A loop that leases the items of one queue, or of several, and runs a handler for each, until it is stopped.

    `handler` is called with a leased item. When it returns, the item is completed, with `item.result` if it set one. If
    it raises `DeadLetter`, the item becomes a dead letter; if it raises `Release`, the item is given back. Any other exception
    releases the item with backoff, and its text is kept as the item's last error. If the handler completed or released the
    item itself, nothing more is done.

    Args:
        queues: a WorkQueue, several of them (each time the first that has an item), or a WorkQueues. Close them yourself.
        handler: the function that is called with each item.
        concurrency: handlers that run at a time (1 to 10,000).
        lease_secs: seconds of a lease (0.001 s to 30 days). It is extended while the handler runs. If the worker dies, the
            lease ends within that time, and another worker can lease the item.
        max_attempts: attempts after which a failed item becomes a dead letter, unless its own limit or the queue's is lower;
            0: only those count.
        backoff: seconds until the next attempt: a `Backoff`, a fixed delay, a list of delays whose last one repeats, or a
            function that takes the number of this attempt (1 for the first) and returns a delay; None: `Backoff()`.
        dead_letter_on: exception classes after which an item becomes a dead letter at once.
        time_limit: seconds that one handler may take; then its item is released as after a failure. In asyncio the
            handler is cancelled; in threads it runs on with `item.lost` true. None: no limit.
        at_most_once: complete before the handler runs: it never runs twice, and is not tried again after a failure.
        burst: return from `run` when nothing is ready, instead of waiting.
        grace_secs: seconds for which handlers may run on after `stop`; then their items are released, and the attempt does
            not count.
        hooks: one object or several, called when something happens: see `Hooks`.
        handle_signals: stop on SIGTERM and SIGINT if `run` is called in the main thread; a second signal ends `run` at
            once.
        announce: be listed by `leaseq.worker.registry.live_workers`.

    Raises BadTypeError, BadArgumentError.
    """

    def __init__(
        self,
        queues: Queues | Source,
        handler: Handler,
        *,
        concurrency: int = 10,
        lease_secs: Duration = 30,
        max_attempts: int = 25,
        backoff: AnyBackoff | None = None,
        dead_letter_on: Iterable[type[BaseException]] | type[BaseException] = (),
        time_limit: Duration | None = None,
        at_most_once: bool = False,
        burst: bool = False,
        grace_secs: Duration = 25,
        hooks: Hooks | Iterable[Hooks] | None = None,
        handle_signals: bool = True,
        announce: bool = True,
    ) -> None:
        check_handler(handler)
        lease_secs = seconds(lease_secs, "lease_secs")
        self._settings = Settings(
            concurrency=concurrency,
            lease_secs=lease_secs,
            policy=checked_policy(max_attempts, backoff, dead_letter_on),
            time_limit=None if time_limit is None else seconds(time_limit, "time_limit"),
            at_most_once=at_most_once,
            burst=burst,
            grace_secs=seconds(grace_secs, "grace_secs"),
            handle_signals=handle_signals,
            announce=announce,
        )
        self._handler = handler
        self._source = queues if isinstance(queues, Source) else Source(queues, lease_secs)
        self._hooks = SafeHooks(as_hook_list(hooks))
        self._id = presence.new_id()
        self._run: WorkerLoop | None = None
        self.first_announced = 0.0
        """When its program announced it before it runs, by the server's clock; 0 if it did not."""
        self._drains = False
        self._stops = 0

    @property
    def id(self) -> str:
        """The worker's name: its host, its process id and a random part."""
        return self._id

    @property
    def readiness(self) -> Readiness:
        """The state of the worker: "starting", "leasing", "quiet", "away" (the server does not answer, or refuses) or "stopping"."""
        if self._run is not None:
            return self._run.readiness
        return "stopping" if self._stops or self._drains else "starting"

    @property
    def answered_at(self) -> float | None:
        """The time at which the server last answered, in seconds since 1970 on this process's clock; None if not in this run."""
        answered_at = None if self._run is None else self._run.answered_at
        return None if answered_at is None else time.time() - (concurrency.now() - answered_at)

    def run(self) -> int:
        """Work until stopped, or with `burst` until nothing is ready. Return the number of completed items.

        If the server does not answer, it tries again, with growing pauses and one line in the log. Raises
        QueueClosedError when one of its queues is closed, AccessDeniedError or BadArgumentError if the server refuses the
        user or a setting at the start, and LeaseqError if the worker runs already.
        """
        if self._run is not None:
            raise LeaseqError("this worker runs already")
        run = self._run = WorkerLoop(self._source, self._handler, self._settings, self._hooks, self._id)
        run.presence_reporter.started = self.first_announced
        try:
            if self._drains:
                run.drain()
            for _ in range(self._stops):
                run.stop()
            return run_with_signals(run.work, self.stop, handle_signals=self._settings.handle_signals)
        finally:
            self._run, self._drains, self._stops = None, False, 0

    def drain(self) -> None:
        """Stop leasing; `run` returns when the handlers have ended, however long they take. You can still call `stop`.

        May be called from any thread, and before `run`.
        """
        self._drains = True
        if self._run is not None:
            self._run.drain()

    def stop(self, *, at_once: bool = False) -> None:
        """Stop leasing; `run` returns when the handlers have ended, or after `grace_secs`.

        Called a second time, or with `at_once`, it does not wait for handlers. May be called from any thread. If it is
        called before `run`, the next `run` returns without leasing.
        """
        self._stops = 2 if at_once or self._stops else 1
        if self._run is not None:
            self._run.stop(at_once=at_once)
