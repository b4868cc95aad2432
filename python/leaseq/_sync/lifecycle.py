# Generated from _aio/lifecycle.py by tools/unasync.py: do not edit.
"""The life of a queue: open or closed, and the calls that closing waits for."""

from collections.abc import Sequence
from typing import Any

from leaseq import errors
from leaseq._sync import concurrency
from leaseq._sync.connection import CLOSE_SECS, Connection
from leaseq.flows import REPLY_GRACE
from leaseq.process import THIS

CLOSE_STEP = 0.005
"""Seconds between two looks at whether the calls in flight have ended."""


class Lifecycle:
    """The life of one queue object; as a context manager one call, which closing waits for."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._closed = False
        self._start_over()

    def _start_over(self) -> None:
        self._pid = THIS.number
        self._waiting: set[Connection] = set()
        self._in_flight: list[Any] = []
        """Who makes each call. Appending needs no lock: first a call counts, then it looks whether this is over."""
        self._guard = concurrency.Guard()
        self._background = concurrency.Background()

    @property
    def background(self) -> concurrency.Background:
        """Work that outlives the call that started it; closing waits for it."""
        return self._background

    def _after_fork(self) -> None:
        """The waits, calls and threads of a parent process are not ours, and no thread here would release its guard."""
        if self._pid != THIS.ask():
            self._start_over()

    @property
    def closed(self) -> bool:
        """True if it is over."""
        return self._closed

    def __enter__(self) -> None:
        """One call, which closing waits for. Raises QueueClosedError."""
        if self._pid != THIS.number:
            self._start_over()
        self._in_flight.append(concurrency.caller())
        if self._closed:
            self.__exit__()
            self.raise_if_closed("is closed")

    def __exit__(self, *_: object) -> None:
        try:
            self._in_flight.remove(concurrency.caller())
        except ValueError:
            return  # the call started before a fork

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
        self._after_fork()
        with self._guard:
            self._closed = True
            waiting = list(self._waiting)
        self._end_waits(waiting, gently=True)
        began, me = concurrency.now(), concurrency.caller()
        # a call of ours was interrupted: by what closes the queue now, or before
        while any(each != me for each in list(self._in_flight)) and concurrency.now() < began + REPLY_GRACE:
            concurrency.sleep(CLOSE_STEP)
            if concurrency.now() >= began + CLOSE_SECS:
                self._end_waits(waiting, gently=False)
        # what interrupted calls still bring is given back first, and wake-ups are passed on
        self._background.end(REPLY_GRACE)

    def _end_waits(self, waiting: Sequence[Connection], *, gently: bool) -> None:
        """Cut the connections of waiters. With `gently`, a connection that may bring items can finish what the server has started."""
        for connection in waiting:
            with self._guard:  # a connection that no longer waits may be in other use by now
                if connection in self._waiting:
                    connection.half_close() if gently and connection.pipelined else connection.abort()


class LifecycleGroup(Lifecycle):
    """The lives of several queues, for calls on all of them: over as soon as one of them is."""

    def __init__(self, lives: Sequence[Lifecycle]) -> None:
        self._lives = lives

    @property
    def closed(self) -> bool:
        """True if one of them is over."""
        return any(life.closed for life in self._lives)

    @property
    def background(self) -> concurrency.Background:
        """Of the first, whose client is used."""
        return self._lives[0].background

    def __enter__(self) -> None:
        """One call, which closing any of them waits for. Raises QueueClosedError."""
        for number, life in enumerate(self._lives):
            try:
                life.__enter__()
            except BaseException:
                for entered in self._lives[:number]:
                    entered.__exit__()
                raise

    def __exit__(self, *_: object) -> None:
        for life in self._lives:
            life.__exit__()

    def join(self, connection: Connection) -> None:
        """Closing any of them cuts this connection from now on. Raises QueueClosedError."""
        for life in self._lives:
            life.join(connection)

    def part(self, connection: Connection) -> None:
        """No waiter uses this connection now."""
        for life in self._lives:
            life.part(connection)

    def raise_if_closed(
        self, when: str = "was closed during the call", cause: Exception | None = None
    ) -> None:
        """Raise QueueClosedError if it is closed."""
        for life in self._lives:
            life.raise_if_closed(when, cause)
