"""What scripts cost: the commands that the hot paths execute, counted, and work that is bounded however long the queue."""

from collections import Counter
from collections.abc import Iterator, Sequence

import pytest
import redis
from support.script_calls import HERE, THERE, of, results
from support.script_lab import HOUR_MS, NOW, START, Arg, Lab, Outcome, key, record, state, tail

MIB = 1024 * 1024


@pytest.fixture
def lab(redis_client: redis.Redis) -> Iterator[Lab]:
    laboratory = Lab(redis_client)
    yield laboratory
    laboratory.close()


def executed(lab: Lab, script: str, *args: Arg, more: Sequence[str] = ()) -> str:
    """The commands that a call executes, in order."""
    outcome = lab.watch(script, args, more=more)
    assert outcome.error is None
    return " ".join(command.name for command in outcome.commands)


# -- hot paths


def test_the_hot_paths_execute_these_commands_and_no_more(lab: Lab) -> None:
    """An item that uses no option costs exactly this. A feature that adds a command here slows everybody: move it."""
    lab.ok("add", 1, "before", "data", 0, now=START)
    lab.ok("lease", 1, HOUR_MS * 2, now=START)
    lab.client.lpush(key("wake"), "1")
    assert executed(lab, "add", 1, "a", "data", 0) == "TIME GET LLEN HSETNX ZADD SET"
    assert executed(lab, "add", 1, "a", "data", 0) == "TIME GET LLEN HSETNX"
    first = "TIME GET LLEN ZRANGE HGET HGET ZREM ZADD HSET SET"
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
    assert executed(lab, "add", 1, "a", "data", 0) == "TIME GET LLEN HSETNX ZADD SET LPUSH"
    lab.client.delete(key("wake"))
    first = "TIME GET LLEN ZRANGE HGET HGET ZREM ZADD HSET SET"
    assert executed(lab, "lease", 1, HOUR_MS) == f"{first} ZCARD LPUSH"


def test_completing_one_and_leasing_the_next_costs_less_than_two_calls(lab: Lab) -> None:
    """The commands of lease and of complete, but for the look at the data, which lease reads anyhow."""
    lab.ok("add", 3, "a", "data", 0, "b", "data", 0, "c", "data", 0, now=START)
    token = lab.ok("lease", 1, HOUR_MS)[5]
    lab.client.lpush(key("wake"), "1")
    both = "TIME GET LLEN HGET ZRANGE HGET HGET ZREM HDEL HDEL ZREM ZADD HSET SET"
    outcome = lab.watch("complete_and_lease", [1, HOUR_MS, 1, "a", token, 0])
    assert " ".join(command.name for command in outcome.commands) == both
    assert (outcome.reply[3], outcome.reply[-1]) == (b"b", 1)
    token = outcome.reply[5]
    # one that somebody else has completed takes the long way, and so does the last item
    assert executed(lab, "complete_and_lease", 1, HOUR_MS, 1, "a", token, 0) != both
    assert lab.client.zrange(key("leased"), 0, -1) == [b"b", b"c"]


def test_one_that_is_not_leased_any_more_is_completed_wherever_it_is(lab: Lab) -> None:
    """LQ-FUSED-1: the short way finds it as `complete` does; at the head of the queue it is not leased instead."""
    for at in ("ready", "delayed", "dead", "head"):
        lab.client.flushdb()
        lab.ok("add", 1, "a", "data", 0, now=START)
        token = lab.ok("lease", 1, HOUR_MS)[5]
        if at == "head":
            lab.ok("release", 1, "a", token, 0)
        lab.ok("add", 2, "b", "data", 0, "c", "data", 0)
        if at in {"ready", "delayed"}:
            lab.ok("release", 1, "a", token, *([1, "delay", HOUR_MS] if at == "delayed" else [0]))
        if at == "dead":
            lab.ok("release", 1, "a", token, 1, "dead", 1)
        reply = lab.ok("complete_and_lease", 1, HOUR_MS, 1, "a", token, 0)
        assert (reply[2], reply[3], reply[-1]) == (1, b"b", 1)
        assert lab.client.hkeys(key("items")) == [b"b", b"c"]
        assert lab.client.hkeys(key("meta")) == [b"b"]
        places = ("ready", "delayed", "leased", "dead")
        assert [lab.client.zrange(key(place), 0, -1) for place in places] == [[b"c"], [], [b"b"], []]


