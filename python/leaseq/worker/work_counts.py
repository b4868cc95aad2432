"""The counts of a worker, in memory that a process shares with its watcher: a killed process loses none."""

import mmap
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, get_args

from leaseq.worker.settings import Readiness

EVENTS: Final = ("started", "completed", "failed", "retried", "released", "died", "lost")
"""An event of an item in a worker. An item that failed was retried or died as well."""

READINESS: Final[tuple[Readiness, ...]] = get_args(Readiness)

BUCKETS_SECS: Final = (
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
    300.0,
    1800.0,
)
"""The upper ends of the buckets of run times and lags; one more has what is longer."""

MAX_KINDS: Final = 1024
"""Kinds of work that are counted apart. Others are counted as one."""

_RUNNING: Final = len(EVENTS)
_RUN: Final = _RUNNING + 1
_SPAN: Final = len(BUCKETS_SECS) + 2
_LAG: Final = _RUN + _SPAN
ROW_CELLS: Final = _LAG + _SPAN
_HEAD_CELLS: Final = 2
_ANSWERED, _READINESS = range(_HEAD_CELLS)
_CELL_BYTES: Final = 8


class WorkKind(NamedTuple):
    """The work that a count is about; `function` is "" for work that is no job, and for jobs that were not started."""

    group: str
    queue: str
    function: str


OTHER: Final = WorkKind("", "", "")
"""The kinds beyond MAX_KINDS."""


class WorkRow(NamedTuple):
    """The counts of one kind of work; `run` and `lag` have a sum of seconds and then a count for each bucket."""

    events: Sequence[float]
    running: float
    run: Sequence[float]
    lag: Sequence[float]

    @classmethod
    def empty(cls) -> "WorkRow":
        """Return a row of zeros."""
        return cls((0.0,) * len(EVENTS), 0.0, (0.0,) * _SPAN, (0.0,) * _SPAN)

    def plus(self, other: "WorkRow") -> "WorkRow":
        """Return the sum of both."""
        return WorkRow(
            _sum(self.events, other.events),
            self.running + other.running,
            _sum(self.run, other.run),
            _sum(self.lag, other.lag),
        )


def _sum(one: Sequence[float], other: Sequence[float]) -> tuple[float, ...]:
    return tuple(map(float.__add__, one, other))


def new_memory() -> mmap.mmap:
    """Zeros, which a process that is forked has in common with this one. Memory is used as counts need it."""
    return mmap.mmap(-1, (_HEAD_CELLS + (MAX_KINDS + 1) * ROW_CELLS) * _CELL_BYTES)


class WorkCounts:
    """The counts of one process. One thread writes them; any process that has the memory reads them.

    Attributes:
        kinds: what has been counted, in the order of its rows.
    """

    def __init__(
        self, memory: mmap.mmap | None = None, announce: Callable[[WorkKind], object] = lambda _: None
    ) -> None:
        """`announce` is called with each kind before it is counted: a reader appends it to its `kinds`."""
        self._cells = memoryview(new_memory() if memory is None else memory).cast("d")
        self._announce = announce
        self._rows: dict[WorkKind, int] = {}
        self.kinds: list[WorkKind] = []

    def row(self, kind: WorkKind) -> int:
        """Return where the counts of a kind are."""
        found = self._rows.get(kind)
        if found is not None:
            return found
        if len(self.kinds) >= MAX_KINDS and kind != OTHER:
            return self.row(OTHER)
        self._announce(kind)
        self._rows[kind] = start = _HEAD_CELLS + len(self.kinds) * ROW_CELLS
        self.kinds.append(kind)
        return start

    def count(self, row: int, event: str) -> None:
        """Count one event."""
        self._cells[row + EVENTS.index(event)] += 1

    def running(self, row: int, change: int) -> None:
        """Count work that starts (1) or ends (-1)."""
        self._cells[row + _RUNNING] += change

    def ran(self, row: int, secs: float) -> None:
        """Count a run time."""
        self._observe(row + _RUN, secs)

    def lagged(self, row: int, secs: float) -> None:
        """Count the time from when work was due to its start."""
        self._observe(row + _LAG, secs)

    def _observe(self, start: int, secs: float) -> None:
        self._cells[start] += secs
        self._cells[start + 1 + bisect_left(BUCKETS_SECS, secs)] += 1

    @property
    def answered_at(self) -> float:
        """When the server last answered, in seconds since 1970; 0 if it has not."""
        return self._cells[_ANSWERED]

    @property
    def readiness(self) -> Readiness:
        """The state that the worker is in."""
        return READINESS[int(self._cells[_READINESS])]

    def look(self, answered_at: float | None, readiness: Readiness) -> None:
        """Write both."""
        self._cells[_ANSWERED] = answered_at or 0.0
        self._cells[_READINESS] = READINESS.index(readiness)

    def read(self) -> Iterator[tuple[WorkKind, WorkRow]]:
        """Return the counts of each kind."""
        for number, kind in enumerate(self.kinds):
            start = _HEAD_CELLS + number * ROW_CELLS
            cells = self._cells[start : start + ROW_CELLS].tolist()
            yield kind, WorkRow(cells[:_RUNNING], cells[_RUNNING], cells[_RUN:_LAG], cells[_LAG:])


class WorkTotals(dict[WorkKind, WorkRow]):
    """The sums of the counts of several processes."""

    def add(self, counts: WorkCounts) -> None:
        """Add the counts of a process."""
        for kind, row in counts.read():
            self[kind] = self.get(kind, WorkRow.empty()).plus(row)

    def retire(self, counts: WorkCounts) -> None:
        """Add the counts of a process that has ended: nothing runs in it."""
        for kind, row in counts.read():
            self[kind] = self.get(kind, WorkRow.empty()).plus(row._replace(running=0.0))
