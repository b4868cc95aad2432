"""The number of this process, known without asking the system: what a fork must not share looks at it in every call."""

import os


class Process:
    """A process, and in the child of a fork that child."""

    def __init__(self) -> None:
        self.number = os.getpid()
        if hasattr(os, "register_at_fork"):  # where there are forks
            os.register_at_fork(after_in_child=self._after_fork)

    def _after_fork(self) -> None:
        self.number = os.getpid()


THIS = Process()
"""This one."""
