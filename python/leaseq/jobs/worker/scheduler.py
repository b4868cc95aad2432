"""Takes the turns of schedules: what a worker does with the items that they are (LQ-JOB-13, LQ-JOB-14)."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from leaseq._aio.queue import LeasedItem
from leaseq.commands import add_options
from leaseq.item import Item
from leaseq.jobs import envelope
from leaseq.jobs.call import followed_with
from leaseq.jobs.cron import schedule_state
from leaseq.jobs.cron.schedule import Schedule
from leaseq.jobs.cron.schedule_state import ScheduleState
from leaseq.jobs.settings import Settings
from leaseq.jobs.store._aio.store import Store
from leaseq.worker.hooks import logger
from leaseq.worker.retry_policy import DeadLetter, Release

FOR_EVER: Final = add_options(max_attempts=0)

PUT_OFF_SECS: Final = 60.0
"""Seconds for which an unknown schedule is left to other workers."""

FORGET_MS: Final = 24 * 3600 * 1000
"""Seconds without a turn after which a schedule is removed: no program has it."""


class Scheduler:
    """The schedules of an App whose jobs go to queues that its worker listens to."""

    def __init__(
        self, store: Store, schedules: Iterable[Schedule], queues: Iterable[str], settings: Settings
    ) -> None:
        served = set(queues)
        self._store = store
        self._settings = settings
        self._schedules: Mapping[tuple[str, str], Schedule] = {
            (schedule_state.queue_of(schedule.queue), schedule.name): schedule
            for schedule in schedules
            if schedule.queue in served
        }
        self.queues = list(dict.fromkeys(queue for queue, _ in self._schedules))
        """The names of the queues of schedules."""

    async def begin(self) -> None:
        """Add the items of all schedules: a new schedule starts now, an existing one goes on."""
        for queue in self.queues:
            now = round((await self._store.now(queue) + self._settings.ahead) * 1000)
            known = [schedule for (name, _), schedule in self._schedules.items() if name == queue]
            await self._store.add(
                queue,
                [
                    (schedule_state.item(each.name, _tick(each, ScheduleState(until=now))), FOR_EVER)
                    for each in known
                ],
            )

    async def __call__(self, item: LeasedItem) -> None:
        """Take a turn: complete the item, and in the same step add the jobs of its slots and the item again.

        Raises DeadLetter for an invalid schedule, Release for an unknown one.
        """
        before = schedule_state.read(item.data)
        if before is None:
            raise DeadLetter("this is no schedule that can be read here")
        ahead = self._settings.ahead
        now = round((item.deadline - item.hold.secs + ahead) * 1_000_000) // 1000  # of the server
        schedule = self._schedules.get((item.queue.name, item.id))
        if schedule is None:
            await self._put_off(item, before, now)
            return
        paused_key = schedule_state.paused_key(item.queue.keys)
        paused = bool(await self._store.talk(item.queue.name, "SISMEMBER", paused_key, item.id))
        turn = schedule.turn(before.until, now, paused=paused)
        jobs = self._store.queue(schedule.queue)
        stage = schedule.call.stage()
        last = turn.slots[-1] if turn.slots else before.last
        after = _tick(schedule, ScheduleState(until=turn.until, last=last, next=turn.following))
        await item.queue.complete(
            item,
            then=[
                *((jobs, self._job(schedule, stage, slot, now), followed_with(stage)) for slot in turn.slots),
                (
                    item.queue,
                    schedule_state.item(item.id, after),
                    {"not_before": turn.due / 1000, "max_attempts": 0},
                ),
            ],
        )
        for slot in turn.slots:
            logger.debug("schedule %s: its slot at %d", schedule.name, slot)

    def _job(self, schedule: Schedule, stage: envelope.Stage, slot: int, now: int) -> Item:
        content = msgspec.structs.replace(stage.job, enqueued=now, due=slot)
        data = envelope.write(content, self._settings.form, None)
        return Item(data, job_id(schedule.name, slot), headers=stage.headers)

    async def _put_off(self, item: LeasedItem, before: ScheduleState, now: int) -> None:
        if now - before.until < FORGET_MS:
            raise Release(uncounted=True, delay=PUT_OFF_SECS)
        logger.info("schedule %s is removed: no program has it", item.id)
        await item.queue.complete(item)


def job_id(name: str, slot: int) -> str:
    """The id of the job of a slot."""
    return f"cron:{name}:{slot}"


def _tick(schedule: Schedule, state: ScheduleState) -> ScheduleState:
    """Return the schedule of an item, as this program knows it."""
    state.rule = str(schedule.timetable)
    state.missed = schedule.missed
    state.job = schedule.call.stage()
    return state
