"""The server: whether leaseq runs on it."""

from typing import Any

import redis

from leaseq import _scripts
from leaseq.doctor.finding import Verdict, ok, problem
from leaseq.doctor.node import Node

OLDEST = (6, 2)
"""The first Redis with all commands of the scripts; Valkey and Redict started later."""

PRODUCTS = ("valkey", "redict", "redis")
"""The forks tell a Redis version beside their own."""


def product(info: dict[str, Any]) -> tuple[str, str]:
    """Return the server's name, such as "valkey", and its version, from the section `server` of INFO."""
    name = next((name for name in PRODUCTS if f"{name}_version" in info), "redis")
    return name, str(info.get(f"{name}_version", "0"))


def version_numbers(version: str) -> tuple[int, ...]:
    """Return a version for comparison; 0 in place of what is no number."""
    return tuple(int(part) if part.isdigit() else 0 for part in version.split("."))


def version(node: Node) -> Verdict:
    """Redis 6.2 or later, or Valkey."""
    info = node.info("server")
    name, number = product(info)
    found = f"{name.capitalize()} {number}"
    if version_numbers(str(info.get("redis_version", number))) < OLDEST:
        return problem(f"{found} is too old", "run Redis 6.2 or later, or Valkey")
    return ok(found)


def scripting(node: Node, role: str) -> Verdict:
    """Return whether the server runs leaseq's scripts: run a script that changes nothing in an unused queue."""
    # each role has the right to one of them
    script = _scripts.STATS if role in {"reader", "operator"} else _scripts.SETTLE
    keys = node.keys.vector(script)
    try:
        try:
            node.execute("EVALSHA", script.sha1, len(keys), *keys)
        except redis.exceptions.NoScriptError:
            node.execute("EVAL", script.source, len(keys), *keys)
    except redis.exceptions.ReadOnlyError:
        return problem("this is a replica: it runs no scripts", "connect to the primary")
    except redis.ResponseError as error:
        if not _runs_lua(node):
            return problem(
                "the server runs no Lua scripts",
                "load the Lua module of Valkey (see INFO scriptingengines), start Garnet with --lua, do not rename EVAL and"
                " EVALSHA, or take another server: Redis 6.2 or later, Valkey",
            )
        return problem(
            f"the server does not run leaseq's scripts: {error}",
            "give the user its rights (see rights), or take a server that has Lua scripts: Redis 6.2 or later, Valkey",
        )
    return ok("runs leaseq's scripts")


def _runs_lua(node: Node) -> bool:
    """Return whether a script of no commands runs, or the user may not call it."""
    try:
        node.execute("EVAL", "return 1", 0)
    except redis.exceptions.NoPermissionError:
        return True
    except redis.ResponseError:
        return False
    return True
