"""Outcomes: the results and failures that are kept."""

from collections.abc import Sequence
from typing import Any

from leaseq import _scripts
from leaseq.commands import codecs
from leaseq.commands.encoding import Command, command
from leaseq.keys import QueueKeys
from leaseq.results import WAITS, Outcome


def outcome(keys: QueueKeys, ids: Sequence[str]) -> Command[list[Outcome]]:
    """Return outcomes; for fewer ids than given if the contents are large (LQ-OUTCOME-9), at least one.

    Writes failures that are not written yet.
    """

    def parse(reply: list[Any]) -> list[Outcome]:
        return [
            Outcome(
                item_id, state, created, ended, attempt, keep, content, pending=keep > 0 and state in WAITS
            )
            for item_id, (state, created, ended, attempt, keep, content) in zip(
                ids, codecs.outcome_reply(reply), strict=False
            )
        ]

    arguments = codecs.outcome_arguments(ids)
    return command(_scripts.OUTCOME, keys, arguments, parse, [keys.result + item_id for item_id in ids])


def publications(keys: QueueKeys, died: Sequence[str]) -> list[Command[list[Outcome]]]:
    """The calls that publish the failures of items, by asking for them (LQ-CLIENT-8)."""
    starts = range(0, len(died), _scripts.MAX_ENTRIES)
    return [outcome(keys, died[start : start + _scripts.MAX_ENTRIES]) for start in starts]
