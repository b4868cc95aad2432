"""The rights that a user of the server needs, by role. The specification, the pages, doctor and `leaseq acl` have theirs from here.

The rights of scripts are read from their sources. The commands that clients send beside scripts are listed here, and a test runs every
program of a role as a user with no more than its rights.
"""

import re
from collections.abc import Iterable
from typing import Final

from leaseq import _scripts
from leaseq.errors import BadArgumentError
from leaseq.keys import QueueKeys

CONNECTION: Final = ("ping", "hello", "role", "cluster|slots", "command")
"""The commands that open connections: to one server, through Sentinel, to a cluster."""

_WORKER_SCRIPTS: Final = (
    *(
        "add",
        "lease",
        "lease_any",
        "complete",
        "complete_and_lease",
        "complete_with",
        "extend",
        "release",
        "remove",
    ),
    *("promote", "revive", "purge", "outcome", "settle", "light_clean"),
)
SCRIPTS: Final[dict[str, tuple[str, ...]]] = {
    "producer": ("add", "outcome", "remove"),
    "worker": _WORKER_SCRIPTS,
    "cleaner": ("light_clean", "deep_clean", "outcome", "settle", "stats", "list", "purge"),
    "reader": ("stats", "inspect", "list"),
    "job-client": ("add", "outcome", "remove", "promote", "revive", "purge", "stats", "inspect", "list"),
    "job-worker": (*_WORKER_SCRIPTS, "stats", "inspect", "list"),
    "operator": tuple(script.name for script in _scripts.SCRIPTS),
}
"""The scripts that each role calls."""

ROLES: Final = tuple(SCRIPTS)

_WAITS: Final = ("blpop", "blmove")
_JOBS: Final = ("multi", "exec", "set", "del", "mget", "hmget", "rpush", "pexpire", "renamenx")
_SCHEDULES: Final = ("sadd", "srem", "sismember", "smismember")
_PRESENCE: Final = ("time", "set", "del", "zadd", "zrem", "zrangebyscore")
_LOOKS: Final = ("sscan", "time", "get", "hget", "hmget", "zrange")
_LOOKS_AT_JOBS: Final = ("llen", "lindex", "mget", "sismember", "smismember", "zrangebyscore")
_CHANGES_SEEN: Final = ("watch", "unwatch")
_DOCTOR: Final = ("multi", "discard", "info", "config|get", "slowlog|get", "acl|dryrun", "scan", "type")

BESIDE: Final[dict[str, tuple[str, ...]]] = {
    "producer": ("sadd", *_WAITS),
    "worker": ("sadd", *_WAITS, *_PRESENCE),
    "cleaner": ("sscan", "info"),
    "reader": _LOOKS,
    "job-client": ("sadd", *_WAITS, *_JOBS, *_SCHEDULES, *_LOOKS, *_LOOKS_AT_JOBS),
    "job-worker": ("sadd", *_WAITS, *_PRESENCE, *_JOBS, *_SCHEDULES, *_LOOKS, *_LOOKS_AT_JOBS),
    "operator": (
        "sadd",
        *_WAITS,
        *_PRESENCE,
        *_JOBS,
        *_SCHEDULES,
        *_LOOKS,
        *_LOOKS_AT_JOBS,
        *_CHANGES_SEEN,
        *_DOCTOR,
    ),
}
"""The commands that programs of each role send beside scripts, save those of connections."""

WAITS_FOR: Final = {"replicas": "wait", "disk": "waitaof"}
"""The command of calls with `durable`, by what they wait for. No role has it without being asked: servers before 7.2 refuse a rule of WAITAOF."""

READS_JOBS: Final = _LOOKS_AT_JOBS
"""Commands for a reader who also lists jobs and their outcomes."""

_NO_COMMANDS: Final = {"WITHSCORES", "LIMIT", "COUNT", "NOVALUES", "USAGE"}
"""Words in capitals inside scripts that are arguments of commands."""


def commands_inside(scripts: tuple[str, ...]) -> set[str]:
    """The commands that scripts call, as rules name them."""
    sources = {script.name: script.source for script in _scripts.SCRIPTS}
    words = {word for name in scripts for word in re.findall(r"'([A-Z]{3,})'", sources[name])}
    return {"memory|usage" if word == "MEMORY" else word.lower() for word in words - _NO_COMMANDS}


def commands(role: str, *, jobs: bool = True) -> list[str]:
    """The commands of a role in the order of the alphabet, without those of connections; `jobs`: a reader looks at jobs too."""
    further = READS_JOBS if jobs and role == "reader" else ()
    return sorted({"evalsha", "eval", *commands_inside(SCRIPTS[role]), *BESIDE[role], *further})


def keys(role: str, group: str | None = None, queue: str | None = None) -> list[str]:
    """The patterns of a role's keys: of every queue, of a group, or of one queue. Raises BadNameError, BadArgumentError."""
    if group is None and queue is None:
        return ["~leaseq:*"]
    prefix = QueueKeys(queue or "all", group or queue).key("")
    own = prefix if queue else prefix.removesuffix("all:")
    further = {
        "producer": ["~leaseq:queues"],
        "cleaner": ["~leaseq:queues"],
        "job-client": ["~leaseq:queues"],
    }.get(role, ["~leaseq:queues", "~leaseq:workers", "~leaseq:worker:*"])
    return [f"~{own}*", *further]


def rules(
    role: str,
    password: str = "CHANGE-ME",  # noqa: S107 (a placeholder)
    group: str | None = None,
    queue: str | None = None,
    durable: Iterable[str] = (),
) -> list[str]:
    """The rules of a user of that role, for ACL SETUSER and for a file of users alike; `durable`: of WAITS_FOR.

    Raises BadNameError, BadArgumentError.
    """
    if role not in ROLES:
        raise BadArgumentError(f"role must be one of {', '.join(ROLES)}, not {role!r}")
    granted = [*CONNECTION, *commands(role), *(WAITS_FOR[each] for each in durable)]
    return [
        "reset",
        "on",
        f">{password}",
        *keys(role, group, queue),
        "-@all",
        *(f"+{each}" for each in granted),
    ]
