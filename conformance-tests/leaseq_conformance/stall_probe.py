"""Measures how late the harness itself is: only with this as evidence may a verdict say that the machine was too slow."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from types import TracebackType

INTERVAL_SECS: Final = 0.02
LEAST_SECS: Final = 0.05
"""Delays below this are usual and are not kept."""
KEPT: Final = 10_000


class StallProbe:
    """A thread that asks to be woken every 20 ms and notes by how much it was woken late. Runs in a `with` block."""

    def __init__(self) -> None:
        self._stalls: deque[tuple[float, float]] = deque(maxlen=KEPT)
        self._due = time.monotonic() + INTERVAL_SECS
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stall probe", daemon=True)

    def longest(self, since: float) -> float:
        """The longest delay, in seconds, since a moment of time.monotonic(); 0 if none was longer than 50 ms."""
        late_now = time.monotonic() - self._due
        stalls = [secs for end, secs in list(self._stalls) if end >= since]
        return max([secs for secs in (*stalls, late_now) if secs >= LEAST_SECS], default=0.0)

    def _run(self) -> None:
        while not self._stop.wait(max(0.0, self._due - time.monotonic())):
            now = time.monotonic()
            if now - self._due >= LEAST_SECS:
                self._stalls.append((now, now - self._due))
            self._due = now + INTERVAL_SECS

    def __enter__(self) -> Self:
        self._due = time.monotonic() + INTERVAL_SECS
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
