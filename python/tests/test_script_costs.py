"""What scripts cost: the commands that the hot paths execute, counted, and work that is bounded however long the queue."""

from collections import Counter
from collections.abc import Iterator

import pytest
import redis
from script_lab import HOUR_MS, START, Arg, Lab, Outcome, key, record, state

MIB = 1024 * 1024


@pytest.fixture
def lab(redis_client: redis.Redis) -> Iterator[Lab]:
    laboratory = Lab(redis_client)
    yield laboratory
    laboratory.close()


def executed(lab: Lab, script: str, *args: Arg) -> str:
    """The commands that a call executes, in order."""
    outcome = lab.watch(script, args)
    assert outcome.error is None
    return " ".join(command.name for command in outcome.commands)


# -- hot paths


def test_the_hot_paths_execute_these_commands_and_no_more(lab: Lab) -> None:
    """An item that uses no option costs exactly this. A feature that adds a command here slows everybody: move it."""
    lab.ok("add", 1, "before", "data", 0, now=START)
    lab.ok("lease", 1, HOUR_MS * 2, now=START)
    lab.client.lpush(key("wake"), "1")
    assert executed(lab, "add", 1, "a", "data", 0) == "TIME GET LLEN ZCARD HSETNX ZADD SET"
    assert executed(lab, "add", 1, "a", "data", 0) == "TIME GET LLEN ZCARD HSETNX"
    first = "TIME GET LLEN ZRANGE HGET HGET ZCARD ZREM ZADD HSET SET"
    assert executed(lab, "lease", 1, HOUR_MS) == first
    token = lab.ok("inspect", 1, "a")[3]
    assert executed(lab, "extend", 1, "a", token, HOUR_MS) == "TIME GET LLEN HMGET ZSCORE ZREM ZADD"
    assert executed(lab, "complete", 1, "a", token, 0) == "HGET HLEN ZREM HDEL HDEL"
    assert executed(lab, "complete", 1, "a", token, 0) == "HGET"


def test_a_sleeping_worker_costs_at_most_two_commands_more(lab: Lab) -> None:
    """The same where `wake` is empty, so that a worker may be asleep."""
    lab.ok("add", 2, "before", "data", 0, "after", "data", 0, now=START)
    lab.ok("lease", 1, HOUR_MS * 2, now=START)
    lab.client.delete(key("wake"))
    assert executed(lab, "add", 1, "a", "data", 0) == "TIME GET LLEN ZCARD HSETNX ZADD SET LPUSH"
    lab.client.delete(key("wake"))
    first = "TIME GET LLEN ZRANGE HGET HGET ZCARD ZREM ZADD HSET SET"
    assert executed(lab, "lease", 1, HOUR_MS) == f"{first} ZCARD LPUSH"


@pytest.mark.parametrize("count", [2, 10, 256])
def test_a_batch_costs_as_many_commands_as_its_smallest(lab: Lab, count: int) -> None:
    """Only HSETNX is executed for each entry; the rest takes all of them at once."""
    lab.ok("add", 1, "before", "", 0, now=START)
    lab.ok("lease", 1, HOUR_MS * 2, now=START)
    lab.client.lpush(key("wake"), "1")
    entries = [part for n in range(count) for part in (f"i{n}", "", 0)]
    outcome = lab.watch("add", [count, *entries])
    counts = Counter(command.name for command in outcome.commands)
    assert counts.pop("HSETNX") == count
    assert sum(counts.values()) == len(["TIME", "GET", "LLEN", "HLEN", "ZCARD", "ZCARD", "ZADD", "SET"])
    reply = lab.watch("lease", [count, HOUR_MS])
    lease = "TIME GET LLEN ZRANGE HMGET HMGET ZCARD ZREM ZADD HSET ZCARD SET"
    assert [command.name for command in reply.commands] == lease.split()
    entries = [part for n in range(count) for part in (f"i{n}", reply.reply[5 + 4 * n], 0)]
    outcome = lab.watch("complete", [count, *entries])
    complete = "HMGET HLEN ZCARD ZCARD ZCARD ZCARD ZREM HDEL HDEL"
    assert [command.name for command in outcome.commands] == complete.split()


