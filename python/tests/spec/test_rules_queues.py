"""Rules of several queues, of cleaning, limits and pause that no other test shows by the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.script_calls import HERE, of, results
from support.script_lab import HOUR_MS, NOW, START, Arg, Lab, key, record, stored_state, tail

if TYPE_CHECKING:
    from collections.abc import Iterator

    import redis

SECOND = 1_000_000
BOTH = (*of("lease"), *of("lease", "other:"))
LEASES = pytest.mark.parametrize("script", ["lease", "lease of 2", "complete_and_lease", "lease_any"])


@pytest.fixture
def lab(redis_client: redis.Redis) -> Iterator[Lab]:
    laboratory = Lab(redis_client)
    yield laboratory
    laboratory.close()


def leased(lab: Lab, script: str, *, count: int = 1, now: int = NOW) -> list[Any]:
    """What a lease of some kind answers, in the shape of lease's reply."""
    if script == "complete_and_lease":
        return list(lab.ok(script, count, HOUR_MS, 1, "none", 1, 0, now=now)[:-1])
    if script == "lease_any":
        return list(lab.ok(script, 1, count, HOUR_MS, now=now, more=of("lease"))[1:])
    return list(lab.ok("lease", 2 if script == "lease of 2" else count, HOUR_MS, now=now))


def held(lab: Lab, item: str = "a", *options: Arg, now: int = NOW) -> int:
    """The token of an item that is added and leased."""
    lab.lease_new(item, HOUR_MS, *options, now=now)
    return lab.tokens[item]


