"""Waiting for a condition that only looking can tell."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Final

import redis

if TYPE_CHECKING:
    from collections.abc import Callable

TIMEOUT_SECS: Final = 60.0
"""Seconds in which what is only waited for comes, however slow the machine is; no verdict depends on it being short."""


def wait_until(check: Callable[[], object], seconds: float = TIMEOUT_SECS) -> None:
    """Look until the check is true; an error of Redis counts as not yet.

    Raises:
        TimeoutError: it is not true in that many seconds.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(redis.RedisError):
            if check():
                return
        time.sleep(0.005)
    raise TimeoutError(f"not within {seconds} s: {getattr(check, '__name__', check)}")
