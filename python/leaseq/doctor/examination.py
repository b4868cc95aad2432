"""Making all checks: of the client, of each server, of each queue."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import redis

from leaseq._sync.server_handle import ServerHandle
from leaseq.doctor import (
    cleaning,
    clock,
    keyspace,
    latency,
    memory,
    permissions,
    persistence,
    replay,
    replication,
    server,
)
from leaseq.doctor.finding import Finding, Report, Verdict, unknown
from leaseq.doctor.node import PROBE_QUEUE, Node, address
from leaseq.doctor.retries import retries
from leaseq.doctor.sight import Client, QueueSight, look
from leaseq.errors import BadArgumentError, LeaseqError, from_connection
from leaseq.keys import QueueKeys, RegisteredQueue

ServerCheck = Callable[[Node], Verdict]
QueueCheck = Callable[[QueueSight], Verdict]

SERVER_CHECKS: Final[dict[str, ServerCheck]] = {
    "version": server.version,
    "eviction": memory.eviction,
    "memory": memory.memory,
    "persistence": persistence.persistence,
    "replay": replay.replay,
    "replication": replication.replication,
    "clock": clock.clock,
    "replica-clocks": replication.replica_clocks,
    "keys": keyspace.keys,
    "latency": latency.latency,
    "slow-scripts": latency.slow_scripts,
}
QUEUE_CHECKS: Final[dict[str, QueueCheck]] = {
    "used": cleaning.used,
    "format": cleaning.format_,
    "clock-steps": cleaning.clock_steps,
    "limits": cleaning.limits,
    "overdue": cleaning.overdue,
    "leases": cleaning.leases,
    "waiting": cleaning.waiting,
    "places": cleaning.places,
    "dead": cleaning.dead,
    "paused": cleaning.paused,
}
ROLE_CHECKS: Final[dict[str, Callable[[Node, str], Verdict]]] = {
    "rights": permissions.rights,
    "scripting": server.scripting,
}
CHECKS: Final = ("retries", *ROLE_CHECKS, *SERVER_CHECKS, *QUEUE_CHECKS)
"""The names of all checks."""


def doctor(
    client: Client,
    queues: Iterable[str | RegisteredQueue] = (),
    *,
    group: str | None = None,
    role: str = "worker",
) -> Report:
    """Check a client, its server or servers, and queues; changes nothing.

    `queues` are those to look at: names, with `group` where it is not the name, or what the registry says
    (`leaseq.registry.queues`). `role` is what the user is meant for:
    one of those that `leaseq acl` takes, such as "worker" or "operator". In a cluster every primary is checked.

    A check that cannot be made is a finding of status "unknown". Raises BadArgumentError, BadNameError, and
    UnavailableError or AccessDeniedError where the server cannot be talked to at all.
    """
    if role not in permissions.ROLES:
        raise BadArgumentError(f"the role is one of {', '.join(permissions.ROLES)}, and not {role!r}")
    named = [
        QueueKeys(*queue) if isinstance(queue, RegisteredQueue) else QueueKeys(queue, group)
        for queue in queues
    ]
    findings = [_finding("retries", "client", partial(retries, client))]
    for node in _nodes(client, [keys.group for keys in named]):
        findings += [
            _finding(name, node.name, partial(check, node, role)) for name, check in ROLE_CHECKS.items()
        ]
        findings += [_finding(name, node.name, partial(check, node)) for name, check in SERVER_CHECKS.items()]
    with ServerHandle(client, "the queues", "doctor(client)"):
        for queue in look(client, named):
            about = f"queue {queue.name}"
            findings += [_finding(name, about, partial(check, queue)) for name, check in QUEUE_CHECKS.items()]
    return Report(tuple(findings))


def _finding(name: str, about: str, check: Callable[[], Verdict]) -> Finding:
    """Make one check. If it cannot be made, report why; that is not a pass."""
    try:
        verdict = check()
    except redis.exceptions.NoPermissionError as error:
        verdict = unknown(
            f"the user may not ask: {error}", "ask as a user with +info +slowlog|get +config|get"
        )
    except (LeaseqError, redis.RedisError, OSError) as error:
        verdict = unknown(
            f"it cannot be asked: {error}", "see what the server's log says, and run doctor again"
        )
    return Finding(name, about, verdict.status, verdict.found, verdict.do)


def _nodes(client: Client, groups: Sequence[str]) -> Iterator[Node]:
    """Every server that takes writes, of a cluster each primary with slots. Raises UnavailableError, AccessDeniedError."""
    known = [QueueKeys(PROBE_QUEUE, group) for group in groups]
    probe_keys = [QueueKeys(PROBE_QUEUE)]
    if isinstance(client, redis.Redis):
        yield _reached(Node(client, address(client), next(iter(known + probe_keys))))
        return
    cluster: Any = client
    slots = cluster.nodes_manager.slots_cache
    owners = {slot: nodes[0].name for slot, nodes in slots.items() if nodes}
    # By name: a node of an earlier redis-py cannot be hashed.
    for name, primary in {nodes[0].name: nodes[0] for nodes in slots.values() if nodes}.items():
        anywhere = (QueueKeys(PROBE_QUEUE, f"{PROBE_QUEUE}-{number}") for number in itertools.count())
        keys = next(
            keys
            for keys in itertools.chain(known, anywhere)
            if owners.get(cluster.keyslot(keys.key("state"))) == name
        )
        yield _reached(Node(cluster.get_redis_connection(primary), f"{primary.host}:{primary.port}", keys))


def _reached(node: Node) -> Node:
    """The node, if it answers at all."""
    try:
        node.time()
    except redis.exceptions.NoPermissionError:
        return node  # it does answer
    except (redis.RedisError, OSError) as error:
        raise from_connection(error, sent=False) from error
    return node
