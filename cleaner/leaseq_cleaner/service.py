"""The tasks of a cleaner: one for each queue, one to look for queues, one for deep cleans."""

import asyncio
import contextlib
import re
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from redis.asyncio import Redis, RedisCluster

from leaseq._aio.route import NOT_CONNECTED, Cluster
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

START = "0"
"""The cursor at the start of a deep clean, and behind its end."""

RUN = re.compile(rb"run_id:(\w+)")
"""The line of INFO that names the run of a server."""

REGISTRY = "the registry"
SERVER = "the server"


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
        self._tried: set[str] = set()
        """The servers that were asked last whether they take writes."""
        self._runs: dict[RegisteredQueue, str] = {}
        """The run of a server that held the queue when it was asked last: a restart or a failover makes it another."""
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
        if problem := self._failures.server_problem:
            return problem
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
        async with asyncio.TaskGroup() as group:
            self._adopt(found, group)
            await self._look_at_servers()
            self._started = True
            started()
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
            if self._pace.deep_secs > 0:
                self._metrics.awaits_deep_clean(queue)
            self._deep_due[queue] = time.monotonic() + self._pace.first_deep()
            group.create_task(self._clean_queue(queue))
        if fresh or gone:
            log.info("looking after %d queues: %d new, %d gone", len(found), len(fresh), len(gone))

    def _forget(self, queue: RegisteredQueue) -> None:
        """Remember nothing of a queue that is gone; once more after a call that was under way meanwhile."""
        self._visited.discard(queue)
        self._deep_due.pop(queue, None)
        self._cursors.pop(queue, None)
        self._runs.pop(queue, None)
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
            await self._look_at_servers()

    async def _look_at_servers(self) -> None:
        """Ask each server whether it takes writes, and whether it has restarted or was replaced."""
        queues: dict[str, list[RegisteredQueue]] = {}
        for name, queue in list(self._known.items()):
            queues.setdefault(await self._server_of(queue), []).append(name)
        for server in self._tried - queues.keys():
            self._failures.forget(server)
        self._tried = set(queues)
        for server, names in queues.items():
            queue = self._known[names[0]]
            await self._try_write(server, queue)
            await self._look_for_restart(server, queue, names)

    async def _try_write(self, server: str, queue: WorkQueue) -> None:
        """Ask a server whether it takes writes: a light clean of a queue with nothing to do only reads."""
        # a full server refuses this too, and it changes nothing: no item has this id
        write = ("ZADD", queue.keys.key("ready"), "XX", "0", "")
        await self._call(server, "write", partial(queue.executor.execute, *write))

    async def _look_for_restart(self, server: str, queue: WorkQueue, names: list[RegisteredQueue]) -> None:
        """Clean queues deeply whose server restarted or was replaced: a crash can leave items in no state."""
        info = await self._call(server, "info", partial(queue.executor.execute, "INFO", "server"))
        run = RUN.search(info or b"")
        if run is None:
            return
        moved = [name for name in names if self._runs.get(name, run[1].decode()) != run[1].decode()]
        self._runs.update(dict.fromkeys(names, run[1].decode()))
        if not moved:
            return
        self._metrics.restarts.inc()
        follow = f": deep cleans of its {len(moved)} queues" if self._pace.deep_secs > 0 else ""
        log.warning("%s restarted or was replaced%s", server, follow)
        for name in moved:
            self._cursors[name] = START  # where a pass is means nothing to another run of the server
            self._deep_due[name] = time.monotonic()

    async def _server_of(self, queue: WorkQueue) -> str:
        """Return the name of the server that holds a queue, as far as it is known."""
        route = queue.executor.route
        if isinstance(route, Cluster):
            with contextlib.suppress(*NOT_CONNECTED):
                return await route.node_of(queue.executor.key)
        return SERVER

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
            if not self._failures.server_problem:
                self._visited.add(name)
            if done is not None and time.monotonic() >= count_at:
                count_at = time.monotonic() + intervals.STATS_SECS
                stats = await self._call(who, "stats", queue.stats)
                if stats is not None and self._metrics.take(name, stats):
                    log.warning("%s: its counts went back: the server lost what was written last", who)
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
            cursor, run = self._cursors.get(name, START), self._runs.get(name)
            page = await self._call(label(name), "deep_clean", partial(queue.deep_clean_page, cursor))
            if page is None:
                self._deep_due[name] = time.monotonic() + DEEP_RETRY_SECS
                return
            cursor, done = page
            self._metrics.repaired(name, done)
            if done.total:
                log.warning("%s: repaired %s", label(name), counted(done.repairs))
            if self._runs.get(name) != run:  # from the start again
                continue
            self._cursors[name] = cursor
            if cursor == START:
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
