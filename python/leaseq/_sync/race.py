"""Several waits at the same time, of which the first that wins is answered.

Written by hand for threads and for asyncio. A thread of a race can be interrupted where it waits, as a task can.
"""

import contextlib
import selectors
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from leaseq.errors import LeaseqError

T = TypeVar("T")

_local = threading.local()

# not epoll, which never tells of a socket that another thread closes meanwhile
_Selector: type[selectors.BaseSelector] = getattr(selectors, "PollSelector", selectors.SelectSelector)

NOBODY = -1
"""The place of an end that is no thread's."""

UNWIND_SECS = 1.0
"""Seconds that an interrupted race waits for its threads, so that a program that ends now leaves nothing behind."""


class InterruptedWaitError(BaseException):
    """The race is over, and this thread has not won it. No error of a call: nobody but the race catches it."""


class Stop:
    """Interrupts the threads of one race where they wait."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._guard = threading.Lock()
        self._stopped = False
        self._heirs: list[Callable[[], None]] = []
        self._wake_receiver, self._wake_sender = socket.socketpair()

    def stop(self) -> None:
        """Interrupt all that wait, and all that begin to."""
        with self._guard:
            self._stopped = True
            if self._threads:
                self._wake_sender.send(b".")
            for interrupt in self._heirs:
                interrupt()

    @contextlib.contextmanager
    def passed_on(self, interrupt: Callable[[], None]) -> Iterator[None]:
        """For a thread that waits by other means: interrupt that wait too, with this call."""
        with self._guard:
            self._heirs.append(interrupt)
            if self._stopped:
                interrupt()
        try:
            yield
        finally:
            with self._guard:
                self._heirs.remove(interrupt)

    def leave(self) -> None:
        """One thread has ended."""
        with self._guard:
            self._threads -= 1
            if not self._threads:
                self._wake_receiver.close()
                self._wake_sender.close()

    def check(self) -> None:
        """Raise InterruptedWaitError once the race is over."""
        if self._stopped:
            raise InterruptedWaitError

    def wait(self, sock: socket.socket | None, seconds: float) -> bool:
        """Wait until there is something to read, which it answers, or the time is over. Raises InterruptedWaitError."""
        self.check()
        with _Selector() as selector:
            selector.register(self._wake_receiver, selectors.EVENT_READ)
            if sock is not None:
                selector.register(sock, selectors.EVENT_READ)
            readable = selector.select(seconds)
        self.check()
        return bool(readable)


def interrupt_by(stop: Stop) -> None:
    """From now on this is what interrupts this thread."""
    _local.stop = stop


def current() -> Stop | None:
    """Return what interrupts this thread, if it is one of a race."""
    stop: Stop | None = getattr(_local, "stop", None)
    return stop


class _Race:
    """One race."""

    def __init__(self, won: Callable[[Any], bool], undo: Callable[[int, Any], None], threads: int) -> None:
        self._won = won
        self._undo = undo
        self._stop = Stop(threads)
        self._guard = threading.Lock()
        self._over = False
        # looked at and never taken out: whoever is interrupted in between loses none
        self._ends: list[tuple[int, Any, BaseException | None]] = []
        self._ended = threading.Semaphore(0)

    def start(self, thread: threading.Thread) -> None:
        """Start one thread. Raises LeaseqError."""
        try:
            thread.start()
        except RuntimeError as error:
            raise LeaseqError(
                f"this process can start no thread for one of several waits: {error}"
            ) from error

    def run(self, index: int, run: Callable[[], Any]) -> None:
        """One thread."""
        _local.stop = self._stop
        answer, failure = None, None
        try:
            answer = run()
        except BaseException as error:  # noqa: BLE001 (told where it is waited for)
            failure = error
        finally:
            self._stop.leave()
        with self._guard:
            if not self._over:
                self._ends.append((index, answer, failure))
                self._ended.release()
                return
        if failure is None and self._won(answer):
            self._undo(index, answer)

    def leave(self) -> None:
        """One thread did not start."""
        self._stop.leave()

    def interrupt(self) -> None:
        """End the wait for the first that wins: whoever waits is interrupted itself."""
        with self._guard:
            self._ends.append((NOBODY, None, InterruptedWaitError()))
        self._ended.release()

    def first(self, runs: int) -> tuple[int, Any] | None:
        """Wait for the first that wins. Raises what one raises."""
        for number in range(runs):
            self._ended.acquire()
            index, answer, failure = self._ends[number]
            if failure is not None:
                raise failure
            if self._won(answer):
                return index, answer
        return None

    def end(self, winner: int | None = None) -> None:
        """Interrupt all threads; what has won too late is undone."""
        with self._guard:
            self._over = True
        self._stop.stop()
        for index, answer, failure in self._ends:
            if index != winner and failure is None and self._won(answer):
                self._undo(index, answer)


def race(
    runs: Sequence[Callable[[], T]], won: Callable[[T], bool], undo: Callable[[int, T], None]
) -> tuple[int, T] | None:
    """Run all at once. Answers the place and answer of the first that wins, None where none does; raises what one raises.

    The others are interrupted. `undo` is called with the place and answer of one that wins too late.
    """
    running = _Race(won, undo, len(runs))
    # daemons: a program may end while one of its own daemon threads waits here
    threads = [
        threading.Thread(target=running.run, args=each, name="leaseq", daemon=True)
        for each in enumerate(runs)
    ]
    outer = current()
    try:
        with contextlib.nullcontext() if outer is None else outer.passed_on(running.interrupt):
            for thread in threads:
                running.start(thread)
            winner = running.first(len(runs))
    except BaseException:
        running.end()
        for thread in threads:
            if thread.ident is None:
                running.leave()
            elif thread.is_alive():
                thread.join(UNWIND_SECS / len(threads))
        raise
    running.end(None if winner is None else winner[0])
    return winner
