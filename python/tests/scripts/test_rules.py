"""What every script owes: only declared keys, all or nothing, named errors, full servers, alike in RESP2 and RESP3.

Every sample call of `script_calls.py` is made on every kind of queue of `script_queues.py`. What a script does where
something is wrong is in `test_script_errors.py`.
"""

from collections.abc import Iterator
from contextlib import nullcontext
from functools import cache
from typing import Any

import pytest
import redis
from redis.crc import key_slot
from support import servers
from support.script_calls import (
    CALLS,
    NEEDS_MEMORY,
    READ_ONLY,
    calls,
    cases,
    declared,
    known_cases,
    unchanged,
    whole,
)
from support.script_lab import (
    END_2059,
    EPOCH_2025,
    NOW,
    PREFIX,
    PRELUDE,
    SCRIPTS,
    Lab,
    key,
    send,
)
from support.script_queues import QUEUES
from support.script_shapes import misshapen

from leaseq import _scripts

NAMES = [script.name for script in _scripts.SCRIPTS]
CLOCKED = [name for name in NAMES if "call('TIME')" in SCRIPTS[name].source]
every_script = pytest.mark.parametrize("name", NAMES)


@pytest.fixture
def lab(redis_client: redis.Redis) -> Iterator[Lab]:
    laboratory = Lab(redis_client)
    yield laboratory
    laboratory.close()


def test_every_script_has_sample_calls() -> None:
    assert set(CALLS) == set(NAMES)
    assert set(NAMES) > READ_ONLY | NEEDS_MEMORY


# -- keys


@every_script
def test_a_script_touches_exactly_the_keys_that_it_declares(lab: Lab, name: str) -> None:
    """LQ-SCRIPT-4, LQ-CLUSTER-1: nothing undeclared in any branch; and what no branch touches is not declared."""
    touched: set[str] = set()
    for call, kind in known_cases(lab, name):
        outcome, _ = call.well(lab, kind)
        assert outcome.error is None, (call, kind, outcome.error)
        assert outcome.commands, (call, kind)
        assert outcome.touched <= set(call.keys), (call, kind, outcome.touched)
        touched |= outcome.touched
    assert touched == set(declared(name))
    assert len({key_slot(key(each).encode()) for each in declared(name)}) == 1


@every_script
def test_another_number_of_keys_is_refused(lab: Lab, name: str) -> None:
    """LQ-CALL-1: less and more than the call's arguments ask for."""
    before = lab.queue("full")
    for call in calls(name):
        right = whole(call.keys)
        for keys in ([], right[:-1], [*right, PREFIX + "more"], [*right, *right], (right * 9000)[:9000]):
            outcome = call.run(lab, keys=keys)
            unchanged(lab, outcome, "LEASEQ_BAD_ARGUMENT", before, (call, len(keys)))


def about(lab: Lab, command: str) -> Any:
    """What the server says of a command, asked in Lua: redis-py turns the answer into something else."""
    return lab.client.eval("return redis.call('COMMAND', 'INFO', ARGV[1])", 0, command)


@every_script
def test_read_only_scripts_write_nothing_and_the_others_do_write(lab: Lab, name: str) -> None:
    """LQ-READ-1, on the server's word: the flags of the commands, and EVAL_RO where the server has it."""

    @cache
    def writes(command: str) -> bool:
        return b"write" in about(lab, command)[0][2]

    (has_eval_ro,) = about(lab, "eval_ro")
    written = False
    for call, kind in cases(lab, name):
        before = lab.snapshot()
        outcome = call.watch(lab)
        written |= any(writes(command.name) for command in outcome.commands)
        if name in READ_ONLY:
            assert lab.snapshot() == before, (call, kind)
            if has_eval_ro:
                keys = whole(call.keys)
                args = [len(keys), *keys, *call.arguments(lab)]
                assert send(lab.client, "EVAL_RO", lab.source(name), *args) == outcome.reply
    assert written == (name not in READ_ONLY)


