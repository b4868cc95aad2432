"""The schedules that a server has: looked at, paused, resumed and triggered (LQ-JOB-12)."""

import time
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from leaseq._scripts import MAX_ENTRIES
from leaseq.errors import BadArgumentError
from leaseq.item import Item
from leaseq.jobs import envelope
from leaseq.jobs.call import options_of
from leaseq.jobs.cron import schedule_state
from leaseq.jobs.cron.info import ScheduleInfo
from leaseq.jobs.cron.schedule_state import ScheduleState
from leaseq.jobs.options import DAY
from leaseq.jobs.store._aio.client import JobClient
from leaseq.jobs.store._aio.store import Store


class Stored(NamedTuple):
    """A schedule as it is stored."""

    name: str
    data: bytes
    paused: bool


async def stored(store: Store, queue: str) -> list[Stored]:
    """The schedules of a queue of schedules, by name; up to 768."""
    ids: set[str] = set()
    ids.update(await store.listed(queue, "ready", 0, MAX_ENTRIES))
    ids.update(await store.listed(queue, "delayed", 0, MAX_ENTRIES))
    ids.update(await store.listed(queue, "leased", 0, MAX_ENTRIES))
    if not ids:
        return []
    keys, names = store.queue(queue).keys, sorted(ids)
    data, paused = await store.talk_all(
        queue, [("HMGET", keys.key("items"), *names), ("SMISMEMBER", schedule_state.paused_key(keys), *names)]
    )
    each = zip(names, data, map(bool, paused), strict=True)
    return [Stored(*one) for one in each if one[1] is not None]


async def is_paused(store: Store, queue: str, name: str) -> bool:
    """Return whether a schedule is paused."""
    return bool(
        await store.talk(queue, "SISMEMBER", schedule_state.paused_key(store.queue(queue).keys), name)
    )


async def inspect(client: JobClient, queues: Iterable[str]) -> list[ScheduleInfo]:
    """The schedules of these queues of jobs."""
    found: list[ScheduleInfo] = []
    for queue in queues:
        for each in await stored(client.store, schedule_state.queue_of(queue)):
            one = schedule_state.read(each.data)
            if one is not None:
                found.append(ScheduleInfo.of(each.name, queue, one, paused=each.paused))
    return found


async def set_paused(client: JobClient, queue: str, name: str, *, paused: bool) -> None:
    """Pause or resume a schedule of a queue of schedules. Raises BadArgumentError if there is no such schedule."""
    await _one(client.store, queue, name)
    key = schedule_state.paused_key(client.store.queue(queue).keys)
    await client.store.talk(queue, "SADD" if paused else "SREM", key, name)


async def trigger(client: JobClient, queue: str, name: str) -> tuple[str, str]:
    """Enqueue a job of a schedule now. Return its id and its queue. Raises BadArgumentError if there is no such schedule."""
    stage = (await _one(client.store, queue, name)).job
    if stage is None:
        raise BadArgumentError("this schedule does not say what its jobs are")
    now, delay = round(time.time() * 1000), int(stage.add.get("delay", 0))
    content = msgspec.structs.replace(stage.job, enqueued=now, due=now + delay if delay else None)
    item = Item(envelope.write(content, client.settings.form, None), headers=stage.headers)
    kept = () if "keep" in stage.add else ("keep", str(int(DAY * 1000)))  # its id was asked for
    await client.store.add(stage.queue, [(item, (*options_of(stage), *kept))])
    await client.enqueued()
    return item.id, stage.queue


async def _one(store: Store, queue: str, name: str) -> ScheduleState:
    found = await stored(store, queue)
    for each in found:
        if each.name == name and (one := schedule_state.read(each.data)) is not None:
            return one
    known = ", ".join(each.name for each in found) or "none"
    raise BadArgumentError(
        f"there is no schedule {name!r} in this queue: it has {known}; a worker adds its schedules when it starts"
    )
