"""Changes of all dead letters with one error: revive, purge."""

from collections.abc import Mapping, Sequence
from typing import Any

from leaseq import WorkQueue, commands
from leaseq._sync.exact_change import change_seen
from leaseq.dashboard import dead_groups
from leaseq.dashboard.access import Action
from leaseq.dashboard.change import Fact, Plan, Report
from leaseq.dashboard.item_changes import planned
from leaseq.dashboard.purge_plans import UNDO_SECS, PurgePlans
from leaseq.dashboard.source import Source
from leaseq.dashboard.visible_text import line
from leaseq.flows import chunks
from leaseq.formatting import duration
from leaseq.keys import RegisteredQueue
from leaseq.results import ItemInfo


class GroupChange:
    """A change of the dead letters whose error has this first line: those that were dead when they were shown."""

    permanent = False

    def __init__(
        self,
        source: Source,
        action: Action,
        queue: RegisteredQueue,
        error: str,
        plans: PurgePlans,
        user: str = "",
    ) -> None:
        self.action = self.name = action
        self.queue = queue
        self._source = source
        self._error = error
        self._plans = plans
        self._user = user

    def options(self) -> Mapping[str, Any]:
        """Return the error."""
        return {"error": self._error}

    def plan(self) -> Plan:
        """Return how many items it would change."""
        with self._source.queue(self.queue) as queue:
            letters = dead_groups.read(queue, plans=self._plans.pending())
        items = letters.group(self._error).items
        count = _items(len(items))
        question = (
            f"Delete {count} in {duration(UNDO_SECS)}? Until then, you can undo it."
            if self.action == "purge"
            else f"Make {count} ready again, with 0 attempts?"
        )
        facts: list[Fact] = [("error", line(self._error)), ("items", str(len(items)))]
        if items:
            facts += [("first died", items[-1].time), ("last died", items[0].time)]
        if letters.scanned < letters.total:
            facts.append(("looked at", f"the last {letters.scanned} of {letters.total} dead letters"))
        refusal = "" if items else "No dead letter has this error now."
        return Plan(question, {"until": repr(letters.read_at)}, facts, refusal=refusal)

    def perform(self, shown: Mapping[str, str]) -> Report:
        """Change the items that have been dead since they were shown."""
        until = _number(shown.get("until", ""))
        with self._source.queue(self.queue) as queue:
            items = dead_groups.read(queue, plans=self._plans.pending()).group(self._error).items
            chosen = [item for item in items if item.time <= until]
            later = len(items) - len(chosen)
            stays = f" {_items(later)} died later and stay." if later else ""
            if self.action == "revive":
                changed = sum(_revived(queue, part) for part in chunks(chosen))
                return Report(f"{_items(changed)} made ready again.{stays}", changed)
        if not chosen:
            return Report(f"Nothing was done. No dead letter that was shown is left.{stays}")
        plans = self._plans.add(self.queue, chosen, self._user, self._error)
        return Report(f"{planned(len(chosen), plans)}{stays}", len(chosen), plans)


def _revived(queue: WorkQueue, items: Sequence[ItemInfo]) -> int:
    """Revive those that are still the same. Return how many."""
    ids = [item.id for item in items]
    known = {_death(item) for item in items}

    def choose(seen: list[ItemInfo]) -> list[str]:
        return [each.id for each in seen if each.state == "dead" and _death(each) in known]

    _, answers = change_seen(queue.executor, queue.keys, "dead", ids, choose, commands.revive)
    return sum(answers)


def _death(item: ItemInfo) -> tuple[str, float, float]:
    """Return what tells this death of this item from any other."""
    return item.id, item.created, item.time


def _items(count: int) -> str:
    return f"{count} {'item' if count == 1 else 'items'}"


def _number(text: str) -> float:
    """Return the moment of a form; 0, before which nothing died, if it has none."""
    try:
        return float(text)
    except ValueError:
        return 0.0
