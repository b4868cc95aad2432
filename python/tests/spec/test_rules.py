"""Rules that no other test shows by the way: each test here is about one, which its docstring names first."""

from __future__ import annotations

import struct
import time
from itertools import chain
from typing import TYPE_CHECKING, Any

import pytest
from redis.cluster import LoadBalancingStrategy
from support import servers
from support.script_calls import cases
from support.script_lab import HOUR_MS, NOW, SCRIPTS, START, Arg, Lab, key, record, state, stored_state
from support.servers import PATIENCE

import leaseq
from leaseq import Item, commands
from leaseq.keys import QueueKeys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import redis
    from support.client_flavours import ClientFlavour

    from leaseq_conformance.fault_proxy import Listener

LEVEL = 2**50
NEVER = 2.0**53
STATES = ("ready", "delayed", "leased", "dead")
EVALS = ("cmdstat_evalsha", "cmdstat_eval")
every_script = pytest.mark.parametrize("name", sorted(SCRIPTS))


@pytest.fixture
def lab(redis_client: redis.Redis) -> Iterator[Lab]:
    laboratory = Lab(redis_client)
    yield laboratory
    laboratory.close()


def a_pass(lab: Lab) -> dict[str, int]:
    """What a whole pass of deep_clean repaired."""
    found: dict[str, int] = {}
    cursor = b"0"
    while True:
        cursor, *reply = lab.ok("deep_clean", cursor, 256, 0)
        for kind, count in zip(reply[::2], reply[1::2], strict=True):
            if count:
                found[kind.decode()] = found.get(kind.decode(), 0) + count
        if cursor == b"0":
            return found


def ran(client: redis.Redis, *names: str) -> int:
    """How often the server has run these commands since its statistics were reset."""
    stats: dict[str, Any] = client.info("commandstats")
    return sum(stats[name]["calls"] for name in names if name in stats)


def blocked(client: redis.Redis, count: int) -> None:
    """Wait until so many clients are blocked on the server."""
    servers.wait_until(lambda: client.info("clients")["blocked_clients"] == count)


def load(client: redis.Redis) -> None:
    """Make every script known, so that each call is one command."""
    for script in SCRIPTS.values():
        client.script_load(script.source)


# -- calls


def test_one_entry_is_answered_bare_and_several_in_their_order(lab: Lab) -> None:
    """LQ-CALL-4."""
    lab.queue("full")
    token = lab.tokens
    first = lab.ok("add", 1, "n1", "", 0)
    assert isinstance(first, int)
    second, exists, third = lab.ok("add", 3, "n2", "", 0, "r1", "", 0, "n3", "", 0)
    assert (first < second < third, exists) == (True, 0)
    assert lab.ok("extend", 1, "c2", token["c2"], 1000) == NOW + 1_000_000
    assert lab.ok("extend", 2, "none", 1, 1, "c2", token["c2"], 5000) == [0, NOW + 5_000_000]
    assert lab.ok("complete", 1, "c1", token["c1"], 0) == 1
    assert lab.ok("complete", 3, "none", 1, 0, "s1", token["s1"], 0, "c1", token["c1"], 0) == [0, 1, 0]
    assert lab.ok("release", 1, "e3", token["e3"], 0) == b"ready"
    late: list[Arg] = ["e1", token["e1"], 1, "delay", 1]
    assert lab.ok("release", 3, "none", 1, 0, *late, "c2", token["c2"], 0) == [b"lost", b"delayed", b"dead"]
    assert lab.ok("remove", 1, "r1") == b"ready"
    assert lab.ok("remove", 3, "f1", "none", "x1") == [b"delayed", b"absent", b"dead"]


def test_a_last_call_of_one_entry_is_answered_like_the_others(flavour: ClientFlavour, url: str) -> None:
    """LQ-CALL-8: 257 entries are a call of 256 and one of 1, whose answer is bare."""
    queue = flavour.queue("q", url)
    ids = [str(number) for number in range(257)]
    assert queue.add_items(Item(b"x", id=i) for i in ids) == [True] * 257
    leased = queue.lease_items(256, 30) + queue.lease_items(1, 30)
    assert [item.id for item in leased] == ids
    assert queue.extend_items(leased, 60) == [True] * 257
    assert [info.id for info in queue.inspect_items(ids)] == ids
    assert queue.release_items(leased) == ["ready"] * 257
    leased = queue.lease_items(256, 30) + queue.lease_items(1, 30)
    assert queue.complete_items(leased) == [True] * 257
    assert queue.remove_items(ids) == ["absent"] * 257


