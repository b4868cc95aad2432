"""The log of items that died where no handler ran: their leases expired, or no worker leased them in time."""

import logging
from collections import Counter
from collections.abc import Sequence
from typing import Final

from leaseq.keys import QueueKeys
from leaseq.results import Outcome

logger: Final = logging.getLogger("leaseq")


def log(keys: QueueKeys, outcomes: Sequence[Outcome]) -> None:
    """Log the failures among these outcomes of a queue: a line for each reason, whatever their number."""
    reasons = Counter(_reason(outcome) for outcome in outcomes if outcome.state == "failure")
    first = {_reason(outcome): outcome.id for outcome in reversed(outcomes)}
    for reason, number in reasons.items():
        what = f"item {first[reason]!r} is a dead letter"
        if number > 1:
            what = f"{number} items are dead letters, {first[reason]!r} and others"
        logger.warning("queue %r: %s: %s", keys.name, what, reason)


def _reason(outcome: Outcome) -> str:
    """Return the first line of its error. An item whose workers died has none."""
    return (outcome.error or "").partition("\n")[0] or "its attempts are used up"
