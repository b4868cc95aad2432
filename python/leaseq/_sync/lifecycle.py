# Generated from _aio/lifecycle.py by tools/unasync.py: do not edit.
"""The life of a queue: open or closed, and the calls that closing waits for."""

from __future__ import annotations

import contextlib
import weakref
from typing import TYPE_CHECKING, Any

from leaseq import errors
from leaseq._sync import concurrency
from leaseq._sync.connection import CLOSE_SECS
from leaseq.flows import REPLY_GRACE
from leaseq.process import THIS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leaseq._sync.connection import Connection

CLOSE_STEP = 0.005
"""Seconds between two looks at whether the calls in flight have ended."""


class Lifecycle:
    """The life of one queue object; as a context manager one call, which closing waits for.

    Attributes:
        closed: true if it is over.
        calls: who makes each call in flight. Appending needs no lock: first a call counts, then it looks whether this is over.
        background: work that outlives the call that started it; closing waits for it.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self.closed = False
        self._groups: weakref.WeakSet[LifecycleGroup] = weakref.WeakSet()
        self.after_fork()
        THIS.forks(self)

    def after_fork(self) -> None:
        """The waits, calls and threads of a parent process are not ours, and no thread here would release its guard."""
        self.calls: list[Any] = []
        self._waiting: set[Connection] = set()
        self._guard = concurrency.Guard()
        self.background = concurrency.Background()

    def __enter__(self) -> None:
        """One call, which closing waits for. Raises QueueClosedError."""
        self.calls.append(concurrency.caller())
        if self.closed:
            self.__exit__()
            self.raise_if_closed("is closed")

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ValueError):  # the call started before a fork
            self.calls.remove(concurrency.caller())

    def join(self, connection: Connection) -> None:
        """A waiter uses this connection from now on, and closing cuts it. Raises QueueClosedError."""
        with self._guard:
            self.raise_if_closed()
            self._waiting.add(connection)

    def part(self, connection: Connection) -> None:
        """No waiter uses this connection now."""
        with self._guard:
            self._waiting.discard(connection)

    def raise_if_closed(
        self, when: str = "was closed during the call", cause: Exception | None = None
    ) -> None:
        """Raise QueueClosedError after the end."""
        if self.closed:
            raise errors.QueueClosedError(f"queue {self._name!r} {when}") from cause

    def end(self) -> None:
        """End all waits and let other calls finish. If it is interrupted, the next call does the rest."""
        THIS.ask()
        lives = self._close()
        waits = [(life, each) for life in lives for each in life.waiting()]
        for life, connection in waits:
            life.cut(connection, gently=True)
        began, me = concurrency.now(), concurrency.caller()
        # a call of ours was interrupted: by what closes the queue now, or before
        while (
            any(each != me for life in lives for each in list(life.calls))
            and concurrency.now() < began + REPLY_GRACE
        ):
            concurrency.sleep(CLOSE_STEP)
            if concurrency.now() >= began + CLOSE_SECS:
                for life, connection in waits:
                    life.cut(connection, gently=False)
        # what interrupted calls still bring is given back first, and wake-ups are passed on
        for life in lives:
            life.background.end(REPLY_GRACE)

    def _close(self) -> list[Lifecycle]:
        """Close this and the groups that it is in. Return them."""
        with self._guard:
            self.closed = True
            lives = [self, *self._groups]
        for life in lives:
            life.closed = True
        return lives

    def add_group(self, group: LifecycleGroup) -> None:
        """Close the group when this is closed."""
        with self._guard:
            self._groups.add(group)

    def waiting(self) -> list[Connection]:
        """Return the connections of waiters."""
        with self._guard:
            return list(self._waiting)

    def cut(self, connection: Connection, *, gently: bool) -> None:
        """Cut the connection of a waiter. With `gently`, if it may bring items, it can finish what the server has started."""
        with self._guard:  # a connection that no longer waits may be in other use by now
            if connection in self._waiting:
                connection.half_close() if gently and connection.pipelined else connection.abort()


class LifecycleGroup(Lifecycle):
    """The life of several queues together, for calls on all of them: it is over as soon as one of theirs is."""

    def __init__(self, lives: Sequence[Lifecycle]) -> None:
        super().__init__("")
        self._lives = lives
        for life in lives:
            life.add_group(self)
        self.closed = any(life.closed for life in lives)

    def raise_if_closed(
        self, when: str = "was closed during the call", cause: Exception | None = None
    ) -> None:
        """Raise QueueClosedError if one of them is closed."""
        for life in self._lives:
            life.raise_if_closed(when, cause)
