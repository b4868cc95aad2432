"""Pauses before something that failed is tried again."""

import inspect
import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from leaseq.callables import is_async
from leaseq.durations import Duration, seconds_of
from leaseq.errors import BadArgumentError, BadTypeError

MAX_DELAY_SECONDS: Final = 315_360_000
"""Ten years, the longest delay of an item."""

logger = logging.getLogger("leaseq.worker")


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays between attempts. The first is `first` seconds; each failure doubles the delay, up to `last` seconds.

    Each delay is shortened at random by up to half, so that items that failed together do not come back together. If
    `first` is longer than `last`, all delays are `first`. Both are seconds, a timedelta, or text such as "5m", up to 10 years.

    Attributes:
        first: seconds after the first attempt, before the random part is subtracted.
        last: the longest delay in seconds, before the random part is subtracted.

    Raises BadTypeError, BadArgumentError.
    """

    first: float = 1.0
    last: float = 300.0

    def __init__(self, first: Duration | str = 1.0, last: Duration | str = 300.0) -> None:
        given: object = first
        if callable(given) or (isinstance(given, Sequence) and not isinstance(given, str)):
            raise BadTypeError(
                "Backoff takes the first and the last delay; a list of delays or a function is a backoff itself: write"
                " backoff=[10, 60], without Backoff"
            )
        object.__setattr__(self, "first", _delay(first, "the first delay of a backoff"))
        object.__setattr__(self, "last", _delay(last, "the last delay of a backoff"))

    def __call__(self, attempt: int) -> float:
        """Return the delay in seconds after this attempt (1 for the first)."""
        max_delay = min(max(self.first, self.last), self.first * 2.0 ** min(attempt - 1, 30))
        return max_delay * random.uniform(0.5, 1.0)  # noqa: S311 (no secret)


@dataclass(frozen=True, slots=True)
class Delays:
    """The delay after each attempt, in seconds; the last one repeats."""

    secs: tuple[float, ...]

    def __call__(self, attempt: int) -> float:
        """Return the delay in seconds after this attempt (1 for the first)."""
        return self.secs[min(attempt, len(self.secs)) - 1]


@dataclass(frozen=True, slots=True)
class DelayFunction:
    """A function of the program that returns the delay after an attempt. If it fails, the default delay holds."""

    function: Callable[[int], Duration]

    def __call__(self, attempt: int) -> float:
        """The delay after this attempt (1 for the first)."""
        try:
            return _delay(self.function(attempt), "the delay that a backoff returned")
        except Exception:
            logger.exception("a backoff failed after attempt %d: the default delay holds", attempt)
            return Backoff()(attempt)


Policy: TypeAlias = Backoff | Delays | DelayFunction

AnyBackoff: TypeAlias = (
    Backoff | Duration | str | Sequence[Duration | str] | Callable[[int], float] | Callable[[int], Duration]
)
"""Values of the option `backoff`: a Backoff, a fixed delay, a list of delays whose last one repeats, or a function.

The function takes the number of the attempt that failed (1 for the first) and returns a delay. Delays are seconds, a
timedelta, or text such as "5m".
"""


def as_policy(given: AnyBackoff) -> Policy:
    """Return the policy that the option `backoff` means. Raises BadTypeError, BadArgumentError."""
    if isinstance(given, Policy):
        return given
    if isinstance(given, Sequence) and not isinstance(given, str | bytes | bytearray | memoryview):
        if not given:
            raise BadArgumentError(
                "backoff has no delay: a list has one for each attempt, and the last repeats"
            )
        return Delays(tuple(_delay(each, "a delay of backoff") for each in given))
    if callable(given):
        _check_function(given)
        return DelayFunction(given)
    return Delays((_delay(given, "backoff"),))


def _delay(given: Any, what: str) -> float:
    """Return a delay in seconds. Raises BadTypeError, BadArgumentError."""
    try:
        secs = seconds_of(given, what)
    except BadTypeError:
        raise BadTypeError(
            f"{what} is a {type(given).__name__}; write Backoff(first, last), a delay (10, '5m', timedelta(minutes=5)), a list"
            " of delays, or a function of the number of the attempt that failed"
        ) from None
    if not 0 <= secs <= MAX_DELAY_SECONDS:
        raise BadArgumentError(f"{what} must be 0 to {MAX_DELAY_SECONDS} seconds, which is ten years")
    return secs


def _check_function(function: Callable[..., object]) -> None:
    """Refuse what cannot return a delay when it is called with one number. Raises BadTypeError."""
    if isinstance(function, type):
        raise BadTypeError(
            f"backoff is the class {function.__name__}: call it, as in backoff=Backoff(1, 300)"
        )
    if is_async(function):
        raise BadTypeError("backoff must not be an async def: it returns the delay at once")
    try:
        inspect.signature(function).bind(1)
    except TypeError as error:
        raise BadTypeError(f"backoff is called with the number of the attempt that failed: {error}") from None
    except ValueError:
        return  # a builtin that does not say what it takes
