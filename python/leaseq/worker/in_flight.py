"""The items that a worker holds, that have ended, and that are not reported yet. No input or output."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from typing import Any, Literal, TypeVar

from leaseq import flows
from leaseq._scripts import MAX_ENTRIES
from leaseq.commands import ReleaseRequest
from leaseq.errors import LeaseqError, TooLargeError
from leaseq.results import Released
from leaseq.worker.hooks import SafeHooks, failure_of, logger
from leaseq.worker.prefetch import Prefetcher
from leaseq.worker.retry_policy import UNCOUNTED, DeadLetter, Disposition, Release
from leaseq.worker.settings import Settings

CancelReason = Literal["lost", "late", "stop"]
"""Reason to end a handler: the lease is lost, its time is over, or the worker stops."""

End = Literal["returned", "raised", "gone", "withdrawn", CancelReason]
"""The end of a handler. Only "returned" completes an item. "gone" and "withdrawn": it did not start, as the lease was lost, or as the
worker stops. Else what ended it from outside."""

HandlerResult = tuple[Any, BaseException | None, float, End, bool]
"""The end of a handler: the item, its error or None, its seconds, the kind of end, and true if it frees its slot.

A thread that is given up runs on, and does not free it. A bare tuple, since there is one for every item.
"""

T = TypeVar("T")

Item = Any
"""A sync or async leased item."""


NAMED_ITEMS = 10
"""The most items that one line of the log names."""


class InFlight:
    """The items that one worker holds. `guard` protects them from loops that run at the same time."""

    def __init__(
        self, settings: Settings, prefetcher: Prefetcher, hooks: SafeHooks, guard: AbstractContextManager[Any]
    ) -> None:
        self._settings = settings
        self._prefetcher = prefetcher
        self._hooks = hooks
        self._guard = guard
        self._held: dict[Item, None] = {}
        self._unconfirmed: set[Item] = set()
        self._timed_out: set[Item] = set()
        self._retried: set[Item] = set()
        self.ends: deque[HandlerResult] = deque()
        self.completions: deque[Item] = deque()
        self.returns: deque[ReleaseRequest] = deque()
        self.completed_count = 0

    def leased(self, items: Sequence[Item], now: float) -> list[Item]:
        """Hold items. Return those to run. An item without attempts left becomes a dead letter instead.

        If the lease is over, this process stood still, and others may have the items by now: they go back (LQ-WORK-15).
        """
        held_until = items[0].hold.held_until if items else None  # that of all: one lease
        if held_until is not None and now >= held_until:
            self.undispatched(items)
            return []
        if "leased" in self._hooks.overridden:
            self._hooks.emit("leased", items)
        with self._guard:
            self._held.update(dict.fromkeys(items))
        policy = self._settings.policy
        exhausted = policy.exhausted(items) if policy.max_attempts else {}
        for item, verdict in exhausted.items():
            self._release(item, verdict)
        return [item for item in items if item not in exhausted] if exhausted else list(items)

    @property
    def count(self) -> int:
        """The number of items that are held."""
        return len(self._held)

    def held(self) -> list[Item]:
        """Return all items that are leased and whose end is not confirmed yet."""
        with self._guard:
            return list(self._held)

    def running(self) -> list[Item]:
        """Return the items whose handlers have not ended. After that a lease is not extended (LQ-WORK-5)."""
        ended = {*(end[0] for end in list(self.ends)), *list(self.completions)}
        ended.update(request.item for request in list(self.returns))
        return [item for item in self.held() if item not in ended and not item.hold.ending]

    def is_held(self, item: Item) -> bool:
        """Return whether an item is still held, and no call is under way that ends it."""
        return item in self._held and not item.hold.ending

    def collect(self, ends: Iterable[HandlerResult], now: float) -> None:
        """Record the ends of handlers."""
        freed, together = 0, 0.0
        for end in ends:
            item, error, seconds, how, frees = end
            if frees:
                freed += 1
                together += seconds
            # work that is done is done, whatever happened meanwhile; the server knows whether it counts
            if how == "returned" and (not item.hold.ended or item in self._timed_out):
                self.completions.append(item)
            else:
                self._record_abnormal(end)
            if frees:
                self._timed_out.discard(item)
                if self._hooks.per_item and how not in {"gone", "withdrawn"}:
                    self._hooks.emit("ended", item, seconds, None if error is None else failure_of(error))
        if self.completions:
            self._prefetcher.note_completion(now)
        self._prefetcher.outstanding -= freed
        self._prefetcher.record_durations(freed, together)

    def _record_abnormal(self, end: HandlerResult) -> None:
        """Record an end that does not complete the item."""
        item, error, _, how, frees = end
        if how == "late":
            if not frees:
                self._timed_out.add(item)  # its thread runs on, and may yet do the work
            limit = self._settings.time_limit
            self._judge(item, TimeoutError(f"took longer than {limit:g} seconds"))
        elif how in {"stop", "withdrawn"}:
            self._release_unless_ended(item, UNCOUNTED)
        elif how == "raised" and error is not None:
            self._judge(item, error)
        else:  # the lease is lost, or the handler has completed or released the item itself
            self.forget([item])

    def _judge(self, item: Item, error: BaseException) -> None:
        verdict = self._settings.policy.judge(item, error)
        self._release_unless_ended(item, verdict)
        self._log(item, error, verdict)

    def _log(self, item: Item, error: BaseException, verdict: Disposition) -> None:
        """Log a failure.

        If the handler decided it with DeadLetter or Release, and not because of another exception, log only its
        reason.
        """
        decided = isinstance(error, (DeadLetter, Release)) and not (error.__cause__ or error.__context__)
        reason = f": {verdict.error}" if decided and verdict.error else ""
        function = error.function if isinstance(error, (DeadLetter, Release)) else ""
        subject = f"job {item.id!r} of {function}" if function else f"item {item.id!r}"
        extra = {"item": item.id, "attempt": item.attempt, **({"function": function} if function else {})}
        log_options: dict[str, Any] = {"exc_info": None if decided else error, "extra": extra}
        if self._settings.at_most_once:
            logger.warning(
                "%s failed; it was completed before its handler ran%s", subject, reason, **log_options
            )
        elif verdict.dead:
            logger.error("%s dies, attempt %d%s", subject, item.attempt, reason, **log_options)
        elif verdict.uncounted:
            logger.info("%s goes back uncounted%s", subject, reason, **log_options)
        else:
            logger.warning("%s failed, attempt %d%s", subject, item.attempt, reason, **log_options)

    def _release_unless_ended(self, item: Item, verdict: Disposition) -> None:
        if item.hold.ended or item not in self._held:
            self.forget([item])
        else:
            self._release(item, verdict)

    def _release(self, item: Item, verdict: Disposition) -> None:
        self.returns.append(
            ReleaseRequest(
                item, 0 if verdict.dead else verdict.delay, verdict.uncounted, verdict.error, verdict.dead
            )
        )

    def withdrawn(self, items: Sequence[Item]) -> None:
        """Release items that no handler has started, uncounted."""
        self._prefetcher.outstanding -= len(items)
        self.undispatched(items)

    def undispatched(self, items: Sequence[Item]) -> None:
        """Release items that were leased and not given to a handler, uncounted."""
        for item in items:
            self._release(item, UNCOUNTED)

    def warn_of_unfinished(self) -> None:
        """Log that a worker stops before the handlers of some items have ended."""
        if unfinished := self.running():
            names = ", ".join(item.id for item in unfinished[:NAMED_ITEMS])
            logger.warning(
                "the worker stops before %d items are done, which go back uncounted: %s",
                len(unfinished),
                names,
            )

    def release_all(self) -> None:
        """Release everything that is held and has not ended, uncounted."""
        reported = {*self.completions, *(request.item for request in self.returns)}
        for item in self.held():
            if item not in reported:
                self._release(item, UNCOUNTED)

    def next_completions(self) -> list[Item]:
        """Take out the items that one call completes: of one queue, 256 items and 4 MiB of results at most."""
        queue = self.completions[0].queue
        batch: list[Item] = []
        weight = 0
        for item in islice(self.completions, MAX_ENTRIES):
            weight += len(item.result or b"")
            if item.queue is not queue or (batch and weight > flows.CHUNK_BYTES):
                break
            batch.append(item)
        for _ in batch:
            self.completions.popleft()
        if not self.completions:
            self._prefetcher.flushed()
        return batch

    def next_to_complete(self) -> Any:
        """Return the queue of the next completion; None if there is none."""
        return self.completions[0].queue if self.completions else None

    def next_to_release(self) -> Any:
        """Return the queue of the next release; None if there is none."""
        return _queue(self.returns[0]) if self.returns else None

    def next_returns(self) -> list[ReleaseRequest]:
        """Take out the items that one call gives back: of one queue, 256 at most."""
        queue = _queue(self.returns[0])
        batch: list[ReleaseRequest] = []
        while self.returns and len(batch) < MAX_ENTRIES and _queue(self.returns[0]) is queue:
            batch.append(self.returns.popleft())
        return batch

    def completed(self, items: Sequence[Item], answers: Sequence[bool]) -> None:
        """Record the replies to a completion: true for the items that this worker completed."""
        self.completed_count += sum(answers)
        self.forget(items)
        if not all(answers) or "completed" in self._hooks.overridden:
            self._emit_each(items, answers)
        self._unconfirmed.difference_update(items)

    def _emit_each(self, items: Sequence[Item], answers: Sequence[bool]) -> None:
        for item, answer in zip(items, answers, strict=True):
            if answer or item in self._unconfirmed:  # the call whose answer was lost may have been the one
                self._hooks.emit("completed", item)
            elif not item.lost:
                item.hold.lost = True
                self._hooks.emit("lost", item)

    def requeue_completions(self, items: Sequence[Item], *, definite: bool, now: float) -> None:
        """Report these completions again, after a failed call; those of other queues come before.

        If that call may have worked, a later false does not mean a lost lease.
        """
        _put_back(self.completions, items, _queue_of)
        self._retried.update(items)
        self._prefetcher.note_completion(now)
        if not definite:
            self._unconfirmed.update(items)

    def requeue_releases(self, requests: Sequence[ReleaseRequest]) -> None:
        """Report these releases again, after a failed call; those of other queues come before."""
        _put_back(self.returns, requests, _queue)
        self._retried.update(request.item for request in requests)

    def give_up_overdue(self, now: float) -> None:
        """Drop ends that could not be reported while the lease was held: the item is leased again by now, or soon (LQ-WORK-6)."""
        overdue = {item for item in self._retried if item.hold.is_over(now)}
        self._retried -= overdue
        for item in overdue & self._held.keys():
            logger.error(
                "item %r: its lease ended before its end could be reported; it will run again", item.id
            )
        if overdue:
            self.completions = deque(item for item in self.completions if item not in overdue)
            self.returns = deque(request for request in self.returns if request.item not in overdue)
            self.forget(overdue)
            self._unconfirmed -= overdue
            if not self.completions:
                self._prefetcher.flushed()

    def refused(self, item: Item, error: LeaseqError) -> None:
        """Give up an item that the server will never complete: its result is too large, or its record is damaged."""
        if isinstance(error, TooLargeError):
            self._judge(item, error)
            return
        logger.error("item %r is given up, its lease will end: %s", item.id, error)
        self.forget([item])

    def returned(self, requests: Sequence[ReleaseRequest], answers: Sequence[Released]) -> None:
        """Record the replies to a release: the new state of each item."""
        self.forget([one.item for one in requests])
        for one, answer in zip(requests, answers, strict=True):
            extra = {"item": one.item.id}
            if answer == "dead":
                if not one.dead:
                    logger.error("item %r dies: that was the last of its attempts", one.item.id, extra=extra)
                self._hooks.emit("dead_lettered", one.item, one.error)
            elif answer != "lost":
                if one.error is not None and not one.uncounted:
                    logger.info("item %r can be leased again in %.1f s", one.item.id, one.delay, extra=extra)
                self._hooks.emit("released", one.item, one.delay, one.error)
            elif not one.item.hold.lost:
                one.item.hold.lost = True
                self._hooks.emit("lost", one.item)

    def forget(self, items: Iterable[Item]) -> None:
        """Hold these items no longer."""
        held, retried = self._held, self._retried
        with self._guard:
            for item in items:
                held.pop(item, None)
                if retried:
                    retried.discard(item)


def _queue_of(item: Item) -> Any:
    return item.queue


def _queue(request: ReleaseRequest) -> Any:
    return _queue_of(request.item)


def _put_back(waiting: deque[T], given: Sequence[T], queue_of: Callable[[T], Any]) -> None:
    """Put ends of one queue in front again, or behind those of other queues, which may go well."""
    queues = {queue_of(each) for each in waiting}
    if queues - {queue_of(each) for each in given}:
        waiting.extend(given)
    else:
        waiting.extendleft(reversed(given))