@every_script
def test_dry_runs_and_answers_of_nothing_write_nothing(lab: Lab, name: str) -> None:
    """LQ-ERROR-5, LQ-DEEP-3: what answers that nothing was done has done nothing."""
    nothing: dict[str, Any] = dict.fromkeys(("add", "complete", "extend", "purge", "revive", "settle"), 0)
    nothing |= {"release": b"lost", "remove": b"absent", "complete_with": [0]}
    for call, kind in cases(lab, name):
        before = lab.snapshot()
        outcome = call.run(lab)
        dry = name == "deep_clean" and call.args[2] == 1
        full = name == "add" and outcome.reply == -1
        if dry or full or (name in nothing and outcome.reply == nothing[name]):
            assert lab.snapshot() == before, (call, kind)


# -- the clock


@pytest.mark.parametrize("name", CLOCKED)
def test_a_clock_outside_the_years_2025_to_2059_is_refused(lab: Lab, name: str) -> None:
    """LQ-TIME-3."""
    for call, kind in cases(lab, name):
        before = lab.queue(kind)
        for now in (0, EPOCH_2025 - 1, END_2059, 2 * END_2059):
            outcome = call.run(lab, now=now)
            unchanged(lab, outcome, "LEASEQ_CLOCK", before, (call, kind, now))
        for now in (EPOCH_2025, END_2059 - 1):
            lab.restore(before)
            outcome = call.run(lab, now=now)
            assert outcome.code != "LEASEQ_CLOCK", (call, kind, now)


def test_which_scripts_need_no_clock(lab: Lab) -> None:
    """LQ-COMPLETE-5: a worker can say that the work is done whatever the clock says."""
    assert set(NAMES) - set(CLOCKED) == {"complete", "configure", "inspect", "list", "remove"}


@every_script
def test_the_virtual_time_hides_nothing(lab: Lab, name: str) -> None:
    """The scripts as they are, in the server's own time, on the same queues."""
    for call, kind in cases(lab, name):
        outcome = call.run(lab, now=None)
        assert outcome.error is None, (call, kind, outcome.error)


# -- once more

RICH = ("rich", "spent", "limited", "roomy", "paused")
"""The kinds of queue whose items have options, and those with limits."""

SECOND: dict[str, Any] = {
    "add": lambda first: min(first, 0) if isinstance(first, int) else [min(each, 0) for each in first],
    "complete": lambda first: 0 if isinstance(first, int) else [0] * len(first),
    "configure": lambda _: 1,
    **dict.fromkeys(("purge", "revive"), lambda first: 0 if isinstance(first, int) else [0] * len(first)),
    "release": lambda first: b"lost" if isinstance(first, bytes) else [b"lost"] * len(first),
    "remove": lambda first: b"absent" if isinstance(first, bytes) else [b"absent"] * len(first),
    "settle": lambda _: 0,
}


@pytest.mark.parametrize("name", sorted(SECOND))
def test_the_second_of_two_equal_calls_finds_it_done(lab: Lab, name: str) -> None:
    """LQ-ADD-1, LQ-COMPLETE-2, LQ-RELEASE-1, LQ-REMOVE-1, LQ-SETTLE-1."""
    for call, kind in cases(
        lab, name, ("empty", "full", "quiet", "awake", "stale", "stateless", "crowded", *RICH)
    ):
        first = call.ok(lab)
        once = lab.snapshot()
        assert call.ok(lab) == SECOND[name](first), (call, kind)
        assert lab.snapshot() == once, (call, kind)


@pytest.mark.parametrize("name", sorted({*READ_ONLY, "extend", "outcome", "light_clean", "deep_clean"}))
def test_calls_that_may_be_repeated_change_nothing_more(lab: Lab, name: str) -> None:
    """LQ-EXTEND-1, LQ-LIGHT-1, LQ-READ-1, LQ-DEEP-2: at the same time, the second call changes nothing."""
    for call, kind in cases(lab, name):
        if name == "light_clean" and (kind == "crowded" or call.args != (256,)):
            continue  # more is left than one call does
        call.ok(lab)
        once = lab.snapshot()
        second = call.ok(lab)
        assert lab.snapshot() == once, (call, kind, second)
        if name == "light_clean":
            assert second[:5] == [0, 0, 0, 0, 0], (call, kind)