@pytest.mark.parametrize(
    ("script", "args"),
    [
        ("lease", [1, 30_000]),
        ("lease", [3, 1]),
        ("complete_and_lease", [1, 7, 1, "none", 1, 0]),
        ("complete_and_lease", [3, 720 * HOUR_MS, 1, "none", 1, 0]),
    ],
)
@pytest.mark.parametrize("kind", ["full", "quiet"])
def test_a_deadline_is_the_servers_time_plus_the_duration(
    lab: Lab, script: str, args: list[Arg], kind: str
) -> None:
    """LQ-LEASE-4: alike for all items of a call, also where the clock that numbers them is ahead."""
    lab.queue(kind)
    ahead: Any = lab.client.get(key("state"))
    lab.client.set(key("state"), ahead[:2] + struct.pack("<d", NOW + 5_000_000) + ahead[10:])
    reply = lab.ok(script, *args)
    assert reply[2] == args[0]
    assert reply[1] == NOW + int(args[1]) * 1000
    for item in reply[3 : 3 + 4 * reply[2] : 4]:
        assert lab.client.zscore(key("leased"), item) == reply[1]


def test_stats_are_pairs_found_by_name(lab: Lab) -> None:
    """LQ-READ-2: the script answers names and integers; the client takes them in whatever order."""
    lab.queue("full")
    reply = lab.ok("stats")
    pairs = list(zip(reply[::2], reply[1::2], strict=True))
    assert all(isinstance(name, bytes) and isinstance(number, int) for name, number in pairs)
    numbers = dict(pairs)
    assert len(numbers) == len(pairs)
    assert (numbers[b"now"], numbers[b"items"], numbers[b"dead"], numbers[b"due"]) == (NOW, 16, 1, 3)
    parse = commands.stats(QueueKeys("q", None)).parse
    assert parse(list(chain(*reversed(pairs)))) == parse(reply)


def test_completed_is_what_was_added_and_is_no_longer_there(lab: Lab) -> None:
    """LQ-READ-3: less what was removed, dropped, purged or expired, and never below 0."""

    def completed() -> int:
        reply = lab.ok("stats")
        return int(dict(zip(reply[::2], reply[1::2], strict=True))[b"completed"])

    assert completed() == 0
    lab.ok("add", 7, *(part for n in range(7) for part in (f"i{n}", "", 0)))
    reply = lab.ok("lease", 3, HOUR_MS)
    assert completed() == 0
    lab.ok("complete", 2, reply[3], reply[5], 0, reply[7], reply[9], 0)
    lab.ok("remove", 1, "i3")
    lab.client.hdel(key("items"), "i4")
    assert lab.ok("lease", 1, HOUR_MS)[2] == 0, "it only found the id whose data is gone"
    assert completed() == 2
    lab.ok("add", 2, "late", "", 1, "expires_in", 1, "mortal", "", 2, "expires_in", 1, "expires_to", "dead")
    assert lab.ok("light_clean", 9, now=NOW + 1000)[2:4] == [1, 1]
    assert completed() == 2
    assert lab.ok("revive", 1, "mortal") == 1
    assert completed() == 2
    token = lab.ok("lease", 9, HOUR_MS)[-2]
    assert lab.ok("release", 1, "mortal", token, 1, "dead", 1) == b"dead"
    assert lab.ok("purge", 0, 1, "mortal") == 1
    assert completed() == 2
    lab.client.set(key("state"), state())
    assert completed() == 0


