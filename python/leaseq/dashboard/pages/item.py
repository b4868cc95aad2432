"""An item, or the job that it is."""

from starlette.responses import Response

from leaseq.dashboard import item_details, visible_text
from leaseq.dashboard.access import Action
from leaseq.dashboard.item_changes import STATES
from leaseq.dashboard.site import Site, Visit
from leaseq.results import State

FORMS = ("text", "json", "hex")
"""The forms in which data are shown."""

SHARED_SECS = 1.0
"""Seconds for which viewers of the same item share it."""


def item(site: Site, visit: Visit) -> Response:
    """Return all that is known of an item."""
    asked, item_id = visit.queue(), visit.text("id")
    details = site.reads.get(
        ("item", asked, item_id), SHARED_SECS, lambda: item_details.read(site.source, asked, item_id)
    )
    content = b"" if details.stored is None else details.stored.data
    form = visit.text("as") if visit.text("as") in FORMS else visible_text.form_of(content)
    plans = [plan for plan in site.pending(asked) if plan.has(details.item)]
    shows_data = visit.visitor.may("data")
    return visit.render(
        "item",
        200 if details.is_known else 404,
        queue=asked,
        id=item_id,
        details=details,
        item=details.item,
        job=details.job,
        forms=FORMS,
        form=form,
        data=visible_text.data(content, form) if shows_data else "",
        result=visible_text.data(details.outcome.content, visible_text.form_of(details.outcome.content))
        if shows_data and details.outcome.state == "result"
        else "",
        plans=plans,
        changes=_changes(visit, details.item.state, is_planned=bool(plans)),
    )


def _changes(visit: Visit, state: State, *, is_planned: bool) -> list[Action]:
    """Return the changes that the visitor may make of an item in a state; no other purge if one is planned."""
    may = visit.visitor.may
    changes = [action for action, states in STATES.items() if state in states and may(action)]
    if state == "dead" and may("edit") and may("data"):
        changes.append("edit")
    return [each for each in changes if not is_planned or each == "revive"]
