"""Memory: what the server does when it is full, and how near that is."""

from leaseq.doctor.finding import Verdict, advice, ok, problem, unknown
from leaseq.doctor.node import Node

NEARLY_FULL = 0.8
"""The part of maxmemory from which on producers are about to be refused."""

MIB = 1024 * 1024


def eviction(node: Node) -> Verdict:
    """With any policy but noeviction, a full server deletes keys of queues, and with them items."""
    memory = node.info("memory")
    policy = memory.get("maxmemory_policy")
    if policy is None:
        return unknown("the server does not tell its maxmemory-policy", "see that it is noeviction")
    if policy == "noeviction":
        return ok("maxmemory-policy is noeviction")
    # those that spare keys without a time to live spare queues, and yet take the outcomes, which have one
    loses = "outcomes" if str(policy).startswith("volatile-") else "whole queues"
    return problem(
        f"maxmemory-policy is {policy}: when memory is full the server deletes {loses}",
        "CONFIG SET maxmemory-policy noeviction, and write it into the server's configuration; a cache needs a"
        " separate server",
    )


def memory(node: Node) -> Verdict:
    """A server that reaches maxmemory refuses what is added; one without a limit is killed by the system instead."""
    info = node.info("memory")
    used, limit = info.get("used_memory"), info.get("maxmemory")
    if used is None or limit is None:
        return unknown("the server does not tell its memory", "look at it by the means of its provider")
    if limit == 0:
        return advice(
            f"{used / MIB:.0f} MiB used, without a limit",
            "set maxmemory below what the machine has: producers are then refused before the system kills the server",
        )
    found = f"{used / MIB:.0f} of {limit / MIB:.0f} MiB used"
    if used >= NEARLY_FULL * limit:
        return problem(
            f"{found}: adding is refused when all is used",
            "drain or purge queues, raise maxmemory, or limit queues with configure(max_items=...)",
        )
    return ok(found)
