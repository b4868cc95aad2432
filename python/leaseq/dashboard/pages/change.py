"""A change: the page that shows what it would do, and the page that reports what it did."""

import logging
from collections.abc import Sequence
from typing import Final

from starlette.responses import Response

from leaseq import audit_log
from leaseq.dashboard import item_changes, purge_plans
from leaseq.dashboard.access import ACTIONS, Action
from leaseq.dashboard.change import Change
from leaseq.dashboard.edit_change import AREA, EditChange
from leaseq.dashboard.group_changes import GroupChange
from leaseq.dashboard.item_changes import ItemChange
from leaseq.dashboard.queue_changes import LimitsChange, PauseChange
from leaseq.dashboard.schedule_changes import ScheduleChange
from leaseq.dashboard.site import Site, Visit
from leaseq.dashboard.undo_change import UndoChange
from leaseq.dashboard.worker_changes import WorkerChange
from leaseq.errors import BadArgumentError
from leaseq.keys import RegisteredQueue

log = logging.getLogger("leaseq.dashboard")

WORKER_ACTIONS: Final[frozenset[Action]] = frozenset({"quiet_worker", "resume_worker", "stop_worker"})
"""The changes of a worker."""

_NEEDS: Final[dict[Action, str]] = {"data": "see data", "edit": "requeue with edited data"}
"""The actions whose name is no verb for people."""

SHOWN: Final = "shown_"
"""The start of the names of the fields that bring back what was shown."""

_UNLOGGED: Final = "But that it is done could not be written to the audit log."


def change(site: Site, visit: Visit) -> Response:
    """Show what a change would do; with POST, do it. Raises BadArgumentError, and the errors of leaseq."""
    asked = _change(site, visit)
    for action in _needed(asked):
        if not visit.visitor.may(action):
            text = f"You may not {_NEEDS.get(action) or _words(action)} here."
            return visit.render("error", 403, title="Not allowed", text=text)
    if visit.request.method == "POST":
        return _perform(site, visit, asked)
    return visit.render("change", change=asked, plan=asked.plan(), title=_words(asked.name), shown=SHOWN)


def _needed(asked: Change) -> Sequence[Action]:
    """Return the actions that a visitor must be allowed for a change: a form with data shows them."""
    return (asked.action, "data") if asked.action == "edit" else (asked.action,)


def _perform(site: Site, visit: Visit, asked: Change) -> Response:
    shown = {name.removeprefix(SHOWN): text for name, text in visit.form.items() if name.startswith(SHOWN)}
    queue = asked.queue
    named = {} if queue is None else {"queue": queue.name, "group": queue.group}
    subject = {**named, "options": asked.options()}
    report = None
    try:
        with audit_log.logged(visit.visitor.user, f"dashboard {asked.name}", subject) as entry:
            report = asked.perform(shown)
            entry.changed = report.changed
    except OSError as error:
        log.error("the audit log cannot be written: %s", error)  # noqa: TRY400 (the line says all)
        text = (
            "The audit log cannot be written, so nothing was done."
            if report is None
            else f"{report.text} {_UNLOGGED}"
        )
        return visit.render("error", 500, title=_words(asked.name), text=text)
    log.info(
        "%s by %s %s: %s",
        asked.name,
        visit.visitor.user or "an unnamed user",
        {**named, **asked.options()},
        report.text,
    )
    site.reads.forget()
    site.reader.read_now()
    status = 200 if report.changed else 409
    return visit.render("changed", status, change=asked, report=report, title=_words(asked.name))


def _change(site: Site, visit: Visit) -> Change:
    """Return the change that the address names. Raises BadArgumentError, BadNameError."""
    name, given = visit.text("action"), visit.request.query_params
    action = next((each for each in ACTIONS if each == name), None)
    if action is not None and action in WORKER_ACTIONS and "worker" in given:
        return WorkerChange(site.source, action, given["worker"])
    queue = visit.queue()
    if name == "undo" and "plan" in given:
        return UndoChange(site.plans, queue, given["plan"])
    if action is None:
        raise BadArgumentError("this address names no change")
    if queue == purge_plans.QUEUE:
        raise BadArgumentError("this queue has the purges that are planned: undo them where they are shown")
    change = _of_queue(site, visit, action, queue) or _of_items(site, visit, action, queue)
    if change is None:
        raise BadArgumentError("this address does not say what is to be changed")
    return change


def _of_queue(site: Site, visit: Visit, action: Action, queue: RegisteredQueue) -> Change | None:
    """Return a change of a queue, or of a schedule of its jobs; None if it is another."""
    source, given = site.source, visit.request.query_params
    if action in {"pause", "resume"}:
        return PauseChange(source, action, queue)
    if action == "configure":
        return LimitsChange(source, action, queue, visit.form)
    if action in {"trigger", "pause_schedule", "resume_schedule"} and "schedule" in given:
        return ScheduleChange(source, action, queue, given["schedule"])
    return None


def _of_items(site: Site, visit: Visit, action: Action, queue: RegisteredQueue) -> Change | None:
    """Return a change of an item, or of all dead letters with one error; None if it is another."""
    source, given, user = site.source, visit.request.query_params, visit.visitor.user
    if action in {"revive", "purge"} and "error" in given:
        return GroupChange(source, action, queue, given["error"], site.plans, user)
    if action == "edit" and "id" in given:
        return EditChange(source, action, queue, given["id"], site.plans, user, visit.form.get(AREA, ""))
    if action in item_changes.STATES and "id" in given:
        return ItemChange(source, action, queue, given["id"], site.plans, user)
    return None


def _words(name: str) -> str:
    return name.replace("_", " ")
