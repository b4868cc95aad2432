"""The schedules of an App: those that it has, and those that its server has."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from leaseq.errors import BadArgumentError
from leaseq.item import Item
from leaseq.jobs import envelope
from leaseq.jobs.call import as_it_is
from leaseq.jobs.cron import tick
from leaseq.jobs.cron.schedule import Schedule
from leaseq.jobs.cron.tick import Tick
from leaseq.jobs.handle import Handle
from leaseq.jobs.stage import options_of

if TYPE_CHECKING:
    from leaseq.commands.adding import Options
    from leaseq.jobs.app import App


@dataclass(frozen=True, slots=True)
class ScheduleInfo:
    """What the server has of a schedule. Times are seconds since 1970, 0.0 for none.

    Attributes:
        name: of the schedule.
        queue: where its jobs go.
        rule: when: a line of crontab and its time zone, or an interval.
        missed: what becomes of slots that nobody was there for.
        function: that its jobs call.
        paused: whether its slots pass without jobs.
        last: the last slot that got a job.
        next: the next slot.
    """

    name: str
    queue: str
    rule: str
    missed: str
    function: str
    paused: bool
    last: float
    next: float


class Schedules:
    """`app.schedules`: looks at schedules, pauses, resumes and triggers them, by name.

    `queue` is that of their jobs: where none is said, that of the App's one schedule of this name, else the App's own. What
    the server has of a schedule, a worker wrote that began with it. Pausing and triggering raise BadArgumentError where the
    server has none of that name.
    """

    def __init__(self, app: "App") -> None:
        self._app = app
        self._own: dict[tuple[str, str], Schedule] = {}

    def add(self, schedule: Schedule) -> None:
        """Have one more. Raises BadArgumentError, BadNameError."""
        place = (tick.queue_of(schedule.queue), schedule.name)
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

    def infos(self, queue: str | None = None) -> list[ScheduleInfo]:
        """Those that the server has, by name: of one queue of jobs, or of all that the App knows; up to 768 each."""
        names = self._queues(queue)
        return [
            info for name in names for info in _infos(name, self._app._store.schedules(tick.queue_of(name)))
        ]

    async def ainfos(self, queue: str | None = None) -> list[ScheduleInfo]:
        """`infos` for asyncio."""
        names = self._queues(queue)
        store = self._app._astore
        return [info for name in names for info in _infos(name, await store.schedules(tick.queue_of(name)))]

    def pause(self, name: str, queue: str | None = None) -> None:
        """Let its slots pass without jobs, also those of workers that are not there yet."""
        place = self._place(name, queue)
        _one(name, self._app._store.schedules(place))
        self._app._store.set_paused(place, name, paused=True)

    async def apause(self, name: str, queue: str | None = None) -> None:
        """`pause` for asyncio."""
        place = self._place(name, queue)
        _one(name, await self._app._astore.schedules(place))
        await self._app._astore.set_paused(place, name, paused=True)

    def resume(self, name: str, queue: str | None = None) -> None:
        """Go on with the next slot."""
        place = self._place(name, queue)
        _one(name, self._app._store.schedules(place))
        self._app._store.set_paused(place, name, paused=False)

    async def aresume(self, name: str, queue: str | None = None) -> None:
        """`resume` for asyncio."""
        place = self._place(name, queue)
        _one(name, await self._app._astore.schedules(place))
        await self._app._astore.set_paused(place, name, paused=False)

    def trigger(self, name: str, queue: str | None = None) -> Handle[Any]:
        """Enqueue its job now, beside its slots, which stay as they are."""
        found = self._app._store.schedules(self._place(name, queue))
        item, options, where = self._job(_one(name, found))
        self._app._store.add(where, [(item, options)])
        if self._app._at_once is not None:
            self._app._at_once.run()
        return Handle(self._app, item.id, where, as_it_is)

    async def atrigger(self, name: str, queue: str | None = None) -> Handle[Any]:
        """`trigger` for asyncio."""
        found = await self._app._astore.schedules(self._place(name, queue))
        item, options, where = self._job(_one(name, found))
        await self._app._astore.add(where, [(item, options)])
        if self._app._at_once is not None:
            await self._app._at_once.arun()
        return Handle(self._app, item.id, where, as_it_is)

    def _queues(self, queue: str | None) -> list[str]:
        return [queue] if queue is not None else self._app.queues

    def _place(self, name: str, queue: str | None) -> str:
        """Where it is looked for, by name: of one that this App has, it is known."""
        own = [place for place, each in self._own if each == name] if queue is None else []
        return own[0] if len(own) == 1 else tick.queue_of(queue or self._app._defaults.queue)

    def _job(self, found: Tick) -> tuple[Item, "Options", str]:
        stage = found.job
        if stage is None:
            raise BadArgumentError("this schedule does not say what its jobs are")
        now, delay = round(time.time() * 1000), int(stage.add.get("delay", 0))
        content = msgspec.structs.replace(stage.job, enqueued=now, due=now + delay if delay else None)
        data = envelope.write(content, self._app._format, None)
        return Item(data, headers=stage.headers), options_of(stage), stage.queue


def _infos(queue: str, found: list[tuple[str, bytes, bool]]) -> list[ScheduleInfo]:
    infos = []
    for name, data, paused in found:
        one = tick.read(data)
        if one is not None:
            function = one.job.job.function if one.job is not None else ""
            infos.append(
                ScheduleInfo(
                    name, queue, one.rule, one.missed, function, paused, one.last / 1000, one.next / 1000
                )
            )
    return infos


def _one(name: str, found: list[tuple[str, bytes, bool]]) -> Tick:
    for each, data, _ in found:
        if each == name and (one := tick.read(data)) is not None:
            return one
    known = ", ".join(each for each, _, _ in found) or "none"
    raise BadArgumentError(
        f"there is no schedule {name!r} in this queue: it has {known}, each since a worker began"
    )
