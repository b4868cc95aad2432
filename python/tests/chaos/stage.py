"""Servers of each kind, the programs that use them, and what a fault can do to either."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import redis
from support import programs, servers
from support.sentinel_set import SentinelSet

import leaseq
from chaos import journal
from chaos.chaos_jobs import QUEUE
from chaos.member import ITEMS
from chaos.verdict import Verdict, judge
from leaseq import jobs
from leaseq_conformance.fault_proxy import FaultProxy

if TYPE_CHECKING:
    import random

T = TypeVar("T")

DRAIN_SECS: Final = 40.0
"""The longest wait for the end of all work: leases of 5 s, pauses of workers, delays of jobs whose process died."""
START_SECS: Final = 60.0
ROLES: Final = ("produce", "loop", "threads", "asyncio", "cleaner")
WORKER: Final = ("--queue", QUEUE, "--processes", "2", "--concurrency", "4", "--for", "5", "--grace", "3")
FAKETIME: Final = str(Path(__file__).parents[3] / "tools" / "faketime.sh")
KEEPS: Final = ("--appendonly", "yes", "--appendfsync")


class Stage:
    """A server and the programs; a `with` block.

    Attributes:
        chance: what is random.
        server: the server, or the first of several.
        members: the programs by role; `jobs` is a `leaseq worker`.
        replicas: how many the server has.
    """

    replicas = 0

    def __init__(self, program: str, chance: random.Random, awaited: int) -> None:
        self.program = program
        self.chance = chance
        self._awaited = awaited
        self._stack = contextlib.ExitStack()
        self._folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="leaseq-chaos-")))
        self.members: dict[str, subprocess.Popen[bytes]] = {}
        self._ended: set[str] = set()
        self.server: servers.SpawnedServer = self._start_servers()

    def _start_servers(self) -> servers.SpawnedServer:
        return self.own(servers.SpawnedServer(self.program, *KEEPS, "everysec"))

    def own(self, part: contextlib.AbstractContextManager[T]) -> T:
        """Start this, and end it with the stage."""
        return self._stack.enter_context(part)

    @property
    def url(self) -> str:
        """The URL that the programs get."""
        return self.server.url

    def client(self) -> Any:
        """Return a client of the server; a `with` block."""
        return self.server.client()

    # programs

    def start(self, role: str) -> None:
        """Start a program."""
        command = [sys.executable, "-m", "chaos.member", role]
        if role == "jobs":
            command = [
                str(Path(sys.executable).with_name("leaseq")),
                "worker",
                "chaos.chaos_jobs:app",
                *WORKER,
            ]
        more = {"CHAOS_URL": self.url, "CHAOS_FOLDER": str(self._folder)}
        more["CHAOS_REPLICAS"] = str(self._awaited)
        with (self._folder / f"{role}.log").open("ab") as log:
            self.members[role] = subprocess.Popen(
                command, env=programs.environment(**more), stdout=log, stderr=log, start_new_session=True
            )

    def start_all(self) -> None:
        """Start every program, and wait until work is done."""
        for role in (*ROLES, "jobs"):
            self.start(role)
        try:
            servers.wait_until(self._works, START_SECS)
        except TimeoutError as error:
            raise RuntimeError(f"nothing works after {START_SECS:.0f} s\n{self.logs()}") from error

    def logs(self) -> str:
        """Return the end of each program's log."""
        paths = sorted(self._folder.glob("*.log"))
        return "\n".join(f"-- {path.name}\n{path.read_text(errors='replace')[-2000:]}" for path in paths)

    def _works(self) -> bool:
        with self.queue(ITEMS) as items, self.queue(QUEUE) as of_jobs:
            return items.stats().completed > 20 and of_jobs.stats().completed > 5

    def queue(self, name: str) -> leaseq.WorkQueue:
        """Return a queue of the stage."""
        return leaseq.WorkQueue(name, self.url)

    def kill_member(self, role: str) -> None:
        """Kill a program with all its processes, and start it again."""
        process = self.members[role]
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self.start(role)

    def children_of_jobs(self) -> list[int]:
        """Return the ids of the processes that a `leaseq worker` started."""
        pid = self.members["jobs"].pid
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [int(each) for each in found]

    def watch(self) -> None:
        """Start again what has ended, as systemd or Kubernetes do, but for programs that are to end."""
        for role, process in list(self.members.items()):
            if process.poll() is not None and role not in self._ended:
                self.start(role)

    # the end

    def verdict(self, over: list[float]) -> Verdict:
        """End the load, wait until all is done, and count."""
        self.watch()
        self._end("produce")
        stuck = [self._left()]
        for name in (ITEMS, QUEUE):
            with self.queue(name) as queue:
                queue.deep_clean()
        stuck.append(self._left() if stuck[0] else 0)
        lines = list(journal.read(self._folder))
        unknown = self._unknown([line.about for line in lines if line.word == journal.ENQUEUED])
        for role in (*ROLES, "jobs"):
            self._end(role)
        return judge(lines, unknown, stuck, over)

    def _left(self) -> int:
        """Wait until the queues are empty, for a time. Return what is left in them."""
        until = time.monotonic() + DRAIN_SECS
        while True:
            self.watch()
            with self.queue(ITEMS) as items, self.queue(QUEUE) as of_jobs:
                left = sum(queue.stats().items for queue in (items, of_jobs))
            if not left or time.monotonic() > until:
                return left
            time.sleep(0.2)

    def _unknown(self, ids: list[str]) -> list[str]:
        with jobs.App(self.url, queue=QUEUE) as app:
            states = app.statuses([app.handle(each) for each in ids])
        return [job_id for job_id, state in zip(ids, states, strict=True) if state == "unknown"]

    def _end(self, role: str) -> None:
        self._ended.add(role)
        process = self.members[role]
        process.terminate()
        try:
            process.wait(START_SECS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise

    def __enter__(self) -> Self:
        try:
            self.start_all()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill what is left, and end the servers."""
        for process in self.members.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._stack.close()


class AlwaysOnDisk(Stage):
    """A server that has each answer on disk."""

    def _start_servers(self) -> servers.SpawnedServer:
        return self.own(servers.SpawnedServer(self.program, *KEEPS, "always"))


class BehindLink(Stage):
    """A server behind a link that can fail."""

    def _start_servers(self) -> servers.SpawnedServer:
        server = super()._start_servers()
        self.link = self.own(FaultProxy(server.url)).listener("all")
        self.link.is_opaque = True
        return server

    @property
    def url(self) -> str:
        """That of the link."""
        return f"{self.link.url}?socket_timeout=3"


class WithPassword(Stage):
    """A server that wants a password."""

    PASSWORD: Final = "first"  # noqa: S105 (of a server of this campaign)

    def _start_servers(self) -> servers.SpawnedServer:
        server = super()._start_servers()
        with server.client() as client:
            client.config_set("requirepass", self.PASSWORD)
        return server

    @property
    def url(self) -> str:
        """With the password."""
        return self.server.url.replace("redis://", f"redis://:{self.PASSWORD}@")

    def client(self) -> Any:
        """With the password of now."""
        return servers.plain_client(self.url)


class Replicated(Stage):
    """A primary with a replica that both keep what they have."""

    replicas = 1

    def _start_servers(self) -> servers.SpawnedServer:
        server = super()._start_servers()
        fast = ("--repl-diskless-sync-delay", "0")
        follow = ("--replicaof", "127.0.0.1", str(server.port))
        self.replica = self.own(servers.SpawnedServer(self.program, *KEEPS, "always", *follow, *fast))
        servers.wait_until(self.is_linked, START_SECS)
        return server

    def is_linked(self) -> bool:
        """Return whether the replica follows."""
        with self.replica.client() as client:
            state: Any = client.info("replication")
        return bool(state.get("master_link_status") == "up")


class Watched(Stage):
    """A primary with two replicas that Sentinels watch."""

    replicas = 2

    def _start_servers(self) -> servers.SpawnedServer:
        self._set = self.own(SentinelSet(self.program))
        self._all = [self._set.primary, *self._set.replicas]
        kind: Any = redis.sentinel.Sentinel
        self._sentinel = kind(self._set.sentinels)
        return self._set.primary

    @property
    def url(self) -> str:
        """That of the Sentinels."""
        places = ",".join(f"{host}:{port}" for host, port in self._set.sentinels)
        return f"redis+sentinel://{places}/{self._set.service}"

    def primary(self) -> servers.SpawnedServer:
        """Return the server that the Sentinels name."""
        _, port = self._sentinel.discover_master(self._set.service)
        return next(server for server in self._all if server.port == port)

    def configure_all(self, name: str, value: object) -> None:
        """Set an option of every server."""
        for server in self._all:
            with server.client() as client:
                client.config_set(name, value)

    def wait_for_other(self, old: servers.SpawnedServer) -> servers.SpawnedServer:
        """Wait until the Sentinels name another primary."""
        servers.wait_until(lambda: self.primary() is not old, START_SECS)
        return self.primary()

    def is_whole(self) -> bool:
        """Return whether both replicas follow the primary of now."""
        with contextlib.suppress(redis.RedisError), self.primary().client() as client:
            info: Any = client.info("replication")
            states = [info.get(f"slave{number}", {}).get("state") for number in range(2)]
            return states == ["online", "online"]
        return False


class SmallDisk(Stage):
    """A server whose files are on a disk of 64 MB. To mount that needs root."""

    def _start_servers(self) -> servers.SpawnedServer:
        self.disk = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="leaseq-disk-")))
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(self.disk)], check=True)
        self._stack.callback(subprocess.run, ["umount", str(self.disk)], check=True)
        return self.own(servers.SpawnedServer(self.program, *KEEPS, "everysec", "--dir", str(self.disk)))


class _MovedServer(servers.SpawnedServer):
    """A server whose clock is moved by what is in a file."""

    def command(self) -> list[str]:
        """Return the command line, below libfaketime."""
        found = subprocess.run([FAKETIME], check=True, capture_output=True, text=True)
        settings = {
            "LD_PRELOAD": found.stdout.strip(),
            "FAKETIME_TIMESTAMP_FILE": str(self.folder / "offset"),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        self.move_clock(0)
        return ["env", *(f"{name}={value}" for name, value in settings.items()), *super().command()]

    def move_clock(self, seconds: int) -> None:
        """Put the clock that many seconds ahead of that of the machine, within a second."""
        (self.folder / "offset").write_text(f"+{seconds}\n")


class OtherClock(Stage):
    """A server with another clock than the machine."""

    def _start_servers(self) -> servers.SpawnedServer:
        self.moved = _MovedServer(self.program, *KEEPS, "everysec")
        return self.own(self.moved)


class Clustered(Stage):
    """Three primaries that share the slots."""

    def _start_servers(self) -> servers.SpawnedServer:
        self.cluster = self.own(servers.RedisCluster(self.program, options=(*KEEPS, "always")))
        return self.cluster.nodes[0]

    def move_slot(self, key: str, to: servers.SpawnedServer) -> None:
        """Give the slot of a key to another node, with all keys in it."""
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(node.client(decode_responses=True)) for node in self.cluster.nodes]
            target = clients[self.cluster.nodes.index(to)]
            slot = int(target.execute_command("CLUSTER", "KEYSLOT", key))
            holders = [each for each in clients if _holds(each, slot)]
            if target in holders:
                return
            (source,) = holders
            name, from_name = (each.execute_command("CLUSTER", "MYID") for each in (target, source))
            target.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", from_name)
            source.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", name)
            while keys := source.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 100):
                source.execute_command("MIGRATE", to.host, to.port, "", 0, 5000, "KEYS", *keys)
            for each in (target, source, *clients):
                each.execute_command("CLUSTER", "SETSLOT", slot, "NODE", name)

    @property
    def url(self) -> str:
        """That of all nodes."""
        hosts = ",".join(f"{node.host}:{node.port}" for node in self.cluster.nodes)
        return f"redis+cluster://{hosts}"


def _holds(client: Any, slot: int) -> bool:
    """Return whether a node has a slot."""
    mine = client.execute_command("CLUSTER", "MYID")
    ranges = client.execute_command("CLUSTER", "SLOTS")
    return any(first <= slot <= last and node[2] == mine for first, last, node, *_ in ranges)
