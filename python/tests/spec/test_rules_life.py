"""Rules of an item's life that no other test shows by the way: options, outcomes, follow-ups and death."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import pytest
from support.script_calls import HERE, THERE, of, results
from support.script_lab import HOUR_MS, NOW, Arg, Lab, key

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


def outcome(lab: Lab, item: str = "a", *, now: int = NOW) -> list[Any]:
    """Kind, created, ended, attempt, keep and content."""
    return list(lab.ok("outcome", 1, item, now=now, more=results(item)))


def kind(lab: Lab, item: str = "a", *, now: int = NOW) -> bytes:
    """What kind of outcome an item has."""
    return bytes(outcome(lab, item, now=now)[0])


def finish(lab: Lab, token: int, result: str = "result", item: str = "a") -> Any:
    """Complete with a result that is kept for an hour."""
    args: list[Arg] = [item, token, 2, "keep", HOUR_MS, "result", result, 0]
    return lab.ok("complete_with", 1, 0, *args, more=results(item))


def dead(lab: Lab, token: int, *options: Arg, item: str = "a", now: int = NOW) -> None:
    """Dead letter an item."""
    more = results(item) if "keep" in options else ()
    args: list[Arg] = [item, token, 1 + len(options) // 2, "dead", 1, *options]
    assert lab.ok("release", 1, *args, now=now, more=more) == b"dead"


# -- what a lease tells


@LEASES
def test_options_are_told_of_those_that_have_them(lab: Lab, script: str) -> None:
    """LQ-ITEM-5, LQ-LEASE-11: at each of its leases, byte for byte; nothing of an item without."""
    value = bytes(range(256))
    options: list[Arg] = ["header:b", value, "content_type", "", "header:A.b-c_9", "", "keep", 7]
    lab.ok("add", 1, "told", "", 4, *options)
    expected = {(b"header:b", value), (b"content_type", b""), (b"header:A.b-c_9", b""), (b"keep", 7)}
    for attempt in (1, 2, 3):
        reply = leased(lab, script)
        assert reply[3:7:3] == [b"told", attempt]
        told = reply[7:]
        assert set(told[::3]) == {1}
        assert set(zip(told[1::3], told[2::3], strict=True)) == expected
        given: list[Arg] = ["told", reply[5], 1, "error", f"error {attempt}"]
        assert lab.ok("release", 1, *given) == b"ready", "an error takes no header away"
    assert lab.ok("remove", 1, "told") == b"ready"
    lab.ok("add", 2, "plain", "", 0, "urgent", "", 3, "priority", 1, "max_attempts", 3, "expires_in", 9)
    reply = leased(lab, script, count=2)
    assert not reply[3 + 4 * reply[2] :]


def test_what_is_told_names_its_item(lab: Lab) -> None:
    """LQ-LEASE-11: by its number among those that were given, though one between them had expired."""
    lab.ok(
        "add",
        5,
        *("a", "", 0, "b", "", 1, "header:x", "of b", "gone", "", 2, "expires_in", 1, "header:x", "of gone"),
        *("c", "", 0, "d", "", 2, "content_type", "of d", "header:x", "of d"),
    )
    reply = lab.ok("lease", 9, HOUR_MS, now=NOW + SECOND)
    assert reply[3:19:4] == [b"a", b"b", b"c", b"d"]
    told = reply[19:]
    assert sorted(zip(told[::3], told[1::3], told[2::3], strict=True)) == [
        (2, b"header:x", b"of b"),
        (4, b"content_type", b"of d"),
        (4, b"header:x", b"of d"),
    ]


@LEASES
def test_a_death_that_keeps_an_outcome_is_told_and_published_by_another_call(lab: Lab, script: str) -> None:
    """LQ-LEASE-12, LQ-OUTCOME-6: by reclaiming and by expiry; nobody is told of those that keep none."""
    held(lab, "late", "max_attempts", 1, "keep", HOUR_MS)
    held(lab, "quiet", "max_attempts", 1)
    mortal: list[Arg] = ["expires_in", 1, "expires_to", "dead"]
    lab.ok("add", 2, "old", "", 3, *mortal, "keep", HOUR_MS, "older", "", 2, *mortal)
    then = NOW + (HOUR_MS + 1) * 1000
    told: list[Any] = []
    for _ in range(5):
        reply = leased(lab, script, now=then)
        assert reply[2] == 0
        told += reply[3:]
    assert sorted(zip(told[::3], told[1::3], told[2::3], strict=True)) in (
        [(0, b"died", b"late"), (0, b"died", b"old")],
        [(-1, b"died", b"late"), (-1, b"died", b"old")],
    )
    assert not list(lab.client.scan_iter("*result*"))
    assert outcome(lab, "old", now=then + 1)[::5] == [b"failure", b"expired"]
    assert outcome(lab, "late", now=then + 1)[::5] == [b"failure", b""]
    assert outcome(lab, "quiet", now=then + 1)[0] == b"dead"


# -- completing with more


@pytest.mark.parametrize("only_current", [0, 1])
@pytest.mark.parametrize("age", ["current", "superseded", "future", "creation", "absent", "delayed"])
def test_complete_with_completes_what_complete_does(lab: Lab, age: str, only_current: int) -> None:
    """LQ-HANDOFF-1: for every kind of token; the two leave the same behind."""
    first = held(lab)
    lab.ok("release", 1, "a", first, 1, "delay", 1)
    token = first
    if age != "delayed":
        lab.ok("light_clean", 1, now=NOW + SECOND)
        current = lab.ok("lease", 1, HOUR_MS, now=NOW + SECOND)[5]
        created = lab.ok("inspect", 1, "a")[4]
        token = {"current": current, "future": current + 1, "creation": created}.get(age, first)
    item, before = "none" if age == "absent" else "a", lab.snapshot()
    option: list[Arg] = [1, "only_current", 1] if only_current else [0]
    answer = lab.ok("complete", 1, item, token, *option)
    after = lab.snapshot()
    lab.restore(before)
    assert lab.ok("complete_with", 1, 0, item, token, *option, 0) == [answer]
    assert lab.snapshot() == after
    assert answer == (age == "current" or (age in {"superseded", "delayed"} and not only_current))


def test_a_later_item_has_no_outcome_of_an_earlier_one(lab: Lab) -> None:
    """LQ-ADD-8, LQ-OUTCOME-5: added by add or as a follow-up, alone, in a batch, on its own or another queue."""
    adds: list[tuple[str, list[Arg], tuple[str, ...]]] = [
        ("add", [1, "a", "", 0], ()),
        ("add", [1, "a", "", 1, "delay", 1], ()),
        ("add", [2, "z", "", 0, "a", "", 0], ()),
        ("complete_with", [1, 1, "y", held(lab, "y"), 0, 1, 1, "a", "", 0], HERE),
    ]
    for script, args, more in adds:
        assert finish(lab, held(lab)) == [1]
        assert kind(lab) == b"result"
        lab.ok(script, *args, more=more)
        assert lab.client.zscore(key("kept"), "a") is None
        assert lab.client.exists(key("result:a")), "the list stays until somebody meets it"
        assert kind(lab) in {b"ready", b"delayed"}
        assert not lab.client.exists(key("result:a"))
        lab.ok("remove", 2, "a", "z")
        assert kind(lab) == b"absent"


def test_a_revived_item_has_no_outcome(lab: Lab) -> None:
    """LQ-OUTCOME-5, LQ-DEAD-3: until it ends again."""
    dead(lab, held(lab, "a", "keep", HOUR_MS), "keep", 0, "error", "first")
    assert outcome(lab)[::5] == [b"failure", b"first"]
    assert lab.ok("revive", 1, "a") == 1
    assert kind(lab) == b"ready"
    assert not lab.client.exists(key("result:a"))
    token = lab.ok("lease", 1, HOUR_MS)[5]
    dead(lab, token, "keep", 0, "error", "second")
    assert outcome(lab)[::5] == [b"failure", b"second"]
    assert lab.ok("purge", 0, 1, "a") == 1
    assert outcome(lab)[::5] == [b"failure", b"second"], "of an item that is gone"


@pytest.mark.parametrize(
    ("said", "own", "kept"),
    [(500_000, 0, 500_000), (500_000, 900_000, 500_000), (0, 900_000, 900_000), (0, 0, 0)],
)
def test_a_release_that_kills_writes_the_failure(lab: Lab, said: int, own: int, kept: int) -> None:
    """LQ-OUTCOME-3: whether it says so or the attempts are used up, for the time it says or the item's own."""
    options: list[Arg] = ["keep", own] if own else []
    for by_attempts in (False, True):
        token = held(lab, "a", "max_attempts", 1, *options)
        created = lab.ok("inspect", 1, "a")[4]
        kill: list[Arg] = [] if by_attempts else ["dead", 1]
        args: list[Arg] = [2 + len(kill) // 2, "keep", said, "error", "why", *kill]
        assert lab.ok("release", 1, "a", token, *args, more=results("a")) == b"dead"
        stored = lab.client.lrange(key("result:a"), 0, -1)
        if kept:
            assert stored == [struct.pack("<BBIddd", 1, 2, 1, token, created, NOW) + b"why"]
            assert lab.client.zscore(key("kept"), "a") == NOW + kept * 1000
            assert 0 <= kept - lab.client.pttl(key("result:a")) < 400_000
        else:
            assert not stored
        lab.client.flushdb()
    token = held(lab, "a", "keep", 900_000)
    assert lab.ok("release", 1, "a", token, 1, "keep", 0, more=results("a")) == b"ready"
    assert not lab.client.exists(key("result:a"), key("kept"))


@pytest.mark.parametrize(
    "strange",
    [
        b"",
        struct.pack("<BBIddd", 1, 1, 1, 1, 1, 1)[:-1],
        struct.pack("<BBIddd", 0, 1, 1, 1, 1, 1),
        struct.pack("<BBIddd", 2, 1, 1, 1, 1, 1) + b"content",
        struct.pack("<BBIddd", 1, 0, 1, 1, 1, 1),
        struct.pack("<BBIddd", 1, 3, 1, 1, 1, 1),
    ],
)
def test_an_outcome_of_an_unknown_format_is_refused(lab: Lab, strange: bytes) -> None:
    """LQ-OUTCOME-8: by both scripts that read one, alone and behind an entry that could have been done."""
    token, other = held(lab), held(lab, "b")
    finish(lab, token)
    lab.client.delete(key("result:a"))
    lab.client.rpush(key("result:a"), strange)
    before = lab.snapshot()
    again: list[Arg] = ["a", token, 1, "keep", 0, 0]
    tried: list[tuple[str, list[Arg], tuple[str, ...]]] = [
        ("outcome", [1, "a"], results("a")),
        ("outcome", [2, "b", "a"], results("b", "a")),
        ("complete_with", [1, 0, *again], results("a")),
        ("complete_with", [2, 0, "b", other, 0, 0, *again], results("a")),
    ]
    for script, args, more in tried:
        assert lab.run(script, args, more=more).code == "LEASEQ_FORMAT", (script, args)
        assert lab.snapshot() == before
    lab.client.zrem(key("kept"), "a")
    assert kind(lab) == b"absent", "one that does not count is not read"


def test_follow_ups_of_another_queue_are_in_its_own_order(lab: Lab) -> None:
    """LQ-HANDOFF-2, LQ-HANDOFF-3: two targets in one call; an id that exists and one of an entry that lost are said."""
    tokens = [held(lab, item) for item in ("a", "b")]
    lab.ok("add", 1, "there", "", 0, on="other:")
    args: list[Arg] = [
        *(3, 2, "a", tokens[0], 0, 3, 1, "n1", "", 0, 2, "there", "", 0, 2, "n2", "", 1, "priority", 1),
        *("a", tokens[0], 0, 1, 1, "late", "", 0, "b", tokens[1], 0, 1, 2, "n2", "", 0),
    ]
    reply = lab.ok("complete_with", *args, more=(*HERE, *THERE))
    assert [min(answer, 1) for answer in reply] == [1, 1, 0, 1, 0, -1, 1, 0]
    assert lab.ok("lease", 9, HOUR_MS, on="other:")[3::4] == [b"n2", b"there"]
    assert lab.ok("lease", 9, HOUR_MS)[3::4] == [b"n1"]


# -- death


@pytest.mark.parametrize("limit", ["none", "0", "5"])
def test_a_dead_letter_dies_whatever_its_attempts(lab: Lab, limit: str) -> None:
    """LQ-DEAD-1."""
    token = held(lab, "a", *([] if limit == "none" else ["max_attempts", limit]))
    dead(lab, token)
    assert lab.ok("list", "dead", 0, 9, "forward") == [1, b"a", NOW]
    assert lab.ok("release", 1, "a", token, 1, "dead", 1) == b"lost"
    assert lab.client.hgetall(key("counters")) == {b"released": b"1", b"died": b"1"}


def error_of(lab: Lab) -> bytes:
    return bytes(lab.ok("inspect", 1, "a")[10])


def test_the_last_error_is_kept_wherever_the_item_goes(lab: Lab) -> None:
    """LQ-DEAD-2: ready, delayed, leased again, dead, revived; until another takes its place."""
    token = held(lab)
    assert error_of(lab) == b""
    assert lab.ok("release", 1, "a", token, 2, "error", "first", "uncounted", 1) == b"ready"
    assert error_of(lab) == b"first"
    token = lab.ok("lease", 1, HOUR_MS)[5]
    assert error_of(lab) == b"first"
    assert lab.ok("release", 1, "a", token, 1, "delay", 1) == b"delayed"
    assert error_of(lab) == b"first"
    token = lab.ok("lease", 1, HOUR_MS, now=NOW + SECOND)[5]
    dead(lab, token, "error", b"\0\xff second", now=NOW + SECOND)
    assert error_of(lab) == b"\0\xff second"
    assert lab.ok("revive", 1, "a", now=NOW + SECOND) == 1
    assert error_of(lab) == b"\0\xff second"
    token = lab.ok("lease", 1, HOUR_MS, now=NOW + SECOND)[5]
    assert lab.ok("release", 1, "a", token, 1, "error", "", now=NOW + SECOND) == b"ready"
    assert error_of(lab) == b""


@pytest.mark.parametrize("char", ["x", "\u00e9", "\u20ac", "\U0001f4a9"])
@pytest.mark.parametrize("at", range(8186, 8194))
def test_a_long_error_is_cut_between_two_characters(lab: Lab, char: str, at: int) -> None:
    """LQ-DEAD-2: after 8192 bytes or before the character that they would cut; also in what is published."""
    text = b"e" * at + char.encode() * 5
    dead(lab, held(lab, "a", "keep", 900_000), "error", text)
    assert error_of(lab) == text[:8192].decode(errors="ignore").encode()
    assert outcome(lab)[5] == error_of(lab)


def test_an_error_that_is_no_text_is_cut_near_there(lab: Lab) -> None:
    """LQ-DEAD-2: it loses at most 3 bytes more."""
    dead(lab, held(lab), "error", b"\x80" * 9000)
    assert 8189 <= len(error_of(lab)) <= 8192
    assert set(error_of(lab)) == {0x80}
