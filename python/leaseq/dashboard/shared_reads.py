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
            found = self._reads.get(key)
            if found is None:
                self._make_room()
                found = self._reads[key] = _Read()
        with found.lock:
            if time.monotonic() >= found.until:
                found.answer = read()
                found.until = time.monotonic() + secs
            answer: T = found.answer
            return answer

    def _make_room(self) -> None:
        """Drop answers that are too old, and the oldest ones if there are too many: an answer can be as long as an item."""
        now = time.monotonic()
        self._reads = {
            key: read for key, read in self._reads.items() if now < read.until or read.lock.locked()
        }
        while len(self._reads) >= MAX_READS:
            del self._reads[next(iter(self._reads))]

    def forget(self) -> None:
        """Read all again: something has changed."""
        with self._guard:
            self._reads.clear()