@pytest.mark.parametrize("count", [2, 15, 16, 256])
def test_a_batch_costs_as_many_commands_as_its_smallest(lab: Lab, count: int) -> None:
    """Every command takes all entries at once. From 16 leases on, one more keeps their records quick to find."""
    lab.ok("add", 1, "before", "", 0, now=START)
    lab.ok("lease", 1, HOUR_MS * 2, now=START)
    lab.client.lpush(key("wake"), "1")
    entries = [part for n in range(count) for part in (f"i{n}", "", 0)]
    assert executed(lab, "add", count, *entries) == "TIME GET LLEN ZCARD HMGET HSET ZADD SET"
    assert executed(lab, "add", count, *entries) == "TIME GET LLEN ZCARD HMGET"
    reply = lab.watch("lease", [count, HOUR_MS])
    looked = "ZRANGE HEXISTS " * (count >= 16)
    lease = (
        f"TIME GET LLEN {looked}ZRANGE HMGET HMGET ZCARD ZREM ZADD HSET {'HDEL ' * (count >= 16)}ZCARD SET"
    )
    assert [command.name for command in reply.commands] == lease.split()
    entries = [part for n in range(count) for part in (f"i{n}", reply.reply[5 + 4 * n], 0)]
    outcome = lab.watch("complete", [count, *entries])
    complete = "HMGET HLEN ZCARD ZCARD ZCARD ZCARD ZREM HDEL HDEL"
    assert [command.name for command in outcome.commands] == complete.split()


@pytest.mark.parametrize("limited", ["data of more than 1 MiB together", "a limit", "outcomes"])
def test_a_batch_asks_for_each_id_where_it_may_not_read_the_data(lab: Lab, limited: str) -> None:
    """To tell by its data whether an id exists is for queues of small items, which have neither a limit nor outcomes."""
    lab.client.lpush(key("wake"), "1")
    if limited == "a limit":
        lab.ok("configure", 1, "max_items", 100)
    keep: list[Arg] = [1, "keep", HOUR_MS] if limited == "outcomes" else [0]
    size = MIB // 16 + 1 if limited.startswith("data") else 1
    lab.ok("add", 1, "before", "x" * size, *keep)
    entries = [part for n in range(16) for part in (f"i{n}", "", 0)]
    outcome = lab.watch("add", [16, *entries])
    assert Counter(command.name for command in outcome.commands)["HSETNX"] == 16
    if limited.startswith("data"):
        entries = [part for n in range(15) for part in (f"j{n}", "", 0)]
        assert "HSETNX" not in executed(lab, "add", 15, *entries)


def test_places_are_not_read_of_items_with_records(lab: Lab) -> None:
    """Where the first has a record; an item without one, whose place is its creation, is asked for alone."""
    ids = [f"i{n}" for n in range(20)]
    entries = [
        part
        for n, name in enumerate(ids)
        for part in (name, "", *([0] if n == 7 else [1, "max_attempts", 3]))
    ]
    created = lab.ok("add", 20, *entries)
    names = executed(lab, "lease", 20, HOUR_MS).split()
    assert names[3:9] == ["ZRANGE", "HEXISTS", "ZRANGE", "HMGET", "HMGET", "ZCARD"]
    assert names.count("ZSCORE") == 1
    assert [lab.ok("inspect", 1, name)[4] for name in ids] == created


def test_many_leases_are_looked_up_in_a_table(lab: Lab) -> None:
    """The server keeps a small hash as a list, in which to find one of 256 records takes it 3 us; nothing is left there."""
    lab.ok("add", 40, *[part for n in range(40) for part in (f"i{n}", "", 0)], now=START)
    lab.ok("lease", 15, HOUR_MS)
    assert lab.client.object("encoding", key("meta")) != b"hashtable"
    first = lab.ok("lease", 16, HOUR_MS)
    assert lab.client.object("encoding", key("meta")) == b"hashtable"
    assert lab.client.hlen(key("meta")) == 31
    given = [(first[3 + 4 * n], first[5 + 4 * n]) for n in range(16)]
    reply = lab.ok("complete_and_lease", 9, HOUR_MS, 16, *[part for one in given for part in (*one, 0)])
    assert (reply[2], reply[-16:]) == (9, [1] * 16)
    assert lab.client.hlen(key("meta")) == lab.client.zcard(key("leased")) == 24


