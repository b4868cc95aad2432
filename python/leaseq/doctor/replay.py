"""Replay: whether the server can read its append-only file again.

A script's writes are one transaction in the file. Redis from 7.0 on checks the rights of the user `default` when it
executes a transaction, also while it reads the file (redis/redis#14541, valkey-io/valkey#3983). It drops a transaction that
`default` may not run, logs it, and starts.
"""

from typing import Any, Final

import redis

from leaseq.doctor.finding import Verdict, ok, problem, unknown
from leaseq.doctor.node import Node
from leaseq.doctor.replication import replicas_of
from leaseq.doctor.server import product, version_numbers
from leaseq.keys import REGISTRY

FIRST: Final = (7, 0)
"""The first Redis that checks."""
FIXED: Final = {"redis": (8, 6), "valkey": (9, 1, 2)}
"""The first versions of each server that are known to have stopped checking."""

SEVERITY: Final = ("problem", "unknown", "ok")
RULES: Final = "default off resetpass ~* &* +@all"
"""The user whom no client can use, and whose rights are enough."""


def replay(node: Node) -> Verdict:
    """Report writes of scripts that a restart would drop, because `default` may not make them; of a replica too."""
    verdicts = [_replay(node)]
    for replica in replicas_of(node.info("replication")):
        name = f"replica {replica['ip']}:{replica['port']}"
        try:
            with node.replica(replica["ip"], replica["port"]) as other:
                verdict = _replay(other)
        except (redis.RedisError, OSError) as error:
            verdict = unknown(f"cannot be asked: {error}", "run doctor where replicas can be reached")
        verdicts.append(verdict._replace(found=f"{name}: {verdict.found}"))
    return min(verdicts, key=lambda verdict: SEVERITY.index(verdict.status))


def _replay(node: Node) -> Verdict:
    if not node.info("persistence").get("aof_enabled"):
        return ok("there is no append-only file")
    if not _checks(node.info("server")):
        return ok("this server reads its append-only file whatever users may do")
    try:
        refused = [call[0] for call in _writes(node) if not _may(node, call)]
    except redis.ResponseError as error:
        return unknown(
            f"it cannot be tried what `default` may do: {error}",
            f"ACL SETUSER <user> +acl|dryrun, or see that the server's file of users has `user {RULES}`",
        )
    if not refused:
        return ok("`default` may run what is in the append-only file")
    lacking = " ".join(f"+{command.lower()}" for command in refused)
    return problem(
        "the next restart drops what scripts wrote: the server reads its append-only file with the rights of the user"
        f" `default`, which lacks {lacking}",
        f"ACL SETUSER {RULES}, and the same in the server's file of users; if clients log in as `default`, give it"
        f" ~leaseq:* {lacking} in place of that",
    )


def _checks(info: dict[str, Any]) -> bool:
    name, number = product(info)
    fixed = FIXED.get(name)
    is_fixed = fixed is not None and version_numbers(number) >= fixed
    return version_numbers(str(info.get("redis_version", number))) >= FIRST and not is_fixed


def _writes(node: Node) -> list[tuple[str, ...]]:
    """Return what the server writes to the file for leaseq's calls."""
    key = node.keys.key("ready")
    return [
        ("SET", key, "v"),
        ("HSET", key, "f", "v"),
        ("HSETNX", key, "f", "v"),
        ("HDEL", key, "f"),
        ("HINCRBY", key, "f", "1"),
        ("ZADD", key, "1", "m"),
        ("ZREM", key, "m"),
        ("LPUSH", key, "v"),
        ("RPUSH", key, "v"),
        ("LPOP", key),
        ("DEL", key),
        ("PEXPIREAT", key, "1"),
        ("SADD", REGISTRY, "m"),
    ]


def _may(node: Node, call: tuple[str, ...]) -> bool:
    return bool(node.execute("ACL", "DRYRUN", "default", *call) == "OK")