def test_the_workers_clock_means_nothing(
    flavour: ClientFlavour, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LQ-TIME-1: a worker whose clock is a year ahead stores and hears the server's times."""
    queue = flavour.queue("q", url)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 365 * 86_400)
    assert time.time() > real() + 86_400
    queue.add_items([Item(b"x", id="a"), Item(b"x", id="b")])
    queue.add_item(Item(b"x", id="late"), delay=1000)
    begun = queue.stats().now
    assert abs(begun - real()) < 60, "the server runs on this machine"
    item, other = queue.lease_items(2, 100)
    assert 0 < item.deadline - begun - 100 + 30 < 60
    assert queue.extend(item, 200)
    assert 0 < item.deadline - begun - 200 + 30 < 60
    assert queue.release(other, delay=300) == "delayed"
    for item_id, after in {"a": 200, "b": 300, "late": 1000}.items():
        info = queue.inspect(item_id)
        assert abs(info.time - begun - after) < 30, item_id
        assert abs(info.created - begun) < 30, item_id


# -- repair


def test_ids_without_data_are_taken_out_and_counted(lab: Lab) -> None:
    """LQ-DEEP-6: from every sorted set, and their records with them; items beside them stay."""
    lab.queue("quiet")
    before = {name: set(lab.client.zrange(key(name), 0, -1)) for name in STATES}
    for at, name in enumerate(STATES):
        lab.client.zadd(key(name), {f"g{at}": START - 1_735_689_600_000_000 if name == "ready" else START})
        lab.client.hset(key("meta"), f"g{at}", record())
    assert a_pass(lab) == {"record_without_item": 4, "dropped": 4, "next_due": 1}
    assert {name: set(lab.client.zrange(key(name), 0, -1)) for name in STATES} == before
    assert not any(lab.client.hmget(key("meta"), [f"g{at}" for at in range(4)]))
    assert lab.client.hget(key("counters"), "dropped") == b"4"


@pytest.mark.parametrize("score", ["inf", "-inf", -1, 8 * LEVEL, -8 * LEVEL])
@pytest.mark.parametrize("where", ["ready", "delayed", "dead"])
def test_a_time_that_no_clock_gave_is_replaced(lab: Lab, where: str, score: float | str) -> None:
    """LQ-DEEP-11: the item can be leased again or listed, the clock stays where it is, other leases complete."""
    lab.lease_new("held", 10 * HOUR_MS)
    lab.ok("add", 2, "before", "", 1, "priority", 1, "x", "", 1, "priority", 1)
    lab.client.zrem(key("ready"), "x")
    lab.client.zadd(key(where), {"x": float(score)})
    found = a_pass(lab)
    assert found.pop("bad_time") == 1
    assert set(found) <= {"next_due"}
    assert NOW <= stored_state(lab)[2] < NOW + 1000
    if where == "dead":
        assert lab.ok("list", "dead", 0, 10, "forward") == [1, b"x", NOW]
        token = 0
    else:
        reply = lab.ok("lease", 2, 1000, now=NOW + 10)
        assert reply[3::4] == [b"before", b"x"], "at the back of its priority"
        token = reply[9]
        assert NOW < token < NOW + 1000
    assert lab.ok("complete", 2, "x", token, 0, "held", lab.tokens["held"], 0) == [int(token > 0), 1]
    assert a_pass(lab) == {}


def test_a_place_between_two_microseconds_is_replaced(lab: Lab) -> None:
    """LQ-DEEP-11: a clock raised to half a microsecond would make every token from then on unfit."""
    lab.ok("add", 1, "x", "", 0)
    lab.client.zadd(key("ready"), {"x": NOW + HOUR_MS - 1_735_689_600_000_000 + 0.5})
    assert a_pass(lab) == {"bad_time": 1}
    assert lab.ok("lease", 1, 1000, now=NOW + 10)[5] < NOW + 1000


def test_a_clock_that_is_no_number_is_set(lab: Lab) -> None:
    """LQ-DEEP-9: tokens are whole and grow again."""
    lab.lease_new("x", HOUR_MS)
    stored: Any = lab.client.get(key("state"))
    lab.client.set(key("state"), stored[:2] + struct.pack("<d", float("nan")) + stored[10:])
    assert a_pass(lab) == {"clock": 1}
    lab.ok("add", 1, "y", "", 0, now=NOW + 10)
    assert lab.ok("lease", 1, 1000, now=NOW + 20)[5] > lab.tokens["x"]


