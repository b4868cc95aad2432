"""Doctor: each check finds what it is for, on a real server that has it, and passes a server that has not."""

from __future__ import annotations

import difflib
import json
import re
import struct
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.crc import key_slot
from redis.retry import Retry
from support import servers
from support.cli_runner import Calls
from support.job_app import until

import leaseq
from leaseq import access_rules
from leaseq.doctor import CHECKS, Finding, cleaning, doctor, permissions
from leaseq.doctor import replication as doctor_replication
from leaseq.doctor.clock import offset
from leaseq.doctor.node import PROBE_QUEUE, Node
from leaseq.jobs import App
from leaseq.keys import QueueKeys

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.sentinel_set import SentinelSet

    from leaseq_conformance.fault_proxy import Listener

DOCS = Path(__file__).parents[3] / "docs"
DURABLE = ("--appendonly", "yes")


def found(client: Any, check: str, *names: str, **options: Any) -> Finding:
    """The one finding of a check."""
    (finding,) = [one for one in doctor(client, names, **options).findings if one.check == check]
    return finding


def description(finding: Finding) -> str:
    return f"{finding.status}: {finding.found} | {finding.do}"


def run(client: redis.Redis, *command: str | int | bytes) -> Any:
    return client.execute_command(*command)  # type: ignore[no-untyped-call]


@pytest.fixture
def queue(redis_client: redis.Redis) -> Iterator[leaseq.WorkQueue]:
    with leaseq.WorkQueue("q", redis_client) as made:
        yield made


def test_a_healthy_server_and_queue_pass_every_check(own_server: servers.StartServer) -> None:
    server = own_server(*DURABLE, "--maxmemory", "1gb")
    with server.client() as client, leaseq.WorkQueue("q", client) as queue:
        queue.add_items([leaseq.Item("x") for _ in range(3)])
        queue.lease(3600)
        report = doctor(client, ["q"])
    assert report.healthy, [description(one) for one in report.findings if one.status != "ok"]
    assert [one.check for one in report.findings] == list(CHECKS)
    assert {one.about for one in report.findings} == {"client", f"127.0.0.1:{server.port}", "queue q"}


def test_doctor_changes_nothing(redis_client: redis.Redis, queue: leaseq.WorkQueue) -> None:
    queue.add_item(leaseq.Item("x"))
    before = {key: redis_client.dump(key) for key in redis_client.keys("*")}
    doctor(redis_client, ["q", "unused"], role="operator")
    assert {key: redis_client.dump(key) for key in redis_client.keys("*")} == before


@pytest.mark.parametrize(("policy", "loses"), [("allkeys-lru", "whole queues"), ("volatile-ttl", "outcomes")])
def test_an_eviction_policy_is_a_problem(own_server: servers.StartServer, policy: str, loses: str) -> None:
    with own_server("--maxmemory-policy", policy).client() as client:
        finding = found(client, "eviction")
    assert finding.status == "problem", description(finding)
    assert policy in finding.found
    assert loses in finding.found
    assert "noeviction" in finding.do


def test_a_server_without_lua_is_named(own_server: servers.StartServer) -> None:
    with own_server("--rename-command", "EVAL", "", "--rename-command", "EVALSHA", "").client() as client:
        finding = found(client, "scripting")
    assert finding.status == "problem"
    assert "no Lua scripts" in finding.found
    assert "--lua" in finding.do


