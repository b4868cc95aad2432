"""The checks of `leaseq doctor`: of the server and its queues, the cleaner's work among them."""

from typing import Final

from starlette.responses import Response

from leaseq import doctor as checks
from leaseq.dashboard.site import Site, Visit
from leaseq.doctor import Report

SHARED_SECS: Final = 30.0
"""Seconds for which viewers share a report."""

MAX_QUEUES: Final = 100
"""Queues that are checked, the first by name."""

_ORDER: Final = ("problem", "unknown", "advice", "ok")


def doctor(site: Site, visit: Visit) -> Response:
    """Return the findings, problems first."""
    queues = [record.queue for record in site.reader.records()]
    report = site.reads.get("doctor", SHARED_SECS, lambda: _examine(site))
    findings = sorted(report.findings, key=lambda each: _ORDER.index(each.status))
    return visit.render("doctor", findings=findings, report=report, queues=len(queues), checked=MAX_QUEUES)


def _examine(site: Site) -> Report:
    queues = [record.queue for record in site.reader.records()]
    return checks.doctor(site.source.client, queues[:MAX_QUEUES])
