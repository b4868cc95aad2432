"""The tasks of a cleaner: one for each queue, one to look for queues, one for deep cleans."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from redis.asyncio import Redis, RedisCluster

from leaseq.aio import WorkQueue
from leaseq.cli.formatting import counted
from leaseq.errors import AccessDeniedError, LeaseqError
from leaseq.keys import RegisteredQueue
from leaseq_cleaner import intervals
from leaseq_cleaner.failures import FailureLog, UnexpectedError, is_passing, log
from leaseq_cleaner.intervals import Intervals
from leaseq_cleaner.metrics import Metrics
from leaseq_cleaner.selector import label

T = TypeVar("T")

MAX_CONCURRENT_CALLS = 16
"""Calls under way at the same time, at most."""

ALIVE_SECS = 60.0
"""Seconds without a turn of its loop after which a cleaner counts as hanging."""

DEEP_TICK_SECS = 1.0
"""Seconds by which a deep clean starts late at most, with nothing else to do."""

DEEP_RETRY_SECS = 60.0
"""Seconds after which a deep clean that failed continues where it was."""

REGISTRY = "the registry"


class CleanerService:
    """The work of one `Cleaner.run`."""

    def __init__(
        self, client: Redis | RedisCluster, stopping: asyncio.Event, metrics: Metrics, pace: Intervals
    ) -> None:
        self._client = client
        self._stopping = stopping
        self._metrics = metrics
        self._failures = FailureLog(metrics)
        self._pace = pace
        self._gate = asyncio.Semaphore(MAX_CONCURRENT_CALLS)
        self._known: dict[RegisteredQueue, WorkQueue] = {}
        self._visited: set[RegisteredQueue] = set()
        self._deep_due: dict[RegisteredQueue, float] = {}
        self._cursors: dict[RegisteredQueue, str] = {}
        self._loop_ran_at = time.monotonic()
        self._started = False

    @property
    def alive(self) -> bool:
        """True if the loop turns. From any thread."""
        return time.monotonic() - self._loop_ran_at < ALIVE_SECS

    @property
    def unready(self) -> str:
        """Why not all queues are kept clean just now, or "" if they are. From any thread."""
        if not self._started:
            return "not started"
        if self._failures.away:
            return "the server does not answer"
        if self._failures.has(REGISTRY):
            return "the registry of queues cannot be read"
        fresh = len(self._known) - len(self._visited)
        return f"{fresh} queues were not looked at yet" if fresh > 0 else ""

    async def run(
        self,
        found: set[RegisteredQueue],
        find: Callable[[], Awaitable[set[RegisteredQueue]]] | None,
        started: Callable[[], object],
    ) -> None:
        """Keep these queues clean, and those that `find`, if any, finds, until the stop. Raises what fails at the first look."""
        await self._probe(found)
        started()
        async with asyncio.TaskGroup() as group:
            self._adopt(found, group)
            self._started = True
            group.create_task(self._discover(find, group))
            if self._pace.deep_secs > 0:
                group.create_task(self._deep_cleans())
            await self._stopping.wait()
        for queue in self._known.values():
            await queue.close()

    async def _probe(self, found: set[RegisteredQueue]) -> None:
        """Look at one queue, so that a wrong server, password or right is reported at the start."""
        for name in list(found)[:1]:
            async with WorkQueue(name.name, self._client, group=name.group) as queue:
                try:
                    self._metrics.moved(name, await queue.light_clean())
                except LeaseqError as error:
                    if is_passing(error) or isinstance(error, AccessDeniedError):
                        raise
        self._metrics.up.set(1)

    def _adopt(self, found: set[RegisteredQueue], group: asyncio.TaskGroup) -> None:
        """Start with new queues, and stop with queues that are gone."""
        gone = self._known.keys() - found
        for queue in gone:
            del self._known[queue]  # its task ends when it wakes
            self._forget(queue)
        fresh = sorted(found - self._known.keys())
        for queue in fresh:
            self._known[queue] = WorkQueue(queue.name, self._client, group=queue.group)
            self._metrics.add(queue)
            self._deep_due[queue] = time.monotonic() + self._pace.first_deep()
            group.create_task(self._clean_queue(queue))
        if fresh or gone:
            log.info("looking after %d queues: %d new, %d gone", len(found), len(fresh), len(gone))

    def _forget(self, queue: RegisteredQueue) -> None:
        """Remember nothing of a queue that is gone; once more after a call that was under way meanwhile."""
        self._visited.discard(queue)
        self._deep_due.pop(queue, None)
        self._cursors.pop(queue, None)
        self._failures.forget(label(queue))
        self._metrics.drop(queue)

    async def _discover(
        self, find: Callable[[], Awaitable[set[RegisteredQueue]]] | None, group: asyncio.TaskGroup
    ) -> None:
        """Look for queues now and then; without `find`, only show that the loop turns."""
        while not await self._sleep(intervals.DISCOVERY_SECS):
            self._loop_ran_at = time.monotonic()
            found = None if find is None else await self._call(REGISTRY, "registry", find)
            if found is not None:
                self._adopt(found, group)

    async def _clean_queue(self, name: RegisteredQueue) -> None:
        """Light cleans of one queue, and looks at its counts."""
        queue, who = self._known[name], label(name)
        failures, count_at, pause = 0, 0.0, self._pace.first_look()
        while not await self._sleep(pause) and self._known.get(name) is queue:
            done = await self._call(who, "light_clean", queue.light_clean)
            if done is None:
                failures += 1
                pause = intervals.until_next_try(failures)
            else:
                failures = 0
                self._metrics.moved(name, done)
                pause = self._pace.until_next_look(done)
            if not self._failures.away:
                self._visited.add(name)
            if done is not None and time.monotonic() >= count_at:
                count_at = time.monotonic() + intervals.STATS_SECS
                stats = await self._call(who, "stats", queue.stats)
                if stats is not None:
                    self._metrics.counts.put(name, stats)
        if name not in self._known:
            self._forget(name)

    async def _deep_cleans(self) -> None:
        """One queue after the other, one page at a time."""
        while not await self._sleep(DEEP_TICK_SECS):
            now = time.monotonic()
            for name in [name for name, due in self._deep_due.items() if due <= now]:
                if not self._stopping.is_set():
                    await self._deep_clean(name)
                if name not in self._known:
                    self._forget(name)

    async def _deep_clean(self, name: RegisteredQueue) -> None:
        """One pass, or what is left of it after an error."""
        queue = self._known.get(name)
        while queue is not None and self._known.get(name) is queue:
            cursor = self._cursors.get(name, "0")
            page = await self._call(label(name), "deep_clean", partial(queue.deep_clean_page, cursor))
            if page is None:
                self._deep_due[name] = time.monotonic() + DEEP_RETRY_SECS
                return
            self._cursors[name], done = page
            self._metrics.repaired(name, done)
            if done.total:
                log.warning("%s: repaired %s", label(name), counted(done.repairs))
            if self._cursors[name] == "0":
                self._metrics.deep_cleaned(name)
                self._deep_due[name] = time.monotonic() + self._pace.until_next_deep()
                return
            if await self._sleep(1 / self._pace.deep_rate):
                return

    async def _call(self, who: str, call: str, make: Callable[[], Awaitable[T]]) -> T | None:
        """Return the answer of a call; None if it failed, which is logged and counted."""
        async with self._gate:
            try:
                with self._metrics.call(call):
                    answer = await make()
            except LeaseqError as error:
                self._failures.record(who, call, error)
                return None
            except Exception as error:  # noqa: BLE001 (a cleaner goes on, whatever a driver comes up with)
                self._failures.record(who, call, UnexpectedError(f"{type(error).__name__}: {error}"))
                log.debug("unexpected", exc_info=error)
                return None
        self._failures.over(who, call)
        return answer

    async def _sleep(self, seconds: float) -> bool:
        """Sleep, and tell whether it is time to stop."""
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return self._stopping.is_set()
        return True
