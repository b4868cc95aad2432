"""This process, and what the child of a fork must not share with it."""

import contextlib
import os
import threading
import warnings
import weakref
from typing import Generic, Protocol, TypeVar


class Inherited(Protocol):
    """An object with something that the child of a fork must not use."""

    def after_fork(self) -> None:
        """In the child: start again."""


class Process:
    """A process, and in the child of a fork that child."""

    def __init__(self) -> None:
        self.number = os.getpid()
        """As it was when it was asked for last: for what follows in the same call."""
        self._inherited: weakref.WeakSet[Inherited] = weakref.WeakSet()
        if hasattr(os, "register_at_fork"):  # where there are forks
            os.register_at_fork(after_in_child=self._after_fork)

    def forks(self, inherited: Inherited) -> None:
        """Tell this one in the child of a fork, if it is still there."""
        self._inherited.add(inherited)

    def ask(self) -> int:
        """Return the id of this process, from the system (LQ-CLIENT-17).

        Not every fork runs Python's hooks: that of uWSGI and of any C library does not. The child of such a fork does here what
        the hook would have done.
        """
        number = os.getpid()
        if number != self.number:
            self._after_fork()
        return number

    def _after_fork(self) -> None:
        self.number = os.getpid()
        for inherited in self._inherited:
            inherited.after_fork()


THIS = Process()
"""This one."""


class ForkLock:
    """A lock for a few lines, as `with lock.here():`. The child of a fork finds it open, and a signal handler does not wait for it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        THIS.forks(self)

    def here(self) -> contextlib.AbstractContextManager[bool]:
        """That of this process. No more than that: a signal between two lines of ours could leave it shut."""
        THIS.ask()
        return self._lock

    def after_fork(self) -> None:
        """A thread that the child lacks may have it."""
        self._lock = threading.RLock()


def fork() -> tuple[int, int]:
    """`os.fork`; also returns how many other threads there were. The child lacks them, and no thread opens their locks there.

    The main thread, which may wait for this one, is not counted. Python warns about threads, and a program can make that
    an error: then there would be an unknown child.
    """
    others = set(threading.enumerate()) - {threading.current_thread(), threading.main_thread()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork(), len(others)


class HasDescriptor(Protocol):
    """An object with a socket."""

    def fileno(self) -> int:
        """The number of the socket; negative when it is closed."""


T = TypeVar("T", bound=HasDescriptor)


class ForkGuard(Generic[T]):
    """Connections, known as long as they exist, whose sockets the child of a fork lets go of at once.

    All of them, since an idle one at the fork may wait afterwards. A server learns that a process is gone from its
    connections, which are closed when no process has them: a child that keeps a copy and outlives its parent would
    keep the block of a dead waiter, and what the waiter sent behind it, alive.
    """

    def __init__(self) -> None:
        self._connections: weakref.WeakSet[T] = weakref.WeakSet()
        self._nowhere = -1
        THIS.forks(self)

    def add(self, connection: T) -> None:
        """From now on."""
        if self._nowhere < 0:
            # now, since a child may have no number left for it
            self._nowhere = os.open(os.devnull, os.O_RDONLY)
        self._connections.add(connection)

    def all(self) -> list[T]:
        """All that exist now."""
        return list(self._connections)

    def after_fork(self) -> None:
        """Put what goes nowhere in the place of each socket.

        The parent keeps its sockets: nothing is shut down, and no event loop is changed, because the two share its
        registrations. No number becomes free, so code in the child that still has it, even below Python, can close nothing
        else. Nothing here takes a lock: another thread of the parent may have held it.
        """
        for connection in self._connections:
            with contextlib.suppress(OSError):
                descriptor = connection.fileno()
                if descriptor >= 0:
                    os.dup2(self._nowhere, descriptor, inheritable=False)
        self._connections = weakref.WeakSet()
