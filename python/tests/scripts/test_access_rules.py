"""The access rules of spec/11-security.md, taken from its table: each role can do what it is for and nothing else."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
import redis
from support.script_calls import cases, paths
from support.script_lab import Lab
from support.spec_rules import Tree

from leaseq import _scripts

if TYPE_CHECKING:
    from collections.abc import Callable

SCRIPTS = {script.name: script for script in _scripts.SCRIPTS}
PREFIX = "leaseq:{q}:q:"
HOUR = 3_600_000
ROWS = re.findall(r"^\| ([\w, ]+) \| ([\w, ]+) \| `(\+.*)` \|$", Tree().page("11-security.md"), re.MULTILINE)
RULES = {role.split(",")[0]: rules.replace("\\|", "|").split() for role, _, rules in ROWS}
OPERATIONS = {role.split(",")[0]: operations.split(", ") for role, operations, _ in ROWS}


def caller(client: redis.Redis) -> Callable[..., Any]:
    def call(name: str, *arguments: str | int | bytes) -> Any:
        script = SCRIPTS[name]
        keys = [PREFIX + key for key in script.keys]
        return client.eval(script.source, len(keys), *keys, *arguments)

    return call


@pytest.fixture
def log_in(redis_client: redis.Redis) -> Callable[..., redis.Redis]:
    """Make a user with the rules of a role, and a client of that user."""

    def log_in(role: str, pattern: str = "~leaseq:*") -> redis.Redis:
        rules = ["reset", "on", ">password", pattern, "-@all", *RULES[role]]
        redis_client.execute_command("ACL", "SETUSER", role, *rules)  # type: ignore[no-untyped-call]
        kwargs = redis_client.connection_pool.connection_kwargs
        return redis.Redis(host=kwargs["host"], port=kwargs["port"], username=role, password="password")  # noqa: S106

    return log_in


def test_the_table_is_read() -> None:
    assert set(RULES) == {"worker", "cleaner", "reader"}
    everything = {operation for operations in OPERATIONS.values() for operation in operations}
    assert everything == set(SCRIPTS) - {"configure"}


def every_kind_of_call(call: Callable[..., Any], wait: Callable[..., Any]) -> None:
    """A worker's operations, each on the ways through its script that write most."""
    call("add", 1, "a", "x", 0)
    call("add", 3, "b", "x", 0, "c", "x", 1, "delay", 1, "d", "x", 1, "max_attempts", 1)
    token = call("lease", 1, 1)[5]
    call("extend", 1, "a", token, HOUR)
    call("release", 1, "a", token, 1, "uncounted", 1)
    token = call("lease", 1, HOUR)[5]
    call("complete", 1, "a", token, 0)
    for token in call("lease", 256, 1)[5::4]:
        call("complete_and_lease", 2, 1, 1, "b", token, 1, "only_current", 1)
    call("light_clean", 256)
    call("remove", 2, "c", "nothing")
    call("settle")
    for list_of_tokens in ("wake", "room"):
        wait([PREFIX + list_of_tokens], timeout=0.01)


def test_a_worker_can_work(log_in: Callable[..., redis.Redis], redis_client: redis.Redis) -> None:
    # LQ-SAFE-1
    client = log_in("worker")
    every_kind_of_call(caller(client), client.blpop)
    result = PREFIX + "result:a"
    client.execute_command("BLMOVE", result, result, "LEFT", "LEFT", "0.01")  # type: ignore[no-untyped-call]
    # an id without data: what only damage leads to
    redis_client.zadd(PREFIX + "ready", {"orphan": 1})
    caller(client)("lease", 256, HOUR)
    assert redis_client.hget(PREFIX + "counters", "dropped") == b"1"
    for command in (["KEYS", "*"], ["HGETALL", PREFIX + "items"], ["FLUSHALL"], ["GET", "other"]):
        with pytest.raises(redis.exceptions.NoPermissionError):
            client.execute_command(*command)  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("role", RULES)
def test_a_role_has_the_commands_inside_its_scripts_and_no_more(role: str) -> None:
    # LQ-SAFE-1 LQ-SAFE-2
    inside = {
        word.lower()
        for operation in OPERATIONS[role]
        for word in re.findall(r"'([A-Z]{3,})'", SCRIPTS[operation].source)
        if word not in {"WITHSCORES", "LIMIT", "COUNT", "NOVALUES", "USAGE"}
    }
    granted = {right.removeprefix("+").split("|")[0] for right in RULES[role]}
    assert granted - {"evalsha", "eval", "blpop", "blmove", "sadd", "sscan"} == inside