# -- bounded work

MANY = 5000


def fill(lab: Lab, *, due: int, expired: int) -> None:
    """Put items on the server that are all due, or leased and expired."""
    ids = {"delayed": [f"d{n}" for n in range(due)], "leased": [f"l{n}" for n in range(expired)]}
    with lab.client.pipeline(transaction=False) as pipe:
        for where, names in ids.items():
            if names:
                pipe.zadd(key(where), {name: START + n for n, name in enumerate(names)})
                pipe.hset(key("items"), mapping=dict.fromkeys(names, "data"))
                pipe.hset(key("meta"), mapping=dict.fromkeys(names, record(current=START, created=START - 1)))
        pipe.set(key("state"), state(clock=START, next_due=START, largest=4))
        pipe.execute()


def lengths(lab: Lab) -> dict[str, int]:
    return {each: int(lab.client.zcard(key(each))) for each in ("ready", "delayed", "leased", "dead")}


def arguments(outcome: Outcome) -> int:
    """How much a call did: the arguments of all its commands."""
    return sum(1 + len(command.args) for command in outcome.commands)


def test_a_lease_moves_at_most_64_of_each_and_wakes_the_next(lab: Lab) -> None:
    """LQ-LEASE-5, LQ-SCRIPT-5, LQ-FAIL-1: one call on a queue where ten thousand items are due."""
    fill(lab, due=MANY, expired=MANY)
    outcome = lab.watch("lease", [1, HOUR_MS])
    assert (outcome.reply[0], outcome.reply[2]) == (0, 1)
    assert lengths(lab) == {"ready": 127, "delayed": MANY - 64, "leased": MANY - 64 + 1, "dead": 0}
    assert lab.client.llen(key("wake")) == 1
    much = arguments(outcome)
    lab.client.flushdb()
    fill(lab, due=65, expired=65)
    assert arguments(lab.watch("lease", [1, HOUR_MS])) == much


def test_a_lease_of_256_with_256_completed_is_bounded_alike(lab: Lab) -> None:
    """LQ-FUSED-1, LQ-SCRIPT-5: what was completed is no part of the 64."""
    fill(lab, due=MANY, expired=MANY)
    entries = [part for n in range(256) for part in (f"l{n}", START, 0)]
    outcome = lab.watch("complete_and_lease", [256, HOUR_MS, 256, *entries])
    assert outcome.reply[2] == 128
    assert outcome.reply[-256:] == [1] * 256
    assert lengths(lab) == {"ready": 0, "delayed": MANY - 64, "leased": MANY - 256 - 64 + 128, "dead": 0}
    assert lab.client.llen(key("wake")) == 1, "more is due: another worker must not sleep"
    much = arguments(outcome)
    lab.client.flushdb()
    fill(lab, due=400, expired=400)
    assert arguments(lab.watch("complete_and_lease", [256, HOUR_MS, 256, *entries])) == much


@pytest.mark.parametrize("limit", [1, 100, 256])
def test_a_light_clean_moves_at_most_its_limit_and_says_that_more_is_left(lab: Lab, limit: int) -> None:
    """LQ-LIGHT-1, LQ-LIGHT-3, LQ-SCRIPT-5."""
    fill(lab, due=MANY, expired=MANY)
    outcome = lab.watch("light_clean", [limit])
    assert outcome.reply == [limit, limit, 0, 0]
    assert lengths(lab) == {"ready": 2 * limit, "delayed": MANY - limit, "leased": MANY - limit, "dead": 0}
    much = arguments(outcome)
    lab.client.flushdb()
    fill(lab, due=limit + 1, expired=limit + 1)
    assert arguments(lab.watch("light_clean", [limit])) == much