def test_an_infinite_deadline_ends(lab: Lab) -> None:
    """LQ-DEEP-8: a lease that would never end is reclaimed, and its token still completes."""
    lab.lease_new("x", HOUR_MS)
    lab.client.zadd(key("leased"), {"x": float("inf")})
    assert a_pass(lab)["far_deadline"] == 1
    reply = lab.ok("lease", 1, 1000, now=NOW + 1)
    assert (reply[3], reply[6]) == (b"x", 2)
    assert lab.ok("complete", 1, "x", lab.tokens["x"], 0) == 1


# -- who is woken


@every_script
def test_wake_and_room_never_have_two_elements(lab: Lab, name: str) -> None:
    """LQ-SETTLE-2: whether they have one before or not, and when the call is made once more."""
    lists = [key(on + each) for on in ("", "other:") for each in ("wake", "room")]
    for call, kind in cases(lab, name):
        for before in (0, 1):
            lab.queue(kind)
            lab.client.delete(*lists)
            if before:
                for each in lists:
                    lab.client.rpush(each, "1")
            for _ in range(2):
                assert call.run(lab).error is None
                assert all(before <= lab.client.llen(each) <= 1 for each in lists), (call, kind)


FUSED: list[Arg] = [1, "none", 1, 0]
EMPTY_LEASES = pytest.mark.parametrize(
    ("script", "args"),
    [("lease", [1, 1000]), ("lease", [2, 1000]), ("complete_and_lease", [1, 1000, *FUSED])],
)


@EMPTY_LEASES
@pytest.mark.parametrize("passed", [False, True], ids=["bound ahead", "bound passed"])
def test_an_empty_lease_tells_no_later_time_than_it_stores(
    lab: Lab, script: str, args: list[Arg], passed: bool
) -> None:
    """LQ-SETTLE-7: after removals, which leave the bound too early; else nobody announces what lies between."""
    lab.ok("add", 2, "soon", "", 1, "delay", 1000, "late", "", 1, "delay", 9000, now=NOW)
    lab.ok("remove", 1, "soon")
    now = NOW + (1_500_000 if passed else 500_000)
    reply = lab.ok(script, *args, now=now)
    assert reply[:3] == [NOW + 9_000_000 - now, 0, 0]
    assert now + reply[0] <= stored_state(lab)[3]
    lab.client.delete(key("wake"))
    lab.ok("add", 1, "between", "", 1, "delay", 2000, now=now)
    assert lab.client.llen(key("wake")) == 1
    lab.ok("remove", 2, "late", "between")
    assert lab.ok(script, *args, now=now)[0] == -1
    assert stored_state(lab)[3] == NEVER


@EMPTY_LEASES
def test_an_empty_lease_wakes_nobody(lab: Lab, script: str, args: list[Arg]) -> None:
    """LQ-SETTLE-6: on an empty queue, one that waits, one whose bound is old, one where the lease finds only deaths."""
    for kind in ("empty", "stale"):
        lab.queue(kind)
        assert lab.ok(script, *args)[2] == 0
        assert lab.client.llen(key("wake")) == 0, kind
    lab.client.flushdb()
    lab.ok("add", 1, "mortal", "", 1, "max_attempts", 1)
    assert lab.ok("lease", 1, 1)[2] == 1
    lab.ok("add", 1, "soon", "", 1, "delay", 3000)
    lab.client.delete(key("wake"))
    assert lab.ok(script, *args, now=NOW + 1000)[:3] == [2_999_000, 0, 0]
    assert lab.client.zcard(key("dead")) == 1
    assert lab.client.llen(key("wake")) == 0


# -- waiting


