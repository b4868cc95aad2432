"""The server that a dashboard shows: one client, from which queues and Apps are opened for each read."""

from typing import Any

import redis

from leaseq import WorkQueue
from leaseq._sync.server_handle import ServerHandle
from leaseq.jobs import App
from leaseq.keys import RegisteredQueue

Server = str | redis.Redis | redis.RedisCluster


class Source:
    """A server, by its URL or a client of redis-py for threads. Raises NoServerError, BadTypeError, BadArgumentError."""

    def __init__(self, server: Server | None) -> None:
        self._opened = ServerHandle(server, "the dashboard", "leaseq.dashboard.asgi('redis://localhost')")

    @property
    def client(self) -> Any:
        """The client of redis-py."""
        return self._opened.client

    def queue(self, queue: RegisteredQueue) -> WorkQueue:
        """Return a queue, to be closed."""
        return WorkQueue(queue.name, self.client, group=queue.group)

    def app(self, queue: RegisteredQueue) -> App:
        """Return an App without functions for the jobs of a queue, to be closed."""
        return App(self.client, group=queue.group, queue=queue.name)

    def close(self) -> None:
        """Close the connections."""
        self._opened.close()
