"""When to replace a process: after a number of jobs, or at a size of memory, because a library leaks."""

import resource
import sys
from dataclasses import dataclass
from typing import Self

from leaseq import commands
from leaseq.errors import BadArgumentError, BadTypeError

_UNIT = 1 if sys.platform == "darwin" else 1024
"""Bytes of a page, in which the system counts memory."""

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class RecyclePolicy:
    """The limits of one process; None is without limit."""

    jobs: int | None
    memory: float | None

    @classmethod
    def of(cls, jobs: int | None, memory: float | None) -> Self | None:
        """Return these limits, checked; None if there is none. Memory is in MiB. Raises BadTypeError, BadArgumentError."""
        if jobs is not None and commands.whole(jobs, "max_jobs") < 1:
            raise BadArgumentError("max_jobs must be at least 1; None is without limit")
        if memory is not None and (isinstance(memory, bool) or not isinstance(memory, int | float)):
            raise BadTypeError(f"max_memory is a number of MiB, not {type(memory).__name__}")
        if memory is not None and not memory > 0:
            raise BadArgumentError("max_memory must be above 0 MiB; None is without limit")
        return None if jobs is None and memory is None else cls(jobs, memory)

    def reached(self, performed: int) -> bool:
        """Return whether to replace it, after that many jobs. The peak of its memory counts."""
        if self.jobs is not None and performed >= self.jobs:
            return True
        if self.memory is None:
            return False
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT > self.memory * MIB
