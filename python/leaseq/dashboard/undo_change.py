"""The change that undoes a planned purge."""

from collections.abc import Mapping
from typing import Any

from leaseq.dashboard.access import Action
from leaseq.dashboard.change import Fact, Plan, Report
from leaseq.dashboard.purge_plans import PurgePlan, PurgePlans
from leaseq.dashboard.visible_text import line
from leaseq.keys import RegisteredQueue


class UndoChange:
    """Undo a planned purge: its dead letters stay. A user who may purge may undo."""

    action: Action = "purge"
    name = "undo"
    permanent = False

    def __init__(self, plans: PurgePlans, queue: RegisteredQueue, plan_id: str) -> None:
        self.queue = queue
        self._plans = plans
        self._id = plan_id

    def options(self) -> Mapping[str, Any]:
        """Return the id of the plan."""
        return {"plan": self._id}

    def plan(self) -> Plan:
        """Return which dead letters it keeps."""
        found = self._find()
        if found is None:
            return Plan("Undo this purge?", refusal=_GONE)
        facts: list[Fact] = [("dead letters", f"{len(found.items):,}"), ("go at", found.due)]
        facts += [("error", line(found.error))] if found.error is not None else []
        facts += [("planned by", line(found.user))] if found.user else []
        return Plan("Undo this purge? The dead letters stay.", facts=facts)

    def perform(self, shown: Mapping[str, str]) -> Report:  # noqa: ARG002 (a plan never changes)
        """Drop the plan."""
        found = self._find()
        state = "absent" if found is None else self._plans.undo(found)
        if found is None or state == "absent":
            return Report(f"Nothing was done. {_GONE}")
        count = len(found.items)
        if state == "leased":
            return Report("The purge had started. Some of its dead letters may be gone.", count)
        stay = "The dead letter stays." if count == 1 else f"The {count:,} dead letters stay."
        return Report(f"Undone. {stay}", count)

    def _find(self) -> PurgePlan | None:
        found = self._plans.find(self._id)
        return found if found is not None and found.queue == self.queue else None


_GONE = "There is no such plan: it was undone, or carried out."
