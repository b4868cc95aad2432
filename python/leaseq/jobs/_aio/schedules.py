"""List, pause, resume and trigger the schedules on the server."""

from typing import Any

# threads: from leaseq.jobs._aio.schedules import Schedules as AsyncSchedules
from leaseq.jobs._aio.handle import Handle
from leaseq.jobs.clients import Clients
from leaseq.jobs.cron import schedule_state
from leaseq.jobs.cron.declared import DeclaredSchedules
from leaseq.jobs.cron.info import ScheduleInfo
from leaseq.jobs.store._aio import schedule_store


class Schedules:
    """The schedules of an App, as `app.schedules`: list, pause, resume and trigger them by name.

    `queue` is the queue of the schedule's jobs. By default it is that of the App's one schedule of this name, else the App's
    queue. A worker writes its App's schedules to the server when it starts. Pausing and triggering raise BadArgumentError if
    the server has no schedule of that name.
    """

    def __init__(self, clients: Clients, declared: DeclaredSchedules) -> None:
        self._clients = clients
        self._declared = declared

    # threads: @property
    # threads: def aio(self) -> AsyncSchedules:
    # threads:     """The same for asyncio: `await app.schedules.aio.pause("report")`."""
    # threads:     return AsyncSchedules(self._clients, self._declared)

    async def inspect(self, queue: str | None = None) -> list[ScheduleInfo]:
        """Return the schedules on the server, by name, up to 768 of each queue.

        `queue` is a queue of jobs; without it, the schedules of all queues that the App knows are returned.
        """
        queues = self._clients.settings.queues if queue is None else [queue]
        return await schedule_store.inspect(self._clients.aio, queues)

    async def pause(self, name: str, queue: str | None = None) -> None:
        """Pause a schedule: its slots pass without jobs, also on workers that start later."""
        await schedule_store.set_paused(self._clients.aio, self._queue_of(name, queue), name, paused=True)

    async def resume(self, name: str, queue: str | None = None) -> None:
        """Resume a schedule with its next slot."""
        await schedule_store.set_paused(self._clients.aio, self._queue_of(name, queue), name, paused=False)

    async def trigger(self, name: str, queue: str | None = None) -> Handle[Any]:
        """Enqueue a job of a schedule now, in addition to its slots, which stay as they are.

        Its result is kept as the schedule says, or for a day.
        """
        found = await schedule_store.trigger(self._clients.aio, self._queue_of(name, queue), name)
        return Handle(self._clients, *found)

    def _queue_of(self, name: str, queue: str | None) -> str:
        """Return the queue that holds the schedule: of the App's declaration of it, else of `queue` or of the default queue."""
        declared = self._declared.queues_of(name) if queue is None else []
        if len(declared) == 1:
            return declared[0]
        return schedule_state.queue_of(queue or self._clients.settings.defaults.queue)
