# Generated from _aio/registry.py by tools/unasync.py: do not edit.
"""The registry of queues (LQ-REGISTRY-1 to LQ-REGISTRY-4)."""

from typing import Any

from leaseq._sync import concurrency
from leaseq._sync.executor import Executor
from leaseq._sync.server_handle import ServerHandle
from leaseq.keys import REGISTRY, RegisteredQueue, registered

PAGE = 1000
"""About how many entries are read by one command."""


def queues(server: str | concurrency.Client | None = None) -> list[RegisteredQueue]:
    """Return the queues that clients have registered, sorted by name. Reads in pages, so that no command takes long.

    `server` is a URL or a client, as for `WorkQueue`. A queue is listed if an item was ever added to it or leased, even if
    it is empty now. A queue is missing if its clients have no right to write the registry, or have not used it since the
    server lost the registry. Raises the errors of `leaseq.errors`.
    """
    with ServerHandle(server, "the registry of queues", "queues('redis://localhost')") as opened:
        executor = Executor(opened.client, REGISTRY)
        found: set[RegisteredQueue] = set()
        cursor: Any = "0"
        while True:
            cursor, entries = executor.execute("SSCAN", REGISTRY, cursor, "COUNT", str(PAGE))
            found.update(queue for entry in entries if (queue := registered(entry)))
            if int(cursor) == 0:
                return sorted(found)
