"""Replicas: how far they are behind, and whether their clocks could stand in for the primary's."""

import time
from typing import Any

import redis

from leaseq.doctor.clock import STEP_SECS, offset
from leaseq.doctor.finding import Verdict, advice, ok, problem, unknown
from leaseq.doctor.node import Node

LAG_SECS = 10
"""Seconds of silence after which a replica, which reports each second, is not just late."""

BEHIND_BYTES = 64 * 1024 * 1024
"""More than the commands of a busy second."""

SAMPLES = 5
"""Looks at a replica before it is found to be behind: a machine that stalls catches up."""


def replication(node: Node) -> Verdict:
    """A failover loses what the replicas had not yet received."""
    info = node.info("replication")
    if info.get("role") == "slave":
        return problem(
            "this is a replica: it refuses every call",
            "connect to the primary, or through Sentinel or the cluster, which know it",
        )
    if (good := info.get("min_slaves_good_slaves")) is not None:
        needed = int(node.setting("min-replicas-to-write") or 0)
        if good < needed:
            return problem(
                f"the server refuses every write (NOREPLICAS): min-replicas-to-write is {needed}, and {good} replicas follow",
                "start the replicas, or look at why they do not follow; until then nothing is added or leased",
            )
    lagging = _lagging(info)
    for _ in range(SAMPLES - 1):
        if not lagging:
            break
        time.sleep(1.0)  # as often as replicas tell how far they are
        info = node.info("replication")
        lagging = _lagging(info)
    replicas = replicas_of(info)
    if lagging:
        return problem(
            "; ".join(lagging),
            "look at the replica's log, its machine and the network between: a failover loses items",
        )
    if not replicas:
        return ok("no replicas")
    found = f"{len(replicas)} replica{'s' if len(replicas) > 1 else ''}, none behind"
    if node.setting("min-replicas-to-write") == "0":
        return advice(
            f"{found}; min-replicas-to-write is 0: a primary that is cut off takes items that the failover loses",
            "CONFIG SET min-replicas-to-write 1",
        )
    return ok(found)


def replica_clocks(node: Node) -> Verdict:
    """After a failover the replica's clock decides: deadlines jump by the difference, and tokens must not go back."""
    replicas = replicas_of(node.info("replication"))
    if not replicas:
        return ok("no replicas")
    differences = []
    for replica in replicas:
        name = f"{replica['ip']}:{replica['port']}"
        try:
            with node.replica(replica["ip"], replica["port"]) as other:
                ahead, unsure = _difference(node, other)
        except (redis.RedisError, OSError) as error:
            return unknown(
                f"replica {name} cannot be asked: {error}", "run doctor where replicas can be reached"
            )
        if unsure > STEP_SECS:
            return unknown(
                f"replica {name} answers too slowly to compare clocks", "run doctor nearer to the servers"
            )
        if abs(ahead) - unsure > STEP_SECS:
            way = "ahead of" if ahead > 0 else "behind"
            return problem(
                f"the clock of replica {name} is {abs(ahead):.1f} s {way} the primary's",
                "let NTP keep the clocks of all servers; until then a failover moves deadlines, and tokens may go back",
            )
        differences.append(abs(ahead))
    return ok(f"at most {max(differences) * 1000:.0f} ms apart")


def _difference(node: Node, other: Node) -> tuple[float, float]:
    """Return how far the other's clock is ahead of the node's, and by how much that may be wrong."""
    here, here_unsure = offset(node)
    there, there_unsure = offset(other)
    return there - here, here_unsure + there_unsure


def replicas_of(info: dict[str, Any]) -> list[dict[str, Any]]:
    """The replicas in the section `replication` of INFO."""
    return [value for name, value in info.items() if name.startswith("slave") and isinstance(value, dict)]


def _lagging(info: dict[str, Any]) -> list[str]:
    written = int(info.get("master_repl_offset", 0))
    lagging = []
    for replica in replicas_of(info):
        name = f"replica {replica.get('ip')}:{replica.get('port')}"
        behind = written - int(replica.get("offset", written))
        if replica.get("state") != "online":
            lagging.append(f"{name} is not in step: its state is {replica.get('state')}")
        elif int(replica.get("lag", 0)) > LAG_SECS:
            lagging.append(f"{name} was not heard for {replica['lag']} s")
        elif behind > BEHIND_BYTES:
            lagging.append(f"{name} is {behind // (1024 * 1024)} MiB behind")
    return lagging
