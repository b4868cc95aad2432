"""The context of a job."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from leaseq.errors import BadTypeError

Report = Callable[[float, float | None], None]
"""Takes how much is done, and of how much."""


@dataclass(slots=True, kw_only=True)
class Context:
    """The context of an attempt, for middleware and for a function whose first parameter is annotated with this class.

    Attributes:
        id: the id of the job.
        function: the name of the function.
        queue: the queue of the job.
        attempt: the number of this attempt: 1 for the first, unless the call set another.
        enqueued: when the job was enqueued: seconds since 1970, by the clock of the program that enqueued it.
        due: when the job was due: seconds since 1970 by the same clock. Without a delay it is `enqueued`.
        headers: the headers of the call.
        token: the token of its lease. It grows with each attempt, so it works as a fencing token.
        worker: the id of the worker that runs the job.
    """

    id: str
    function: str
    queue: str
    attempt: int
    enqueued: float
    due: float
    headers: Mapping[str, str]
    token: int
    worker: str
    _report: Report = field(repr=False)

    def progress(self, done: float, total: float | None = None) -> None:
        """Report that `done` of `total` is done, in any unit; `Handle.info` shows it within a second.

        `total` is None if it is not known. Raises BadTypeError if a value is not a number.
        """
        for value in (done,) if total is None else (done, total):
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise BadTypeError(
                    f"progress takes numbers, how much is done and of how much; not {type(value).__name__}"
                )
        self._report(done, total)
