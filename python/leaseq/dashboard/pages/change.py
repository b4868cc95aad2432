"""A change: the page that shows what it would do, and the page that reports what it did."""

import logging
from typing import Final

from starlette.responses import Response

from leaseq import audit_log
from leaseq.dashboard import item_changes
from leaseq.dashboard.access import ACTIONS, Action
from leaseq.dashboard.change import Change
from leaseq.dashboard.group_changes import GroupChange
from leaseq.dashboard.item_changes import ItemChange
from leaseq.dashboard.queue_changes import LimitsChange, PauseChange
from leaseq.dashboard.schedule_changes import ScheduleChange
from leaseq.dashboard.site import Site, Visit
from leaseq.errors import BadArgumentError

log = logging.getLogger("leaseq.dashboard")

SHOWN: Final = "shown_"
"""The start of the names of the fields that bring back what was shown."""

_UNLOGGED: Final = "But that it is done could not be written to the audit log."


def change(site: Site, visit: Visit) -> Response:
    """Show what a change would do; with POST, do it. Raises BadArgumentError, and the errors of leaseq."""
    asked = _change(site, visit)
    if not visit.visitor.may(asked.action):
        return visit.render(
            "error", 403, title="Not allowed", text=f"You may not {_words(asked.action)} here."
        )
    if visit.request.method == "POST":
        return _perform(site, visit, asked)
    return visit.render("change", change=asked, plan=asked.plan(), title=_words(asked.action), shown=SHOWN)


def _perform(site: Site, visit: Visit, asked: Change) -> Response:
    shown = {name.removeprefix(SHOWN): text for name, text in visit.form.items() if name.startswith(SHOWN)}
    subject = {"queue": asked.queue.name, "group": asked.queue.group, "options": asked.options()}
    report = None
    try:
        with audit_log.logged(visit.visitor.user, f"dashboard {asked.action}", subject) as entry:
            report = asked.perform(shown)
            entry.changed = report.changed
    except OSError as error:
        log.error("the audit log cannot be written: %s", error)  # noqa: TRY400 (the line says all)
        text = (
            "The audit log cannot be written, so nothing was done."
            if report is None
            else f"{report.text} {_UNLOGGED}"
        )
        return visit.render("error", 500, title=_words(asked.action), text=text)
    log.info(
        "%s by %s on queue %s of group %s %s: %s",
        asked.action,
        visit.visitor.user or "an unnamed user",
        asked.queue.name,
        asked.queue.group,
        dict(asked.options()),
        report.text,
    )
    site.reads.forget()
    site.reader.read_now()
    status = 200 if report.changed else 409
    return visit.render("changed", status, change=asked, report=report, title=_words(asked.action))


def _change(site: Site, visit: Visit) -> Change:
    """Return the change that the address names. Raises BadArgumentError, BadNameError."""
    name, source = visit.text("action"), site.source
    action = next((each for each in ACTIONS if each == name), None)
    if action is None:
        raise BadArgumentError("this address names no change")
    queue, given = visit.queue(), visit.request.query_params
    if action in {"pause", "resume"}:
        return PauseChange(source, action, queue)
    if action == "configure":
        return LimitsChange(source, action, queue, visit.form)
    if action in {"trigger", "pause_schedule", "resume_schedule"} and "schedule" in given:
        return ScheduleChange(source, action, queue, given["schedule"])
    if action in {"revive", "purge"} and "error" in given:
        return GroupChange(source, action, queue, given["error"])
    if action in item_changes.STATES and "id" in given:
        return ItemChange(source, action, queue, given["id"])
    raise BadArgumentError("this address does not say what is to be changed")


def _words(action: Action) -> str:
    return action.replace("_", " ")
