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
    """Runs a handler for each item of a queue, or of several, until it is stopped.

    `queues` is a WorkQueue, several of them (the first that has an item returns it), or a WorkQueues. You close them.
    `handler` is called with a leased item. When it returns, the item is completed, with `item.result` if it set one. If
    it raises `DeadLetter`, the item becomes a dead letter; if it raises `Release`, the item is given back. Any other exception
    releases the item with backoff, and its text is kept as the item's last error. If the handler completed or released the
    item itself, nothing more is done.

    Args:
        queues: the queues to lease from.
        handler: the function that is called with each item.
        concurrency: handlers that run at a time (1 to 10,000).
        lease_secs: seconds of a lease. It is extended while the handler runs. If the worker dies, it ends within that
            time, and another worker can lease the item.
        max_attempts: failed attempts after which an item becomes a dead letter; 0: only the item's or queue's limit counts.
        backoff: how long until the next attempt: a `Backoff`, a fixed delay, a list of delays whose last one repeats, or a
            function that takes the number of this attempt and returns a delay; `Backoff()` by default.
        dead_letter_on: exceptions after which an item becomes a dead letter at once.
        time_limit: seconds that one handler may take; then its item is released as after a failure. In asyncio the
            handler is cancelled; in threads it runs on with `item.lost` true.
        at_most_once: complete before the handler runs: it never runs twice, and is not tried again after a failure.
        burst: return from `run` when nothing is ready, instead of waiting.
        grace_secs: seconds that handlers may run on after the worker is stopped; then their items are released, uncounted.
        hooks: one object or several, called when something happens: see `Hooks`.
        handle_signals: stop on SIGTERM and SIGINT where `run` is called in the main thread; a second one ends it at
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
        self._drains = False
        self._stops = 0

    @property
    def id(self) -> str:
        """The worker's name: its host, its process id and a random part."""
        return self._id

    @property
    def readiness(self) -> Readiness:
        """The state it is in: "starting", "leasing", "away" while the server does not answer or refuses, or "stopping"."""
        if self._run is not None:
            return self._run.readiness
        return "stopping" if self._stops or self._drains else "starting"

    @property
    def answered_at(self) -> float | None:
        """When the server last answered this run, in seconds since 1970 on this process's clock; None if it has not."""
        answered_at = None if self._run is None else self._run.answered_at
        return None if answered_at is None else time.time() - (concurrency.now() - answered_at)

    def run(self) -> int:
        """Work until stopped, or with `burst` until nothing is ready. Return the number of completed items.

        If the server does not answer, it tries again, with growing pauses and one line in the log. Raises
        QueueClosedError when one of its queues is closed.
        """
        if self._run is not None:
            raise LeaseqError("this worker runs already")
        run = self._run = WorkerLoop(self._source, self._handler, self._settings, self._hooks, self._id)
        try:
            if self._drains:
                run.drain()
            for _ in range(self._stops):
                run.stop()
            return run_with_signals(run.work, self.stop, handle_signals=self._settings.handle_signals)
        finally:
            self._run, self._drains, self._stops = None, False, 0

    def drain(self) -> None:
        """Stop leasing; `run` returns when the handlers have ended, however long they take. `stop` may still follow.

        May be called from any thread, and before `run`.
        """
        self._drains = True
        if self._run is not None:
            self._run.drain()

    def stop(self, *, at_once: bool = False) -> None:
        """Stop leasing; `run` returns when the handlers have ended, or after the grace time.

        Called a second time, or with `at_once`, it does not wait for handlers. May be called from any thread, and
        before `run`, which then returns.
        """
        self._stops = 2 if at_once or self._stops else 1
        if self._run is not None:
            self._run.stop(at_once=at_once)
