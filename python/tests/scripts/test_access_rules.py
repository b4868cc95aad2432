"""The access rules of spec/11-security.md grant what the scripts of a role call, and no more.

That they are enough, and that they keep a reader from writing, is the conformance suite's to show (`rights`).
"""

from __future__ import annotations

import re

import pytest
import redis
from support import page_server
from support.cli_runner import Calls

from leaseq import _scripts, access_rules
from leaseq_conformance.acl_suite import roles
from leaseq_conformance.rules import pages

SOURCES = {script.name: script.source for script in _scripts.SCRIPTS}


def test_every_operation_is_of_a_role() -> None:
    assert roles().keys() == {"producer", "worker", "cleaner", "reader"}
    assert {name for operations, _ in roles().values() for name in operations} == SOURCES.keys() - {
        "configure",
        "delete",
    }


@pytest.mark.parametrize("role", ["producer", "worker", "cleaner", "reader"])
def test_the_specification_has_the_rights_of_a_role_and_no_more(role: str) -> None:
    """LQ-SAFE-1, LQ-SAFE-2."""
    operations, rights = roles()[role]
    assert set(operations) == set(access_rules.SCRIPTS[role])
    assert {right.removeprefix("+") for right in rights} == set(access_rules.commands(role, jobs=False))


def test_the_specification_has_what_jobs_need_besides() -> None:
    page = (pages() / "11-security.md").read_text("utf-8").replace("\n  ", " ")
    for role, like, pattern in (
        ("job-worker", "worker", r"worker or producer `(.*?)`"),
        ("reader", "reader", r"outcomes, `(.*?)`"),
    ):
        (found,) = re.findall(pattern, page)
        further = {right.removeprefix("+") for right in found.split()}
        own = set(access_rules.commands(like, jobs=False))
        looks = set(access_rules.commands("reader"))
        assert set(access_rules.commands(role)) - looks == (own | further) - looks, role


def test_the_users_of_the_deployment_page_are_those_of_the_command() -> None:
    given = {line.split()[1]: line for line in page_server.lines("user ")}
    for name, role in {
        "shop": "job-worker",
        "cleaner": "cleaner",
        "reader": "reader",
        "operator": "operator",
    }.items():
        printed = Calls("").yes("acl", role, "--user", name, "--format", "aclfile").out.strip()
        assert re.sub(r">CHANGE-ME-\d", ">CHANGE-ME", given[name]) == printed


def test_a_group_is_closed_to_users_of_another(redis_client: redis.Redis) -> None:
    rules = ["reset", "on", ">password", "~leaseq:{other}:*", "-@all", *roles()["worker"][1]]
    redis_client.execute_command("ACL", "SETUSER", "other", *rules)  # type: ignore[no-untyped-call]
    place = redis_client.connection_pool.connection_kwargs
    user = redis.Redis(host=place["host"], port=place["port"], username="other", password="password")  # noqa: S106
    with user, pytest.raises(redis.exceptions.NoPermissionError):
        user.eval(SOURCES["stats"], 1, "leaseq:{q}:q:state")
    redis_client.execute_command("ACL", "DELUSER", "other")  # type: ignore[no-untyped-call]
