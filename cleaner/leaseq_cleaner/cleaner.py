"""The cleaner: finds queues, and keeps them clean until it is stopped."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from functools import partial

from leaseq._aio.concurrency import Client
from leaseq._aio.server_handle import ServerHandle
from leaseq.aio import WorkQueue, registry
from leaseq.errors import BadArgumentError, LeaseqError
from leaseq.keys import RegisteredQueue
from leaseq.results import DeepClean, LightClean
from leaseq_cleaner import intervals
from leaseq_cleaner.choice import LIMIT
from leaseq_cleaner.intervals import Intervals
from leaseq_cleaner.metrics import Metrics
from leaseq_cleaner.report import QueueReport
from leaseq_cleaner.retention import Retention
from leaseq_cleaner.selector import ALL, QueueSelector
from leaseq_cleaner.service import CleanerService


class Cleaner:
    """Keep queues clean. Any number of cleaners can run at once.

    `server` is a URL as for `leaseq.WorkQueue`, or a redis.asyncio client; without one, $REDIS_URL. `queues` are names
    and patterns (see `QueueSelector`). `light_secs` is the pause after a light clean that changed something; otherwise
    the next one comes when something is due, after 4 s at most. Every `deep_secs` (0: never) each queue is deep-cleaned, `deep_rate` pages of 256 entries a second:
    without it 10, and 100 of `once`.

    Dead letters stay for `dead_secs` seconds, and of each queue the `dead_most` that died last; without these, until they are deleted or revived.

    `metrics` shows the most urgent and largest queues singly, `metrics_limit` at most, and those that `metrics_queues` names, as `queues` does.

    Raises NoServerError, BadArgumentError, BadTypeError at once.
    """

    def __init__(
        self,
        server: str | Client | None = None,
        *,
        queues: Iterable[str] = (ALL,),
        light_secs: float = Intervals.light_secs,
        deep_secs: float = Intervals.deep_secs,
        deep_rate: float | None = None,
        dead_secs: float | None = None,
        dead_most: int | None = None,
        metrics_limit: int = LIMIT,
        metrics_queues: Iterable[str] = (),
    ) -> None:
        self._retention = Retention(dead_secs, dead_most)
        self._pace = Intervals(light_secs, deep_secs, Intervals.deep_rate if deep_rate is None else deep_rate)
        self._once_rate = intervals.ONCE_RATE if deep_rate is None else deep_rate
        self._server = server
        self._choice = QueueSelector(queues)
        self._stopping = asyncio.Event()
        self._rounds: CleanerService | None = None
        self._registered_at: dict[RegisteredQueue, float] = {}
        """When the registry last had a queue that fits."""
        if metrics_limit < 0:
            raise BadArgumentError(f"metrics_limit is at least 0, and not {metrics_limit}")
        always = [metrics_queues] if isinstance(metrics_queues, str) else list(metrics_queues)
        self.metrics = Metrics(metrics_limit, QueueSelector(always).has if always else lambda _: False)

    def stop(self) -> None:
        """End `run`, once the calls under way have ended. From a signal handler of the loop, or any task."""
        self._stopping.set()

    @property
    def alive(self) -> bool:
        """True if its loop turns; true also before the start."""
        return self._rounds is None or self._rounds.alive

    @property
    def unready(self) -> str:
        """Why the cleaner is not at work, or "" if it is: the server answered, and every queue was looked at once."""
        return "not started" if self._rounds is None else self._rounds.unready

    async def run(self, started: Callable[[], object] = lambda: None) -> None:
        """Clean until `stop`, through every failure of the server. Raises only what fails at the start.

        That is: the server cannot be reached, the user or password is refused, the registry may not be read. `started`
        is called once all that has gone well.
        """
        async with self._opened() as opened:
            found = await self._find(opened)
            rounds = self._rounds = CleanerService(
                opened.client, self._stopping, self.metrics, self._pace, self._retention
            )
            try:
                find = partial(self._find, opened) if self._choice.asks_the_registry else None
                await rounds.run(found, find, started)
            finally:
                self._rounds = None

    async def once(self, *, dry_run: bool = False) -> AsyncGenerator[QueueReport, None]:
        """One light and one deep clean of every queue; with `dry_run` only what a deep clean would repair.

        What fails for one queue is in its report. Raises what fails for all: no server, no registry.
        """
        async with self._opened() as opened:
            for queue in sorted(await self._find(opened)):
                if self._stopping.is_set():
                    return
                async with WorkQueue(queue.name, opened.client, group=queue.group) as opened_queue:
                    yield await self._clean(opened_queue, dry_run=dry_run)

    def _opened(self) -> ServerHandle:
        return ServerHandle(self._server, "the cleaner", "Cleaner('redis://localhost')")

    async def _find(self, opened: ServerHandle) -> set[RegisteredQueue]:
        """The queues to look after, by what the registry says now."""
        found = set(self._choice.named)
        if self._choice.asks_the_registry:
            now = time.monotonic()
            registered = await registry.queues(opened.client)
            self._registered_at.update(dict.fromkeys(filter(self._choice.fits, registered), now))
            left_at = now - intervals.REGISTRY_GRACE_SECS
            self._registered_at = {queue: at for queue, at in self._registered_at.items() if at >= left_at}
            found.update(self._registered_at)
        self.metrics.queues.set(len(found))
        return found

    async def _clean(self, queue: WorkQueue, *, dry_run: bool) -> QueueReport:
        light, deep, purged, failed = LightClean(), DeepClean(), 0, None
        try:
            if not dry_run:
                light = await queue.light_clean()
                purged = await self._retention.purge(queue)
            cursor = None
            while cursor != "0":
                cursor, page = await queue.deep_clean_page(cursor or "0", dry_run=dry_run)
                deep = deep.plus(page)
                if cursor != "0":
                    await asyncio.sleep(1 / self._once_rate)
        except LeaseqError as error:
            failed = error
        return QueueReport(RegisteredQueue(queue.name, queue.group), light, deep, dry_run, failed, purged)
