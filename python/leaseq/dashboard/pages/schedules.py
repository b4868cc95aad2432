"""The schedules of all queues."""

from starlette.responses import Response

from leaseq.dashboard.site import Site, Visit
from leaseq.jobs import ScheduleInfo
from leaseq.jobs.cron.schedule_state import SUFFIX
from leaseq.keys import RegisteredQueue

SHARED_SECS = 5.0
"""Seconds for which viewers share the list."""


def schedules(site: Site, visit: Visit) -> Response:
    """Return the schedules of every queue that has some, the next slot first."""
    found, now = site.reads.get("schedules", SHARED_SECS, lambda: _read(site))
    return visit.render("schedules", schedules=found, now=now)


def _read(site: Site) -> tuple[list[tuple[RegisteredQueue, ScheduleInfo]], float]:
    """Read the schedules, and the server's time: the queues of schedules are in the registry as others."""
    found: list[tuple[RegisteredQueue, ScheduleInfo]] = []
    now = 0.0
    for record in site.reader.records():
        name, group = record.queue
        now = max(now, record.stats.now if record.stats else 0.0)
        if name.endswith(SUFFIX) and name != SUFFIX:
            jobs = RegisteredQueue(name.removesuffix(SUFFIX), group)
            with site.source.app(jobs) as app:
                found += [(jobs, each) for each in app.schedules.inspect(jobs.name)]
    found.sort(key=lambda each: each[1].next or float("inf"))
    return found, now