def test_light_cleans_until_wait_is_not_0_move_everything(lab: Lab) -> None:
    """LQ-LIGHT-3: 0 is said exactly as long as more is left."""
    fill(lab, due=1000, expired=600)
    replies: list[list[int]] = []
    while not replies or replies[-1][3] == 0:
        replies.append(lab.ok("light_clean", 256))
    assert replies == [[256, 256, 0, 0], [256, 256, 0, 0], [256, 88, 0, 0], [232, 0, 0, -1]]
    assert lengths(lab) == {"ready": 1600, "delayed": 0, "leased": 0, "dead": 0}


@pytest.mark.parametrize("script", ["stats", "settle", "inspect", "list"])
def test_other_calls_do_not_grow_with_the_queue(lab: Lab, script: str) -> None:
    """LQ-SCRIPT-5."""
    samples: dict[str, list[Arg]] = {"inspect": [2, "d1", "l1"], "list": ["delayed", 10, 5, "backward"]}
    args = samples.get(script, [])
    much = []
    for size in (100, MANY):
        lab.client.flushdb()
        fill(lab, due=size, expired=size)
        much.append(arguments(lab.watch(script, args)))
    assert much[0] == much[1]


def test_a_deep_clean_looks_at_about_its_limit(lab: Lab) -> None:
    """LQ-DEEP-1, LQ-SCRIPT-5: a page of a long queue costs no more than some commands for each of its ids."""
    fill(lab, due=MANY, expired=MANY)
    cursor, pages = b"0", 0
    while True:
        outcome = lab.watch("deep_clean", [cursor, 100, 1])
        cursor, pages = outcome.reply[0], pages + 1
        assert len(outcome.commands) < 20 + 6 * 250
        if cursor == b"0":
            break
    assert pages >= 4 * MANY / 250


# -- bytes


def leased(lab: Lab, script: str, count: int) -> int:
    """How many items a lease of `count` gives."""
    more: list[Arg] = [1, "none", 1, 0] if script == "complete_and_lease" else []
    return int(lab.ok(script, count, HOUR_MS, *more)[2])


@pytest.mark.parametrize("script", ["lease", "complete_and_lease"])
@pytest.mark.parametrize("lost", [False, True], ids=["", "state lost"])
def test_a_lease_stops_at_1_mib_but_not_before_the_first_item(lab: Lab, script: str, lost: bool) -> None:
    """LQ-LEASE-6."""
    big = b"x" * 200 * 1024
    lab.ok("add", 20, *(part for n in range(20) for part in (f"i{n}", big, 0)), now=START)
    if lost:
        lab.client.delete(key("state"))
    left = 20
    while left:
        assert leased(lab, script, 20) == min(5, left)
        left -= min(5, left)
    assert leased(lab, script, 20) == 0


@pytest.mark.parametrize("script", ["lease", "complete_and_lease"])
@pytest.mark.parametrize(
    ("sizes", "given"),
    [
        ([256 * 1024] * 4, [4]),
        ([256 * 1024] * 3 + [256 * 1024 + 1], [3, 1]),
        ([2 * MIB, 1, 2 * MIB, 2 * MIB], [1, 1, 1, 1]),
        ([0] * 200 + [MIB] + [0] * 9, [210]),
        ([0] * 200 + [MIB, 1], [201, 1]),
        ([MIB + 1] + [0] * 9, [1, 9]),
        ([5000] * 256, [209, 47]),
    ],
    ids=["exactly", "one byte more", "too big", "many small and one", "and one byte", "big first", "medium"],
)
def test_the_budget_is_exact(lab: Lab, script: str, sizes: list[int], given: list[int]) -> None:
    """LQ-LEASE-6: 1048576 bytes fit, one more does not."""
    lab.ok("configure", 1, "max_data", 4 * MIB)
    lab.ok(
        "add",
        len(sizes),
        *(part for n, size in enumerate(sizes) for part in (f"i{n}", b"x" * size, 0)),
        now=START,
    )
    assert [leased(lab, script, 256) for _ in given] == given
    assert leased(lab, script, 256) == 0
