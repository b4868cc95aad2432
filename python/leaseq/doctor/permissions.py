"""Check that the user may run the commands that its role needs (`leaseq.access_rules`)."""

from typing import Any, Final

import redis

from leaseq import access_rules
from leaseq._sync.connection import Connection
from leaseq._sync.route import route
from leaseq.doctor.finding import Verdict, advice, ok, problem, unknown
from leaseq.doctor.node import Node
from leaseq.keys import REGISTRY

KEY: Final = "KEY"
"""Stands for a key of the queue."""

_ARGUMENTS: Final[dict[str, tuple[str, ...]]] = {
    "evalsha": ("0" * 40, "1", KEY),
    "eval": ("return 1", "1", KEY),
    "blmove": (KEY, KEY, "LEFT", "LEFT", "0.01"),
    "blpop": (KEY, "0.01"),
    "del": (KEY,),
    "get": (KEY,),
    "hdel": (KEY, "f"),
    "hexists": (KEY, "f"),
    "hget": (KEY, "f"),
    "hincrby": (KEY, "f", "1"),
    "hlen": (KEY,),
    "hmget": (KEY, "f"),
    "hscan": (KEY, "0"),
    "hset": (KEY, "f", "v"),
    "hsetnx": (KEY, "f", "v"),
    "hstrlen": (KEY, "f"),
    "lindex": (KEY, "0"),
    "llen": (KEY,),
    "lpush": (KEY, "v"),
    "memory|usage": (KEY,),
    "mget": (KEY,),
    "pexpire": (KEY, "1"),
    "renamenx": (KEY, KEY),
    "rpush": (KEY, "v"),
    "sadd": (REGISTRY, "m"),
    "set": (KEY, "v"),
    "sismember": (KEY, "m"),
    "smismember": (KEY, "m"),
    "srem": (KEY, "m"),
    "sscan": (REGISTRY, "0"),
    "time": (),
    "zadd": (KEY, "1", "m"),
    "zcard": (KEY,),
    "zcount": (KEY, "0", "0"),
    "zrange": (KEY, "0", "0"),
    "zrangebyscore": (KEY, "0", "0"),
    "zrem": (KEY, "m"),
    "zrevrange": (KEY, "0", "0"),
    "zscan": (KEY, "0"),
    "zscore": (KEY, "m"),
}
"""Arguments to try a command with. Those of transactions are not tried, and those of doctor itself show by its checks."""

ROLES: Final = {
    role: {name: _ARGUMENTS[name] for name in access_rules.commands(role) if name in _ARGUMENTS}
    for role in access_rules.ROLES
}
"""For each role its commands, and arguments to try them with."""

_DRY_RUN_SCRIPT: Final = """
local answer = {}
for i = 1, #ARGV do
  local words = {}
  for word in string.gmatch(ARGV[i], '%S+') do words[#words + 1] = word end
  if not redis.acl_check_cmd(unpack(words)) then answer[#answer + 1] = i end
end
return answer
"""
"""Asks the server, on Redis 7 and Valkey, whether this user may run commands, without running them."""


def rights(node: Node, role: str) -> Verdict:
    """Report the commands of a role that the user may not run. A missing one makes scripts stop halfway."""
    key = node.keys.key("ready")
    calls = [
        (*command.split("|"), *(key if argument == KEY else argument for argument in arguments))
        for command, arguments in ROLES[role].items()
    ]
    try:
        missing = _missing(node, calls)
    except redis.exceptions.NoPermissionError as error:
        return unknown(
            f"it cannot be tried which commands the user lacks: {error}",
            f"compare ACL GETUSER with what `leaseq acl {role}` prints",
        )
    if not missing:
        return ok(f"the user has the rights of a {role}")
    lacking = [name for name, call in zip(ROLES[role], calls, strict=True) if call in missing]
    named = " ".join(f"+{name}" for name in lacking)
    if all(_ARGUMENTS[name][:1] == (REGISTRY,) for name in lacking):
        return advice(
            f"the user may not {named} the registry of queues: a cleaner does not find queues that only this user uses",
            f"ACL SETUSER <user> ~{REGISTRY} {named}",
        )
    return problem(
        f"the user lacks rights of a {role}: {named}",
        f"ACL SETUSER <user> ~leaseq:* {named}; `leaseq acl {role}` prints all rules",
    )


def _missing(node: Node, calls: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the calls that the server would refuse to this user, without running them."""
    # the text of `eval` has a space; what it says does not matter here
    call_texts = [" ".join(word.replace(" ", "_") for word in call) for call in calls]
    try:
        refused = node.execute("EVAL", _DRY_RUN_SCRIPT, 1, node.keys.key("ready"), *call_texts)
    except redis.exceptions.NoPermissionError:
        return _missing_queued(node, calls)
    except redis.ResponseError:  # before Redis 7.0
        return _missing_queued(node, calls)
    return [calls[number - 1] for number in refused]


def _missing_queued(node: Node, calls: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The same for servers without `acl_check_cmd`: queue each call in a transaction and discard it."""
    connections = route(node.client)
    connection = connections.acquire(node.keys.key("ready"), None)
    try:
        _reply(connection, "MULTI")
        missing = [call for call in calls if _is_refused(connection, call)]
        _reply(connection, "DISCARD")
    finally:
        connection.close()
        connections.release(connection)
    return missing


def _is_refused(connection: Connection, call: tuple[str, ...]) -> bool:
    try:
        _reply(connection, *call)
    except redis.exceptions.NoPermissionError:
        return True
    except redis.ResponseError:  # allowed, and wrong for another reason: a key of another node of a cluster
        return False
    return False


def _reply(connection: Connection, *words: str) -> Any:
    connection.send(*words)
    return connection.read()
