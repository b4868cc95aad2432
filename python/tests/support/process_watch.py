"""Processes that a test has started, however deep below: found by a mark in their environments."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

TICK_SECS: Final = 0.25


class Process(NamedTuple):
    """One entry of /proc. `born` tells it from a later process of the same number."""

    pid: int
    born: int
    parent: int
    state: str
    name: str


def processes() -> list[Process]:
    """Return all processes of this machine."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has just ended
            head, _, tail = path.read_text().rpartition(")")
            fields = tail.split()
            pid, _, name = head.partition(" (")
            found.append(Process(int(pid), int(fields[19]), int(fields[1]), fields[0], name))
    return found


class ProcessWatch:
    """Looks at the processes whose environment has this mark, a few times a second. A context manager.

    Attributes:
        zombies: the ended children that one of them did not wait for in `zombie_secs`.
        most: how many there were at once.
    """

    def __init__(self, mark: str, zombie_secs: float) -> None:
        self._mark = mark.encode()
        self._limit = zombie_secs
        self._ages: dict[Process, float] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="process watch")
        self.zombies: set[Process] = set()
        self.most = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def alive(self) -> list[Process]:
        """Return the processes with the mark that run."""
        return [each for each in processes() if self._is_marked(each.pid)]

    def _is_marked(self, pid: int) -> bool:
        try:
            return self._mark in Path(f"/proc/{pid}/environ").read_bytes()  # of a zombie it is empty
        except OSError:
            return False

    def _watch(self) -> None:
        looked = time.monotonic()
        while not self._over.wait(TICK_SECS):
            now = time.monotonic()
            # where this process stood still itself, the others may have as well
            self._look(min(now - looked, 2 * TICK_SECS))
            looked = now

    def _look(self, elapsed: float) -> None:
        found = processes()
        marked = {each.pid for each in found if self._is_marked(each.pid)}
        self.most = max(self.most, len(marked))
        ended = [each for each in found if each.state == "Z" and each.parent in marked]
        self._ages = {each: self._ages.get(each, 0.0) + elapsed for each in ended}
        self.zombies.update(each for each, age in self._ages.items() if age > self._limit)


def own_zombies() -> list[Process]:
    """Return the ended children that this process has not waited for."""
    return [each for each in processes() if each.parent == os.getpid() and each.state == "Z"]


def marked_environment(name: str, mark: str) -> dict[str, Any]:
    """Return what to add to the environment of a program; its title does not overwrite that."""
    return {name: mark, "SPT_NOENV": "1"}
