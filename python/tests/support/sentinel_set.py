"""A primary with replicas, and sentinels that watch them."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final, Self

from support.servers import SpawnedServer, wait_until

if TYPE_CHECKING:
    from types import TracebackType

READY_SECS: Final = 180.0


class SentinelSet:
    """A primary, two replicas and three sentinels that watch them as `service`; a `with` block.

    A primary is given up after 5 s: a machine that stalls is no reason for a failover.

    Attributes:
        service: the name that sentinels are asked for.
        primary, replicas: the servers as they were at the start.
        sentinels: addresses for `redis.sentinel.Sentinel`.
    """

    service: Final = "leaseq"

    def __init__(self, name: str) -> None:
        # without this a replica waits 5 s for company before its first synchronisation
        fast = ("--repl-diskless-sync-delay", "0")
        with (
            contextlib.ExitStack() as started
        ):  # ended in reverse order, the watchers first: no failover starts
            self.primary = started.enter_context(SpawnedServer(name, *fast))
            # two arguments: Redis 6.2 refuses "HOST PORT" as one
            follow = ("--replicaof", "127.0.0.1", str(self.primary.port))
            self.replicas = [started.enter_context(SpawnedServer(name, *follow, *fast)) for _ in range(2)]
            self.watchers = [
                started.enter_context(Watcher(name, self.service, self.primary.port)) for _ in range(3)
            ]
            self.sentinels = [("127.0.0.1", watcher.port) for watcher in self.watchers]
            wait_until(self._all_known, READY_SECS)
            self._started = started.pop_all()

    def _all_known(self) -> bool:
        for replica in self.replicas:
            with replica.client() as client:
                if client.info("replication")["master_link_status"] != "up":
                    return False
        for watcher in self.watchers:
            with watcher.client(decode_responses=True) as client:
                seen: Any = client.sentinel_master(self.service)
            if seen["num-slaves"] < 2 or seen["num-other-sentinels"] < 2:
                return False
        return True

    def close(self) -> None:
        """End all of them."""
        self._started.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Watcher(SpawnedServer):
    """One sentinel. It takes a configuration file instead of options, because it rewrites that file."""

    def __init__(self, name: str, service: str, primary_port: int) -> None:
        self._lines = [
            f"sentinel monitor {service} 127.0.0.1 {primary_port} 2",
            f"sentinel down-after-milliseconds {service} 5000",
            f"sentinel failover-timeout {service} 3000",
        ]
        super().__init__(name)

    def command(self) -> list[str]:
        """Return the command line of a sentinel."""
        file = self.folder / "sentinel.conf"
        options = (f"port {self.port}", "bind 127.0.0.1", f"dir {self.folder}", f"logfile {self.folder}/log")
        file.write_text("\n".join((*options, *self._lines)) + "\n")
        return [self.program, str(file), "--sentinel"]
