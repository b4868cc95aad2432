"""The clients of an App: one for threads and one for each event loop, opened when they are first asked for."""

import asyncio
import contextlib
import os
from collections.abc import Iterator
from typing import Any, Protocol, cast

import redis
import redis.asyncio

from leaseq.jobs.settings import Settings
from leaseq.jobs.store._aio.client import JobClient as AsyncJobClient
from leaseq.jobs.store._sync.client import JobClient
from leaseq.process import ForkLock

Server = str | redis.Redis | redis.RedisCluster | redis.asyncio.Redis | redis.asyncio.RedisCluster


class Runner(Protocol):
    """Runs jobs as they are enqueued."""

    def run(self) -> None:
        """Run what is ready."""

    async def run_in_loop(self) -> None:
        """The same in this event loop."""


class Clients:
    """The clients of one App.

    Attributes:
        server: a URL or a redis-py client; None is $REDIS_URL.
        settings: what the App knows.
        sync: the client for threads.
    """

    sync: JobClient

    def __init__(self, server: Server | None, settings: Settings) -> None:
        self.server = server
        self.settings = settings
        self._lock = ForkLock()
        self._runner: Runner | None = None
        self._of_loops: dict[asyncio.AbstractEventLoop, AsyncJobClient] = {}

    def __getattr__(self, name: str) -> JobClient:
        """Open the client for threads, where there is none: from then on it is an attribute, which costs no call."""
        if name != "sync":
            raise AttributeError(name)
        with self._lock.here():
            opened: JobClient | None = vars(self).get("sync")
            if opened is None:
                after = None if self._runner is None else self._runner.run
                opened = self.sync = JobClient(cast("Any", self.server), self.settings, after)
            return opened

    @property
    def aio(self) -> AsyncJobClient:
        """The client of the running event loop."""
        loop = asyncio.get_running_loop()
        client = self._of_loops.get(loop)
        if client is None:
            for closed in [each for each in list(self._of_loops) if each.is_closed()]:
                self._of_loops.pop(closed, None)
            after = None if self._runner is None else self._runner.run_in_loop
            client = self._of_loops[loop] = AsyncJobClient(cast("Any", self.server), self.settings, after)
        return client

    @property
    def is_embedded(self) -> bool:
        """True if the server ends with the process that started it."""
        url = self.server if self.server is not None else os.environ.get("REDIS_URL", "")
        return isinstance(url, str) and url.startswith("embedded:")

    def close(self) -> None:
        """Close what was opened for threads. Used again, it opens again."""
        with self._lock.here():
            opened = vars(self).pop("sync", None)
        if opened is not None:
            try:
                opened.store.close()
            except BaseException:  # it was interrupted: closing again does the rest
                vars(self).setdefault("sync", opened)
                raise

    async def aclose(self) -> None:
        """Close what was opened in this event loop, and what was for threads."""
        await self.close_loop()
        self.close()

    async def close_loop(self) -> None:
        """Close what was opened in this event loop."""
        loop = asyncio.get_running_loop()
        client = self._of_loops.pop(loop, None)
        if client is not None:
            try:
                await client.store.close()
            except BaseException:  # it was interrupted: closing again does the rest
                self._of_loops.setdefault(loop, client)
                raise

    @contextlib.contextmanager
    def running(self, runner: Runner, server: Server | None) -> Iterator[None]:
        """Let `runner` run jobs that are enqueued in this block. `server` is used in place of the App's server."""
        before = self.server, self._runner, self._of_loops
        self.close()
        self.server = self.server if server is None else server
        self._runner, self._of_loops = runner, {}
        try:
            yield
        finally:
            self.close()
            self.server, self._runner, self._of_loops = before
