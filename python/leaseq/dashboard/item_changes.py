"""Changes of one item: revive, purge, remove, release."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from leaseq import WorkQueue
from leaseq.dashboard.access import Action
from leaseq.dashboard.change import Plan, Report
from leaseq.dashboard.source import Source
from leaseq.dashboard.visible_text import first_line, line
from leaseq.formatting import moment
from leaseq.item import lease_ref
from leaseq.keys import RegisteredQueue
from leaseq.results import ItemInfo

STATES: Final[dict[Action, frozenset[str]]] = {
    "revive": frozenset({"dead"}),
    "purge": frozenset({"dead"}),
    "release": frozenset({"leased"}),
    "remove": frozenset({"ready", "delayed", "leased"}),
}
"""The states of an item in which each change can be made."""

_QUESTIONS: Final[dict[Action, str]] = {
    "revive": "Make this dead item ready again, with 0 attempts?",
    "purge": "Delete this dead item permanently?",
    "release": "End the lease of this item now? It is ready again, and its holder finds out at its next call.",
    "remove": "Remove this item permanently? If a worker holds it, it finds out at its next call.",
}

RELEASE_ERROR: Final = "the lease was ended in the dashboard"
"""The last error of an item whose lease was ended."""


class ItemChange:
    """A change of one item. It acts on the item that was shown: the same creation, state and lease."""

    def __init__(self, source: Source, action: Action, queue: RegisteredQueue, item_id: str) -> None:
        self.action = action
        self.queue = queue
        self.permanent = action in {"purge", "remove"}
        self._source = source
        self._id = item_id

    def options(self) -> Mapping[str, Any]:
        """Return the id."""
        return {"id": self._id}

    def plan(self) -> Plan:
        """Return what it would do to the item as it is now."""
        with self._source.queue(self.queue) as queue:
            item = queue.inspect(self._id)
        facts = _facts(item) if item.state != "absent" else ()
        if item.state not in STATES[self.action]:
            return Plan(_QUESTIONS[self.action], facts=facts, refusal=_unfit(item))
        return Plan(_QUESTIONS[self.action], _shown(item), facts)

    def perform(self, shown: Mapping[str, str]) -> Report:
        """Do it, if the item is still as it was shown."""
        with self._source.queue(self.queue) as queue:
            item = queue.inspect(self._id)
            if meanwhile := _meanwhile(shown, item):
                return Report(f"Nothing was done. {meanwhile}")
            if item.state not in STATES[self.action]:
                return Report(f"Nothing was done. {_unfit(item)}")
            return _PERFORM[self.action](self, queue, item)

    def _revive(self, queue: WorkQueue, item: ItemInfo) -> Report:
        return _done(queue.revive(item.id), "The item is ready again.")

    def _purge(self, queue: WorkQueue, item: ItemInfo) -> Report:
        return _done(queue.purge(item.id), "The item was deleted.")

    def _release(self, queue: WorkQueue, item: ItemInfo) -> Report:
        (answer,) = queue.release_items([lease_ref(item.id, item.token)], error=RELEASE_ERROR)
        if answer == "dead":
            return Report("The lease was ended. That was the last attempt: the item is a dead letter now.", 1)
        return _done(answer != "lost", "The lease was ended. The item can be leased again.")

    def _remove(self, queue: WorkQueue, item: ItemInfo) -> Report:
        with self._source.app(self.queue) as app:
            handle = app.handle(item.id, self.queue.name)
            if handle.info().function:  # a job: clients that wait for its result are woken
                return _done(handle.cancel(), "The job was cancelled.")
        state = queue.remove(item.id)
        return _done(state != "absent", f"The item was removed. It was {state}.")


_PERFORM: Final[dict[Action, Callable[[ItemChange, WorkQueue, ItemInfo], Report]]] = {
    "revive": ItemChange._revive,  # noqa: SLF001 (its own)
    "purge": ItemChange._purge,  # noqa: SLF001
    "release": ItemChange._release,  # noqa: SLF001
    "remove": ItemChange._remove,  # noqa: SLF001
}


def _shown(item: ItemInfo) -> dict[str, str]:
    """Return what tells this item in this state from any other."""
    return {
        "created": repr(item.created),
        "state": item.state,
        "token": str(item.token),
        "time": repr(item.time) if item.state == "dead" else "",
    }


def _meanwhile(shown: Mapping[str, str], item: ItemInfo) -> str:
    """Return what happened to an item since it was shown, or ""."""
    now = _shown(item)
    if item.state == "absent":
        return "The item is gone: it was completed, removed or deleted since it was shown."
    if now["created"] != shown.get("created"):
        return f"Another item has this id now. It was added at {moment(item.created)}."
    if now["state"] != shown.get("state"):
        return f"The item was {line(shown.get('state', ''), 20)} when it was shown, and is {item.state} now."
    if now["token"] != shown.get("token"):
        return f"The item was leased again since it was shown. This is attempt {item.attempt}."
    return "" if now["time"] == shown.get("time", "") else "The item died again since it was shown."


def _unfit(item: ItemInfo) -> str:
    return "There is no such item." if item.state == "absent" else f"The item is {item.state}."


def _done(answer: bool, text: str) -> Report:
    return Report(text, 1) if answer else Report("Nothing was done. The item changed at the same moment.")


def _facts(item: ItemInfo) -> list[tuple[str, str]]:
    facts = [
        ("state", item.state),
        ("added", moment(item.created)),
        ("attempts", f"{item.attempt} of {item.max_attempts}" if item.max_attempts else str(item.attempt)),
    ]
    return [*facts, ("last error", line(first_line(item.error)))] if item.error else facts
