"""The command `leaseq doctor`: runs the checks of `leaseq.doctor` and shows their findings."""

from collections import Counter
from typing import TYPE_CHECKING, Final

import click
from rich.text import Text

from leaseq import access_rules
from leaseq.cli import output
from leaseq.cli.exit_codes import ExitCode
from leaseq.cli.server import Server, on_server

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leaseq.doctor import Finding, Report

_STYLES: Final = {"ok": "green", "advice": "yellow", "unknown": "magenta", "problem": "bold red"}

MAX_LISTED_QUEUES: Final = 10
"""Queues that are listed with what they pass, at most."""


@click.command()
@click.argument("queues", nargs=-1, metavar="[QUEUE]...")
@on_server
@click.option("--group", "-g", metavar="GROUP", help="The queues' group. [default: their names]")
@click.option(
    "--role",
    type=click.Choice(access_rules.ROLES),
    default="worker",
    show_default=True,
    help="The role of the server's user: it must have the rights of this role.",
)
@click.option("--all", "every", is_flag=True, help="Check all queues of the registry too.")
@output.as_json
def doctor(
    *, queues: tuple[str, ...], server: Server, group: str | None, role: str, every: bool, as_json: bool
) -> int:
    """Check the server, and each QUEUE, and say what to do. Changes nothing.

    The exit code is 0 when every check was made and found no problem, and 1 otherwise. What each check means is in
    docs/doctor.md.

    \b
    Examples:
      leaseq doctor
      leaseq doctor orders letters --role operator
      leaseq doctor --all
      leaseq doctor --json | jq '.[] | select(.status == "problem")'
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    from leaseq import doctor as checks
    from leaseq import registry

    # only the connection of the queue is used: no call is made on it
    with server.queue(queues[0] if queues else "leaseq-doctor", group) as opened:
        client = opened.executor.client
        found = registry.queues(client) if every else []
        report = checks.doctor(client, [*queues, *found], group=group, role=role)
    if as_json:
        output.document([_record(finding) for finding in report.findings])
    else:
        output.show_rows(("", "check", "about", "found"), rows(report.findings))
        output.line(summary(report))
    return ExitCode.DONE if report.healthy else ExitCode.NO


def rows(findings: "Sequence[Finding]") -> list[tuple[object, ...]]:
    """Return the rows of a table: each finding, with its advice below it. With many queues, checks that they passed are counted."""
    from leaseq.doctor.examination import QUEUE_CHECKS

    many = sum(finding.check in QUEUE_CHECKS for finding in findings) > MAX_LISTED_QUEUES * len(QUEUE_CHECKS)
    passed: Counter[str] = Counter()
    listed: list[tuple[object, ...]] = []
    for finding in findings:
        if many and finding.status == "ok" and finding.check in QUEUE_CHECKS:
            passed[finding.check] += 1
            continue
        listed.append((_status(finding.status), finding.check, finding.about, finding.found))
        if finding.do:
            listed.append(("", "", "", f"→ {finding.do}"))
    return [*listed, *((_status("ok"), check, f"{count} queues", "") for check, count in passed.items())]


def _status(status: str) -> Text:
    return Text(status, style=_STYLES[status])


def _record(finding: "Finding") -> dict[str, str]:
    return {name: getattr(finding, name) for name in ("check", "about", "status", "found", "do")}


def summary(report: "Report") -> str:
    """Return one line about the whole report."""
    problems, unknowns = report.count("problem"), report.count("unknown")
    if report.healthy:
        return f"healthy: {len(report.findings)} checks, no problem"
    return f"not healthy: {len(report.findings)} checks, {problems} with a problem, {unknowns} that could not be made"
