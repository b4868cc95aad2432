"""An item, or the job that it is."""

from starlette.responses import Response

from leaseq.dashboard import item_details, visible_text
from leaseq.dashboard.item_changes import STATES
from leaseq.dashboard.site import Site, Visit

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
        changes=[
            action
            for action, states in STATES.items()
            if details.item.state in states and visit.visitor.may(action)
        ],
    )
