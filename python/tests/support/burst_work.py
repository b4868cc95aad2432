"""A worker of jobs that ends when nothing waits, for tests whose thread has a loop."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from leaseq.jobs import aio

if TYPE_CHECKING:
    from leaseq.jobs import App


def work_off(app: App) -> None:
    """Run the jobs that wait, in another thread: the loop of a browser has the one of the test."""
    thread = threading.Thread(
        target=lambda: asyncio.run(aio.App.of_program(app.program).run_worker(burst=True))
    )
    thread.start()
    thread.join()
