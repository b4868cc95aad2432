"""The schedules of an App: those that it has, and those that its server has."""

from collections.abc import Iterator
from typing import Any

from leaseq.errors import BadArgumentError
from leaseq.jobs._aio import schedules as aio
from leaseq.jobs._sync import schedules as sync
from leaseq.jobs.clients import Clients
from leaseq.jobs.cron import schedule_state
from leaseq.jobs.cron.info import ScheduleInfo
from leaseq.jobs.cron.schedule import Schedule
from leaseq.jobs.handle import Handle


class Schedules:
    """`app.schedules`: looks at schedules, pauses, resumes and triggers them, by name.

    `queue` is that of their jobs: where none is said, that of the App's one schedule of this name, else the App's own. What
    the server has of a schedule, a worker wrote that began with it. Pausing and triggering raise BadArgumentError where the
    server has none of that name.
    """

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._own: dict[tuple[str, str], Schedule] = {}

    def add(self, schedule: Schedule) -> None:
        """Have one more. Raises BadArgumentError, BadNameError."""
        place = (schedule_state.queue_of(schedule.queue), schedule.name)
        if place in self._own:
            raise BadArgumentError(
                f"there is a schedule {schedule.name!r} already: give one of them another name"
            )
        self._own[place] = schedule

    def __iter__(self) -> Iterator[Schedule]:
        """Those of this App."""
        return iter(list(self._own.values()))

    def __len__(self) -> int:
        return len(self._own)

    def inspect(self, queue: str | None = None) -> list[ScheduleInfo]:
        """Those that the server has, by name: of one queue of jobs, or of all that the App knows; up to 768 each."""
        return sync.inspect(self._clients.sync, self._queues(queue))

    async def ainspect(self, queue: str | None = None) -> list[ScheduleInfo]:
        """`inspect` for asyncio."""
        return await aio.inspect(self._clients.aio, self._queues(queue))

    def pause(self, name: str, queue: str | None = None) -> None:
        """Let its slots pass without jobs, also those of workers that are not there yet."""
        sync.set_paused(self._clients.sync, self._place(name, queue), name, paused=True)

    async def apause(self, name: str, queue: str | None = None) -> None:
        """`pause` for asyncio."""
        await aio.set_paused(self._clients.aio, self._place(name, queue), name, paused=True)

    def resume(self, name: str, queue: str | None = None) -> None:
        """Go on with the next slot."""
        sync.set_paused(self._clients.sync, self._place(name, queue), name, paused=False)

    async def aresume(self, name: str, queue: str | None = None) -> None:
        """`resume` for asyncio."""
        await aio.set_paused(self._clients.aio, self._place(name, queue), name, paused=False)

    def trigger(self, name: str, queue: str | None = None) -> Handle[Any]:
        """Enqueue its job now, beside its slots, which stay as they are."""
        found = sync.trigger(self._clients.sync, self._place(name, queue), name)
        return Handle(self._clients, *found)

    async def atrigger(self, name: str, queue: str | None = None) -> Handle[Any]:
        """`trigger` for asyncio."""
        found = await aio.trigger(self._clients.aio, self._place(name, queue), name)
        return Handle(self._clients, *found)

    def _queues(self, queue: str | None) -> list[str]:
        return [queue] if queue is not None else self._clients.settings.queues

    def _place(self, name: str, queue: str | None) -> str:
        """The queue of schedules where it is looked for, by name: of one that this App has, it is known."""
        own = [place for place, each in self._own if each == name] if queue is None else []
        return (
            own[0]
            if len(own) == 1
            else schedule_state.queue_of(queue or self._clients.settings.defaults.queue)
        )
