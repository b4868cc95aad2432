"""The context of a job."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from leaseq.errors import BadTypeError

Report = Callable[[float, float | None], None]
"""Takes how much is done, and of how much."""


@dataclass(slots=True, kw_only=True)
class Context:
    """Given to a function whose first parameter is annotated with this class.

    Attributes:
        id: of the job.
        function: its name.
        queue: that it was enqueued in.
        attempt: 1 for the first, unless the call said otherwise.
        enqueued: when it was, in seconds since 1970 by the clock of who enqueued it.
        due: when it was, likewise: when it was enqueued, unless it was delayed.
        headers: that it was enqueued with.
        token: of its lease; grows with each attempt, so that what a job writes elsewhere can be fenced with it.
        worker: that runs it.
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
        """Report how far the job is; its `info` shows it within a second. Raises BadTypeError for what is no number."""
        for value in (done,) if total is None else (done, total):
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise BadTypeError(
                    f"progress takes numbers, how much is done and of how much; not {type(value).__name__}"
                )
        self._report(done, total)
