"""The store of the job layer: the queues of one App, and the states beside them."""

import contextlib
import math
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import redis

from leaseq import commands, errors, flows
from leaseq._aio import concurrency
from leaseq._aio.exact_change import change_seen
from leaseq._aio.queue import WorkQueue, add_durably
from leaseq._aio.server_handle import ServerHandle
from leaseq.commands import Argument
from leaseq.commands.additions import Options
from leaseq.durability import Durability
from leaseq.errors import LeaseqError
from leaseq.item import Item
from leaseq.jobs import envelope, job_state
from leaseq.jobs.info import JobSnapshot
from leaseq.jobs.job_state import Change, JobState
from leaseq.jobs.options import DAY
from leaseq.keys import QueueKeys
from leaseq.results import WAITS, ItemInfo, ListState, Outcome

MAX_QUEUES = 1000
"""Queues that are kept for the next call: a program may use a name for each of its users."""


class Store:
    """The queues of one App on one server. `server` is a URL or a client, as for WorkQueue."""

    def __init__(self, server: str | concurrency.Client | None, group: str) -> None:
        self._opened = ServerHandle(server, "the App", "App('redis://localhost')")
        self._group = group
        self.queues: dict[str, WorkQueue] = {}
        self._dropped: weakref.WeakSet[WorkQueue] = weakref.WeakSet()

    def queue(self, name: str) -> WorkQueue:
        """Return the queue of that name, the same one unless MAX_QUEUES others were opened since. Raises BadNameError."""
        queue = self.queues.get(name)
        if queue is None:
            if len(self.queues) >= MAX_QUEUES:
                self._drop_oldest()
            queue = self.queues[name] = WorkQueue(name, self._opened.client, group=self._group)
        return queue

    def _drop_oldest(self) -> None:
        """Forget a queue. If it is in use somewhere, it stays open there until the App is closed."""
        with contextlib.suppress(KeyError, RuntimeError):  # another thread does the same
            self._dropped.add(self.queues.pop(next(iter(self.queues))))

    async def close(self) -> None:
        """Close the queues and what was opened here."""
        for queue in [*self.queues.values(), *self._dropped]:
            await queue.close()
        await self._opened.close()

    async def now(self, name: str) -> float:
        """The server's time, in seconds since 1970."""
        return (await self.queue(name).stats()).now

    async def add(
        self, name: str, entries: Sequence[tuple[Item, Options]], durable: Durability | None = None
    ) -> list[bool]:
        """Add items, each with its options; returns an answer for each, in order. See `WorkQueue.add_items`."""
        queue = self.queue(name)
        answers: list[bool] = []
        in_doubt = 0
        try:
            for chunk in flows.chunks(entries, lambda entry: flows.data_size(entry[0])):
                in_doubt = len(chunk)
                added = await add_durably(queue, commands.add_each(queue.keys, chunk), durable)
                answers += commands.all_in(queue.name, added)
        except LeaseqError as error:
            error.answers, error.in_doubt = [*answers, *error.answers], in_doubt
            raise
        return answers

    def additions(self, name: str, entries: Sequence[tuple[Item, Options]]) -> list[commands.Command[Any]]:
        """Return the calls that add items, each with its options."""
        keys = self.queue(name).keys
        chunks = flows.chunks(entries, lambda entry: flows.data_size(entry[0]))
        return [commands.add_each(keys, chunk) for chunk in chunks]

    async def take_slots(self, name: str, slots: Sequence[tuple[str, float]]) -> list[bool]:
        """Take slots for throttled jobs, each by its id and length in seconds. Return for each whether it was free."""
        keys = self.queue(name).keys
        found: list[bool] = []
        for chunk in flows.chunks(slots):
            entries: list[tuple[Argument, ...]] = [
                ("SET", job_state.slot_key(keys, job_id), "1", "NX", "PX", str(math.ceil(secs * 1000)))
                for job_id, secs in chunk
            ]
            found += [answer is not None for answer in await self.talk_all(name, entries)]
        return found

    async def free_slots(self, name: str, ids: Sequence[str]) -> None:
        """Free slots that were taken."""
        keys = self.queue(name).keys
        for chunk in flows.chunks(ids):
            await self.talk(name, "DEL", *(job_state.slot_key(keys, each) for each in chunk))

    async def outcomes(self, name: str, ids: Sequence[str]) -> list[tuple[Outcome, JobState]]:
        """Return the outcomes of jobs, and the states of those that are not there: two calls for each 256 of them."""
        outcomes = await self.queue(name).outcomes(ids)
        absent = [outcome.id for outcome in outcomes if outcome.state == "absent"]
        states = dict(zip(absent, await self.states(name, absent), strict=True))
        return [(outcome, states.get(outcome.id, JobState())) for outcome in outcomes]

    async def snapshots(self, name: str, ids: Sequence[str]) -> list[JobSnapshot]:
        """Return all that is known of jobs: four calls for each 256 of them."""
        found: list[JobSnapshot] = []
        for chunk in flows.chunks(ids):
            outcomes = await self.queue(name).outcomes(chunk)
            items = await self.queue(name).inspect_items(chunk)
            data = await self.data(name, chunk)
            states = await self.states(name, chunk)
            found += map(JobSnapshot, outcomes, items, data, states)
        return found

    async def data(self, name: str, ids: Sequence[str]) -> list[bytes | None]:
        """Return the data of up to 256 items, None for a missing one."""
        found: list[bytes | None] = await self.talk(name, "HMGET", self.queue(name).keys.key("items"), *ids)
        return found

    async def states(self, name: str, ids: Sequence[str]) -> list[JobState]:
        """Return the states of jobs."""
        found: list[JobState] = []
        keys = self.queue(name).keys
        for chunk in flows.chunks(ids):
            places = [
                place(keys, each) for place in (job_state.key, job_state.cancelled_key) for each in chunk
            ]
            values = await self.talk(name, "MGET", *places)
            found += map(job_state.read, values[: len(chunk)], values[len(chunk) :])
        return found

    async def write_states(self, name: str, states: Iterable[tuple[str, int, JobState]]) -> None:
        """Write the states of jobs, each with the id and the attempt, and publish these changes, in one round trip."""
        keys = self.queue(name).keys
        life = str(job_state.LIFE_SECS * 1000)
        entries: list[tuple[Argument, ...]] = []
        for job_id, attempt, state in states:
            entries.append(("SET", job_state.key(keys, job_id), job_state.write(state), "PX", life))
            entries += _published(keys, Change(job_id, attempt, state.n))
        if entries:
            await self.talk_all(name, [("MULTI",), *entries, ("EXEC",)])

    async def drop_states(self, name: str, ends: Sequence[Change]) -> None:
        """Delete the states of jobs whose attempts have ended, and publish these ends."""
        keys = self.queue(name).keys
        for chunk in flows.chunks(ends):
            entries: list[tuple[Argument, ...]] = [("DEL", *(job_state.key(keys, end.id) for end in chunk))]
            for end in chunk:
                entries += _published(keys, end)
            await self.talk_all(name, [("MULTI",), *entries, ("EXEC",)])

    async def forget(self, name: str, ids: Sequence[str]) -> None:
        """Delete all states of jobs."""
        keys = self.queue(name).keys
        for chunk in flows.chunks(ids):
            places = [
                place(keys, each) for place in (job_state.key, job_state.cancelled_key) for each in chunk
            ]
            await self.talk(name, "DEL", *places)

    async def cancel(
        self, name: str, job_id: str, state: str = "", is_it: Callable[[ItemInfo], bool] | None = None
    ) -> bool:
        """Remove a job's item, and note in the same transaction that it was cancelled; false if there was none.

        The note also has the job, and is kept for a day. Waits for its result end. With `is_it`, the item is removed only
        if it has this state and that is true.
        """
        keys = self.queue(name).keys
        if (await self.queue(name).outcome(job_id, timeout=0)).state not in WAITS:
            return False
        (data,) = await self.data(name, [job_id])
        copy = data if data and len(data) <= envelope.MAX_COPY_BYTES else b""
        trace = JobState(cancelled=round(time.time() * 1000), job=copy)
        cancelled_key = job_state.cancelled_key(keys, job_id)
        note = ("SET", cancelled_key, job_state.write(trace), "PX", str(round(DAY * 1000)))
        if is_it is not None:
            executor = self.queue(name).executor
            _, states = await change_seen(
                executor, keys, state, [job_id], partial(_those, is_it), commands.remove, note
            )
            if states:
                await self._wake(name, job_id)
            return bool(states)
        removal = commands.remove(keys, [job_id])
        replies = await self.talk_all(name, [("MULTI",), removal.eval(), note, ("EXEC",)])
        answer = replies[-1][0]
        if not isinstance(answer, redis.ResponseError) and removal.parse(answer)[0] != "absent":
            await self._wake(name, job_id)
            return True
        await self.talk(name, "DEL", cancelled_key)  # it ended between the two, or could not be removed
        if isinstance(answer, redis.ResponseError):
            raise errors.from_server(answer) from answer
        return False

    async def _wake(self, name: str, job_id: str) -> None:
        """Wake clients that wait for an outcome, as the outcome would. Without this they look again at the wait cap."""
        keys = self.queue(name).keys
        made, result = job_state.wake_key(keys, job_id), keys.key(f"result:{job_id}")
        wakes: list[tuple[Argument, ...]] = [
            ("RPUSH", made, job_state.NO_OUTCOME),
            ("PEXPIRE", made, str(round(flows.WAIT_CAP * 1000))),
            ("RENAMENX", made, result),  # not in place of an outcome: the id may be in use again
            ("DEL", made),
        ]
        with contextlib.suppress(LeaseqError):
            await self.talk_all(name, [("MULTI",), *wakes, ("EXEC",)])

    async def listed(self, name: str, state: ListState, offset: int, limit: int) -> list[str]:
        """Ids of one page of a list."""
        page = await self.queue(name).list_items(state, offset=offset, limit=limit)
        return [listed.id for listed in page.items]

    async def talk(self, name: str, *command: Argument) -> Any:
        """Send one plain command on the keys of a queue, and read what it answers."""
        return (await self.talk_all(name, [command]))[0]

    async def talk_all(self, name: str, entries: Sequence[tuple[Argument, ...]]) -> list[Any]:
        """Send plain commands on the keys of one queue together, and read what they answer."""
        if not entries:
            return []
        return await self.queue(name).executor.execute_all(entries)


def _published(keys: QueueKeys, change: Change) -> list[tuple[Argument, ...]]:
    """Return the commands that wake clients that watch the job (LQ-JOB-63)."""
    key = job_state.change_key(keys, change)
    return [("RPUSH", key, "1"), ("PEXPIRE", key, str(round(flows.WAIT_CAP * 1000)))]


def _those(is_it: Callable[[ItemInfo], bool], items: list[ItemInfo]) -> list[str]:
    """Return the ids of the items for which it is true."""
    return [item.id for item in items if is_it(item)]
