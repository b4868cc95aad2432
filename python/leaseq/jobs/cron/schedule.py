"""A schedule, and what is to be done of it at a time. No input or output."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Literal, NamedTuple, get_args

from leaseq.errors import BadArgumentError
from leaseq.item import Item
from leaseq.jobs.call import Call
from leaseq.jobs.cron.trigger import Trigger

Missed = Literal["last", "all", "none"]

ON_TIME_MS: Final = 60_000
"""With `missed="none"`: a slot that is seen later than this was missed."""

REVIEW_MS: Final = 60_000
"""The longest time between two turns, so that a changed rule counts soon."""

MAX_RUNS_PER_TURN: Final = 64
"""Slots of one turn; when more were missed, the next turn is at once."""


class Turn(NamedTuple):
    """The work of one turn: these slots get their jobs, and all up to `until` are over; the next is at `due`.

    `following` is the next slot, 0 where there is none.
    """

    slots: Sequence[int]
    until: int
    due: int
    following: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """A job that is enqueued at the times of a timetable. Raises BadArgumentError, BadIdError.

    Attributes:
        name: of the schedule; that of its function unless it was given another.
        call: that is enqueued.
        timetable: when.
        missed: what becomes of slots at which no worker ran: "last" runs the last of them, "all" runs each, "none"
            runs none that is more than a minute late.
    """

    name: str
    call: Call[Any]
    timetable: Trigger
    missed: Missed

    def __post_init__(self) -> None:
        if self.missed not in get_args(Missed):
            raise BadArgumentError(
                f"missed is one of {', '.join(map(repr, get_args(Missed)))}, not {self.missed!r}"
            )
        if self.call.options.id is not None or self.call.options.at is not None:
            raise BadArgumentError(
                "the jobs of a schedule take neither an id nor a time: both come from their slots"
            )
        if self.call.options.once:
            raise BadArgumentError(
                "the jobs of a schedule are neither unique nor throttled, as their ids come from their slots: give"
                " unique=False and throttle=None to the schedule"
            )
        Item(b"", self.name)

    @property
    def queue(self) -> str:
        """The queue of its jobs."""
        return self.call.options.queue

    def turn(self, until: int, now: int, *, paused: bool) -> Turn:
        """Return the turn to take `now`, when all slots up to `until` are over. Times are the server's, in milliseconds."""
        slots: list[int] = []
        over = max(now, until)
        if not paused:
            slots = sorted({slot for slot in self._given(until, now) if until < slot <= now})
            over = slots[-1] if len(slots) == MAX_RUNS_PER_TURN else over
        following = next(self.timetable.after(over), 0)
        following = following if following > over else 0
        review = max(now, over) + REVIEW_MS
        return Turn(slots, over, min(following or review, review), following)

    def _given(self, until: int, now: int) -> Iterable[int]:
        """The slots that get jobs; `turn` takes none that is over or to come, whatever a timetable says (LQ-JOB-30)."""
        if self.missed == "all":
            return islice(self.timetable.after(until), MAX_RUNS_PER_TURN)
        last = self.timetable.last(now)
        if last is None or (self.missed == "none" and now - last > ON_TIME_MS):
            return []
        return [last]
