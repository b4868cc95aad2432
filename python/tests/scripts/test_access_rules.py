"""The access rules of spec/11-security.md grant what the scripts of a role call, and no more.

That they are enough, and that they keep a reader from writing, is the conformance suite's to show (`rights`).
"""

from __future__ import annotations

import re

import pytest
import redis
from support import page_server

from leaseq import _scripts
from leaseq_conformance.acl_suite import roles
from leaseq_conformance.rules import pages

SOURCES = {script.name: script.source for script in _scripts.SCRIPTS}
NO_COMMANDS = {"withscores", "limit", "count", "novalues", "usage"}
"""Words in capitals inside scripts that are arguments of commands."""
BESIDES = {"evalsha", "eval", "blpop", "blmove", "sadd", "sscan"}
"""Commands that clients send, outside of scripts."""


def test_every_operation_is_of_a_role() -> None:
    assert roles().keys() == {"worker", "cleaner", "reader"}
    assert {name for operations, _ in roles().values() for name in operations} == SOURCES.keys() - {
        "configure"
    }


@pytest.mark.parametrize("role", roles())
def test_a_role_has_the_commands_inside_its_scripts_and_no_more(role: str) -> None:
    """LQ-SAFE-1, LQ-SAFE-2."""
    operations, rules = roles()[role]
    inside = {word.lower() for name in operations for word in re.findall(r"'([A-Z]{3,})'", SOURCES[name])}
    granted = {right.removeprefix("+").split("|")[0] for right in rules}
    assert granted - BESIDES == inside - NO_COMMANDS


def test_the_users_of_the_deployment_page_have_their_roles_and_what_jobs_need() -> None:
    page = (pages() / "11-security.md").read_text("utf-8")
    further = {
        name: set(rights.split())
        for name, pattern in (("worker", r"worker or producer `(.*?)`"), ("reader", r"outcomes, `(.*?)`"))
        for rights in re.findall(pattern, page.replace("\n  ", " "))
    }
    given = {line.split()[1]: set(line.split()[3:]) for line in page_server.lines("user ")}
    known = {"resetkeys", "~leaseq:*", "-@all", "+ping", "+hello"}
    rights = {name: set(rules) | further.get(name, set()) for name, (_, rules) in roles().items()}
    doctor = {"+info", "+slowlog|get", "+config|get", "+discard", "+acl|dryrun"}
    wanted = {**rights, "shop": rights["worker"], "operator": set.union(*rights.values(), doctor)}
    for name in ("shop", "cleaner", "reader", "operator"):
        assert {rule for rule in given[name] if rule[0] != ">"} - known == wanted[name], name


def test_a_group_is_closed_to_users_of_another(redis_client: redis.Redis) -> None:
    rules = ["reset", "on", ">password", "~leaseq:{other}:*", "-@all", *roles()["worker"][1]]
    redis_client.execute_command("ACL", "SETUSER", "other", *rules)  # type: ignore[no-untyped-call]
    place = redis_client.connection_pool.connection_kwargs
    user = redis.Redis(host=place["host"], port=place["port"], username="other", password="password")  # noqa: S106
    with user, pytest.raises(redis.exceptions.NoPermissionError):
        user.eval(SOURCES["stats"], 1, "leaseq:{q}:q:state")
    redis_client.execute_command("ACL", "DELUSER", "other")  # type: ignore[no-untyped-call]
