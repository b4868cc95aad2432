# Generated from _aio/schedules.py by tools/unasync.py: do not edit.
"""List, pause, resume and trigger the schedules on the server."""

import time
from typing import Any

import msgspec

from leaseq._scripts import MAX_ENTRIES
from leaseq.errors import BadArgumentError
from leaseq.item import Item
from leaseq.jobs import envelope
from leaseq.jobs._aio.schedules import Schedules as AsyncSchedules
from leaseq.jobs._sync.handle import Handle
from leaseq.jobs.call import options_of
from leaseq.jobs.clients import Clients
from leaseq.jobs.cron import schedule_state
from leaseq.jobs.cron.declared import DeclaredSchedules
from leaseq.jobs.cron.info import ScheduleInfo
from leaseq.jobs.cron.schedule_state import ScheduleState
from leaseq.jobs.options import DAY
from leaseq.results import ListState

_IN_THE_ORDER_OF_A_TURN: tuple[ListState, ...] = ("delayed", "ready", "leased", "delayed")
"""A schedule that has its turn meanwhile is in one of them when it is looked at."""


class Schedules:
    """The schedules of an App, as `app.schedules`: list, pause, resume and trigger them by name.

    `queue` is the queue of the schedule's jobs. By default it is that of the App's one schedule of this name, else the App's
    default queue. A worker writes its App's schedules to the server when it starts. `pause`, `resume` and `trigger` raise
    BadArgumentError if the server has no schedule of that name.
    """

    def __init__(self, clients: Clients, declared: DeclaredSchedules) -> None:
        self._clients = clients
        self._declared = declared

    @property
    def aio(self) -> AsyncSchedules:
        """The same for asyncio: `await app.schedules.aio.pause("report")`."""
        return AsyncSchedules(self._clients, self._declared)

    def inspect(self, queue: str | None = None) -> list[ScheduleInfo]:
        """Return the schedules on the server, by name, up to 768 of each queue.

        `queue` is a queue of jobs; without it, the schedules of all queues that the App knows are returned.
        """
        found: list[ScheduleInfo] = []
        for jobs in self._clients.settings.queues if queue is None else [queue]:
            for name, state, paused in self._stored(schedule_state.queue_of(jobs)):
                if state is not None:
                    found.append(ScheduleInfo.of(name, jobs, state, paused=paused))
        return found

    def pause(self, name: str, queue: str | None = None) -> None:
        """Pause a schedule: its slots pass without jobs, on all workers, until `resume`."""
        self._mark("SADD", name, self._queue_of(name, queue))

    def resume(self, name: str, queue: str | None = None) -> None:
        """End the pause of a schedule: it goes on with its next slot."""
        self._mark("SREM", name, self._queue_of(name, queue))

    def _mark(self, command: str, name: str, queue: str) -> None:
        """Add a schedule to those that are paused, or remove it from them."""
        self._state(name, queue)
        store = self._clients.sync.store
        store.talk(queue, command, schedule_state.paused_key(store.queue(queue).keys), name)

    def trigger(self, name: str, queue: str | None = None) -> Handle[Any]:
        """Enqueue a job of a schedule now, in addition to its slots, which stay as they are.

        Its result is kept for the `keep` of the schedule, or for a day if it has none.
        """
        stage = (self._state(name, self._queue_of(name, queue))).job
        if stage is None:
            raise BadArgumentError("this schedule does not say what its jobs are")
        client = self._clients.sync
        now, delay = round((time.time() + client.settings.ahead) * 1000), int(stage.add.get("delay", 0))
        content = msgspec.structs.replace(stage.job, enqueued=now, due=now + delay if delay else None)
        item = Item(envelope.write(content, client.settings.form, None), headers=stage.headers)
        kept = () if "keep" in stage.add else ("keep", str(int(DAY * 1000)))  # its id was asked for
        client.store.add(stage.queue, [(item, (*options_of(stage), *kept))])
        client.enqueued()
        return Handle(self._clients, item.id, stage.queue)

    def _state(self, name: str, queue: str) -> ScheduleState:
        """Return a schedule of a queue of schedules. Raises BadArgumentError if there is none of this name."""
        (data,) = self._clients.sync.store.data(queue, [name])
        if data is not None and (state := schedule_state.read(data)) is not None:
            return state
        known = ", ".join(each for each, _, _ in self._stored(queue)) or "none"
        raise BadArgumentError(
            f"there is no schedule {name!r} in this queue: it has {known}; a worker adds its schedules when it starts"
        )

    def _stored(self, queue: str) -> list[tuple[str, ScheduleState | None, bool]]:
        """Return the schedules of a queue of schedules, by name, and whether they are paused; up to 768.

        None stands for a schedule that this program cannot read.
        """
        store = self._clients.sync.store
        ids: set[str] = set()
        for state in _IN_THE_ORDER_OF_A_TURN:
            ids.update(store.listed(queue, state, 0, MAX_ENTRIES))
        if not ids:
            return []
        keys, names = store.queue(queue).keys, sorted(ids)
        commands = [
            ("HMGET", keys.key("items"), *names),
            ("SMISMEMBER", schedule_state.paused_key(keys), *names),
        ]
        data, paused = store.talk_all(queue, commands)
        each = zip(names, data, paused, strict=True)
        return [
            (name, schedule_state.read(one), bool(is_paused))
            for name, one, is_paused in each
            if one is not None
        ]

    def _queue_of(self, name: str, queue: str | None) -> str:
        """Return the queue that holds the schedule: of the App's declaration of it, else of `queue` or of the default queue."""
        declared = self._declared.queues_of(name) if queue is None else []
        if len(declared) == 1:
            return declared[0]
        return schedule_state.queue_of(queue or self._clients.settings.defaults.queue)
