"""The reports by which a worker says that it lives and what it holds, their list, and wishes (LQ-WORKER-1 to LQ-WORKER-7)."""

import contextlib
import math
import time
from collections.abc import Callable

from leaseq._aio import concurrency
from leaseq._aio.executor import Executor
from leaseq._aio.server_handle import ServerHandle
from leaseq.errors import LeaseqError
from leaseq.worker import presence
from leaseq.worker._aio.side_loop import SideLoop
from leaseq.worker.hooks import logger
from leaseq.worker.presence import WorkerInfo

PAGE_SIZE = 100
"""Ids that one command reads from the index, or removes from it."""


class PresenceReporter(SideLoop):
    """Announces every few seconds that a worker lives. If an announcement fails, the work goes on."""

    def __init__(
        self,
        client: concurrency.Client,
        worker_id: str,
        status: Callable[[float, float], str],
        steer: Callable[[bytes | None], None],
    ) -> None:
        """Take what is called.

        Args:
            client: the connection to the server.
            worker_id: the worker's name.
            status: called with two times by the server's clock: when the worker started, and now.
            steer: called behind each announcement with what a program wishes the worker to do, or None.
        """
        super().__init__()
        self._id = worker_id
        self._status = status
        self._steer = steer
        self._own = Executor(client, presence.key(worker_id))
        self._wish = Executor(client, presence.wish_key(worker_id))
        self._index = Executor(client, presence.INDEX)
        self._registered_at = -math.inf
        self._server_time = 0.0
        self._warned = False
        self.started = 0.0
        """When the worker was first announced, by the server's clock; 0 before."""
        self.answered_at: float | None = None
        """When the server last took an announcement, on this process's clock."""

    def report_now(self) -> None:
        """Announce the worker now: something has changed."""
        self._wake_event.set()

    async def run(self) -> None:
        """Announce the worker again and again."""
        while not self._over:
            try:
                await self.announce()
            except LeaseqError as error:
                if not self._warned:
                    logger.warning("worker %s is not seen among the live ones: %s", self._id, error)
                self._warned = True
            await self._wake_event.wait(presence.REPORT_INTERVAL_SECS)

    async def announce(self) -> None:
        """Announce the worker once, and sometimes enter it in the index, and remove ids whose time has passed."""
        if time.monotonic() - self._registered_at >= presence.INDEX_REFRESH_SECS:
            self._registered_at, self._server_time = await self._register()
        reported = self._server_time + time.monotonic() - self._registered_at
        status, ttl = self._status(self.started, reported), str(presence.TTL_SECS * 1000)
        await self._own.execute("SET", presence.key(self._id), status, "PX", ttl)
        self.answered_at = concurrency.now()
        self._steer(await self._wish.execute("GET", presence.wish_key(self._id)))

    async def _register(self) -> tuple[float, float]:
        """Enter the worker in the index; return one time by the own clock and by the server's."""
        registered_at, now = time.monotonic(), await _time(self._index)
        self.started = self.started or now
        forget_at = str(round((now + presence.INDEX_TTL_SECS) * 1000))
        await self._index.execute("ZADD", presence.INDEX, forget_at, self._id)
        expired_before_ms = str(round(now * 1000))
        expired_ids = await self._index.execute(
            "ZRANGEBYSCORE", presence.INDEX, "-inf", expired_before_ms, "LIMIT", "0", str(PAGE_SIZE)
        )
        if expired_ids:
            await self._index.execute("ZREM", presence.INDEX, *expired_ids)
        return registered_at, now

    async def unregister(self) -> None:
        """Remove the announcement of the worker, which ends."""
        with contextlib.suppress(LeaseqError):
            await self._own.execute("DEL", presence.key(self._id))
            await self._wish.execute("DEL", presence.wish_key(self._id))
            await self._index.execute("ZREM", presence.INDEX, self._id)


