"""Reads that all viewers share: a page that many people keep open costs the server as much as for one."""

import threading
import time
from collections.abc import Callable, Hashable
from typing import Any, Final, TypeVar

T = TypeVar("T")

MAX_READS: Final = 500
"""Answers that are kept, at most."""


class _Read:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.until = float("-inf")
        self.answer: Any = None


class SharedReads:
    """The answers of reads, each for a few seconds. Two viewers that ask at the same moment wait for one read."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._reads: dict[Hashable, _Read] = {}

    def get(self, key: Hashable, secs: float, read: Callable[[], T]) -> T:
        """Return the answer of a read that is at most `secs` seconds old. Raises what the read raises."""
        with self._guard:
            found = self._reads.pop(key, None) or _Read()
            self._reads[key] = found  # the last one used is the last in the order
            if len(self._reads) > MAX_READS:
                del self._reads[next(iter(self._reads))]
        with found.lock:
            if time.monotonic() >= found.until:
                found.answer = read()
                found.until = time.monotonic() + secs
            answer: T = found.answer
            return answer

    def forget(self) -> None:
        """Read all again: something has changed."""
        with self._guard:
            self._reads.clear()
