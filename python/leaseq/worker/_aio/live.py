"""Says that a worker lives and what it holds, and reads what others said (LQ-WORKER-1 to LQ-WORKER-5)."""

import contextlib
from collections.abc import Callable

from leaseq._aio import io
from leaseq._aio.calls import Calls
from leaseq._aio.opening import OpenedServer
from leaseq.errors import LeaseqError
from leaseq.worker import live
from leaseq.worker._aio.loop import Loop
from leaseq.worker.hooks import logger
from leaseq.worker.live import LiveWorker

PAGE = 100
"""Ids that are read, or forgotten, by one command."""


class Announcer(Loop):
    """Says every few seconds that a worker lives. Whatever goes wrong with it does not concern the work."""

    def __init__(self, client: io.Client, worker_id: str, say: Callable[[float], str]) -> None:
        """`say` is called with the time at which the worker began, by the server's clock."""
        super().__init__()
        self._id = worker_id
        self._say = say
        self._own = Calls(client, live.key(worker_id))
        self._index = Calls(client, live.INDEX)
        self._said = 0
        self._started = 0.0
        self._warned = False

    def hurry(self) -> None:
        """Say it now: something has changed."""
        self._bell.ring()

    async def run(self) -> None:
        """Say it again and again."""
        while not self._over:
            try:
                await self.announce()
            except LeaseqError as error:
                if not self._warned:
                    logger.warning("worker %s is not seen among the live ones: %s", self._id, error)
                self._warned = True
            await self._bell.wait(live.EVERY_SECS)

    async def announce(self) -> None:
        """Say it once, and now and then enter the index, out of which goes whoever was not heard of for long."""
        if self._said % live.INDEX_EVERY == 0:
            await self._enter()
        self._said += 1
        said, life = self._say(self._started), live.LIFE_SECS * 1000
        await self._own.ask("SET", live.key(self._id), said, "PX", life)

    async def _enter(self) -> None:
        seconds, microseconds = await self._index.ask("TIME")
        now = int(seconds) + int(microseconds) / 1_000_000
        self._started = self._started or now
        forget_at = round((now + live.INDEX_LIFE_SECS) * 1000)
        await self._index.ask("ZADD", live.INDEX, forget_at, self._id)
        over = round(now * 1000)
        gone = await self._index.ask("ZRANGEBYSCORE", live.INDEX, "-inf", over, "LIMIT", 0, PAGE)
        if gone:
            await self._index.ask("ZREM", live.INDEX, *gone)

    async def leave(self) -> None:
        """The worker ends: it is seen no longer."""
        with contextlib.suppress(LeaseqError):
            await self._own.ask("DEL", live.key(self._id))
            await self._index.ask("ZREM", live.INDEX, self._id)


async def live_workers(server: str | io.Client | None = None) -> list[LiveWorker]:
    """The workers that live, sorted by id, with what they hold.

    `server` is a URL or a client, as for `WorkQueue`. A worker that was killed is seen for up to 30 seconds; one is missing
    whose user may not write the keys, or that runs with `announce=False`. Raises the errors of `leaseq.errors`.
    """
    async with OpenedServer(server, "the live workers", "live_workers('redis://localhost')") as opened:
        index = Calls(opened.client, live.INDEX)
        found: list[LiveWorker] = []
        seen: set[bytes] = set()
        first = 0
        while ids := await index.ask("ZRANGE", live.INDEX, first, first + PAGE - 1):
            for worker_id in ids:
                if worker_id not in seen:
                    seen.add(worker_id)
                    found += await _look(opened.client, worker_id)
            first += PAGE
        return sorted(found, key=lambda worker: worker.id)


async def _look(client: io.Client, worker_id: bytes) -> list[LiveWorker]:
    """The worker of that id, if it lives: each has a key of its own, which in a cluster may lie anywhere."""
    key = live.key(worker_id.decode(errors="replace"))
    worker = live.read(worker_id, await Calls(client, key).ask("GET", key))
    return [worker] if worker else []