def test_no_block_is_shorter_than_10_ms(flavour: ClientFlavour, redis_client: redis.Redis, url: str) -> None:
    """LQ-BLOCK-3: where the user has little time left, or something is due very soon."""
    queue = flavour.queue("q", url)
    seen: list[float] = []
    watching: Any = redis_client.monitor()  # type: ignore[no-untyped-call]
    with watching as monitor, servers.plain_client(url) as other:
        for milliseconds in (1, 4, 9, 10, 11, 12, 14, 16, 20, 30):
            assert queue.lease(30, timeout=milliseconds / 1000) is None
            queue.add_item(Item(b"x"), delay=milliseconds / 1000)
            item = queue.lease(30, timeout=PATIENCE)
            assert item is not None
            assert queue.complete(item)
        other.echo("the end")
        while "the end" not in (command := monitor.next_command()["command"]):
            if command.startswith("BLPOP"):
                seen.append(float(command.split()[-1]))
    assert seen
    assert min(seen) >= 0.01


@pytest.mark.parametrize("block", [True, False])
def test_a_lease_that_may_have_more_is_asked_again_at_once(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str, block: bool
) -> None:
    """LQ-BLOCK-4: 130 expired leases that end in death come before the item that can be leased."""
    queue = flavour.queue("q", url)
    load(redis_client)
    queue.add_items([Item(b"x", id=str(n)) for n in range(130)], max_attempts=1)
    assert len(queue.lease_items(130, 0.001)) == 130
    queue.add_item(Item(b"x", id="last"))
    servers.wait_until(lambda: queue.stats().overdue == 130)
    state_now: Any = redis_client.get("leaseq:{q}:q:state")
    assert struct.unpack("<d", state_now[10:18])[0] < queue.stats().now * 1_000_000
    # behind the others, so that the first two calls of three come back with nothing
    redis_client.zrem("leaseq:{q}:q:ready", "last")
    redis_client.zadd("leaseq:{q}:q:leased", {"last": int(queue.stats().now * 1_000_000)})
    redis_client.config_resetstat()
    item = queue.lease(30, block=block, timeout=5)
    assert item is not None
    assert item.id == "last"
    assert ran(redis_client, *EVALS) == 3
    assert ran(redis_client, "cmdstat_blpop") == 0


SAYS = {"READONLY": "read.?only", "NOREPLICAS": "NOREPLICAS", "NOPERM": "permissions"}


@pytest.mark.parametrize("owned", [True, False], ids=["url", "the callers client"])
@pytest.mark.parametrize("why", ["READONLY", "NOREPLICAS", "NOPERM"])
def test_an_error_that_a_block_is_answered_ends_the_wait(
    flavour: ClientFlavour, own_server: Callable[..., servers.SpawnedServer], why: str, owned: bool
) -> None:
    """LQ-BLOCK-10: a lease of an empty queue goes on working, so waiting on would be a busy loop."""
    server = own_server()
    with server.client() as client:
        load(client)
        url = server.url
        if why == "NOPERM":
            rights = ["on", ">pw", "~*", "&*", "+@all", "-blpop"]
            client.execute_command("ACL", "SETUSER", "worker", *rights)
            url = url.replace("redis://", "redis://worker:pw@")
        queue = flavour.queue("q", url if owned else flavour.client(url))
        if why == "NOREPLICAS":
            client.config_set("min-replicas-to-write", 1)
        if why == "READONLY":
            client.replicaof("127.0.0.1", "1")
        client.config_resetstat()
        waiting = flavour.start(queue.lease, 30, timeout=PATIENCE)
        with pytest.raises(leaseq.ServerError, match=SAYS[why]) as caught:
            waiting.result(PATIENCE)
        assert caught.value.definite
        assert ran(client, *EVALS, "cmdstat_blpop") <= 6
        assert ran(client, *EVALS) >= 1


def test_a_server_that_becomes_a_replica_under_a_block_ends_the_wait(
    flavour: ClientFlavour, own_server: Callable[..., servers.SpawnedServer]
) -> None:
    """LQ-BLOCK-10: the server ends the block, which may cost the connection; the wait does not go round in circles."""
    server = own_server()
    with server.client() as client:
        load(client)
        queue = flavour.queue("q", flavour.client(server.url))
        waiting = flavour.start(queue.lease, 30, timeout=PATIENCE)
        blocked(client, 1)
        client.config_resetstat()
        client.replicaof("127.0.0.1", "1")
        with pytest.raises((leaseq.ServerError, leaseq.ReplyLostError)):
            waiting.result(PATIENCE)
        with pytest.raises(leaseq.ServerError, match=SAYS["READONLY"]) as caught:
            queue.lease(30, timeout=PATIENCE)
        assert caught.value.definite
        assert ran(client, *EVALS, "cmdstat_blpop") <= 9


