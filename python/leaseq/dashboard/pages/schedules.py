"""The schedules of all queues."""

import re
from itertools import islice
from typing import Final, NamedTuple

from starlette.responses import Response

from leaseq.dashboard.site import Site, Visit
from leaseq.errors import LeaseqError
from leaseq.jobs import ScheduleInfo
from leaseq.jobs.cron.schedule_state import SUFFIX
from leaseq.jobs.cron.trigger import CronTrigger, IntervalTrigger, zone
from leaseq.keys import RegisteredQueue

SHARED_SECS: Final = 5.0
"""Seconds for which viewers share the list."""

SLOTS: Final = 3
"""Slots that are shown after the next one."""

_INTERVAL: Final = re.compile(r"every (?=[0-9.]{1,5} )([0-9]+(?:\.[0-9]+)?) s")
"""The rule of an interval of up to 5 characters. A longer one may be rounded."""


class ScheduleRow(NamedTuple):
    """A schedule.

    Attributes:
        queue: the queue of its jobs.
        schedule: the schedule.
        slots: the slots after the next one.
    """

    queue: RegisteredQueue
    schedule: ScheduleInfo
    slots: list[float]


def schedules(site: Site, visit: Visit) -> Response:
    """Return the schedules of every queue that has some, the next slot first."""
    found, now = site.reads.get("schedules", SHARED_SECS, lambda: _read(site))
    return visit.render("schedules", schedules=found, now=now)


def _read(site: Site) -> tuple[list[ScheduleRow], float]:
    """Read the schedules, and the server's time: the queues of schedules are in the registry as others."""
    found: list[ScheduleRow] = []
    now = 0.0
    for record in site.reader.records():
        name, group = record.queue
        now = max(now, record.stats.now if record.stats else 0.0)
        if name.endswith(SUFFIX) and name != SUFFIX:
            jobs = RegisteredQueue(name.removesuffix(SUFFIX), group)
            with site.source.app(jobs) as app:
                found += [
                    ScheduleRow(jobs, each, _slots_after(each)) for each in app.schedules.inspect(jobs.name)
                ]
    found.sort(key=lambda row: row.schedule.next or float("inf"))
    return found, now


def _slots_after(schedule: ScheduleInfo) -> list[float]:
    """Return the slots after the next one; none if this program cannot read the rule."""
    interval = _INTERVAL.fullmatch(schedule.rule)
    line, _, place = schedule.rule.rpartition(" ")
    try:
        rule = IntervalTrigger(float(interval[1])) if interval else CronTrigger(line, zone(place))
        return [slot / 1000 for slot in islice(rule.after(round(schedule.next * 1000)), SLOTS)]
    except LeaseqError:
        return []