def test_what_a_group_leases_is_all_it_reads_unless_its_own_may_be_among_it(lab: Lab) -> None:
    """LQ-FUSED-1: what was leased before and is ready may be what the call completes; then it looks further."""
    lab.ok("add", 9, *[part for n in range(9) for part in (f"i{n}", "", 0)], now=START)
    leased = lab.ok("lease", 5, HOUR_MS)
    given = [(leased[3 + 4 * n], leased[5 + 4 * n], 0) for n in range(5)]

    def looked(*entries: tuple[Arg, Arg, Arg]) -> list[int]:
        outcome = lab.watch(
            "complete_and_lease", [2, HOUR_MS, len(entries), *[part for one in entries for part in one]]
        )
        assert outcome.reply[-len(entries) :] == [1] * len(entries)
        return [int(command.args[2]) + 1 for command in outcome.commands if command.name == "ZRANGE"]

    assert looked(given[0], given[1]) == [2]
    lab.client.delete(key("ready"))
    lab.ok("release", 1, *given[2])
    # as far as there may be others in their place, and once more when they are gone
    assert looked(given[2], given[3], given[4])[:3] == [2, 5, 2]


# -- what options cost

ADD = "TIME GET LLEN HSETNX ZADD HSET SET"
HOT = "TIME GET LLEN ZRANGE HGET HGET ZREM ZADD HSET SET"
NOT_HOT = "TIME GET LLEN ZRANGE HGET HGET ZRANGE HMGET HMGET"


