"""What an App stands on: a server, and the functions and queues that it knows."""

import asyncio
import os
import threading
import weakref
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

import redis
import redis.asyncio

from leaseq._aio.queue import WorkQueue as AsyncWorkQueue
from leaseq._sync.queue import WorkQueue
from leaseq.jobs._aio.store import Store as AsyncStore
from leaseq.jobs._sync.store import Store
from leaseq.jobs.info import JobInfo, Told, info_of
from leaseq.jobs.options import Options
from leaseq.jobs.serializer import Format, Serializer, check_format, check_serializer
from leaseq.keys import QueueKeys
from leaseq.process import THIS

if TYPE_CHECKING:
    from leaseq.jobs.function import JobFunction
    from leaseq.jobs.testing import Runner

Server = str | redis.Redis | redis.RedisCluster | redis.asyncio.Redis | redis.asyncio.RedisCluster


class AppBase:
    """Opened for threads and in each event loop when it is first asked for, and closed with the App."""

    def __init__(
        self,
        server: Server | None,
        *,
        group: str,
        queue: str,
        form: Format,
        serializer: Serializer | None,
    ) -> None:
        QueueKeys(queue, group)
        self._server = server
        self._group = group
        self._format = check_format(form)
        self._serializer = check_serializer(serializer)
        self._serializers = {serializer.name: serializer} if serializer is not None else {}
        self._defaults = Options(queue=queue)
        self.functions: dict[str, JobFunction[Any, Any]] = {}
        self._opened: tuple[int, Store] | None = None
        self._guard = threading.Lock()
        self._at_once: Runner | None = None
        self._astores: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncStore] = (
            weakref.WeakKeyDictionary()
        )

    def queue(self, name: str | None = None) -> WorkQueue:
        """The queue below: its dead letters, statistics, limits. The App closes it."""
        return self._store.queue(name or self._defaults.queue)

    def aqueue(self, name: str | None = None) -> AsyncWorkQueue:
        """`queue` for asyncio."""
        return self._astore.queue(name or self._defaults.queue)

    @property
    def group(self) -> str:
        """The group of all its queues."""
        return self._group

    @property
    def queues(self) -> list[str]:
        """The queues that it knows: its own and those of its functions."""
        return list(
            dict.fromkeys([self._defaults.queue, *(each.options.queue for each in self.functions.values())])
        )

    def _info(self, queue: str, told: Told) -> JobInfo:
        """What is told of a job, to one that has these functions."""
        return info_of(queue, told, self._serializers, self.functions)

    def close(self) -> None:
        """Close what was opened for threads. Used again, it opens again."""
        with self._guard:
            opened, self._opened = self._opened, None
        if opened is not None and opened[0] == THIS.number:
            opened[1].close()

    async def aclose(self) -> None:
        """Close what was opened in this event loop, and what was for threads."""
        store = self._astores.pop(asyncio.get_running_loop(), None)
        if store is not None:
            await store.close()
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    @property
    def is_embedded(self) -> bool:
        """Whether its server ends with the process that started it."""
        url = self._server if self._server is not None else os.environ.get("REDIS_URL", "")
        return isinstance(url, str) and url.startswith("embedded:")

    @property
    def _store(self) -> Store:
        """What is opened for threads; a process that was forked opens its own."""
        opened = self._opened
        if opened is not None and opened[0] == THIS.number:
            return opened[1]
        with self._guard:
            if self._opened is None or self._opened[0] != THIS.number:
                self._opened = (THIS.number, Store(cast("Any", self._server), self._group))
            return self._opened[1]

    @property
    def _astore(self) -> AsyncStore:
        """What is opened in the running event loop."""
        loop = asyncio.get_running_loop()
        store = self._astores.get(loop)
        if store is None:
            store = self._astores[loop] = AsyncStore(cast("Any", self._server), self._group)
        return store


def by_queue(queues: Iterable[str]) -> dict[str, list[int]]:
    """Where in this list each queue stands: what is for one queue goes together."""
    numbers: dict[str, list[int]] = {}
    for number, queue in enumerate(queues):
        numbers.setdefault(queue, []).append(number)
    return numbers
