"""The faults: each acts on a stage, and is over when its function returns."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from support import servers

from chaos import stage as stages
from chaos.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Fault:
    """A row of the table.

    Attributes:
        name: what `--fault` takes.
        stage: the servers that it needs.
        act: makes it once.
        times: how often.
        loses: whether the server itself loses data by it: then counts are reported, and nothing may be stuck after a deep clean.
    """

    name: str
    stage: type[Stage]
    act: Callable[[Any], object]
    times: int = 5
    loses: bool = False


def kill_server(stage: Stage) -> None:
    """Kill the server, and start it again."""
    stage.server.kill()
    time.sleep(stage.chance.uniform(0, 0.5))
    stage.server.start()


def cut_file(stage: Stage) -> None:
    """Kill the server and cut the end of its file, as the crash of a machine does."""
    stage.server.kill()
    newest = max(stage.server.folder.glob("appendonlydir/*.incr.aof"), key=lambda path: path.stat().st_mtime)
    size = newest.stat().st_size
    os.truncate(newest, max(0, size - stage.chance.randrange(1, 20_000)))
    stage.server.start()


def kill_primary(stage: stages.Watched) -> None:
    """Kill the primary; it comes back as a replica of the next one."""
    old = stage.primary()
    old.kill()
    new = stage.wait_for_other(old)
    old.start("--replicaof", "127.0.0.1", str(new.port))
    servers.wait_until(stage.is_whole, stages.START_SECS)


def freeze_primary(stage: stages.Watched) -> None:
    """Let the primary stand still until another serves. Then it goes on, as a primary at first."""
    old = stage.primary()
    os.kill(old.pid, signal.SIGSTOP)
    try:
        stage.wait_for_other(old)
    finally:
        os.kill(old.pid, signal.SIGCONT)
    servers.wait_until(stage.is_whole, stages.START_SECS)


def freeze_primary_of_careful_set(stage: stages.Watched) -> None:
    """The same where a primary takes no writes without a replica."""
    stage.configure_all("min-replicas-to-write", 1)
    stage.configure_all("min-replicas-max-lag", 2)
    freeze_primary(stage)


def promote_late_replica(stage: stages.Replicated) -> None:
    """Put in place of the primary a replica that lacks the last second. The address stays."""
    with stage.replica.client() as client:
        client.execute_command("REPLICAOF", "NO", "ONE")
    time.sleep(1)
    stage.server.kill()
    stage.replica.stop()
    shutil.rmtree(stage.server.folder / "appendonlydir")
    shutil.copytree(stage.replica.folder / "appendonlydir", stage.server.folder / "appendonlydir")
    stage.server.start()
    stage.replica.start()
    servers.wait_until(stage.is_linked, stages.START_SECS)


def kill_node(stage: stages.Clustered) -> None:
    """Kill a node and start it again, and move the slot of a queue."""
    node = stage.chance.choice(stage.cluster.nodes)
    node.kill()
    time.sleep(stage.chance.uniform(0, 2))
    node.start()
    with node.client(decode_responses=True) as client:
        servers.wait_until(
            lambda: "cluster_state:ok" in client.execute_command("CLUSTER", "INFO"), stages.START_SECS
        )
    stage.move_slot("{items}", stage.chance.choice(stage.cluster.nodes))


def spoil_link(stage: stages.BehindLink) -> None:
    """Cut connections, delay them by a second each way, or swallow one direction."""
    link = stage.link
    kind = stage.chance.choice(("cut", "late", "deaf", "mute", "torn"))
    if kind == "cut":
        link.reset()
        return
    if kind == "late":
        link.latency = 1.0
    elif kind == "torn":
        link.cut_replies_after = stage.chance.randrange(200)
    else:
        setattr(link, "discard_commands" if kind == "deaf" else "discard_replies", True)
    time.sleep(4)
    link.latency, link.discard_commands, link.discard_replies, link.cut_replies_after = (
        0.0,
        False,
        False,
        None,
    )
    link.reset()


def fill_memory(stage: Stage) -> None:
    """Let the server refuse what takes memory, for a while."""
    with stage.client() as client:
        client.config_set("maxmemory", 1)
        time.sleep(3)
        client.config_set("maxmemory", 0)


def evict(stage: Stage) -> None:
    """Let a server that is full delete keys by chance: what an operator must never set."""
    with stage.client() as client:
        client.config_set("maxmemory-policy", "allkeys-random")
        client.config_set("maxmemory", int(client.info("memory")["used_memory"]) - 20_000)
        time.sleep(0.3)
        client.config_set("maxmemory", 0)


def interfere(stage: Stage) -> None:
    """Do one of the things that an operator does."""
    with stage.client() as client:
        acts: list[Callable[[], object]] = [
            client.script_flush,
            lambda: client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"),
            lambda: client.config_set("hz", stage.chance.randrange(1, 100)),
            lambda: client.execute_command("CLIENT", "PAUSE", 2000, "ALL"),
            lambda: client.execute_command("CLIENT", "PAUSE", 2000, "WRITE"),
        ]
        stage.chance.choice(acts)()
    time.sleep(2)


def flush(stage: Stage) -> None:
    """Delete everything."""
    with stage.client() as client:
        client.flushall()


def change_password(stage: stages.WithPassword) -> None:
    """Change the password, end all connections, and change it back."""
    with stage.client() as client:
        client.config_set("requirepass", "second")
        client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        time.sleep(3)
        client.config_set("requirepass", stage.PASSWORD)


def freeze_worker(stage: Stage) -> None:
    """Let a program stand still for longer than its leases."""
    role = stage.chance.choice(("loop", "threads", "asyncio", "jobs"))
    pid = stage.members[role].pid
    if role == "jobs":
        pid = stage.chance.choice(stage.children_of_jobs())
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
        time.sleep(8)
        os.kill(pid, signal.SIGCONT)


def kill_worker(stage: Stage) -> None:
    """Kill a worker, a process of a worker of jobs, or all of that worker."""
    what = stage.chance.choice(("loop", "threads", "asyncio", "child", "supervisor", "cleaner"))
    if what == "child":
        os.kill(stage.chance.choice(stage.children_of_jobs()), signal.SIGKILL)
    elif what == "supervisor":
        os.kill(stage.members["jobs"].pid, signal.SIGKILL)
        stage.members["jobs"].wait()
        stage.start("jobs")
    else:
        stage.kill_member(what)


def fill_disk(stage: stages.SmallDisk) -> None:
    """Fill the disk of the server, and make room again."""
    ballast = stage.disk / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb") as file:
        while True:
            file.write(bytes(1 << 16))
    time.sleep(4)
    ballast.unlink()


def move_clock(stage: stages.OtherClock) -> None:
    """Put the server's clock an hour ahead, and back."""
    stage.moved.move_clock(3600)
    time.sleep(3)
    stage.moved.move_clock(0)