def test_a_lease_lost_behind_a_block_is_not_sent_again(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str, proxy: Listener
) -> None:
    """LQ-BLOCK-11: it has run, so the caller is told that nobody knows."""
    queue, other = flavour.queue("q", proxy.url), flavour.queue("q", url)
    load(redis_client)
    other.add_items([Item(b"x", id="a"), Item(b"x", id="b")], delay=0.4)
    waiting = flavour.start(queue.lease, 30, timeout=PATIENCE)
    blocked(redis_client, 1)
    proxy.discard_replies = True
    servers.wait_until(lambda: other.stats().leases == 1)
    proxy.discard_replies = False
    proxy.reset()
    with pytest.raises(leaseq.ReplyLostError) as caught:
        waiting.result(PATIENCE)
    assert not caught.value.definite
    stats = other.stats()
    assert (stats.leases, stats.leased, stats.ready) == (1, 1, 1)


# -- what a client does besides


def test_whether_a_lease_is_lost_is_for_the_server_to_say(
    flavour: ClientFlavour, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LQ-CLIENT-3: this client counts no lease down for its user, and it extends them on a clock that cannot be set.

    `lost` is what the server answered and nothing else. A client that says more must show here from when it counts.
    """
    queue, other = flavour.queue("q", url), flavour.queue("q", url)
    queue.add_items([Item(b"x", id="a"), Item(b"x", id="b")])
    held = queue.lease(0.05)
    assert held is not None
    real = time.time
    with queue.lease(6) as worked:  # type: ignore[union-attr]  # there is one
        for offset in (-86_400, 86_400):
            monkeypatch.setattr(time, "time", lambda offset=offset: real() + offset)
            ends = other.inspect("b").time
            servers.wait_until(lambda ends=ends: other.inspect("b").time > ends)  # type: ignore[misc]
            assert not held.lost
            assert not worked.lost
    assert other.stats().reclaimed == 0
    assert queue.extend(held, 30), "over, but nobody else has it yet"
    assert not held.lost
    assert other.release(held) == "ready"
    assert not queue.extend(held, 30)
    assert held.lost


def test_nothing_is_asked_of_a_replica(flavour: ClientFlavour, startable_name: str) -> None:
    """LQ-CLIENT-5: of a cluster client that reads from replicas the queue only uses the primary."""
    with (
        servers.RedisCluster(startable_name, primaries=1, replicas=1) as cluster,
        cluster.nodes[0].client() as first,
        cluster.nodes[1].client() as second,
    ):
        client = flavour.cluster_client(
            cluster.url, load_balancing_strategy=LoadBalancingStrategy.ROUND_ROBIN_REPLICAS
        )
        queue = flavour.queue("q", client)
        first.config_resetstat()
        second.config_resetstat()
        for _ in range(3):
            queue.add_item(Item(b"x"))
            item = queue.lease(30)
            assert item is not None
            assert queue.extend(item, 60)
            assert (queue.stats().items, queue.inspect(item.id).state) == (1, "leased")
            assert queue.list_items("leased").total == 1
            assert queue.complete(item)
            assert queue.lease(30, timeout=0.05) is None
        assert ran(first, *EVALS) >= 3 * 7
        assert ran(first, "cmdstat_blpop") >= 3
        assert ran(second, *EVALS, "cmdstat_blpop", "cmdstat_readonly") == 0


def test_durations_are_the_nearest_millisecond_and_never_become_none() -> None:
    """LQ-CALL-12: the adapters of the conformance suite speak milliseconds, so no case of it can see this."""
    given = {0.0014: 1, 0.0016: 2, 1.0: 1000, 0.1 + 0.2: 300, 2592000.0: 2592000000}
    assert {secs: commands.milliseconds(secs, "lease_secs") for secs in given} == given
    with pytest.raises(leaseq.BadArgumentError):
        commands.add_options(keep=0.0004)
