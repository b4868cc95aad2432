"""Servers of each kind that can be made to fail at random, and the programs that use them meanwhile."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self

import redis
import trustme
from support import servers
from support.sentinel_set import SentinelSet
from support.weather import Weather

from leaseq_conformance.fault_proxy import FaultProxy

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from pathlib import Path

DURABLE: Final = ("--appendonly", "yes", "--appendfsync", "always")
"""Options of a server that loses nothing that it has answered, however it ends."""
QUEUES: Final = ["one", "two", "three"]
LIMIT_SECS: Final = 1.5
"""The time limit of each reply, and of connecting."""
ANYTIME: Final = 200
"""Seconds in which what is only waited for comes."""
STALL_SECS: Final = 8.0
"""The longest fault: longer than a call may take."""
PRIMARY_STALL_SECS: Final = 3.0
"""The longest time for which a primary is frozen: less than Sentinels wait for it."""


@dataclass(frozen=True)
class Member:
    """The orders of one program, as JSON on its command line.

    Attributes:
        kind: threads, asyncio or uvloop.
        role: producer, worker or cleaner.
        journal: the file it writes to.
        url: the server, in the form that a cleaner takes too.
        sentinels, service, nodes: the set of servers behind that URL, if it is one.
        limit_secs: the time limit of each reply, and of connecting.
        call_secs: the time that a call may take which waits for nothing.
    """

    kind: str
    role: str
    journal: str
    url: str
    sentinels: list[tuple[str, int]] = field(default_factory=list)
    service: str = ""
    nodes: list[tuple[str, int]] = field(default_factory=list)
    queues: list[str] = field(default_factory=lambda: QUEUES)
    limit_secs: float = LIMIT_SECS
    # connect, EVALSHA, and EVAL after NOSCRIPT
    call_secs: float = 3 * LIMIT_SECS


class Scene:
    """Servers, and the faults they can have; a `with` block.

    Attributes:
        kinds: the kinds of the programs that use them.
        faults: a name, and a function that makes the fault, which is over when that returns or with `clear`.
    """

    def __init__(self, kinds: tuple[str, ...], chance: random.Random) -> None:
        self.kinds = kinds
        self.chance = chance
        self.stack = contextlib.ExitStack()
        self.faults: list[tuple[str, Callable[[], object]]] = []

    def orders(self) -> dict[str, Any]:
        """Return what a member has to know about the servers."""
        raise NotImplementedError

    def client(self) -> Any:
        """Return a client of redis-py that passes no fault, for the test."""
        raise NotImplementedError

    def clear(self) -> None:
        """End every fault."""

    def freeze(self, server: servers.SpawnedServer, seconds: float = STALL_SECS) -> None:
        """Let a server stand still for up to `seconds`."""
        pid = server.pid
        os.kill(pid, signal.SIGSTOP)
        time.sleep(self.chance.uniform(0.1, seconds))
        os.kill(pid, signal.SIGCONT)

    @staticmethod
    def cut(server: servers.SpawnedServer) -> None:
        """Have a server close the connections of its clients."""
        with contextlib.suppress(redis.RedisError), server.client() as client:
            client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

    def restart(self, server: servers.SpawnedServer) -> None:
        """End a server that keeps its data, and start it again."""
        self.chance.choice((server.kill, server.stop))()
        time.sleep(self.chance.uniform(0, STALL_SECS))
        server.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()
        self.stack.close()


class OneServer(Scene):
    """A server behind a link that has faults too."""

    def __init__(
        self, name: str, kinds: tuple[str, ...], chance: random.Random, *options: str, port: int = 0
    ) -> None:
        super().__init__(kinds, chance)
        self._server = self.stack.enter_context(servers.SpawnedServer(name, *DURABLE, *options))
        behind = f"redis://{self._server.host}:{port or self._server.port}/0"
        self.link = self.stack.enter_context(FaultProxy(behind)).listener("all")
        self.link.is_opaque = True
        self.url = self.link.url
        self._weather = Weather(self.link, chance)
        self.faults = [
            *[("link", self._weathered)] * 4,
            ("freeze", lambda: self.freeze(self._server)),
            ("restart", lambda: self.restart(self._server)),
        ]

    def _weathered(self) -> None:
        """Let the link be bad for a while."""
        self._weather.change()
        time.sleep(self.chance.uniform(0, STALL_SECS))
        self._weather.clear()

    def orders(self) -> dict[str, Any]:
        return {"url": self.url}

    def client(self) -> Any:
        return self.stack.enter_context(self._server.client())

    def clear(self) -> None:
        self._weather.clear()


class TlsServer(OneServer):
    """The same over TLS."""

    def __init__(self, kinds: tuple[str, ...], chance: random.Random, folder: Path) -> None:
        issuer = trustme.CA()
        issuer.cert_pem.write_to_path(folder / "ca")
        made = issuer.issue_cert("127.0.0.1")
        made.private_key_pem.write_to_path(folder / "key")
        made.cert_chain_pems[0].write_to_path(folder / "cert")
        port = servers.ReservedPort()
        options = ("--tls-port", str(port.number), "--tls-auth-clients", "no")
        files = {"--tls-cert-file": "cert", "--tls-key-file": "key", "--tls-ca-cert-file": "ca"}
        of_files = (part for option, name in files.items() for part in (option, str(folder / name)))
        super().__init__(servers.WITH_TLS, kinds, chance, *options, *of_files, port=port.number)
        self.stack.callback(port.close)
        self.url = f"rediss://127.0.0.1:{self.link.port}/0?ssl_ca_certs={folder / 'ca'}"


class Sentinels(Scene):
    """A primary with replicas that Sentinels watch; a failover waits until the replicas have what was answered."""

    def __init__(self, name: str, kinds: tuple[str, ...], chance: random.Random) -> None:
        super().__init__(kinds, chance)
        self._set = self.stack.enter_context(SentinelSet(name))
        self._servers = [self._set.primary, *self._set.replicas]
        kind: Any = redis.sentinel.Sentinel
        self._watch = kind(self._set.sentinels)
        self.faults = [
            *[("cut", lambda: self.cut(self.primary()))] * 2,
            ("freeze", lambda: self.freeze(self.primary(), PRIMARY_STALL_SECS)),
            ("freeze a Sentinel", lambda: self.freeze(chance.choice(self._set.watchers))),
            ("failover", self.fail_over),
        ]

    def primary(self) -> servers.SpawnedServer:
        """Return the server that the Sentinels name."""
        _, port = self._watch.discover_master(self._set.service)
        return next(server for server in self._servers if server.port == port)

    def fail_over(self) -> None:
        """Kill the primary while no write can be answered that a replica lacks; end when another one serves."""
        old = self.primary()
        with old.client() as client:
            client.execute_command("CLIENT", "PAUSE", ANYTIME * 1000, "WRITE")
            servers.wait_until(lambda: both_have_all(client), ANYTIME)
        old.kill()
        servers.wait_until(lambda: self.primary() is not old, ANYTIME)
        # not as a primary that has nothing, until the Sentinels notice: clients may know that address still
        old.start("--replicaof", "127.0.0.1", str(self.primary().port))
        servers.wait_until(self._is_whole, ANYTIME)

    def _is_whole(self) -> bool:
        """Return whether both replicas follow the primary of now: Sentinels may choose again."""
        with self.primary().client() as client:
            return all(each.get("state") == "online" for each in replicas_of(client))

    def orders(self) -> dict[str, Any]:
        places = ",".join(f"{host}:{port}" for host, port in self._set.sentinels)
        url = f"redis+sentinel://{places}/{self._set.service}"
        return {"url": url, "sentinels": self._set.sentinels, "service": self._set.service}

    def client(self) -> Any:
        return self.stack.enter_context(self._watch.master_for(self._set.service))


def replicas_of(client: redis.Redis) -> list[dict[str, Any]]:
    """Return the state of each of a primary's two replicas; empty if a replica is missing."""
    info: Any = client.info("replication")
    return [info.get(f"slave{number}", {}) for number in range(2)]


def both_have_all(client: redis.Redis) -> bool:
    """Return whether both replicas of a primary have all that it has. WAIT would answer for this connection's own writes."""
    info: Any = client.info("replication")
    return all(each.get("offset") == info["master_repl_offset"] for each in replicas_of(client))


class Nodes(Scene):
    """A cluster that loses nothing when a node is killed and started again."""

    def __init__(self, name: str, kinds: tuple[str, ...], chance: random.Random) -> None:
        super().__init__(kinds, chance)
        self._cluster = self.stack.enter_context(servers.RedisCluster(name, options=DURABLE))
        nodes = self._cluster.nodes
        self.faults = [
            *[("cut", lambda: self.cut(chance.choice(nodes)))] * 2,
            ("freeze", lambda: self.freeze(chance.choice(nodes))),
            ("restart", lambda: self.restart(chance.choice(nodes))),
        ]

    def orders(self) -> dict[str, Any]:
        nodes = [(node.host, node.port) for node in self._cluster.nodes]
        hosts = ",".join(f"{host}:{port}" for host, port in nodes)
        return {"url": f"redis+cluster://{hosts}", "nodes": nodes}

    def client(self) -> Any:
        return self.stack.enter_context(servers.cluster_client(self._cluster.url))
