"""Decisions about items whose handlers failed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from leaseq.backoff import MAX_DELAY_SECONDS, Backoff
from leaseq.commands import milliseconds
from leaseq.durations import Duration, seconds
from leaseq.errors import BadArgumentError
from leaseq.exception_text import text_of, written
from leaseq.item import LeasedItemBase
from leaseq.worker.hooks import logger


class DeadLetter(Exception):  # noqa: N818 (what a handler decides, no error of this package)
    """Raised by a handler or a job to make its item a dead letter, without another attempt.

    `reason` is kept as the item's last error.
    """

    function = ""
    """The name of the job's function, for the log; empty if the item is no job."""
    job_failure: BaseException | None = None
    """The exception of the job's function, for hooks; None if the item is no job."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


class Release(Exception):  # noqa: N818 (likewise)
    """Raised by a handler to give its item back, to be leased again after `delay` seconds (None: the worker's backoff).

    `reason` is kept as the item's last error. With `uncounted` the attempt does not count, and without a `delay` the item
    is ready at once. Raises BadTypeError, BadArgumentError for a wrong delay.
    """

    function = ""
    """The name of the job's function, for the log; empty if the item is no job."""
    job_failure: BaseException | None = None
    """The exception of the job's function, for hooks; None if the item is no job."""

    def __init__(self, reason: str = "", *, delay: Duration | None = None, uncounted: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.delay = None if delay is None else seconds(delay, "delay")
        self.uncounted = uncounted


@dataclass(frozen=True, slots=True)
class Disposition:
    """The way in which an item goes back: after a delay, or dead; with the text that is kept as its last error."""

    delay: float = 0.0
    dead: bool = False
    uncounted: bool = False
    error: str | None = None


UNCOUNTED = Disposition(uncounted=True)
"""As if it had never been leased."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Decides which failures make an item a dead letter, and which release it."""

    max_attempts: int
    backoff: Callable[[int], float]
    dead_letter_on: tuple[type[BaseException], ...]

    def judge(self, item: LeasedItemBase, error: BaseException) -> Disposition:
        """Return the disposition of an item whose handler raised this error. A failing policy is logged, and the item waits as by default."""
        try:
            disposition = self._judge(item, error)
            _check(disposition.delay)
        except Exception:  # noqa: BLE001 (a backoff is the user's)
            logger.exception("item %r waits for the default time", item.id)
            return Disposition(delay=Backoff()(item.attempt), error=text_of(error))
        return disposition

    def _judge(self, item: LeasedItemBase, error: BaseException) -> Disposition:
        if isinstance(error, DeadLetter):
            return Disposition(dead=True, error=written(error.reason) or None)
        if isinstance(error, Release):
            return self._release(item, error)
        text = text_of(error)
        if isinstance(error, self.dead_letter_on) or self._last(item):
            return Disposition(dead=True, error=text)
        return Disposition(delay=self.backoff(item.attempt), error=text)

    def _release(self, item: LeasedItemBase, release: Release) -> Disposition:
        text = written(release.reason) or None
        if release.uncounted:
            return Disposition(delay=release.delay or 0.0, uncounted=True, error=text)
        if self._last(item):
            return Disposition(dead=True, error=text)
        delay = self.backoff(item.attempt) if release.delay is None else release.delay
        return Disposition(delay=delay, error=text)

    def _last(self, item: LeasedItemBase) -> bool:
        return 0 < self.max_attempts <= item.attempt

    def exhausted(self, items: Sequence[LeasedItemBase]) -> dict[LeasedItemBase, Disposition]:
        """Return dispositions for items that had all their attempts before this one: earlier workers crashed before reporting."""
        return {
            item: Disposition(
                dead=True,
                error=f"leased {item.attempt} times, which is more than the {self.max_attempts} attempts of this worker",
            )
            for item in items
            if 0 < self.max_attempts < item.attempt
        }


def _check(delay: float) -> None:
    """Raises BadTypeError, BadArgumentError."""
    if not 0 <= milliseconds(delay, "the delay of an item") <= MAX_DELAY_SECONDS * 1000:
        raise BadArgumentError(
            f"the delay of an item must be 0 to {MAX_DELAY_SECONDS} seconds, which is ten years"
        )
