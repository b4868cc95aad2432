"""Changes of a queue: pause, resume, limits."""

from collections.abc import Mapping
from typing import Any, Final

from leaseq import QueueStats
from leaseq.dashboard.access import Action
from leaseq.dashboard.change import Plan, Report
from leaseq.dashboard.source import Source
from leaseq.keys import RegisteredQueue

LIMITS: Final = {
    "max_items": "items held, without dead ones; 0: no limit",
    "max_attempts": "leases after which an item dies; 0: never",
    "max_data": "bytes of data that an item may have",
}
"""The limits of a queue, and what each means."""


class PauseChange:
    """Pause a queue, or end its pause."""

    permanent = False

    def __init__(self, source: Source, action: Action, queue: RegisteredQueue) -> None:
        self.action = self.name = action
        self.queue = queue
        self._source = source
        self._pauses = action == "pause"

    def options(self) -> Mapping[str, Any]:
        """Return nothing: the name of the change says all."""
        return {}

    def plan(self) -> Plan:
        """Return what it would do to the queue as it is now."""
        question = (
            "Stop leasing from this queue, for all workers? Items that are leased are finished."
            if self._pauses
            else "End the pause of this queue? Waiting workers get items at once."
        )
        stats = self._stats()
        facts = [(state, str(getattr(stats, state))) for state in ("ready", "delayed", "leased")]
        return Plan(question, facts=facts, refusal=self._refusal(stats))

    def perform(self, shown: Mapping[str, str]) -> Report:  # noqa: ARG002 (a queue has one pause)
        """Do it, unless it is done already."""
        if refusal := self._refusal(self._stats()):
            return Report(f"Nothing was done. {refusal}")
        with self._source.queue(self.queue) as queue:
            if self._pauses:
                queue.pause()
            else:
                queue.resume()
        return Report("The queue is paused." if self._pauses else "The queue goes on.", 1)

    def _stats(self) -> QueueStats:
        with self._source.queue(self.queue) as queue:
            return queue.stats()

    def _refusal(self, stats: QueueStats) -> str:
        if stats.paused != self._pauses:
            return ""
        return "The queue is paused already." if self._pauses else "The queue is not paused."


class LimitsChange:
    """Set the limits of a queue."""

    permanent = False

    def __init__(
        self, source: Source, action: Action, queue: RegisteredQueue, given: Mapping[str, str]
    ) -> None:
        self.action = self.name = action
        self.queue = queue
        self._source = source
        self._given = {name: given[name].strip() for name in LIMITS if given.get(name, "").strip()}

    def options(self) -> Mapping[str, Any]:
        """Return the limits that were given."""
        return self._given

    def plan(self) -> Plan:
        """Return the limits as they are now."""
        limits = self._limits()
        fields = [(name, text, limits[name]) for name, text in LIMITS.items()]
        return Plan("Set the limits of this queue, for all its clients?", limits, fields=fields)

    def perform(self, shown: Mapping[str, str]) -> Report:
        """Set the limits that differ from those that were shown. Raises BadArgumentError for a limit that is too high."""
        before = self._limits()
        if any(before[name] != shown.get(name) for name in LIMITS):
            now = ", ".join(f"{name} {value}" for name, value in before.items())
            return Report(f"Nothing was done. The limits were changed since they were shown: {now}.")
        if wrong := [name for name, text in self._given.items() if not (text.isascii() and text.isdecimal())]:
            return Report(f"Nothing was done. {wrong[0]} must be a whole number, 0 or more.")
        new = {name: int(text) for name, text in self._given.items() if int(text) != int(before[name])}
        if not new:
            return Report("Nothing was done. These are the limits already.")
        with self._source.queue(self.queue) as queue:
            queue.configure(**new)
        done = ", ".join(f"{name} from {before[name]} to {value}" for name, value in new.items())
        return Report(f"Changed {done}.", len(new))

    def _limits(self) -> dict[str, str]:
        with self._source.queue(self.queue) as queue:
            stats = queue.stats()
        return {name: str(getattr(stats, name)) for name in LIMITS}
