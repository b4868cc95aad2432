"""The tasks of a cleaner: one for each look at a queue, one to look for queues, one for deep cleans."""

import asyncio
import contextlib
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from redis.asyncio import Redis, RedisCluster

from leaseq._aio.executor import Executor
from leaseq._aio.route import NOT_CONNECTED, Cluster, route
from leaseq.aio import WorkQueue
from leaseq.errors import AccessDeniedError, LeaseqError
from leaseq.formatting import counted
from leaseq.keys import QueueKeys, RegisteredQueue
from leaseq.results import DeepClean
from leaseq_cleaner import intervals
from leaseq_cleaner.failures import FailureLog, UnexpectedError, is_passing, log
from leaseq_cleaner.intervals import Intervals
from leaseq_cleaner.metrics import Metrics
from leaseq_cleaner.retention import Retention
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


@dataclass(slots=True)
class Turns:
    """When a queue is looked at. There may be very many of these, so each look opens the queue anew.

    Attributes:
        next: the start of the next look; None while one is under way.
        failures: looks in a row that failed.
        count_at: when its counts are due, on `time.monotonic`.
    """

    next: asyncio.TimerHandle | None = None
    failures: int = 0
    count_at: float = 0.0


class CleanerService:
    """The work of one `Cleaner.run`."""

    def __init__(
        self,
        client: Redis | RedisCluster,
        stopping: asyncio.Event,
        metrics: Metrics,
        pace: Intervals,
        retention: Retention,
    ) -> None:
        self._client = client
        self._stopping = stopping
        self._metrics = metrics
        self._failures = FailureLog(metrics)
        self._pace = pace
        self._retention = retention
        self._gate = asyncio.Semaphore(MAX_CONCURRENT_CALLS)
        self._known: dict[RegisteredQueue, Turns] = {}
        self._visited: set[RegisteredQueue] = set()
        self._deep_due: dict[RegisteredQueue, float] = {}
        self._cursors: dict[RegisteredQueue, str] = {}
        self._tried: set[str] = set()
        """The servers that were asked last whether they take writes."""
        self._runs: dict[RegisteredQueue, str] = {}
        """The run of a server that held the queue when it was asked last: a restart or a failover makes it another."""
        self._loop_ran_at = time.monotonic()
        self._group: asyncio.TaskGroup
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
            self._group = group
            try:
                self._adopt(found)
                await self._look_at_servers()
                self._started = True
                started()
                group.create_task(self._discover(find))
                if self._pace.deep_secs > 0:
                    group.create_task(self._deep_cleans())
                await self._stopping.wait()
            finally:
                for turns in self._known.values():
                    if turns.next is not None:
                        turns.next.cancel()

    async def _probe(self, found: set[RegisteredQueue]) -> None:
        """Look at one queue, so that a wrong server, password or right is reported at the start."""
        for name in list(found)[:1]:
            self._metrics.add(name)
            async with WorkQueue(name.name, self._client, group=name.group) as queue:
                try:
                    self._metrics.moved(name, await queue.light_clean())
                except LeaseqError as error:
                    if is_passing(error) or isinstance(error, AccessDeniedError):
                        raise
        self._metrics.up.set(1)

    def _adopt(self, found: set[RegisteredQueue]) -> None:
        """Start with new queues, and stop with queues that are gone."""
        gone = self._known.keys() - found
        for queue in gone:
            turns = self._known.pop(queue)
            if turns.next is not None:
                turns.next.cancel()
            self._forget(queue)
        fresh = sorted(found - self._known.keys())
        for queue in fresh:
            self._known[queue] = turns = Turns()
            self._metrics.add(queue)
            if self._pace.deep_secs > 0:
                self._metrics.awaits_deep_clean(queue)
            self._deep_due[queue] = time.monotonic() + self._pace.first_deep()
            self._look_later(queue, turns, self._pace.first_look())
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

    async def _discover(self, find: Callable[[], Awaitable[set[RegisteredQueue]]] | None) -> None:
        """Look for queues now and then; without `find`, only show that the loop turns."""
        while not await self._sleep(intervals.DISCOVERY_SECS):
            self._loop_ran_at = time.monotonic()
            found = None if find is None else await self._call(REGISTRY, "registry", find)
            if found is not None:
                self._adopt(found)
            await self._look_at_servers()

    async def _look_at_servers(self) -> None:
        """Ask each server whether it takes writes, and whether it has restarted or was replaced."""
        queues: dict[str, list[RegisteredQueue]] = {}
        for name in list(self._known):
            queues.setdefault(await self._server_of(name), []).append(name)
        for server in self._tried - queues.keys():
            self._failures.forget(server)
        self._tried = set(queues)
        for server, names in queues.items():
            await self._try_write(server, names[0])
            await self._look_for_restart(server, names)

    async def _try_write(self, server: str, name: RegisteredQueue) -> None:
        """Ask a server whether it takes writes: a light clean of a queue with nothing to do only reads."""
        # a full server refuses this too, and it changes nothing: no item has this id
        key = QueueKeys(*name).key("ready")
        write = Executor(self._client, key).execute
        await self._call(server, "write", partial(write, "ZADD", key, "XX", "0", ""))

    async def _look_for_restart(self, server: str, names: list[RegisteredQueue]) -> None:
        """Clean queues deeply whose server restarted or was replaced: a crash can leave items in no state."""
        ask = Executor(self._client, QueueKeys(*names[0]).key("state")).execute
        info = await self._call(server, "info", partial(ask, "INFO", "server"))
        found = RUN.search(info or b"")
        if found is None:
            return
        run = found[1].decode()
        moved = [name for name in names if self._runs.get(name, run) != run]
        self._runs.update(dict.fromkeys(names, run))
        if not moved:
            return
        self._metrics.restarts.inc()
        follow = f": deep cleans of its {len(moved)} queues" if self._pace.deep_secs > 0 else ""
        log.warning("%s restarted or was replaced%s", server, follow)
        for name in moved:
            self._cursors[name] = START  # where a pass is means nothing to another run of the server
            self._deep_due[name] = time.monotonic()

    async def _server_of(self, name: RegisteredQueue) -> str:
        """Return the name of the server that holds a queue, as far as it is known."""
        connections = route(self._client)
        if isinstance(connections, Cluster):
            with contextlib.suppress(*NOT_CONNECTED):
                return await connections.node_of(QueueKeys(*name).key("state"))
        return SERVER

    def _look_later(self, name: RegisteredQueue, turns: Turns, pause: float) -> None:
        """Look at a queue after a pause, unless the cleaner stops."""
        if self._stopping.is_set():
            return

        def start() -> None:
            turns.next = None
            self._group.create_task(self._look(name, turns))

        turns.next = asyncio.get_running_loop().call_later(pause, start)

    async def _look(self, name: RegisteredQueue, turns: Turns) -> None:
        """Clean a queue lightly, look at its counts if they are due, and plan the next look."""
        who = label(name)
        done = await self._call_queue(name, "light_clean", WorkQueue.light_clean)
        if done is None:
            turns.failures += 1
            pause = intervals.until_next_try(turns.failures)
        else:
            turns.failures = 0
            self._metrics.moved(name, done)
            pause = self._pace.until_next_look(done)
        if not self._failures.server_problem:
            self._visited.add(name)
        if done is not None and time.monotonic() >= turns.count_at:
            turns.count_at = time.monotonic() + intervals.STATS_SECS
            stats = await self._call_queue(name, "stats", WorkQueue.stats)
            if stats is not None and self._metrics.take(name, stats):
                log.warning("%s: its counts went back: the server lost what was written last", who)
            if stats is not None and self._retention.concerns(stats):
                purged = await self._call_queue(name, "purge", self._retention.purge)
                if purged:
                    log.info("%s: purged %d dead letters", who, purged)
        if name not in self._known:
            self._forget(name)
        elif self._known[name] is turns:
            self._look_later(name, turns, pause)

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
        turns = self._known.get(name)
        while turns is not None and self._known.get(name) is turns:
            cursor, run = self._cursors.get(name, START), self._runs.get(name)
            page = await self._deep_clean_page(name, cursor)
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

    async def _deep_clean_page(self, name: RegisteredQueue, cursor: str) -> tuple[str, DeepClean] | None:
        async def page(queue: WorkQueue) -> tuple[str, DeepClean]:
            return await queue.deep_clean_page(cursor)

        return await self._call_queue(name, "deep_clean", page)

    async def _call_queue(
        self, name: RegisteredQueue, call: str, make: Callable[[WorkQueue], Awaitable[T]]
    ) -> T | None:
        """Return the answer of a call on a queue; None if it failed."""

        async def on_queue() -> T:
            async with WorkQueue(name.name, self._client, group=name.group) as queue:
                return await make(queue)

        return await self._call(label(name), call, on_queue)

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