@pytest.mark.parametrize(
    ("role", "name"), [(role, name) for role, operations in OPERATIONS.items() for name in operations]
)
def test_a_role_can_do_all_of_its_operations(
    log_in: Callable[..., redis.Redis], redis_client: redis.Redis, role: str, name: str
) -> None:
    """LQ-SAFE-1, LQ-SAFE-2: on every way through each script, as a user who may do everything."""
    lab, client = Lab(redis_client), log_in(role)
    for call, kind, well in paths(lab, name):
        lab.queue(kind)
        outcome = call.run(lab, client=client)
        assert (outcome.error, outcome.reply) == (None, well.reply), (call, kind)
        assert lab.snapshot() == call.well(lab, kind)[1], (call, kind)
    lab.close()


@pytest.mark.parametrize("name", sorted(set(SCRIPTS) - set(OPERATIONS["reader"])))
def test_a_reader_writes_with_no_script(
    log_in: Callable[..., redis.Redis], redis_client: redis.Redis, name: str
) -> None:
    """LQ-SAFE-2: what would change something is refused, and has changed nothing."""
    lab, client = Lab(redis_client), log_in("reader")
    for call, kind in cases(lab, name):
        before, after = lab.snapshot(), call.well(lab, kind)[1]
        lab.queue(kind)
        outcome = call.run(lab, client=client)
        assert outcome.error or before == after, (call, kind)
        assert lab.snapshot() == before, (call, kind)
    lab.close()


def test_a_cleaner_can_clean(log_in: Callable[..., redis.Redis], redis_client: redis.Redis) -> None:
    caller(redis_client)("add", 2, "a", "x", 0, "b", "x", 1, "delay", 1)
    redis_client.zadd(PREFIX + "ready", {"orphan": 1})
    redis_client.hset(PREFIX + "meta", "orphan", "x")
    redis_client.zrem(PREFIX + "ready", "a")
    redis_client.delete(PREFIX + "wake")
    call = caller(log_in("cleaner"))
    call("light_clean", 256)
    cursor = b"0"
    while (cursor := call("deep_clean", cursor, 256, 0)[0]) != b"0":
        pass
    call("settle")
    assert redis_client.zscore(PREFIX + "ready", "a")
    assert not redis_client.hexists(PREFIX + "meta", "orphan")
    with pytest.raises(redis.ResponseError):
        call("add", 1, "c", "x", 0)


def test_a_reader_can_read_and_write_nothing(
    log_in: Callable[..., redis.Redis], redis_client: redis.Redis
) -> None:
    # LQ-SAFE-2
    admin, call = caller(redis_client), caller(log_in("reader"))
    admin("add", 2, "a", "x", 0, "b", "x", 1, "priority", 3)
    token = admin("lease", 1, HOUR)[5]
    redis_client.delete(PREFIX + "wake")
    before = [redis_client.dump(key) for key in sorted(redis_client.keys(PREFIX + "*"))]
    assert call("stats")[3] == 2
    assert call("inspect", 1, "b")[0] == b"leased"
    assert call("list", "ready", 0, 1, "backward")[:2] == [1, b"a"]
    writes: list[tuple[str | int, ...]] = [
        ("add", 1, "c", "x", 0),
        ("lease", 1, HOUR),
        ("complete", 1, "b", token, 0),
        ("complete_and_lease", 1, HOUR, 1, "b", token, 0),
        ("extend", 1, "b", token, HOUR),
        ("release", 1, "b", token, 0),
        ("remove", 1, "a"),
        ("settle",),
        ("light_clean", 1),
        ("deep_clean", "0", 1, 0),
        ("configure", 1, "max_data", 1),
    ]
    for name, *arguments in writes:
        with pytest.raises(redis.ResponseError):
            call(str(name), *arguments)
    assert [redis_client.dump(key) for key in sorted(redis_client.keys(PREFIX + "*"))] == before


def test_a_group_is_closed_to_users_of_another(log_in: Callable[..., redis.Redis]) -> None:
    client = log_in("worker", "~leaseq:{other}:*")
    with pytest.raises(redis.exceptions.NoPermissionError):
        caller(client)("lease", 1, HOUR)