async def live_workers(server: str | concurrency.Client | None = None) -> list[WorkerInfo]:
    """Return the workers that are alive, sorted by id, with the items that they hold.

    `server` is a URL or a client, as for `WorkQueue`. A worker that was killed is listed for up to 30 seconds. A worker
    is missing if its server user has no right to write the announcement, or if it runs with `announce=False`. Raises the
    errors of `leaseq.errors`.
    """
    async with ServerHandle(server, "the live workers", "live_workers('redis://localhost')") as opened:
        index = Executor(opened.client, presence.INDEX)
        found: list[WorkerInfo] = []
        seen: set[bytes] = set()
        now = await _time(index)
        lowest, skipped = "-inf", 0
        # by score, which only grows: a place in the index changes when others are entered anew or end
        while reply := await index.execute(
            *("ZRANGE", presence.INDEX, lowest, "+inf", "BYSCORE"),
            *("LIMIT", str(skipped), str(PAGE_SIZE), "WITHSCORES"),
        ):
            page = presence.index_page(reply)
            for worker_id, _ in page:
                if worker_id not in seen:
                    seen.add(worker_id)
                    found += await _read_worker(opened.client, worker_id, now)
            if len(page) < PAGE_SIZE:
                break
            last = page[-1][1]
            lowest, skipped = last, skipped + PAGE_SIZE if last == lowest else 0
        return sorted(found, key=lambda worker: worker.id)


async def live_worker(worker_id: str, server: str | concurrency.Client | None = None) -> WorkerInfo | None:
    """Return a worker if it is alive; see `live_workers`, which has a call for each."""
    key = presence.key(presence.checked_id(worker_id))
    async with ServerHandle(server, "a live worker", "live_worker(id, 'redis://localhost')") as opened:
        now = await _time(Executor(opened.client, presence.INDEX))
        return presence.decode(
            worker_id.encode(), await Executor(opened.client, key).execute("GET", key), now
        )


async def quiet_worker(worker_id: str, server: str | concurrency.Client | None = None) -> bool:
    """Let a worker lease nothing more for a day, or until `resume_worker`. Return false if no such worker is alive.

    It does so with its next announcement, within 15 seconds: it gives back what it has not started, and handlers that
    run go on. `server` is a URL or a client, as for `live_workers`. Raises BadTypeError, BadArgumentError, and the errors
    of calls.
    """
    return await _wish(worker_id, server, "quiet")


async def resume_worker(worker_id: str, server: str | concurrency.Client | None = None) -> bool:
    """Let a worker lease again; see `quiet_worker`. Return false if no such worker is alive."""
    return await _wish(worker_id, server, None)


async def stop_worker(worker_id: str, server: str | concurrency.Client | None = None) -> bool:
    """Stop a worker as SIGTERM does; see `quiet_worker`. Return false if no such worker is alive.

    A supervisor may start another worker: `leaseq worker` replaces a process that ends.
    """
    return await _wish(worker_id, server, "stop")


async def _wish(worker_id: str, server: str | concurrency.Client | None, wish: presence.Wish | None) -> bool:
    key, wish_key = presence.key(presence.checked_id(worker_id)), presence.wish_key(worker_id)
    async with ServerHandle(server, "a live worker", "stop_worker(id, 'redis://localhost')") as opened:
        wishes = Executor(opened.client, wish_key)
        if wish is None:
            await wishes.execute("DEL", wish_key)
        if await Executor(opened.client, key).execute("GET", key) is None:
            return False
        if wish is not None:
            await wishes.execute("SET", wish_key, wish, "PX", str(presence.WISH_TTL_SECS * 1000))
        return True


async def _read_worker(client: concurrency.Client, worker_id: bytes, now: float) -> list[WorkerInfo]:
    """The worker of that id, if it lives. Each has a key, which in a cluster can be on any node."""
    key = presence.key(worker_id.decode(errors="replace"))
    worker = presence.decode(worker_id, await Executor(client, key).execute("GET", key), now)
    return [worker] if worker else []


async def _time(index: Executor) -> float:
    """The server's time, in seconds since 1970."""
    seconds, microseconds = await index.execute("TIME")
    return int(seconds) + int(microseconds) / 1_000_000
