"""Changes of one item: revive, purge, remove, release, promote."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from leaseq import WorkQueue, commands
from leaseq._sync.exact_change import change_seen
from leaseq.commands import Command
from leaseq.dashboard.access import Action
from leaseq.dashboard.change import Fact, Plan, Report
from leaseq.dashboard.purge_plans import UNDO_SECS, PurgePlan, PurgePlans
from leaseq.dashboard.source import Source
from leaseq.dashboard.visible_text import first_line, line
from leaseq.formatting import duration, moment
from leaseq.item import lease_ref
from leaseq.keys import QueueKeys, RegisteredQueue
from leaseq.results import ItemInfo

STATES: Final[dict[Action, frozenset[str]]] = {
    "revive": frozenset({"dead"}),
    "purge": frozenset({"dead"}),
    "promote": frozenset({"delayed"}),
    "release": frozenset({"leased"}),
    "remove": frozenset({"ready", "delayed", "leased"}),
}
"""The states of an item in which each change can be made."""

_QUESTIONS: Final[dict[Action, str]] = {
    "revive": "Make this dead item ready again, with 0 attempts?",
    "purge": f"Delete this dead item in {duration(UNDO_SECS)}? Until then, you can undo it.",
    "promote": "Make this delayed item ready now? It keeps its attempts.",
    "release": "End the lease of this item now? It is ready again, and its holder finds out at its next call.",
    "remove": "Remove this item permanently? If a worker holds it, it finds out at its next call.",
}

RELEASE_ERROR: Final = "the lease was ended in the dashboard"
"""The last error of an item whose lease was ended."""


class ItemChange:
    """A change of one item. It acts on the item that was shown: the same creation, state and lease."""

    def __init__(
        self,
        source: Source,
        action: Action,
        queue: RegisteredQueue,
        item_id: str,
        plans: PurgePlans,
        user: str = "",
    ) -> None:
        self.action = action
        self.name: str = action
        self.queue = queue
        self.permanent = action == "remove"
        self._source = source
        self._id = item_id
        self._plans = plans
        self._user = user

    def options(self) -> Mapping[str, Any]:
        """Return the id."""
        return {"id": self._id}

    def plan(self) -> Plan:
        """Return what it would do to the item as it is now."""
        with self._source.queue(self.queue) as queue:
            item = queue.inspect(self._id)
        facts = facts_of(item) if item.state != "absent" else ()
        if refusal := self._refusal(item):
            return Plan(_QUESTIONS[self.action], facts=facts, refusal=refusal)
        return Plan(_QUESTIONS[self.action], shown_of(item), facts)

    def perform(self, shown: Mapping[str, str]) -> Report:
        """Do it, if the item is still as it was shown."""
        with self._source.queue(self.queue) as queue:
            item = queue.inspect(self._id)
            if why_not := self._why_not(shown, item):
                return Report(f"Nothing was done. {why_not}")
            return _PERFORM[self.action](self, queue, item, shown)

    def _why_not(self, shown: Mapping[str, str], item: ItemInfo) -> str:
        """Return what happened to the item since it was shown, or why this cannot be done to it; or ""."""
        return meanwhile_of(shown, item) or self._refusal(item)

    def _refusal(self, item: ItemInfo) -> str:
        """Return why this cannot be done to the item now, or ""."""
        if item.state not in STATES[self.action]:
            return unfit(item)
        return planned_already(self._plans, item, self.queue) if self.action == "purge" else ""

    def _exactly(
        self,
        queue: WorkQueue,
        item: ItemInfo,
        shown: Mapping[str, str],
        change: Callable[[QueueKeys, Sequence[str]], Command[list[Any]]],
        text: str,
    ) -> Report:
        """Make a change if the item is still as it was shown at that moment."""

        def choose(seen: list[ItemInfo]) -> list[str]:
            return [each.id for each in seen if not meanwhile_of(shown, each)]

        (now,), answers = change_seen(queue.executor, queue.keys, item.state, [item.id], choose, change)
        return Report(text, 1) if answers else Report(f"Nothing was done. {meanwhile_of(shown, now)}")

    def _revive(self, queue: WorkQueue, item: ItemInfo, shown: Mapping[str, str]) -> Report:
        return self._exactly(queue, item, shown, commands.revive, "The item is ready again.")

    def _purge(self, _queue: WorkQueue, item: ItemInfo, _shown: Mapping[str, str]) -> Report:
        plans = self._plans.add(self.queue, [item], self._user)
        return Report(planned(1, plans), 1, plans)

    def _promote(self, queue: WorkQueue, item: ItemInfo, shown: Mapping[str, str]) -> Report:
        return self._exactly(queue, item, shown, commands.promote, "The item is ready now.")

    def _release(self, queue: WorkQueue, item: ItemInfo, _shown: Mapping[str, str]) -> Report:
        (answer,) = queue.release_items([lease_ref(item.id, item.token)], error=RELEASE_ERROR)
        if answer == "dead":
            return Report("The lease was ended. That was the last attempt: the item is a dead letter now.", 1)
        return _done(answer != "lost", "The lease was ended. The item can be leased again.")

    def _remove(self, queue: WorkQueue, item: ItemInfo, shown: Mapping[str, str]) -> Report:
        with self._source.app(self.queue) as app:
            if (
                app.handle(item.id, self.queue.name).info().function
            ):  # clients that wait for its result are woken
                cancel = app.program.clients.sync.store.cancel
                done = cancel(self.queue.name, item.id, item.state, lambda now: not meanwhile_of(shown, now))
                return _done(done, "The job was cancelled.")
        text = f"The item was removed. It was {item.state}."
        return self._exactly(queue, item, shown, commands.remove, text)


_PERFORM: Final[dict[Action, Callable[[ItemChange, WorkQueue, ItemInfo, Mapping[str, str]], Report]]] = {
    "revive": ItemChange._revive,  # noqa: SLF001 (its own)
    "purge": ItemChange._purge,  # noqa: SLF001
    "promote": ItemChange._promote,  # noqa: SLF001
    "release": ItemChange._release,  # noqa: SLF001
    "remove": ItemChange._remove,  # noqa: SLF001
}


def planned(count: int, plans: Sequence[PurgePlan]) -> str:
    """Return the sentence for a purge that was planned."""
    what = f"{count:,} dead letter{'s go' if count > 1 else ' goes'}"
    return f"{what} at {moment(plans[0].due)}. Until then, you can undo it."


def planned_already(plans: PurgePlans, item: ItemInfo, queue: RegisteredQueue) -> str:
    """Return when a dead letter goes if that is planned, else ""."""
    due = [plan.due for plan in plans.pending() if plan.queue == queue and plan.has(item)]
    return f"It is planned already: this dead letter goes at {moment(due[0])}." if due else ""


def shown_of(item: ItemInfo) -> dict[str, str]:
    """Return what tells this item in this state from any other."""
    return {
        "created": repr(item.created),
        "state": item.state,
        "token": str(item.token),
        "time": repr(item.time) if item.state == "dead" else "",
    }


def meanwhile_of(shown: Mapping[str, str], item: ItemInfo) -> str:
    """Return what happened to an item since it was shown, or ""."""
    now = shown_of(item)
    if item.state == "absent":
        return "The item is gone: it was completed, removed or deleted since it was shown."
    if now["created"] != shown.get("created"):
        return f"Another item has this id now. It was added at {moment(item.created)}."
    if now["state"] != shown.get("state"):
        return f"The item was {line(shown.get('state', ''), 20)} when it was shown, and is {item.state} now."
    if now["token"] != shown.get("token"):
        return f"The item was leased again since it was shown. This is attempt {item.attempt}."
    return "" if now["time"] == shown.get("time", "") else "The item died again since it was shown."


def unfit(item: ItemInfo) -> str:
    """Return why a change that is not for the state of this item cannot be done."""
    return "There is no such item." if item.state == "absent" else f"The item is {item.state}."


def _done(answer: bool, text: str) -> Report:
    return Report(text, 1) if answer else Report("Nothing was done. The item changed at the same moment.")


def facts_of(item: ItemInfo) -> list[Fact]:
    """Return what is shown of an item before a change, by name."""
    facts: list[Fact] = [
        ("state", item.state),
        ("added", item.created),
        ("attempts", f"{item.attempt} of {item.max_attempts}" if item.max_attempts else str(item.attempt)),
    ]
    return [*facts, ("last error", line(first_line(item.error)))] if item.error else facts
