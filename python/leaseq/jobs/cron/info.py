"""Facts about a schedule, from its stored item. No input or output."""

from dataclasses import dataclass
from typing import Self

from leaseq.jobs.cron.schedule_state import ScheduleState


@dataclass(frozen=True, slots=True)
class ScheduleInfo:
    """A schedule as the server has it. Times are seconds since 1970, 0.0 for none.

    Attributes:
        name: the name of the schedule.
        queue: the queue of its jobs.
        rule: a line of crontab and its time zone ("0 5 * * * UTC"), or an interval ("every 60 s").
        missed: the treatment of slots at which no worker ran: "last", "all" or "none", see `App.cron`.
        function: the name of the function of its jobs.
        paused: true if its slots pass without jobs.
        last: the time of the last slot that got a job.
        next: the time of the next slot.
    """

    name: str
    queue: str
    rule: str
    missed: str
    function: str
    paused: bool
    last: float
    next: float

    @classmethod
    def of(cls, name: str, queue: str, tick: ScheduleState, *, paused: bool) -> Self:
        """Read the item of a schedule; `queue` is that of its jobs."""
        function = "" if tick.job is None else tick.job.job.function
        return cls(name, queue, tick.rule, tick.missed, function, paused, tick.last / 1000, tick.next / 1000)