def dead(lab: Lab, token: int, *options: Arg, item: str = "a", now: int = NOW) -> None:
    """Dead letter an item."""
    more = results(item) if "keep" in options else ()
    args: list[Arg] = [item, token, 1 + len(options) // 2, "dead", 1, *options]
    assert lab.ok("release", 1, *args, now=now, more=more) == b"dead"


# -- several queues


def test_the_other_queues_are_settled(lab: Lab) -> None:
    """LQ-ANY-2: before and behind the one that gave, whatever is wrong with one of them."""
    lab.ok("add", 1, "r", "", 0)
    lab.ok("add", 1, "f", "", 1, "delay", 3000, on="other:")
    lab.client.delete(key("wake"), key("other:wake"))
    there_first = (*of("lease", "other:"), *of("lease"))
    assert lab.ok("lease_any", 2, 1, HOUR_MS, more=there_first)[0] == 2
    assert lab.client.llen(key("other:wake")) == 1, "its item is due within 4 s"
    lab.ok("add", 1, "r2", "", 0, on="other:", now=NOW + SECOND)
    lab.ok("add", 1, "r3", "", 0, now=NOW + SECOND)
    lab.client.delete(key("wake"), key("other:wake"))
    assert lab.ok("lease_any", 2, 1, HOUR_MS, more=BOTH)[:1] == [1]
    assert lab.client.llen(key("other:wake")) == 1, "it has an item that is ready"
    lab.ok("add", 1, "r4", "", 0)
    lab.client.delete(key("other:wake"))
    lab.client.set(key("other:wake"), "wrong")
    assert lab.ok("lease_any", 2, 1, HOUR_MS, more=BOTH)[0] == 1
    assert lab.client.get(key("other:wake")) == b"wrong"


@pytest.mark.parametrize(
    ("mine", "others", "wait"),
    [(None, None, -1), (5, None, 5 * SECOND), (None, 7, 7 * SECOND), (9, 7, 7 * SECOND), (6, 7, 6 * SECOND)],
)
def test_the_wait_of_several_queues_is_the_least(
    lab: Lab, mine: int | None, others: int | None, wait: int
) -> None:
    """LQ-ANY-3."""
    for on, seconds in (("", mine), ("other:", others)):
        if seconds:
            lab.ok("add", 1, "a", "", 1, "delay", seconds * 1000, on=on)
    assert lab.ok("lease_any", 2, 1, HOUR_MS, more=BOTH) == [0, wait, 0, 0]


def test_a_queue_that_moved_items_ends_the_call(lab: Lab) -> None:
    """LQ-ANY-4: the caller's order is kept, as the next call may find one there; what died is told."""
    lab.ok("add", 1, "r", "", 0, on="other:")
    held(lab, "late", "max_attempts", 1, "keep", HOUR_MS)
    then = NOW + (HOUR_MS + 1) * 1000
    assert lab.ok("lease_any", 2, 1, HOUR_MS, now=then, more=BOTH) == [0, 0, 0, 0, -1, b"died", b"late"]
    assert lab.client.zcard(key("other:leased")) == 0
    assert lab.ok("lease_any", 2, 1, HOUR_MS, now=then, more=BOTH)[0] == 2


def test_an_error_of_a_later_queue_hides_nothing(lab: Lab) -> None:
    """LQ-ANY-5: it is the answer only where no queue before it was changed."""
    lab.client.set(key("other:wake"), "wrong")
    assert lab.run("lease_any", [2, 1, HOUR_MS], more=BOTH).code == "LEASEQ_WRONG_TYPE"
    lab.ok("add", 1, "f", "", 1, "delay", 9000)
    lab.ok("remove", 1, "f")
    before = lab.snapshot()
    assert lab.ok("lease_any", 2, 1, HOUR_MS, more=BOTH) == [0, 0, 0, 0], (
        "the bound of the first was put right"
    )
    assert lab.snapshot() != before
    assert lab.run("lease_any", [2, 1, HOUR_MS], more=BOTH).code == "LEASEQ_WRONG_TYPE"
    lab.ok("add", 1, "r", "", 0)
    assert lab.ok("lease_any", 2, 1, HOUR_MS, more=BOTH)[0] == 1


# -- cleaning


def test_outcomes_that_are_over_are_taken_out(lab: Lab) -> None:
    """LQ-LIGHT-5: in the microsecond of their time, and said when the next one is."""
    for at, item in enumerate(("a", "b", "c")):
        args: list[Arg] = [item, held(lab, item), 1, "keep", 1000 + at, 0]
        lab.ok("complete_with", 1, 0, *args, more=results(item))
    assert lab.ok("light_clean", 9, now=NOW + SECOND - 1)[3:] == [0, 0, 1]
    assert lab.ok("light_clean", 9, now=NOW + SECOND)[3:] == [0, 1, 1000]
    assert lab.ok("light_clean", 1, now=NOW + 2 * SECOND)[3:] == [0, 1, 0]
    assert lab.ok("light_clean", 1, now=NOW + 2 * SECOND)[3:] == [0, 1, -1]
    assert not lab.client.exists(key("kept"))


def repaired(lab: Lab) -> dict[str, int]:
    """What a whole pass of deep_clean repaired, of which a second finds nothing."""
    found: dict[str, int] = {}
    for second in (False, True):
        cursor = b"0"
        while True:
            cursor, *reply = lab.ok("deep_clean", cursor, 256, 0)
            kinds = {
                name.decode(): count for name, count in zip(reply[::2], reply[1::2], strict=True) if count
            }
            assert not (second and kinds), kinds
            for name, count in kinds.items():
                found[name] = found.get(name, 0) + count
            if cursor == b"0":
                break
    return found


def test_extras_are_those_that_the_records_say(lab: Lab) -> None:
    """LQ-DEEP-12: without an item, without a bit, without a record, and a bit without an extra; others stay."""
    lab.ok("add", 3, "a", "", 1, "header:x", "1", "b", "", 1, "priority", 1, "c", "", 1, "header:x", "1")
    right = lab.client.hget(key("meta"), b"\0a")
    lab.client.hset(key("meta"), mapping={b"\0b": b"\0\0", b"\0none": b"\0\0", b"\0\0": b"\0\0"})
    lab.client.hdel(key("meta"), b"\0c")
    assert repaired(lab) == {"bad_extra": 4}
    assert lab.client.hmget(key("meta"), [b"\0a", b"\0b", b"\0none", b"\0c", b"\0\0"]) == [
        *(right, None, None, b"\0\0", None)
    ]
    assert lab.ok("lease", 3, HOUR_MS)[3:15:4] == [b"b", b"a", b"c"]


def test_the_index_of_expiries_is_what_the_records_say(lab: Lab) -> None:
    """LQ-DEEP-13: one missing, one at another time, one of an item that never goes, one of none."""
    items = [part for name in ("a", "b", "c") for part in (name, "", 1, "expires_in", 9000)]
    lab.ok("add", 4, *items, "d", "", 0)
    lab.client.zrem(key("expiry"), "a")
    lab.client.zadd(key("expiry"), {"b": START, "d": NOW, "none": NOW})
    found = repaired(lab)
    assert set(found) == {"unindexed", "stale_index"}
    assert lab.client.zrange(key("expiry"), 0, -1, withscores=True) == [
        (name, NOW + 9_000_000) for name in (b"a", b"b", b"c")
    ]


def test_an_expiry_that_cannot_be_is_a_bad_record(lab: Lab) -> None:
    """LQ-DEEP-7, LQ-DEEP-13: also one of an item that was leased."""
    for expires, attempt in ((-1, 0), (float("nan"), 0), (1.5, 0), (2e18, 0), (NOW, 1)):
        token = START if attempt else 0
        lab.ok("add", 1, "a", "", 1, "priority", 1)
        lab.client.hset(key("meta"), "a", record(1, 1, attempt, token, START - 1) + tail(1, expires=expires))
        assert repaired(lab)["bad_record"] == 1, expires
        assert not lab.client.exists(key("expiry"))
        lab.client.flushdb()


def test_kept_has_no_item_that_is_there_and_not_dead(lab: Lab) -> None:
    """LQ-DEEP-14: and the flag is set where it has any id."""
    dead(lab, held(lab, "x"), item="x")
    lab.ok("add", 1, "r", "", 0)
    ends = {"x": NOW + SECOND, "gone": NOW + SECOND, "r": NOW + SECOND, "odd": float("inf")}
    lab.client.zadd(key("kept"), ends)
    found = repaired(lab)
    assert found.pop("state") >= 1
    assert found == {"stale_index": 1, "bad_time": 1}
    kept = lab.client.zrange(key("kept"), 0, -1, withscores=True)
    assert kept == [(b"odd", NOW), (b"gone", NOW + SECOND), (b"x", NOW + SECOND)]
    assert stored_state(lab)[1] == 2


# -- limits and pause


def test_a_limit_of_items_is_for_what_is_added_afterwards(lab: Lab) -> None:
    """LQ-CONFIG-2, LQ-ADD-7, LQ-HANDOFF-2: what is held stays and can be worked; follow-ups go past it."""
    lab.ok("add", 3, "a", "", 0, "b", "", 0, "c", "", 0)
    lab.ok("configure", 1, "max_items", 2)
    assert lab.ok("add", 3, "a", "", 0, "d", "", 0, "c", "", 1, "delay", 1) == [0, -1, 0]
    reply = lab.ok("lease", 3, HOUR_MS)
    assert reply[2] == 3
    follow_ups: list[Arg] = [2, 1, "e", "", 0, 1, "f", "", 0]
    assert min(lab.ok("complete_with", 1, 1, "a", reply[5], 0, *follow_ups, more=HERE)) == 1
    for n in (1, 2):
        dead(lab, reply[5 + 4 * n], item="abc"[n])
    assert lab.ok("add", 1, "g", "", 0) == -1
    assert lab.ok("remove", 1, "e") == b"ready"
    created, full = lab.ok("add", 2, "g", "", 0, "h", "", 0)
    assert (created > 0, full) == (True, -1)
    assert lab.ok("revive", 1, "b") == 1, "which also goes past it"
    lab.ok("configure", 1, "max_items", 0)
    assert lab.ok("add", 1, "h", "", 0) > 0


@pytest.mark.parametrize("how", ["release", "lease", "light_clean"])
def test_a_limit_of_attempts_is_for_those_without_one(lab: Lab, how: str) -> None:
    """LQ-CONFIG-3: items that were there before too, with a record or without; 0 of an item is unlimited."""
    lab.ok(
        "add",
        4,
        "a",
        "",
        0,
        "b",
        "",
        1,
        "priority",
        -1,
        "own",
        "",
        1,
        "max_attempts",
        3,
        "any",
        "",
        1,
        "max_attempts",
        0,
    )
    reply = lab.ok("lease", 4, 1000)
    lab.ok("configure", 1, "max_attempts", 1)
    assert [lab.ok("inspect", 1, item)[7] for item in ("a", "b", "own", "any", "none")] == [1, 1, 3, 0, 0]
    if how == "release":
        for at in range(3, 19, 4):
            lab.ok("release", 1, reply[at], reply[at + 2], 0)
    else:
        lab.ok(how, *([4, 1000] if how == "lease" else [9]), now=NOW + SECOND)
    assert set(lab.client.zrange(key("dead"), 0, -1)) == {b"a", b"b"}
    lab.ok("configure", 1, "max_attempts", 0)
    assert lab.ok("inspect", 1, "a")[7] == 0


def test_configure_leaves_what_it_does_not_name(lab: Lab) -> None:
    """LQ-CONFIG-4: one after the other, and all at once."""
    lab.ok("add", 1, "a", "", 1, "keep", 1)
    begun = stored_state(lab)
    options: dict[str, int] = {"max_data": 9, "max_items": 8, "max_attempts": 7, "paused": 1}
    for name, value in options.items():
        lab.ok("configure", 1, name, value)
    assert stored_state(lab) == (begun[0], 3, *begun[2:7], 9, 8, 7)
    for name in options:
        lab.ok("configure", 1, name, 1 if name == "max_data" else 0)
    assert stored_state(lab) == (begun[0], 2, *begun[2:7], 1, 0, 0)
    lab.ok("configure", 4, *(part for pair in options.items() for part in pair))
    assert stored_state(lab) == (begun[0], 3, *begun[2:7], 9, 8, 7)


@pytest.mark.parametrize("script", ["lease", "lease of 2", "complete_and_lease", "lease_any"])
def test_a_paused_queue_gives_nothing_and_says_when_to_come_again(lab: Lab, script: str) -> None:
    """LQ-PAUSE-1: it promotes and reclaims; what is ready does not count."""
    held(lab, "late")
    lab.ok("add", 3, "r", "", 0, "p", "", 1, "delay", 1, "f", "", 1, "delay", 2 * HOUR_MS)
    lab.ok("configure", 1, "paused", 1)
    assert leased(lab, script)[:3] == [1000, 0, 0]
    then = NOW + HOUR_MS * 1000
    replies = [leased(lab, script, now=then)[:3] for _ in range(2)]
    assert replies[1] == [HOUR_MS * 1000, 0, 0]
    assert set(lab.client.zrange(key("ready"), 0, -1)) == {b"late", b"r", b"p"}
    lab.ok("remove", 1, "f")
    assert leased(lab, script, now=then)[:3] == [-1, 0, 0]


@pytest.mark.parametrize("where", ["ready", "delayed", "leased", "dead", "nothing"])
def test_resuming_wakes_a_worker(lab: Lab, where: str) -> None:
    """LQ-PAUSE-2: where something is ready or will be."""
    lab.ok("configure", 1, "paused", 1)
    if where in {"ready", "delayed"}:
        lab.ok("add", 1, "a", "", 1, "delay", HOUR_MS if where == "delayed" else 0)
    elif where != "nothing":
        lab.ok("configure", 1, "paused", 0)
        token = held(lab)
        lab.ok("configure", 1, "paused", 1)
        if where == "dead":
            dead(lab, token)
            lab.ok("light_clean", 1)
    lab.client.delete(key("wake"))
    lab.ok("configure", 1, "max_items", 9)
    assert lab.client.llen(key("wake")) == 0, "it is still paused"
    lab.ok("configure", 1, "paused", 0)
    assert lab.client.llen(key("wake")) == (where in {"ready", "delayed", "leased"})


def test_a_paused_queue_wakes_nobody_for_what_is_ready(lab: Lab) -> None:
    """LQ-PAUSE-3: whoever makes it ready; but for a time that comes nearer, as ever."""
    tokens = [held(lab, item) for item in ("a", "b", "x", "y")]
    dead(lab, tokens[2], item="x")
    assert lab.ok("lease", 1, HOUR_MS)[2] == 0, "and now the bound is known"
    lab.ok("configure", 1, "paused", 1)
    lab.client.delete(key("wake"))
    lab.ok("add", 1, "r", "", 0)
    lab.ok("add", 2, "r2", "", 0, "r3", "", 1, "priority", 1)
    lab.ok("release", 1, "a", tokens[0], 0)
    lab.ok("revive", 1, "x")
    follow_up: list[Arg] = [1, 1, "b", tokens[1], 0, 1, 1, "next", "", 0]
    lab.ok("complete_with", *follow_up, more=HERE)
    lab.ok("light_clean", 9)
    lab.ok("lease", 1, HOUR_MS)
    assert lab.ok("settle") == 0
    cursor = b"0"
    while (cursor := lab.ok("deep_clean", cursor, 256, 0)[0]) != b"0":
        pass
    assert lab.client.llen(key("wake")) == 0
    lab.ok("add", 1, "soon", "", 1, "delay", 3000)
    assert lab.client.llen(key("wake")) == 1
    lab.client.delete(key("wake"))
    assert lab.ok("release", 1, "y", tokens[3], 1, "delay", 2000) == b"delayed"
    assert lab.client.llen(key("wake")) == 1
    lab.client.delete(key("wake"))
    assert lab.ok("settle") == 1, "a time within 4 s"


TELLERS: dict[str, tuple[list[Arg], tuple[str, ...]]] = {
    "lease": ([1, HOUR_MS], ()),
    "lease of 2": ([2, HOUR_MS], ()),
    "complete_and_lease": ([1, HOUR_MS, 1, "none", 1, 0], ()),
    "lease_any": ([1, 1, HOUR_MS], of("lease")),
    "light_clean": ([9], ()),
    "settle": ([], ()),
    "configure": ([1, "max_items", 3], ()),
    "configure without a limit": ([1, "max_items", 0], ()),
}


@pytest.mark.parametrize("ready", [0, 1])
@pytest.mark.parametrize("what", TELLERS)
def test_producers_are_told_of_room(lab: Lab, what: str, ready: int) -> None:
    """LQ-ROOM-1: where there is some and nobody was told; dead items take none."""
    args, more = TELLERS[what]
    script = what.split(" ", maxsplit=1)[0]
    lab.ok("configure", 1, "max_items", 3)
    dead(lab, held(lab, "x"), item="x")
    delay: list[Arg] = [0] if ready else [1, "delay", HOUR_MS]
    lab.ok("add", 3, "i0", "", *delay, "i1", "", *delay, "i2", "", *delay)
    lab.client.delete(key("room"))
    full = what != "configure without a limit"
    lab.ok(script, *args, more=more)
    assert lab.client.llen(key("room")) == (0 if full else 1)
    lab.ok("configure", 1, "max_items", 3)
    lab.ok("remove", 1, "i2")
    lab.client.delete(key("room"))
    for _ in range(2):
        lab.ok(script, *args, more=more)
        assert lab.client.llen(key("room")) == 1
