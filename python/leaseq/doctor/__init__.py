"""Checks of a server, its queues and a client, each with what to do about what it finds.

    report = leaseq.doctor.doctor(redis.Redis(), ["orders"])
    for finding in report.findings:
        print(finding.status, finding.check, finding.found, finding.do)

Every check is a small function; the page docs/doctor.md has one entry for each.
"""

from leaseq.doctor.examination import CHECKS, doctor
from leaseq.doctor.finding import Finding, Report, Status

__all__ = ["CHECKS", "Finding", "Report", "Status", "doctor"]