FAULTS: Final = (
    Fault("kill the server, everysec", Stage, kill_server, 10),
    Fault("kill the server, always", stages.AlwaysOnDisk, kill_server, 10),
    Fault("cut the end of the file", Stage, cut_file, loses=True),
    Fault("kill the primary", stages.Watched, kill_primary, 3, loses=True),
    Fault("freeze the primary", stages.Watched, freeze_primary, 3, loses=True),
    Fault("freeze a careful primary", stages.Watched, freeze_primary_of_careful_set, 3, loses=True),
    Fault("promote a late replica", stages.Replicated, promote_late_replica, loses=True),
    Fault("kill nodes, move slots", stages.Clustered, kill_node),
    Fault("spoil the link", stages.BehindLink, spoil_link, 8),
    Fault("fill the memory", Stage, fill_memory, 3),
    Fault("evict keys", Stage, evict, 3, loses=True),
    Fault("interfere", Stage, interfere, 10),
    Fault("flush", Stage, flush, loses=True),
    Fault("change the password", stages.WithPassword, change_password, 3),
    Fault("freeze workers", Stage, freeze_worker, 4),
    Fault("kill workers", Stage, kill_worker, 10),
    Fault("fill the disk", stages.SmallDisk, fill_disk, 3),
    Fault("move the clock", stages.OtherClock, move_clock, 2),
)
"""The rows, in the order of the table."""
