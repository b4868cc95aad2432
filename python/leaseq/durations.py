"""Durations and times as callers pass them, in seconds."""

import math
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from leaseq.errors import BadArgumentError, BadTypeError

Duration = float | timedelta
"""Seconds, or a timedelta."""

Time = float | datetime
"""Seconds since 1970, or a datetime with a time zone."""

MAX_SECONDS: Final = 10**12
"""More seconds than any duration or time of the protocol, few enough to write as a number of 16 digits."""

NO_TIME: Final = (0, timedelta())
"""Durations that are 0."""

_PLAIN: Final = frozenset({int, float})
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?) *([a-z]*)", re.ASCII)


def seconds(duration: Duration, what: str) -> float:
    """Return the seconds of a duration. Raises BadTypeError, BadArgumentError."""
    if type(duration) in _PLAIN:
        count: float = duration  # type: ignore[assignment]
    elif isinstance(duration, timedelta):
        count = duration.total_seconds()
    else:
        count = _number(duration, what, "a number of seconds or a timedelta")
    if not -MAX_SECONDS <= count <= MAX_SECONDS:
        raise BadArgumentError(f"{what} is no number of seconds that a queue can count")
    return count


def deadline_after(timeout: Duration | None, clock: Callable[[], float]) -> float:
    """Return the time at which to wait no longer; None waits without limit. Raises BadTypeError, BadArgumentError."""
    if timeout is None:
        return math.inf
    count = seconds(timeout, "timeout")
    if count < 0:
        raise BadArgumentError("timeout must not be negative; None waits for as long as it takes")
    return clock() + count


def seconds_of(duration: Duration | str, what: str) -> float:
    """Return the seconds of a duration that can be text too: 30, 500ms, 30s, 5m, 2h, 7d. Raises BadTypeError, BadArgumentError."""
    return parsed(duration) if isinstance(duration, str) else seconds(duration, what)


def parsed(text: str) -> float:
    """Return the seconds of a duration in text; a number without a unit is in seconds. Raises BadArgumentError."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or match[2] not in _SECONDS:
        raise BadArgumentError(f"{text!r} is no duration; write 30s, 500ms, 5m, 2h or 7d")
    return float(match[1]) * _SECONDS[match[2]]


def since_1970(time: Time, what: str) -> float:
    """Return a time in seconds since 1970. Raises BadTypeError, BadArgumentError."""
    if isinstance(time, datetime):
        if time.tzinfo is None:
            raise BadArgumentError(f"{what} has no time zone: datetime.now(UTC) and the like have one")
        return time.timestamp()
    return seconds(_number(time, what, "a number of seconds since 1970 or a datetime"), what)


def _number(given: object, what: str, allowed: str) -> float:
    """Return a number. Raises BadTypeError."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise BadTypeError(f"{what} must be {allowed}, not {type(given).__name__}")
    return given
