"""Rules of what is stored: each test is about those that its docstring names, on every kind of queue."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import pytest
from support.script_calls import cases
from support.script_lab import NOW, SCRIPTS, Arg, Lab, key, stored_state
from support.script_queues import DAY_MS
from support.script_shapes import unsound

if TYPE_CHECKING:
    from collections.abc import Iterator

    import redis

every_script = pytest.mark.parametrize("name", sorted(SCRIPTS))


@pytest.fixture
def lab(redis_client: redis.Redis) -> Iterator[Lab]:
    laboratory = Lab(redis_client)
    yield laboratory
    laboratory.close()


# -- what is stored


@every_script
def test_only_an_outcome_has_a_time_to_live(lab: Lab, name: str) -> None:
    """LQ-KEY-3: which ends when its place in `kept` does."""
    for call, kind in cases(lab, name):
        before = lab.snapshot()
        call.ok(lab)
        for each, stored in lab.snapshot().items():
            if b":result:" not in each:
                assert lab.client.ttl(each) == -1, (call, kind, each)
            elif stored != before.get(each):
                item = each.split(b":result:")[1]
                ends = lab.client.zscore(key("kept"), item)
                assert ends is not None or lab.client.hexists(key("items"), item), "or added anew since"
                ends = ends or NOW + DAY_MS * 1000
                assert 0 <= (ends - NOW) / 1000 - lab.client.pttl(each) < 5000, (call, kind, each)


@pytest.mark.parametrize("limits", [(0, 0, 0), (77, 10_000, 9)])
@every_script
def test_the_state_keeps_its_length_and_its_limits(lab: Lab, name: str, limits: tuple[int, int, int]) -> None:
    """LQ-KEY-4, LQ-KEY-7: after every call; only configure changes the limits, and whether the queue is paused."""
    for call, kind in cases(lab, name):
        stored: Any = lab.client.get(key("state"))
        if stored:
            lab.client.set(key("state"), stored[:34] + struct.pack("<IIH", *limits))
        call.ok(lab)
        after: Any = lab.client.get(key("state"))
        assert len(after or bytes(44)) == 44, (call, kind)
        if after and name != "configure":
            assert after[34:] == (struct.pack("<IIH", *limits) if stored else bytes(10)), (call, kind)
            assert after[1] & 1 == (stored[1] & 1 if stored else 0), (call, kind)
        if after and stored:
            assert after[1] & 2 >= stored[1] & 2, (call, kind)


def test_the_state_is_laid_out_like_the_table(lab: Lab) -> None:
    """LQ-KEY-4: each field at its offset."""
    lab.ok("add", 1, "first", "", 0, now=NOW - 1)
    lab.ok("remove", 1, "first")
    assert lab.ok("lease", 1, 1, now=NOW - 1)[:3] == [-1, 0, 0], "and now the next due time is known"
    lab.ok("configure", 1, "max_data", 77)
    lab.ok("add", 3, "a", "12345", 0, "b", "", 0, "c", "", 1, "delay", 9000, now=NOW)
    assert stored_state(lab) == (1, 0, NOW + 2, NOW + 9_000_000, 5, 4, 0, 77, 0, 0)
    lab.ok("lease", 2, 1000, now=NOW + 100)
    assert stored_state(lab) == (1, 0, NOW + 101, NOW + 1_000_100, 5, 4, 2, 77, 0, 0)
    lab.ok("configure", 3, "paused", 1, "max_attempts", 65534, "max_items", 4294967295)
    lab.ok("add", 1, "d", "", 1, "keep", 1, now=NOW + 200)
    assert stored_state(lab) == (1, 3, NOW + 200, NOW + 1_000_100, 5, 5, 2, 77, 4294967295, 65534)
    lab.ok("configure", 2, "paused", 0, "max_items", 0)
    assert stored_state(lab)[1::7] == (2, 0)


def packed(*fields: int, priority: int = 0, max_attempts: int = 0, keep: int = 0, expires: int = 0) -> bytes:
    """A record by the table: options, attempt, current and created, and the tail where options are not 0."""
    tail = (
        struct.pack("<bH", priority, max_attempts) + keep.to_bytes(6, "little") + struct.pack("<d", expires)
    )
    return struct.pack("<BBIdd", 1, *fields) + tail * (fields[0] > 0)


def test_a_record_is_laid_out_like_the_table(lab: Lab) -> None:
    """LQ-KEY-5: 22 bytes, and 17 more where an option is given, at any time of an item's life."""
    all_of: list[Arg] = ["priority", -7, "max_attempts", 65534, "keep", 2**38, "expires_in", 9000]
    items: list[Arg] = ["plain", "", 1, "delay", 1, "all", "", 5, *all_of, "expires_to", "dead"]
    created = lab.ok("add", 3, *items, "extra", "", 2, "header:a", "1", "max_attempts", 0)

    def stored(item: str) -> Any:
        return lab.client.hget(key("meta"), item)

    options: dict[str, Any] = {"priority": -7, "max_attempts": 65534, "keep": 2**38}
    assert stored("plain") == packed(0, 0, 0, created[0])
    assert stored("all") == packed(5, 0, 0, created[1], **options, expires=NOW + 9_000_000)
    assert stored("extra") == packed(3, 0, 0, created[2], max_attempts=65535)
    reply = lab.ok("lease", 3, 1000, now=NOW + 5000)
    tokens = dict(zip(reply[3:15:4], reply[5:15:4], strict=True))
    assert stored("plain") == packed(0, 1, tokens[b"plain"], created[0])
    assert stored("all") == packed(5, 1, tokens[b"all"], created[1], **options)
    assert stored("extra") == packed(3, 1, tokens[b"extra"], created[2], max_attempts=65535)
    lab.ok("release", 1, "all", tokens[b"all"], 2, "uncounted", 1, "error", "why", now=NOW + 6000)
    assert stored("all") == packed(7, 0, tokens[b"all"], created[1], **options)
    lab.ok("release", 1, "plain", tokens[b"plain"], 1, "error", "why", now=NOW + 6000)
    assert stored("plain") == packed(3, 1, tokens[b"plain"], created[0])


def test_only_an_item_without_options_has_no_record(lab: Lab) -> None:
    """LQ-KEY-6: options that say what is so anyhow are none."""
    plain = ("delay=0", "not_before=1", "priority=0")
    others = (
        "delay=1",
        "priority=1",
        "max_attempts=0",
        "max_attempts=1",
        "expires_in=1",
        "keep=1",
        "header:a=",
    )
    assert lab.ok("add", 1, "i", "", 0)
    assert not lab.client.exists(key("meta"))
    for option in (*plain, *others, "content_type="):
        lab.ok("add", 1, option, "", 1, *option.split("="))
        assert lab.client.hexists(key("meta"), option) == (option not in plain), option


@every_script
def test_every_call_leaves_a_queue_as_the_tables_say(lab: Lab, name: str) -> None:
    """LQ-KEY-5, LQ-KEY-7, LQ-KEY-8, LQ-KEY-9, LQ-KEY-10, LQ-ITEM-3: one state, index of expiries, extras and flags of every item."""
    for call, kind in cases(lab, name):
        if kind in {"damaged", "ghosts", "stateless"}:
            continue
        call.ok(lab)
        after = lab.snapshot()
        for on in ("", "other:"):
            assert not unsound(after, lab.client, on), (call, kind, on)
