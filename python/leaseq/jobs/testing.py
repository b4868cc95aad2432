"""For tests of programs that have jobs: `at_once` runs them here, as they are enqueued.

pytest has the fixtures `leaseq_url` and `leaseq_jobs` where leaseq is installed (see `leaseq.pytest_plugin`).
"""

import asyncio
import contextlib
import threading
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leaseq.jobs.app import App
    from leaseq.jobs.base import Server


@contextlib.contextmanager
def at_once(app: "App", server: "Server | None" = None) -> Iterator[None]:
    """Inside this block, `enqueue` and the like return when all jobs that are ready have ended in this process.

    They take the same way as with workers: through the server, as envelopes, with their attempts, time limits and
    results. What is delayed waits, and so does what is to be tried again later. `server` (a URL or a client) takes the
    place of the App's own for that time. In asyncio, `await app.aclose()` before the block ends.
    """
    before = app._server, app._at_once, app._astores
    app.close()
    app._server = app._server if server is None else server
    app._at_once, app._astores = Runner(app), weakref.WeakKeyDictionary()
    try:
        yield
    finally:
        app.close()
        app._server, app._at_once, app._astores = before


class Runner:
    """Runs what is ready. A job that enqueues others does not wait for them: they are run when it has ended, or beside it."""

    def __init__(self, app: "App") -> None:
        self._app = app
        self._guard = threading.Lock()

    def run(self) -> None:
        """Run what is ready, in a thread of its own where this one has an event loop."""
        if not self._guard.acquire(blocking=False):
            return
        try:
            thread = threading.Thread(target=asyncio.run, args=(self._burst(),), name="leaseq at once")
            thread.start()
            thread.join()
        finally:
            self._guard.release()

    async def arun(self) -> None:
        """The same in this event loop."""
        if not self._guard.acquire(blocking=False):
            return
        try:
            await self._app.arun_worker(burst=True, handle_signals=False)
        finally:
            self._guard.release()

    async def _burst(self) -> None:
        try:
            await self._app.arun_worker(burst=True, handle_signals=False)
        finally:
            store = self._app._astores.pop(asyncio.get_running_loop(), None)
            if store is not None:
                await store.close()
