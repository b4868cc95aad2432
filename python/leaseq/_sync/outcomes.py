# Generated from _aio/outcomes.py by python/unasync.py: do not edit.
"""What became of items."""

from collections.abc import Iterable

from leaseq import commands, flows
from leaseq._scripts import MAX_ENTRIES
from leaseq._sync import io
from leaseq._sync.base import QueueBase
from leaseq.errors import LeaseqError
from leaseq.results import Outcome


class Outcomes(QueueBase):
    """The part of a queue that tells what became of items."""

    def outcome(self, item_id: str, *, timeout: float | None = None) -> Outcome:
        """What became of an item that was added with `keep`: its result, or the failure that it died of.

        Waits for it up to `timeout` seconds (0: not at all; None: as long as it takes) without polling; any number of
        callers may wait for one item. When the time is up, or when there is no such item any more, `finished` is false
        and `state` says where the item is. Never answers with the outcome of another item of the same id, before it or after it.
        """
        flow = flows.outcome(self._keys, item_id, timeout=timeout, clock=io.now)
        return (self._drive(flow))[0]

    def outcomes(self, ids: Iterable[str]) -> list[Outcome]:
        """What became of many items, without waiting; answers for each, in order. `list_items("kept")` lists ids."""
        wanted = list(flows.many(ids, "ids"))
        outcomes: list[Outcome] = []
        while len(outcomes) < len(wanted):
            # a call tells of fewer where results are large
            chunk = wanted[len(outcomes) :][:MAX_ENTRIES]
            try:
                told = self._transport.run(commands.outcome(self._keys, chunk))
            except LeaseqError as error:
                error.answers = outcomes
                error._in_doubt = len(chunk)
                raise
            outcomes += told
        return outcomes