def test_memory_near_its_limit(own_server: servers.StartServer) -> None:
    with own_server().client() as client:
        assert found(client, "memory").status == "advice"  # no limit at all
        used = client.info("memory")["used_memory"]
        client.config_set("maxmemory", used * 20)
        assert found(client, "memory").status == "ok"
        client.config_set("maxmemory", used + used // 100)
        finding = found(client, "memory")
    assert finding.status == "problem", description(finding)
    assert "MiB used" in finding.found


def test_persistence(own_server: servers.StartServer) -> None:
    with own_server().client() as client:
        nothing = found(client, "persistence")
        client.config_set("save", "3600 1")
        snapshots = found(client, "persistence")
        client.config_set("appendonly", "yes")
        good = found(client, "persistence")
        client.config_set("appendfsync", "no")
        lazy = found(client, "persistence")
    assert (nothing.status, snapshots.status, good.status, lazy.status) == (
        "problem",
        "problem",
        "ok",
        "advice",
    )
    assert "nothing is written" in nothing.found
    assert "save 3600 1" in snapshots.found
    assert "everysec" in lazy.do


@pytest.mark.each_server
def test_a_default_user_that_may_not_be_asked_about_is_unknown(
    own_server: servers.StartServer, asking: list[str]
) -> None:
    with own_server(*DURABLE).client() as admin, user(admin, "~leaseq:*", "-@all", *asking) as client:
        finding = found(client, "replay")
        if finding.status != "ok":  # a server that reads its log whatever users may do
            assert finding.status == "unknown", description(finding)
            assert "+acl|dryrun" in finding.do
            run(admin, "ACL", "SETUSER", "worker", "+acl|dryrun")
            assert found(client, "replay").status == "ok"


def test_a_failed_snapshot(own_server: servers.StartServer) -> None:
    server = own_server(*DURABLE, "--dbfilename", "in-the-way")
    with server.client() as client:
        (server.folder / "in-the-way").mkdir()  # a folder: the snapshot cannot be put in its place
        client.bgsave()
        servers.wait_until(lambda: client.info("persistence")["rdb_last_bgsave_status"] == "err", 60)
        finding = found(client, "persistence")
    assert finding.status == "problem", description(finding)
    assert "snapshot failed" in finding.found


def test_replicas(sentinel: SentinelSet, monkeypatch: pytest.MonkeyPatch) -> None:
    with sentinel.primary.client() as client:
        finding = found(client, "replication")
        assert (finding.status, "2 replicas" in finding.found) == ("advice", True), description(finding)
        client.config_set("min-replicas-to-write", 1)
        assert found(client, "replication").status == "ok"
        clocks = found(client, "replica-clocks")
        assert clocks.status == "ok", description(clocks)
        assert "apart" in clocks.found
        # each one is looked at
        for number in range(2):
            asked = iter([60.0 * (at == number), 0.001] for at in range(2))
            monkeypatch.setattr(doctor_replication, "_difference", lambda *_, asked=asked: tuple(next(asked)))
            assert found(client, "replica-clocks").status == "problem"
    with sentinel.replicas[0].client() as replica:
        finding = found(replica, "replication")
        assert finding.status == "problem", description(finding)
        assert "this is a replica" in finding.found


def test_a_replica_that_catches_up_is_not_behind(
    sentinel: SentinelSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[Any] = []

    def lagging_at_first(info: Any) -> list[str]:
        looks.append(info)
        return ["a replica is behind"] if info is looks[0] else []

    monkeypatch.setattr(doctor_replication, "_lagging", lagging_at_first)
    with sentinel.primary.client() as client:
        finding = found(client, "replication")
    assert (len(looks), finding.status) == (2, "advice"), description(finding)


def test_the_connection_to_a_replica_is_closed(own_server: servers.StartServer) -> None:
    server = own_server()
    with server.client() as client:
        with Node(client, "here").replica("127.0.0.1", server.port) as replica:
            replica.time()
            connected = len(client.client_list())
        servers.wait_until(lambda: len(client.client_list()) == connected - 1)


@pytest.mark.slow
def test_a_replica_that_does_not_follow(own_server: servers.StartServer) -> None:
    primary = own_server("--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "3600")
    # it waits for company for an hour before it gets the data
    replica = own_server("--replicaof", "127.0.0.1", str(primary.port))
    with primary.client() as client:
        servers.wait_until(lambda: client.info("replication")["connected_slaves"] == 1, 60)
        finding = found(client, "replication")
        assert finding.status == "problem", description(finding)
        assert f"127.0.0.1:{replica.port}" in finding.found
        assert "wait_bgsave" in finding.found


def test_a_replica_that_cannot_be_asked_is_unknown(own_server: servers.StartServer) -> None:
    primary = own_server("--repl-diskless-sync-delay", "0")
    replica = own_server("--replicaof", "127.0.0.1", str(primary.port))
    with replica.client() as client:
        client.config_set("requirepass", "secret")
    with primary.client() as client:
        servers.wait_until(lambda: client.info("replication").get("slave0", {}).get("state") == "online", 60)
        report = doctor(client)
    (finding,) = [one for one in report.findings if one.check == "replica-clocks"]
    assert finding.status == "unknown", description(finding)
    assert str(replica.port) in finding.found
    assert not report.healthy


def test_rights_that_are_not_tried_are_those_of_transactions_and_of_doctor() -> None:
    untried = {
        "multi",
        "exec",
        "discard",
        "watch",
        "unwatch",
        "info",
        "config|get",
        "slowlog|get",
        "acl|dryrun",
        "scan",
        "type",
    }
    for role, tried in permissions.ROLES.items():
        assert set(access_rules.commands(role)) - set(tried) <= untried, role


def user(client: redis.Redis, *rules: str) -> redis.Redis:
    run(client, "ACL", "SETUSER", "worker", "reset", "on", ">password", *rules)
    kwargs = client.connection_pool.connection_kwargs
    return redis.Redis(
        host=kwargs["host"],
        port=kwargs["port"],
        username="worker",
        password="password",  # noqa: S106
        retry=Retry(NoBackoff(), 0),
    )


WORKER = [f"+{command}" for command in permissions.ROLES["worker"]]
ASKING = ["+info", "+ping", "+config|get", "+slowlog|get", "+multi", "+discard"]


@pytest.fixture
def asking(server_name: str) -> list[str]:
    """Return what a user needs for doctor itself."""
    # Redis 6.2 takes rights of some subcommands only by the whole command
    return [right.split("|")[0] for right in ASKING] if server_name.startswith("redis-6") else ASKING


def test_a_worker_with_all_rights(redis_client: redis.Redis, asking: list[str]) -> None:
    with user(redis_client, "~leaseq:*", "-@all", *WORKER, *asking) as client:
        finding = found(client, "rights", "orders")
    assert finding.status == "ok", description(finding)


def test_a_missing_right_is_named(redis_client: redis.Redis, asking: list[str]) -> None:
    rules = [right for right in WORKER if right not in {"+hincrby", "+blpop"}]
    with user(redis_client, "~leaseq:*", "-@all", *rules, *asking) as client:
        finding = found(client, "rights")
    assert finding.status == "problem", description(finding)
    assert set(re.findall(r"\+[\w|]+", finding.found)) == {"+hincrby", "+blpop"}


def test_rights_are_tried_on_the_keys_of_the_queue(redis_client: redis.Redis, asking: list[str]) -> None:
    pattern = ["~leaseq:{orders}:*", "~leaseq:queues"]
    with user(redis_client, *pattern, "-@all", *WORKER, *asking) as client:
        assert found(client, "rights", "orders").status == "ok"
        other = found(client, "rights", "letters")
    assert other.status == "problem", description(other)
    assert "+get" in other.found


def test_a_cleaner_lacks_what_only_workers_do(redis_client: redis.Redis, asking: list[str]) -> None:
    rules = [f"+{command}" for command in permissions.ROLES["cleaner"]]
    if "+config" in asking:
        rules = [rule.replace("+memory|usage", "+memory") for rule in rules]
    with user(redis_client, "~leaseq:*", "-@all", *rules, *asking) as client:
        assert found(client, "rights", role="cleaner").status == "ok"
        lacking = found(client, "rights", role="worker")
    assert set(re.findall(r"\+([\w|]+)", lacking.found)) == {"blpop", "blmove", "hsetnx", "sadd"}


def test_a_user_who_may_not_write_the_registry_gets_advice(
    redis_client: redis.Redis, asking: list[str]
) -> None:
    with user(redis_client, "~leaseq:{orders}:*", "-@all", *WORKER, *asking) as client:
        finding = found(client, "rights", "orders")
    assert finding.status == "advice", description(finding)
    assert "+sadd" in finding.do


def test_what_may_not_be_asked_is_unknown_and_no_pass(redis_client: redis.Redis) -> None:
    with user(redis_client, "~leaseq:*", "-@all", *WORKER) as client:
        report = doctor(client, ["orders"])
    status = {one.check: one.status for one in report.findings}
    for check in ("version", "eviction", "memory", "persistence", "replication", "slow-scripts"):
        assert status[check] == "unknown", check
    # a worker may not look at queues either
    assert status["limits"] == "unknown"
    assert (status["scripting"], status["clock"]) == ("ok", "ok")
    assert not report.healthy


def test_retries_of_a_client(url: str) -> None:
    with redis.Redis.from_url(url) as client:
        kwargs = client.connection_pool.connection_kwargs
        assert found(client, "retries").status == "ok"
    with redis.Redis(host=kwargs["host"], port=kwargs["port"]) as client:  # redis-py's own default
        finding = found(client, "retries")
    counted = hasattr(Retry, "get_retries")  # redis-py from 6 on
    if counted:  # before, it repeated nothing
        assert finding.status == "advice", description(finding)
        assert re.search(r"up to \d+ times", finding.found)
    with redis.Redis.from_url(url, retry_on_timeout=True) as client:
        assert ("up to 1 times" if counted else "at times") in found(client, "retries").found
    with redis.Redis.from_url(url, retry=Retry(NoBackoff(), 0)) as client:
        assert found(client, "retries").status == "ok"


def test_a_clock_that_was_set_back(redis_client: redis.Redis, queue: leaseq.WorkQueue) -> None:
    queue.add_item(leaseq.Item("x"))
    assert found(redis_client, "clock-steps", "q").status == "ok"
    state = redis_client.get("leaseq:{q}:q:state")
    assert isinstance(state, bytes)
    ahead = struct.pack("<d", struct.unpack_from("<2xd", state)[0] + 3600e6)
    redis_client.set("leaseq:{q}:q:state", state[:2] + ahead + state[10:])
    finding = found(redis_client, "clock-steps", "q")
    assert finding.status == "problem", description(finding)
    assert re.search(r"by 3[56]\d\d\.\d s", finding.found)


def test_a_server_whose_clock_differs(redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    # the machine has one clock: this process gets another
    real = time.time
    monkeypatch.setattr("leaseq.doctor.clock.time.time", lambda: real() - 3600)
    finding = found(redis_client, "clock")
    assert finding.status == "advice", description(finding)
    assert "ahead of this machine's" in finding.found


class StalledClock:
    """The clock of a machine that stood still for 40 s within each of the first three looks at the server's."""

    def __init__(self) -> None:
        self.readings = 0

    def monotonic(self) -> float:
        self.readings += 1
        return time.monotonic() + 40.0 * min(self.readings // 2, 3)

    time = staticmethod(time.time)


def test_a_stall_makes_no_clock_differ(redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node(redis_client, "server")
    late = iter([20.0, 20.0, 20.0])
    real = node.time
    monkeypatch.setattr(node, "time", lambda: real() - next(late, 0.0))
    # a clock of the module's own: redis-py and other threads read that of the process
    clock = StalledClock()
    monkeypatch.setattr("leaseq.doctor.clock.time", clock)
    ahead, unsure = offset(node)
    assert clock.readings > 6
    assert abs(ahead) - unsure < 5


def test_a_queue_near_its_limit(redis_client: redis.Redis, queue: leaseq.WorkQueue) -> None:
    queue.configure(max_items=10)
    queue.add_items([leaseq.Item("x") for _ in range(8)])
    assert found(redis_client, "limits", "q").status == "ok"
    queue.add_item(leaseq.Item("x"))
    finding = found(redis_client, "limits", "q")
    assert finding.status == "problem", description(finding)
    assert "9 of 10" in finding.found


def test_dead_letters_are_not_held(redis_client: redis.Redis, queue: leaseq.WorkQueue) -> None:
    """LQ-CONFIG-2: a limit of items does not count them."""
    queue.configure(max_items=10)
    queue.add_items([leaseq.Item("x") for _ in range(9)])
    for item in queue.lease_items(9, 30):
        queue.dead_letter(item)
    queue.add_item(leaseq.Item("x"))
    assert found(redis_client, "limits", "q").status == "ok"


@pytest.mark.parametrize("several", [False, True])
def test_items_in_no_state_or_in_several(
    redis_client: redis.Redis, queue: leaseq.WorkQueue, *, several: bool
) -> None:
    queue.add_item(leaseq.Item("x", id="a"))
    assert found(redis_client, "places", "q").status == "ok"
    if several:
        redis_client.zadd("leaseq:{q}:q:leased", {"a": (queue.stats().now + 60) * 1e6})
    else:
        redis_client.zrem("leaseq:{q}:q:ready", "a")
    finding = found(redis_client, "places", "q")
    assert (finding.status, finding.do) == ("problem", "leaseq clean q --group q --deep")


def test_overdue_leases_that_nobody_cleans(redis_client: redis.Redis, queue: leaseq.WorkQueue) -> None:
    queue.add_item(leaseq.Item("x", id="a"))
    assert queue.lease(3600) is not None
    assert found(redis_client, "overdue", "q").status == "ok"
    long_ago = (queue.stats().now - 600) * 1e6
    redis_client.zadd("leaseq:{q}:q:leased", {"a": long_ago})
    finding = found(redis_client, "overdue", "q")
    assert finding.status == "problem", description(finding)
    assert finding.found.startswith("1 leases are over, for up to ")  # not what there is none of
    assert "leaseq-cleaner" in finding.do
    queue.pause()
    assert found(redis_client, "overdue", "q").status == "advice"


def test_due_items_that_nobody_promotes(redis_client: redis.Redis, queue: leaseq.WorkQueue) -> None:
    queue.add_item(leaseq.Item("x", id="a"), delay=3600)
    assert found(redis_client, "overdue", "q").status == "ok"
    redis_client.zadd("leaseq:{q}:q:delayed", {"a": (queue.stats().now - 600) * 1e6})
    finding = found(redis_client, "overdue", "q")
    assert finding.status == "problem", description(finding)


@pytest.mark.parametrize("longest", ["leased", "delayed"])
def test_of_leases_and_due_items_the_longest_overdue_counts(
    redis_client: redis.Redis, queue: leaseq.WorkQueue, longest: str
) -> None:
    queue.add_item(leaseq.Item("x", id="leased"))
    assert queue.lease(3600) is not None
    queue.add_item(leaseq.Item("x", id="delayed"), delay=3600)
    now = queue.stats().now
    for state in ("leased", "delayed"):
        late_secs = 600 if state == longest else 1
        redis_client.zadd(f"leaseq:{{q}}:q:{state}", {state: (now - late_secs) * 1e6})
    finding = found(redis_client, "overdue", "q")
    assert finding.status == "problem", description(finding)
    counts = "1 leases are over and 1 delayed items are due"
    assert re.match(rf"{counts}, for up to 6\d\d s: ", finding.found), description(finding)


def test_ready_items_that_nobody_leases(
    redis_client: redis.Redis, queue: leaseq.WorkQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.add_items([leaseq.Item("x"), leaseq.Item("y")])
    assert found(redis_client, "waiting", "q").status == "ok"
    monkeypatch.setattr(cleaning, "WAITING_SECS", 0.05)
    time.sleep(0.1)
    finding = found(redis_client, "waiting", "q")
    assert finding.status == "advice", description(finding)
    assert finding.found.startswith("2 items are ready")
    assert queue.lease(3600) is not None
    assert found(redis_client, "waiting", "q").status == "ok"


def test_items_in_no_state(redis_client: redis.Redis, queue: leaseq.WorkQueue, url: str) -> None:
    queue.add_items([leaseq.Item("x", id="a"), leaseq.Item("y", id="b")])
    assert found(redis_client, "places", "q").status == "ok"
    redis_client.zrem("leaseq:{q}:q:ready", "a")
    finding = found(redis_client, "places", "q")
    assert finding.status == "problem", description(finding)
    Calls(url).yes(*finding.do.split()[1:])
    assert found(redis_client, "places", "q").status == "ok"


def test_registered_queues_without_keys_are_compared_with_no_other(
    redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 3000 registered queues each was compared with all of them, which took minutes."""
    monkeypatch.setattr(difflib, "get_close_matches", None)
    redis_client.sadd("leaseq:queues", "shop:order-1", "shop:order-2")
    assert found(redis_client, "used", "order-1", group="shop").status == "ok"


def test_a_queue_that_was_never_used(redis_client: redis.Redis) -> None:
    with leaseq.WorkQueue("orders", redis_client, group="shop") as queue:
        assert found(redis_client, "used", "orders", group="shop").status == "advice"
        queue.add_item(leaseq.Item("x"))
        assert found(redis_client, "used", "orders", group="shop").status == "ok"
        (item,) = queue.lease_items(1, 3600)
        queue.complete(item)
        assert found(redis_client, "used", "orders", group="shop").status == "ok"
        until(lambda: redis_client.scard("leaseq:queues"))
        for misspelt in (("ordres", "shop"), ("orders", None)):
            finding = found(redis_client, "used", misspelt[0], group=misspelt[1])
            assert finding.status == "problem", description(finding)
            assert "orders --group shop" in finding.found
        assert found(redis_client, "used", "letters").status == "advice"
        redis_client.set("leaseq:{broken}:broken:ready", "mine")
        reported = [
            one.status for one in doctor(redis_client, ["broken", "orders"]).findings if one.check == "used"
        ]
        assert reported == ["unknown", "problem"]


def test_a_lease_that_ends_in_weeks(redis_client: redis.Redis, queue: leaseq.WorkQueue) -> None:
    queue.add_items([leaseq.Item("x") for _ in range(3)])
    queue.lease(3600)
    assert found(redis_client, "leases", "q").status == "ok"
    queue.lease(29 * 86400)
    queue.lease(60)
    finding = found(redis_client, "leases", "q")
    assert (finding.status, finding.found[:26]) == ("advice", "a lease ends in 29.0 days "), description(
        finding
    )


def test_keys_of_another_program(redis_client: redis.Redis, url: str) -> None:
    app = App(url, queue="letters")

    @app.job(throttle="7d", keep=60)
    def remind(user: str) -> None:
        assert user != "{b}"
        (running,) = redis_client.keys("leaseq:{letters}:letters:job:*")
        assert found(redis_client, "keys").status == "ok", running

    @app.every(0.05, name="nightly")
    def letter() -> None: ...

    with app, leaseq.WorkQueue("q", redis_client) as queue:
        queue.configure(max_items=10)
        queue.add_items([leaseq.Item("x", id="{a}:b\nc")], keep=60)
        assert queue.complete(queue.lease_items(1, 3600)[0], result="so")
        remind.enqueue("a")
        remind.with_options(retries=0).enqueue("{b}")
        assert letter.with_options(id="{c}\n").enqueue().cancel()
        app.run_worker(burst=True, processes=1)
        app.schedules.pause("nightly")
        until(lambda: redis_client.scard("leaseq:queues"))
        finding = found(redis_client, "keys")
        assert finding.status == "ok", description(finding)
    for name in ("leaseq:mine", "leaseq:{q}:q:mine", "leaseq:{q}:q:jobs:a", "leaseq"):
        redis_client.set(name, "x")
    finding = found(redis_client, "keys")
    assert finding.status == "advice", description(finding)
    assert finding.found.startswith("3 keys that start with leaseq: are not of leaseq, such as leaseq:mine,")


@pytest.mark.parametrize("name", ["leaseq:queues", "leaseq:workers"])
def test_a_shared_key_of_another_type(redis_client: redis.Redis, name: str) -> None:
    redis_client.set(name, "mine")
    finding = found(redis_client, "keys")
    assert (finding.status, finding.do[-len(name) :]) == ("problem", name), description(finding)


def test_dead_letters(redis_client: redis.Redis, queue: leaseq.WorkQueue) -> None:
    queue.add_item(leaseq.Item("x", id="a"))
    assert found(redis_client, "dead", "q").status == "ok"
    item = queue.lease(3600)
    assert item is not None
    queue.dead_letter(item, error="so")
    finding = found(redis_client, "dead", "q")
    assert (finding.status, finding.found) == ("advice", "1 dead letters"), description(finding)
    assert finding.do.startswith("leaseq dead list q")


def test_a_server_that_refuses_writes_for_want_of_replicas(own_server: servers.StartServer) -> None:
    with own_server("--min-replicas-to-write", "1").client() as client:
        finding = found(client, "replication")
        assert finding.status == "problem", description(finding)
        assert "NOREPLICAS" in finding.found
        client.config_set("min-replicas-to-write", 0)
        assert found(client, "replication").status == "ok"


def test_a_pause(redis_client: redis.Redis, queue: leaseq.WorkQueue) -> None:
    assert found(redis_client, "paused", "q").status == "ok"
    queue.pause()
    assert found(redis_client, "paused", "q").status == "advice"


def test_a_queue_of_a_newer_format(redis_client: redis.Redis, queue: leaseq.WorkQueue) -> None:
    queue.add_item(leaseq.Item("x"))
    assert found(redis_client, "format", "q").status == "ok"
    state = redis_client.get("leaseq:{q}:q:state")
    assert isinstance(state, bytes)
    redis_client.set("leaseq:{q}:q:state", b"\x09" + state[1:])
    finding = found(redis_client, "format", "q")
    assert finding.status == "problem", description(finding)
    assert "update leaseq" in finding.do


def test_a_key_that_something_else_uses(redis_client: redis.Redis) -> None:
    redis_client.set("leaseq:{q}:q:ready", "mine")
    finding = found(redis_client, "format", "q")
    assert finding.status == "problem", description(finding)


@pytest.mark.slow
def test_slow_scripts(own_server: servers.StartServer) -> None:
    with own_server("--slowlog-log-slower-than", "0").client() as client:
        assert found(client, "slow-scripts").status == "ok"
        # what takes long in any server, on any machine
        slow = "local n = 0; for i = 1, 1000000 do n = n + i % 7 end return n"
        sha = client.script_load(slow)
        for _ in range(100):
            client.evalsha(sha, 0)
        finding = found(client, "slow-scripts")
    assert finding.status == "problem", description(finding)
    assert "ms each on average" in finding.found


def test_a_server_that_is_far_away(proxy: Listener) -> None:
    proxy.latency = 0.01
    with redis.Redis.from_url(proxy.url, retry=Retry(NoBackoff(), 0)) as client:
        finding = found(client, "latency")
    assert finding.status == "advice", description(finding)
    assert "lease_items" in finding.do


def test_a_server_that_is_away_is_an_error(own_server: servers.StartServer) -> None:
    server = own_server()
    client = server.client()
    server.stop()
    with client, pytest.raises(leaseq.UnavailableError, match="cannot be reached"):
        doctor(client)


def test_wrong_arguments_are_refused(redis_client: redis.Redis) -> None:
    with pytest.raises(
        leaseq.BadArgumentError, match="producer, worker, cleaner, reader, job-client, job-worker, operator"
    ):
        doctor(redis_client, role="boss")
    with pytest.raises(leaseq.BadNameError):
        doctor(redis_client, ["no name"])


def test_a_cluster_is_checked_node_by_node(cluster: servers.RedisCluster) -> None:
    with servers.cluster_client(cluster.url) as client:
        report = doctor(client, ["q"])
    nodes = {f"127.0.0.1:{node.port}" for node in cluster.nodes}
    assert {one.about for one in report.findings} == {"client", "queue q", *nodes}
    for one in report.findings:
        if one.check in {"rights", "scripting", "format"}:
            assert one.status == "ok", description(one)


def test_a_primary_with_few_slots_is_checked_and_one_without_is_not(cluster: servers.RedisCluster) -> None:
    """As during a reshard: one was just added, and another has its first slot, which few names reach."""
    few, empty, rest = cluster.primaries
    with servers.cluster_client(cluster.url) as client:
        owners = {
            slot: f"127.0.0.1:{found[0].port}" for slot, found in client.nodes_manager.slots_cache.items()
        }
    names = {primary: f"127.0.0.1:{primary.port}" for primary in cluster.primaries}
    tried = {
        key_slot(QueueKeys(PROBE_QUEUE, f"{PROBE_QUEUE}-{n}").key("state").encode()) for n in range(16384)
    }
    kept = next(slot for slot, owner in owners.items() if owner == names[few] and slot not in tried)
    moving = [slot for slot, owner in owners.items() if owner != names[rest] and slot != kept]
    with rest.client(decode_responses=True) as asked:
        rest_id = asked.execute_command("CLUSTER MYID")
    for node in (rest, few, empty):
        with node.client() as asked, asked.pipeline(transaction=False) as pipeline:
            for slot in moving:
                pipeline.execute_command("CLUSTER SETSLOT", slot, "NODE", rest_id)
            pipeline.execute(raise_on_error=False)  # one without slots may be a replica by then
    with servers.cluster_client(cluster.url) as client:
        report = doctor(client)
    assert {one.about for one in report.findings} == {"client", names[few], names[rest]}
    assert [one.check for one in report.findings if one.status == "unknown"] == []


def test_a_server_that_may_not_be_asked_is_not_healthy(own_server: servers.StartServer) -> None:
    """The command ends with 0 only if every check was made, and found no problem."""
    server = own_server(*DURABLE)
    with server.client() as client:
        rules = ("reset", "on", ">x", "~leaseq:*", "-@all", *WORKER)
        client.execute_command("ACL", "SETUSER", "half", *rules)
    done = Calls(server.url.replace("redis://", "redis://half:x@"))("doctor")
    assert re.search("^unknown ", done.out, re.MULTILINE), done.out
    assert not re.search("^problem ", done.out, re.MULTILINE), done.out
    assert done.code == 1


def test_the_command(own_server: servers.StartServer) -> None:
    server = own_server(*DURABLE)
    with leaseq.WorkQueue("orders", server.url) as queue:
        queue.add_item(leaseq.Item("x"))
    healthy = Calls(server.url)("doctor", "orders")
    assert healthy.code == 0, healthy.out
    assert "healthy: 24 checks, no problem" in healthy.out
    with server.client() as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
    ill = Calls(server.url)("doctor", "--all", "--json")
    assert ill.code == 1
    findings = {(one["check"], one["about"]): one for one in json.loads(ill.out)}
    assert findings["eviction", f"127.0.0.1:{server.port}"]["status"] == "problem"
    assert findings["paused", "queue orders"]["status"] == "ok"
    for_people = Calls(server.url)("doctor")
    assert re.search(r"^problem +eviction .*allkeys-lru", for_people.out, re.MULTILINE)
    assert "→ CONFIG SET maxmemory-policy noeviction" in for_people.out
    wrong = Calls(server.url)("doctor", "no name")
    assert (wrong.code, wrong.err.count("\n")) == (2, 1)
    server.stop()
    away = Calls(server.url)("doctor")
    assert (away.code, away.err.count("\n")) == (3, 1)


def test_the_page_has_every_check_and_no_other() -> None:
    page = (DOCS / "doctor.md").read_text()
    assert re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE) == list(CHECKS)
