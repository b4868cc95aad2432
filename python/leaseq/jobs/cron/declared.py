"""The schedules that an App has declared."""

from collections.abc import Iterator

from leaseq.errors import BadArgumentError
from leaseq.jobs.cron import schedule_state
from leaseq.jobs.cron.schedule import Schedule


class DeclaredSchedules:
    """The schedules of `@app.cron` and `@app.every`, which workers enter on the server; each with the queue of schedules it is in."""

    def __init__(self) -> None:
        self._schedules: dict[tuple[str, str], Schedule] = {}

    def add(self, schedule: Schedule) -> None:
        """Add a schedule. Raises BadArgumentError, BadNameError."""
        key = (schedule_state.queue_of(schedule.queue), schedule.name)
        if key in self._schedules:
            raise BadArgumentError(
                f"there is a schedule {schedule.name!r} already: give one of them another name"
            )
        self._schedules[key] = schedule

    def queues_of(self, name: str) -> list[str]:
        """The queues of schedules in which there is one of this name."""
        return [queue for queue, each in self._schedules if each == name]

    def __iter__(self) -> Iterator[Schedule]:
        return iter(list(self._schedules.values()))

    def __len__(self) -> int:
        return len(self._schedules)
