"""Changes of all dead letters with one error: revive, purge."""

from collections.abc import Mapping
from typing import Any

from leaseq.dashboard import dead_groups
from leaseq.dashboard.access import Action
from leaseq.dashboard.change import Plan, Report
from leaseq.dashboard.source import Source
from leaseq.dashboard.visible_text import line
from leaseq.formatting import moment
from leaseq.keys import RegisteredQueue


class GroupChange:
    """A change of the dead letters whose error has this first line: those that were dead when they were shown."""

    def __init__(self, source: Source, action: Action, queue: RegisteredQueue, error: str) -> None:
        self.action = action
        self.queue = queue
        self.permanent = action == "purge"
        self._source = source
        self._error = error

    def options(self) -> Mapping[str, Any]:
        """Return the error."""
        return {"error": self._error}

    def plan(self) -> Plan:
        """Return how many items it would change."""
        with self._source.queue(self.queue) as queue:
            letters = dead_groups.read(queue)
        items = letters.group(self._error).items
        count = _items(len(items))
        question = (
            f"Delete {count} permanently?"
            if self.permanent
            else f"Make {count} ready again, with 0 attempts?"
        )
        facts = [("error", line(self._error)), ("items", str(len(items)))]
        if items:
            facts += [("first died", moment(items[-1].time)), ("last died", moment(items[0].time))]
        if letters.scanned < letters.total:
            facts.append(("looked at", f"the last {letters.scanned} of {letters.total} dead letters"))
        refusal = "" if items else "No dead letter has this error now."
        return Plan(question, {"until": repr(letters.read_at)}, facts, refusal=refusal)

    def perform(self, shown: Mapping[str, str]) -> Report:
        """Change the items that have been dead since they were shown."""
        until = _number(shown.get("until", ""))
        with self._source.queue(self.queue) as queue:
            items = dead_groups.read(queue).group(self._error).items
            ids = [item.id for item in items if item.time <= until]
            answers = queue.purge_items(ids) if self.permanent else queue.revive_items(ids)
        changed, later = sum(answers), len(items) - len(ids)
        done = f"{_items(changed)} {'deleted' if self.permanent else 'made ready again'}."
        return Report(f"{done} {_items(later)} died later and stay." if later else done, changed)


def _items(count: int) -> str:
    return f"{count} {'item' if count == 1 else 'items'}"


def _number(text: str) -> float:
    """Return the moment of a form; 0, before which nothing died, if it has none."""
    try:
        return float(text)
    except ValueError:
        return 0.0