@pytest.mark.parametrize("kind", [kind for kind in QUEUES if kind not in {"damaged", "ghosts", "stateless"}])
def test_deep_clean_leaves_a_healthy_queue_as_it_is(lab: Lab, kind: str) -> None:
    """LQ-DEEP-2."""
    lab.queue(kind)
    lab.ok("settle")
    before = lab.snapshot()
    assert repairs(lab) == {}
    assert lab.snapshot() == before


def repairs(lab: Lab, limit: int = 256) -> dict[str, int]:
    """What a whole pass of deep clean repaired."""
    found: dict[str, int] = {}
    cursor = b"0"
    while True:
        cursor, *reply = lab.ok("deep_clean", cursor, limit, 0)
        for kind, count in zip(reply[::2], reply[1::2], strict=True):
            if count:
                found[kind.decode()] = found.get(kind.decode(), 0) + count
        if cursor == b"0":
            return found


def test_deep_clean_repairs_everything_in_one_pass(lab: Lab) -> None:
    """LQ-DEEP-1, LQ-DEEP-4 to LQ-DEEP-10: a second pass finds nothing, and each id is in exactly one state."""
    lab.queue("damaged")
    found = repairs(lab)
    assert found.keys() == {
        "unplaced", "several_states", "far_deadline", "unmeasured", "record_without_item", "bad_record", "dropped",
        "clock", "next_due", "bad_time", "state", "bad_extra", "unindexed", "stale_index",
    }  # fmt: skip
    assert repairs(lab) == {}
    states = [lab.client.zrange(key(each), 0, -1) for each in ("ready", "delayed", "leased", "dead")]
    assert sorted(item for ids in states for item in ids) == sorted(lab.client.hkeys(key("items")))
    lab.queue("stateless")
    assert "state" in repairs(lab)
    assert repairs(lab) == {}


# -- replies


@every_script
def test_a_reply_has_its_shape(lab: Lab, name: str) -> None:
    """LQ-CALL-4, LQ-READ-2, LQ-HANDOFF-3: as many elements as were asked for, each of its kind, nothing behind them."""
    for call, kind in known_cases(lab, name):
        arguments = call.arguments(lab)
        well, _ = call.well(lab, kind)
        assert not misshapen(name, arguments, well.reply), (call, kind, well.reply)


# -- protocol and server


@every_script
def test_resp2_and_resp3_give_the_same_replies(lab: Lab, url: str, name: str) -> None:
    """LQ-CALL-7."""
    clients = [servers.plain_client(url, protocol=protocol) for protocol in (2, 3)]
    for call, kind in cases(lab, name):
        results = []
        for client in clients:
            lab.queue(kind)
            outcome = call.run(lab, client=client)
            results.append((outcome, lab.snapshot()))
        assert results[0] == results[1], (call, kind)
    for client in clients:
        client.close()


def test_no_script_leaves_a_global(lab: Lab) -> None:
    names = "local names = {} for name in pairs(_G) do names[#names + 1] = name end table.sort(names) return names"
    before = lab.client.eval(names, 0)
    for name in NAMES:
        for call, _ in cases(lab, name, ("full", "damaged")):
            call.run(lab)
    assert lab.client.eval(names, 0) == before


def test_a_flushed_script_is_not_known(redis_client: redis.Redis) -> None:
    """LQ-SCRIPT-2: what the client's EVAL after NOSCRIPT relies on; and EVAL makes the digest known."""
    for script in _scripts.SCRIPTS:
        keys = [key(each) for each in script.keys]
        redis_client.script_flush()
        with pytest.raises(redis.exceptions.NoScriptError):
            redis_client.evalsha(script.sha1, len(keys), *keys)
        with (
            pytest.raises(redis.ResponseError, match="LEASEQ_")
            if calls(script.name)[0].args
            else nullcontext()
        ):
            redis_client.eval(script.source, len(keys), *keys)
        with (
            pytest.raises(redis.ResponseError, match="LEASEQ_")
            if calls(script.name)[0].args
            else nullcontext()
        ):
            redis_client.evalsha(script.sha1, len(keys), *keys)


def test_the_prelude_answers_the_time_it_was_given(redis_client: redis.Redis) -> None:
    source = PRELUDE.format(seconds=NOW // 1_000_000, micros=7) + "\nreturn redis.call('TIME')"
    assert redis_client.eval(source, 0) == [str(NOW // 1_000_000).encode(), b"7"]
