"""Changes of a schedule: trigger it, pause it, end its pause."""

from collections.abc import Mapping
from typing import Any, Final

from leaseq.dashboard.access import Action
from leaseq.dashboard.change import Fact, Plan, Report
from leaseq.dashboard.source import Source
from leaseq.jobs import App, ScheduleInfo
from leaseq.keys import RegisteredQueue

_QUESTIONS: Final[dict[Action, str]] = {
    "trigger": "Enqueue a job of this schedule now? Its slots stay as they are.",
    "pause_schedule": "Pause this schedule? Its slots pass without jobs.",
    "resume_schedule": "Resume this schedule with its next slot?",
}


class ScheduleChange:
    """A change of one schedule; `queue` is the queue of its jobs."""

    permanent = False

    def __init__(self, source: Source, action: Action, queue: RegisteredQueue, name: str) -> None:
        self.action = self.name = action
        self.queue = queue
        self._source = source
        self._name = name

    def options(self) -> Mapping[str, Any]:
        """Return the name of the schedule."""
        return {"schedule": self._name}

    def plan(self) -> Plan:
        """Return what it would do to the schedule as it is now."""
        with self._source.app(self.queue) as app:
            schedule = self._schedule(app)
        facts: list[Fact] = []
        if schedule is not None:
            facts = [("rule", schedule.rule), ("function", schedule.function)]
            facts += [("next slot", schedule.next)] if schedule.next else []
        return Plan(_QUESTIONS[self.action], facts=facts, refusal=self._refusal(schedule))

    def perform(self, shown: Mapping[str, str]) -> Report:  # noqa: ARG002 (its name says which it is)
        """Do it, unless it is done already."""
        with self._source.app(self.queue) as app:
            if refusal := self._refusal(self._schedule(app)):
                return Report(f"Nothing was done. {refusal}")
            if self.action == "trigger":
                handle = app.schedules.trigger(self._name, self.queue.name)
                return Report(f"Enqueued the job {handle.id} in queue {handle.queue}.", 1)
            if self.action == "pause_schedule":
                app.schedules.pause(self._name, self.queue.name)
                return Report("The schedule is paused.", 1)
            app.schedules.resume(self._name, self.queue.name)
            return Report("The schedule goes on with its next slot.", 1)

    def _schedule(self, app: App) -> ScheduleInfo | None:
        found = app.schedules.inspect(self.queue.name)
        return next((each for each in found if each.name == self._name), None)

    def _refusal(self, schedule: ScheduleInfo | None) -> str:
        if schedule is None:
            return "There is no such schedule now."
        if self.action == "pause_schedule" and schedule.paused:
            return "The schedule is paused already."
        if self.action == "resume_schedule" and not schedule.paused:
            return "The schedule is not paused."
        return ""