@pytest.mark.parametrize(
    ("options", "add", "lease"),
    [
        (["priority", 3], ADD, HOT),
        (["max_attempts", 3], ADD, HOT),
        (
            ["expires_in", HOUR_MS],
            "TIME GET LLEN HSETNX ZADD HSET ZADD SET",
            f"{NOT_HOT} ZCARD ZCARD ZREM ZADD HSET ZREM ZCARD SET",
        ),
        (["header:a", "1"], ADD, f"{NOT_HOT} ZCARD HMGET ZREM ZADD HSET ZCARD SET"),
        (
            ["header:a", "1", "header:b", "2", "content_type", "t"],
            ADD,
            f"{NOT_HOT} ZCARD HMGET ZREM ZADD HSET ZCARD SET",
        ),
        (["keep", HOUR_MS], ADD, f"{NOT_HOT} ZCARD ZREM ZADD HSET ZCARD SET"),
    ],
    ids=lambda case: str(case[0]) if isinstance(case, list) else "",
)
def test_an_option_costs_those_who_use_it(lab: Lab, options: list[Arg], add: str, lease: str) -> None:
    """A write to each key besides; extending and completing cost what they always do."""
    lab.ok("add", 1, "before", "data", 0, now=START)
    lab.ok("lease", 1, HOUR_MS * 2, now=START)
    lab.client.lpush(key("wake"), "1")
    assert executed(lab, "add", 1, "a", "data", len(options) // 2, *options) == add
    assert executed(lab, "lease", 1, HOUR_MS) == lease
    token = lab.ok("inspect", 1, "a")[3]
    assert executed(lab, "extend", 1, "a", token, HOUR_MS) == "TIME GET LLEN HMGET ZSCORE ZREM ZADD"
    assert executed(lab, "complete", 1, "a", token, 0) == "HGET HLEN ZREM HDEL HDEL"


def test_options_that_say_what_is_so_without_them_cost_nothing(lab: Lab) -> None:
    """No record, and so no look at where it would be."""
    lab.ok("add", 1, "before", "data", 0, now=START)
    lab.client.lpush(key("wake"), "1")
    plain = "TIME GET LLEN HSETNX ZADD SET"
    assert executed(lab, "add", 1, "a", "data", 2, "priority", 0, "delay", 0) == plain
    assert executed(lab, "add", 1, "b", "data", "00") == plain


def test_a_delay_costs_a_record_and_a_look_at_what_is_ready_where_nobody_is_awake(lab: Lab) -> None:
    """Who sleeps is woken where something is ready besides."""
    lab.ok("add", 1, "before", "data", 0, now=START)
    lab.client.delete(key("wake"))
    looks = "TIME GET LLEN ZCARD HSETNX ZADD HSET SET"
    assert executed(lab, "add", 1, "a", "data", 1, "delay", HOUR_MS) == f"{looks} LPUSH"
    assert executed(lab, "add", 1, "b", "data", 1, "delay", HOUR_MS) == ADD
    lab.client.delete(key("wake"), key("ready"))
    assert executed(lab, "add", 1, "c", "data", 1, "delay", HOUR_MS * 2) == looks


def test_kept_outcomes_cost_each_add_one_command(lab: Lab) -> None:
    """LQ-ADD-8: from the first item with `keep` on, an earlier outcome of the id is looked for."""
    lab.client.lpush(key("wake"), "1")
    lab.ok("add", 1, "before", "data", 1, "keep", HOUR_MS)
    assert executed(lab, "add", 1, "a", "data", 0) == "TIME GET LLEN HSETNX ZADD ZREM SET"


def test_an_item_whose_expiry_was_ended_by_its_first_lease_is_as_cheap_as_any(lab: Lab) -> None:
    """The second lease is the hot path again."""
    lab.client.lpush(key("wake"), "1")
    lab.ok("add", 1, "a", "", 1, "expires_in", HOUR_MS)
    assert lab.ok("release", 1, "a", lab.ok("lease", 1, HOUR_MS)[5], 0) == b"ready"
    lab.ok("light_clean", 1)
    assert executed(lab, "lease", 1, HOUR_MS) == HOT


def test_a_limit_costs_a_look_at_room(lab: Lab) -> None:
    """A queue with max_items counts what it holds when it adds; a lease only looks whether producers were told."""
    lab.ok("add", 1, "before", "data", 0, now=START)
    lab.ok("lease", 1, HOUR_MS * 2, now=START)
    lab.ok("configure", 1, "max_items", 100)
    lab.client.delete(key("wake"), key("room"))
    lab.client.lpush(key("wake"), "1")
    lab.client.lpush(key("room"), "1")
    assert executed(lab, "add", 1, "a", "data", 0) == "TIME GET LLEN HLEN ZCARD HSETNX ZADD SET"
    assert executed(lab, "lease", 1, HOUR_MS) == HOT.replace("LLEN", "LLEN LLEN")
    token = lab.ok("inspect", 1, "a")[3]
    assert executed(lab, "complete", 1, "a", token, 0) == "HGET HLEN ZREM HDEL HDEL"


def test_a_kept_result_costs_three_commands_and_a_follow_up_two(lab: Lab) -> None:
    """What complete_with writes: the reads before it are of every key that it may write. An older result goes first."""
    lab.client.lpush(key("wake"), "1")
    lab.client.lpush(key("other:wake"), "1")

    def writes(*args: Arg, more: Sequence[str]) -> list[str]:
        assert lab.ok("add", 1, "a", "", 0)
        token = lab.ok("lease", 1, HOUR_MS)[5]
        outcome = lab.watch("complete_with", [token if arg == "?" else arg for arg in args], more=more)
        assert outcome.error is None
        names = [command.name for command in outcome.commands]
        return names[names.index("ZREM") + 1 :]

    finished = ["ZREM", "HDEL", "HDEL"]
    kept = ["RPUSH", "PEXPIRE", "ZADD", "SET"]
    keep: list[Arg] = [2, "keep", 1000, "result", "r", 0]
    assert writes(1, 0, "a", "?", *keep, more=results("a")) == [*finished, *kept]
    assert writes(1, 0, "a", "?", *keep, more=results("a")) == [*finished, "DEL", *kept[:-1]]
    for target in (HERE, THERE):
        follow_up = writes(1, 1, "a", "?", 0, 1, 1, "next", "", 0, more=target)
        assert follow_up[:3] == finished
        assert Counter(follow_up)["HSETNX"] == Counter(follow_up)["ZADD"] == Counter(follow_up)["SET"] == 1
        assert len(follow_up) <= 10
        lab.client.flushdb()


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
    assert outcome.reply == [limit, limit, 0, 0, 0, 0]
    assert lengths(lab) == {"ready": 2 * limit, "delayed": MANY - limit, "leased": MANY - limit, "dead": 0}
    much = arguments(outcome)
    lab.client.flushdb()
    fill(lab, due=limit + 1, expired=limit + 1)
    assert arguments(lab.watch("light_clean", [limit])) == much


def test_light_cleans_until_wait_is_not_0_move_everything(lab: Lab) -> None:
    """LQ-LIGHT-3: 0 is said exactly as long as more is left."""
    fill(lab, due=1000, expired=600)
    replies: list[list[int]] = []
    while not replies or replies[-1][5] == 0:
        replies.append(lab.ok("light_clean", 256))
    assert replies == [
        [256, 256, 0, 0, 0, 0],
        [256, 256, 0, 0, 0, 0],
        [256, 88, 0, 0, 0, 0],
        [232, 0, 0, 0, 0, -1],
    ]
    assert lengths(lab) == {"ready": 1600, "delayed": 0, "leased": 0, "dead": 0}


def fill_over(lab: Lab, *, expired: int, dying: int, kept: int) -> None:
    """Put items on the server that wait and whose expiry is over, some of which die then, and outcomes that are over."""
    names = [f"x{n}" for n in range(expired)] + [f"y{n}" for n in range(dying)]
    ends = {name: START + n for n, name in enumerate(names)}
    meta = {
        name: record(options=1 if name[0] == "x" else 5, attempt=0, current=0)
        + tail(keep=HOUR_MS if name[0] == "y" else 0, expires=at)
        for name, at in ends.items()
    }
    with lab.client.pipeline(transaction=False) as pipe:
        if names:
            pipe.zadd(key("ready"), {name: START - 1_735_689_600_000_000 + n for n, name in enumerate(names)})
            pipe.zadd(key("expiry"), dict(ends))
            pipe.hset(key("items"), mapping=dict.fromkeys(names, "data"))
            pipe.hset(key("meta"), mapping=meta)  # type: ignore[arg-type]  # bytes are fine
        if kept:
            pipe.zadd(key("kept"), {f"k{n}": START + n for n in range(kept)})
        pipe.set(key("state"), state(flags=2, clock=START, next_due=NOW * 2, largest=4))
        pipe.execute()


@pytest.mark.parametrize("limit", [1, 100, 256])
def test_a_light_clean_ends_at_most_its_limit_of_each(lab: Lab, limit: int) -> None:
    """LQ-LIGHT-1, LQ-LIGHT-3, LQ-SCRIPT-5: items that expired, and outcomes that are over."""
    much = []
    for size in (limit + 1, MANY):
        lab.client.flushdb()
        fill_over(lab, expired=size, dying=0, kept=size)
        outcome = lab.watch("light_clean", [limit])
        assert outcome.reply == [0, 0, 0, limit, limit, 0]
        assert (lab.client.zcard(key("kept")), lab.client.zcard(key("expiry"))) == (
            size - limit,
            size - limit,
        )
        much.append(arguments(outcome))
    assert much[0] == much[1]


def test_light_cleans_until_wait_is_not_0_end_everything(lab: Lab) -> None:
    """LQ-LIGHT-3: those that die are told, each once."""
    fill_over(lab, expired=300, dying=300, kept=600)
    replies: list[list[int]] = []
    died: list[bytes] = []
    while not replies or replies[-1][5] == 0:
        (*reply,) = lab.ok("light_clean", 256)
        replies.append(reply[:6])
        died += reply[6:]
    assert replies == [[0, 0, 0, 256, 256, 0], [0, 0, 212, 44, 256, 0], [0, 0, 88, 0, 88, -1]]
    assert sorted(died) == sorted(b"y%d" % n for n in range(300))
    assert lengths(lab) == {"ready": 0, "delayed": 0, "leased": 0, "dead": 300}


@pytest.mark.parametrize("count", [1, 2, 256])
@pytest.mark.parametrize("script", ["lease", "complete_and_lease", "lease_any"])
def test_a_lease_ends_at_most_as_many_as_it_would_give(lab: Lab, script: str, count: int) -> None:
    """LQ-SCRIPT-5: where all that is ready has expired; wait 0 says that the next call may have more."""
    head: list[Arg] = [1] if script == "lease_any" else []
    rest: list[Arg] = [1, "none", 1, 0] if script == "complete_and_lease" else []
    more = of("lease") if head else ()
    much = []
    for size in (300, MANY):
        lab.client.flushdb()
        fill_over(lab, expired=0, dying=size, kept=0)
        outcome = lab.watch(script, [*head, count, HOUR_MS, *rest], more=more)
        assert outcome.reply[: 3 + len(head)] == [*[0] * len(head), 0, 0, 0]
        assert lengths(lab)["dead"] == count
        much.append(arguments(outcome))
    assert much[0] == much[1]


@pytest.mark.parametrize(
    "script", ["stats", "settle", "inspect", "list", "purge", "revive", "outcome", "configure"]
)
def test_other_calls_do_not_grow_with_the_queue(lab: Lab, script: str) -> None:
    """LQ-SCRIPT-5."""
    samples: dict[str, list[Arg]] = {
        "inspect": [2, "d1", "l1"],
        "list": ["delayed", 10, 5, "backward"],
        "purge": [0, 2, "x1", "d1"],
        "revive": [2, "x1", "d1"],
        "outcome": [2, "x1", "d1"],
        "configure": [1, "max_items", 7],
    }
    more = results("x1", "d1") if script == "outcome" else ()
    much = []
    for size in (100, MANY):
        lab.client.flushdb()
        fill(lab, due=size, expired=size)
        lab.client.zadd(key("dead"), {f"x{n}": START for n in range(size)})
        lab.client.hset(key("items"), mapping={f"x{n}": "" for n in range(size)})
        much.append(arguments(lab.watch(script, samples.get(script, []), more=more)))
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
