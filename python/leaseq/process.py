"""The number of this process, known without asking the system: what a fork must not share looks at it in every call."""

import os
import threading
import warnings
import weakref
from typing import Protocol


class Inherited(Protocol):
    """What has something that the child of a fork must not use."""

    def after_fork(self) -> None:
        """In the child: begin anew."""


class Process:
    """A process, and in the child of a fork that child."""

    def __init__(self) -> None:
        self.number = os.getpid()
        self._inherited: weakref.WeakSet[Inherited] = weakref.WeakSet()
        if hasattr(os, "register_at_fork"):  # where there are forks
            os.register_at_fork(after_in_child=self._after_fork)

    def forks(self, inherited: Inherited) -> None:
        """Tell this one in the child of a fork, if it is still there."""
        self._inherited.add(inherited)

    def _after_fork(self) -> None:
        self.number = os.getpid()
        for inherited in self._inherited:
            inherited.after_fork()


THIS = Process()
"""This one."""


def fork() -> tuple[int, int]:
    """`os.fork`; answers also how many other threads there were, which the child lacks, and whose locks nobody opens there.

    Python warns of them, as an error if the program says so: then there would be a child of which nobody knows.
    """
    others = threading.active_count() - 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork(), others
