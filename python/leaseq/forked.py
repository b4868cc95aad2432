"""What the child of a fork does not keep: the connections of its parent.

A server learns that a process is gone from its connections, which are closed when nobody has them any more. A child that
keeps a copy and outlives its parent would keep the block of a dead waiter, and what the waiter sent behind it, alive.
"""

import contextlib
import os
import weakref
from typing import Protocol


class HasDescriptor(Protocol):
    """What has a socket."""

    def fileno(self) -> int:
        """The number of the socket; negative when it is closed."""


class KeptFromChildren:
    """Connections, known as long as they exist, whose sockets the child of a fork lets go of at once.

    All of them, since one that is idle at the fork may wait afterwards.
    """

    def __init__(self) -> None:
        self._connections: weakref.WeakSet[HasDescriptor] = weakref.WeakSet()
        self._nowhere = -1
        if hasattr(os, "register_at_fork"):  # where there are forks
            os.register_at_fork(after_in_child=self._let_go)

    def add(self, connection: HasDescriptor) -> None:
        """From now on."""
        if self._nowhere < 0:
            # now, since a child may have no number left for it
            self._nowhere = os.open(os.devnull, os.O_RDONLY)
        self._connections.add(connection)

    def _let_go(self) -> None:
        """Put what goes nowhere in the place of each socket.

        The parent goes on with its own: nothing is shut down, and no event loop is told, whose registrations the two share.
        No number becomes free, so whoever still has it in the child, even below Python, can close nothing of somebody
        else. Nothing here takes a lock: another thread of the parent may have held it.
        """
        for connection in self._connections:
            with contextlib.suppress(OSError):
                descriptor = connection.fileno()
                if descriptor >= 0:
                    os.dup2(self._nowhere, descriptor, inheritable=False)
        self._connections = weakref.WeakSet()
