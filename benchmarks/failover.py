"""Count the adds that a failover loses, with `durable=` and without it.

    python benchmarks/failover.py [--seeds 5] [--first-seed 1] [--scene NAME] [--wait NAME] [--server valkey-9.1.2] [--output FILE]

Each run starts a primary, two replicas and three Sentinels. Producers add items one by one; after a time that the seed
chooses the primary fails, and Sentinel promotes a replica. Then each id whose add returned true is looked for on the new primary.

A link between the primary and a replica takes 5 ms in each direction, as between zones. What is on such a link when it
breaks is lost. The scenes:

- kill: the primary is killed, and its machine is gone.
- partition: the primary and the producers are cut off from the replicas and the Sentinels until a replica is promoted.
- kill-lagging: as kill, but Sentinel prefers a replica (by its replica-priority) whose link takes 300 ms.

Prints one JSON object for each run on standard error, and one for all on standard output.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import leaseq
from bench_server import environment
from leaseq import Item, Replicas
from leaseq_conformance.polling import wait_until
from leaseq_conformance.redis_server import SpawnedServer
from lossy_link import LossyLink

if TYPE_CHECKING:
    from collections.abc import Callable

    import redis

SERVICE: Final = "leaseq"
PRODUCERS: Final = 4
LINK_SECS: Final = 0.005
LAGGING_SECS: Final = 0.3
DOWN_MS: Final = 1000
"""The time after which Sentinels give a silent primary up."""
SAFE_SECS: Final = 90.0
WAITS: Final[dict[str, leaseq.Durability | None]] = {
    "none": None,
    "replicas-1": Replicas(1, timeout=1),
    "replicas-2": Replicas(2, timeout=1),
}
"""The waits behind each add, by name."""


@dataclass
class Counts:
    """The ends of the adds of a run, or of several.

    Attributes:
        acknowledged: adds that returned true.
        lost: those of them that the new primary does not have.
        not_durable: adds that raised NotDurableError.
        not_durable_lost: those of them that the new primary does not have.
        in_doubt: adds whose reply was lost.
        refused: adds that raised another error.
    """

    acknowledged: int = 0
    lost: int = 0
    not_durable: int = 0
    not_durable_lost: int = 0
    in_doubt: int = 0
    refused: int = 0

    def plus(self, other: Counts) -> Counts:
        """Return the sum of both."""
        return Counts(
            *(one + two for one, two in zip(vars(self).values(), vars(other).values(), strict=True))
        )


class Watcher(SpawnedServer):
    """One Sentinel, which rewrites its configuration file."""

    def __init__(self, program: str, primary_port: int) -> None:
        self._primary_port = primary_port
        super().__init__(program)

    def command(self) -> list[str]:
        """Return the command line of a Sentinel."""
        lines = (
            f"port {self.port}",
            "bind 127.0.0.1",
            f"dir {self.folder}",
            f"logfile {self.folder}/log",
            f"sentinel monitor {SERVICE} 127.0.0.1 {self._primary_port} 2",
            f"sentinel down-after-milliseconds {SERVICE} {DOWN_MS}",
            f"sentinel failover-timeout {SERVICE} 3000",
        )
        file = self.folder / "sentinel.conf"
        file.write_text("\n".join(lines) + "\n")
        return [self.program, str(file), "--sentinel"]


class ServerSet:
    """A primary behind a lossy link, two replicas and three Sentinels; a `with` block."""

    def __init__(self, program: str, lagging: bool) -> None:
        fast = ("--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1")
        with contextlib.ExitStack() as started:
            self.primary = started.enter_context(SpawnedServer(program, *fast))
            self.link = started.enter_context(LossyLink(self.primary.port))
            follow = ("--replicaof", "127.0.0.1", str(self.link.port), *fast)
            self.replicas = [started.enter_context(SpawnedServer(program, *follow)) for _ in range(2)]
            wait_until(self._replicas_follow, SAFE_SECS)
            self.watchers = [started.enter_context(Watcher(program, self.link.port)) for _ in range(3)]
            wait_until(self._all_known, SAFE_SECS)
            preferred = self.replicas[0]
            if lagging:
                with preferred.client() as client:
                    client.config_set("replica-priority", 10)
                wait_until(self._knows_priority, SAFE_SECS)
            for replica in self.replicas:
                slow = lagging and replica is preferred
                self.link.delays[replica.port] = LAGGING_SECS if slow else LINK_SECS
            self._started = started.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._started.close()

    @property
    def url(self) -> str:
        """The URL of the set, for clients that ask Sentinels."""
        return f"redis+sentinel://{','.join(f'127.0.0.1:{each.port}' for each in self.watchers)}/{SERVICE}"

    def current(self) -> int:
        """Return the port of the primary that the Sentinels name."""
        ports = []
        for watcher in self.watchers:
            with watcher.client(decode_responses=True) as client:
                ports.append(int(client.sentinel_get_master_addr_by_name(SERVICE)[1]))
        return ports[0] if len(set(ports)) == 1 else self.link.port

    def promoted(self) -> SpawnedServer | None:
        """Return the replica that was promoted, once it is a primary and all Sentinels name it."""
        for replica in self.replicas:
            if replica.port == self.current() and _info(replica)["role"] == "master":
                return replica
        return None

    def _replicas_follow(self) -> bool:
        return all(_info(each).get("master_link_status") == "up" for each in self.replicas)

    def _all_known(self) -> bool:
        for watcher in self.watchers:
            with watcher.client(decode_responses=True) as client:
                seen: Any = client.sentinel_master(SERVICE)
            if seen["num-slaves"] < 2 or seen["num-other-sentinels"] < 2:
                return False
        return True

    def _knows_priority(self) -> bool:
        for watcher in self.watchers:
            with watcher.client(decode_responses=True) as client:
                known: Any = client.sentinel_slaves(SERVICE)
            if not any(int(each["slave-priority"]) == 10 for each in known):
                return False
        return True


def _info(server: SpawnedServer) -> dict[str, Any]:
    with server.client() as client:
        return dict(client.info("replication"))


@dataclass
class Producers:
    """Threads that add items one by one until they are stopped."""

    url: str
    durable: leaseq.Durability | None
    counts: Counts = field(default_factory=Counts)
    acknowledged: list[str] = field(default_factory=list)
    not_durable: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self._guard = threading.Lock()
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(PRODUCERS)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, number: int) -> None:
        count = 0
        with leaseq.WorkQueue("q", self.url, durable=self.durable) as queue:
            while not self._stop.is_set():
                count += 1
                item_id = f"{number}-{count}"
                self._note(item_id, lambda: queue.add_item(Item(b"x" * 100, id=item_id)))  # noqa: B023

    def _note(self, item_id: str, add: Callable[[], bool]) -> None:
        try:
            add()
        except leaseq.NotDurableError:
            self.not_durable.append(item_id)
        except leaseq.LeaseqError as error:
            with self._guard:
                self.counts.refused += error.definite
                self.counts.in_doubt += not error.definite
            self._stop.wait(0.02)
        else:
            self.acknowledged.append(item_id)

    def compared_with(self, primary: SpawnedServer) -> Counts:
        """Return the counts, with those that this primary does not have."""
        with primary.client(decode_responses=True) as client:
            there = _ids(client)
        self.counts.acknowledged = len(self.acknowledged)
        self.counts.lost = len(set(self.acknowledged) - there)
        self.counts.not_durable = len(self.not_durable)
        self.counts.not_durable_lost = len(set(self.not_durable) - there)
        return self.counts


def _ids(client: redis.Redis) -> set[str]:
    found: Any = client.hkeys("leaseq:{q}:q:items")
    return set(found)


def kill(servers: ServerSet) -> SpawnedServer:
    """Lose the machine of the primary. Return the new primary."""
    servers.link.cut()
    servers.primary.kill()
    return _failed_over(servers)


def partition(servers: ServerSet) -> SpawnedServer:
    """Cut the primary off until another server is the primary; then it comes back, as a replica of that one."""
    servers.link.cut()
    promoted = _failed_over(servers)
    servers.link.mend()
    wait_until(lambda: _info(servers.primary)["role"] == "slave", SAFE_SECS)
    return promoted


def _failed_over(servers: ServerSet) -> SpawnedServer:
    wait_until(lambda: servers.promoted() is not None, SAFE_SECS)
    promoted = servers.promoted()
    if promoted is None:
        raise RuntimeError("the Sentinels name another primary than a moment ago")
    return promoted


SCENES: Final[dict[str, Callable[[ServerSet], SpawnedServer]]] = {
    "kill": kill,
    "partition": partition,
    "kill-lagging": kill,
}


def run(scene: str, wait: str, seed: int, program: str) -> Counts:
    """Run one failover. Return what became of the adds."""
    chance = random.Random(f"{scene} {seed}")
    with ServerSet(program, lagging=scene == "kill-lagging") as servers:
        # beside the primary in a partition, else anywhere
        url = servers.primary.url if scene == "partition" else servers.url
        with Producers(url, WAITS[wait]) as producers:
            wait_until(
                lambda: len(producers.acknowledged) + len(producers.not_durable) > PRODUCERS, SAFE_SECS
            )
            time.sleep(chance.uniform(0.5, 1.5))
            promoted = SCENES[scene](servers)
        return producers.compared_with(promoted)


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5, help="runs of each kind")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--scene", choices=SCENES, action="append")
    parser.add_argument("--wait", choices=WAITS, action="append")
    parser.add_argument("--server", default="valkey-9.1.2")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    totals: dict[str, dict[str, Any]] = {}
    for scene in options.scene or SCENES:
        for wait in options.wait or WAITS:
            total = Counts()
            for seed in range(options.first_seed, options.first_seed + options.seeds):
                counts = run(scene, wait, seed, options.server)
                entry = {"scene": scene, "wait": wait, "seed": seed, **asdict(counts)}
                sys.stderr.write(json.dumps(entry) + "\n")
                total = total.plus(counts)
            totals.setdefault(scene, {})[wait] = asdict(total)
    text = json.dumps(
        {
            "environment": environment(None),
            "server": options.server,
            "seeds": options.seeds,
            "scenes": totals,
        },
        indent=1,
    )
    sys.stdout.write(text + "\n")
    if options.output:
        options.output.write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
