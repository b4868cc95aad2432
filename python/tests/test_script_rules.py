"""What every script owes: only declared keys, all or nothing, named errors, full servers, alike in RESP2 and RESP3.

Every sample call of `script_calls.py` is made on every kind of queue of `script_lab.py`. What a call touches when all
is well (seen in MONITOR) says what must happen when something is wrong with exactly that.
"""

from collections.abc import Iterator
from contextlib import nullcontext
from functools import cache
from typing import Any

import pytest
import redis
import servers
from redis.crc import key_slot
from script_calls import CALLS, NEEDS_MEMORY, READ_ONLY, Call, calls
from script_lab import (
    END_2059,
    EPOCH_2025,
    NOW,
    PREFIX,
    PRELUDE,
    QUEUES,
    SCRIPTS,
    Lab,
    Outcome,
    key,
    record,
    send,
    state,
)

from leaseq import _scripts

NAMES = [script.name for script in _scripts.SCRIPTS]
CLOCKED = [name for name in NAMES if "call('TIME')" in SCRIPTS[name].source]
every_script = pytest.mark.parametrize("name", NAMES)

WRONG: dict[str, list[Any]] = {
    "string": ["SET", "text"],
    "list": ["RPUSH", "element"],
    "hash": ["HSET", "field", "value"],
    "zset": ["ZADD", 1, "member"],
    "set": ["SADD", "member"],
    "stream": ["XADD", "1-1", "field", "value"],
}
RIGHT = {"items": "hash", "meta": "hash", "counters": "hash", "state": "string", "wake": "list"}


@pytest.fixture
def lab(redis_client: redis.Redis) -> Iterator[Lab]:
    laboratory = Lab(redis_client)
    yield laboratory
    laboratory.close()


def cases(lab: Lab, name: str, kinds: tuple[str, ...] = tuple(QUEUES)) -> Iterator[tuple[Call, str]]:
    """Every sample call of a script on every kind of queue, which is on the server at that moment."""
    for call in calls(name):
        for kind in kinds:
            lab.queue(kind)
            yield call, kind


def known_cases(lab: Lab, name: str) -> Iterator[tuple[Call, str]]:
    """The same without putting the queue on the server."""
    for call in calls(name):
        for kind in QUEUES:
            lab.know(kind)
            yield call, kind


def unchanged(lab: Lab, outcome: Outcome, code: str, before: dict[bytes, bytes], case: object) -> None:
    """The call was refused by this name and left every byte as it was."""
    assert outcome.code == code, (case, outcome)
    assert lab.snapshot() == before, (case, outcome.error)


def test_every_script_has_sample_calls() -> None:
    assert set(CALLS) == set(NAMES)
    assert set(NAMES) > READ_ONLY | NEEDS_MEMORY


# -- keys


@every_script
def test_a_script_touches_exactly_the_keys_that_it_declares(lab: Lab, name: str) -> None:
    """LQ-SCRIPT-4, LQ-CLUSTER-1: nothing undeclared in any branch; and what no branch touches is not declared."""
    touched: set[str] = set()
    for call, kind in known_cases(lab, name):
        outcome, _ = lab.well(kind, name, call.arguments(lab))
        assert outcome.error is None, (call, kind, outcome.error)
        assert outcome.commands, (call, kind)
        assert outcome.touched <= set(SCRIPTS[name].keys), (call, kind, outcome.touched)
        touched |= outcome.touched
    assert touched == set(SCRIPTS[name].keys)
    assert len({key_slot(key(each).encode()) for each in SCRIPTS[name].keys}) == 1


@every_script
def test_another_number_of_keys_is_refused(lab: Lab, name: str) -> None:
    """LQ-CALL-1."""
    before = lab.queue("full")
    call = calls(name)[0]
    right = [key(each) for each in SCRIPTS[name].keys]
    for keys in ([], right[:-1], [*right, PREFIX + "more"]):
        outcome = lab.run(name, call.arguments(lab), keys=keys)
        unchanged(lab, outcome, "LEASEQ_BAD_ARGUMENT", before, (call, len(keys)))


@pytest.mark.parametrize(
    ("name", "wrong_key"), [(name, each) for name in NAMES for each in SCRIPTS[name].keys]
)
def test_a_key_of_another_type_changes_nothing(lab: Lab, name: str, wrong_key: str) -> None:
    """LQ-ERROR-1, LQ-ERROR-3: refused where the call needs the key, and done as ever where it does not."""
    wrong = [each for each in WRONG if each != RIGHT.get(wrong_key, "zset")]
    seen = set()
    for at, (call, kind) in enumerate(known_cases(lab, name)):
        well, _ = lab.well(kind, name, call.arguments(lab))
        for each in wrong if kind == "full" else [wrong[at % len(wrong)]]:
            lab.queue(kind)
            lab.client.delete(key(wrong_key))
            send(lab.client, WRONG[each][0], key(wrong_key), *WRONG[each][1:])
            before = lab.snapshot()
            outcome = lab.run(name, call.arguments(lab))
            case = (call, kind, wrong_key, each)
            if wrong_key in well.touched:
                unchanged(lab, outcome, "LEASEQ_WRONG_TYPE", before, case)
            else:
                assert (outcome.error, outcome.reply) == (None, well.reply), case
                assert lab.snapshot()[key(wrong_key).encode()] == before[key(wrong_key).encode()], case
            seen.add(outcome.code)
    assert "LEASEQ_WRONG_TYPE" in seen


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
        outcome = lab.watch(name, call.arguments(lab))
        written |= any(writes(command.name) for command in outcome.commands)
        if name in READ_ONLY:
            assert lab.snapshot() == before, (call, kind)
            if has_eval_ro:
                keys = [key(each) for each in SCRIPTS[name].keys]
                args = [len(keys), *keys, *call.arguments(lab)]
                assert send(lab.client, "EVAL_RO", lab.source(name), *args) == outcome.reply
    assert written == (name not in READ_ONLY)


@every_script
def test_dry_runs_and_answers_of_nothing_write_nothing(lab: Lab, name: str) -> None:
    """LQ-ERROR-5, LQ-DEEP-3: what answers that nothing was done has done nothing."""
    nothing = {"complete": 0, "extend": 0, "release": b"lost", "remove": b"absent", "settle": 0, "add": 0}
    for call, kind in cases(lab, name):
        before = lab.snapshot()
        outcome = lab.run(name, call.arguments(lab))
        dry = name == "deep_clean" and call.args[2] == 1
        if dry or (name in nothing and outcome.reply == nothing[name]):
            assert lab.snapshot() == before, (call, kind)


# -- full servers


@every_script
def test_a_full_server_can_be_drained(lab: Lab, name: str) -> None:
    """LQ-SCRIPT-6: on a server out of memory only adding and configuring are refused; the rest is as ever."""
    before_test: Any = lab.client.config_get("maxmemory*")
    try:
        lab.client.config_set("maxmemory-policy", "noeviction")
        for call, kind in known_cases(lab, name):
            well, after = lab.well(kind, name, call.arguments(lab))
            before = lab.queue(kind)
            lab.run(name, call.arguments(lab), keys=[])  # so that the script is loaded
            lab.client.config_set("maxmemory", 1)
            outcome = lab.run(name, call.arguments(lab))
            lab.client.config_set("maxmemory", 0)
            if name in NEEDS_MEMORY:
                unchanged(lab, outcome, "LEASEQ_OUT_OF_MEMORY", before, (call, kind))
            else:
                assert (outcome.error, outcome.reply) == (None, well.reply), (call, kind)
                assert lab.snapshot() == after, (call, kind)
    finally:
        for setting in ("maxmemory", "maxmemory-policy"):
            lab.client.config_set(setting, before_test[setting])


# -- unknown formats

STRANGE_STATES = {
    "format": state(version=2),
    "format 0": state(version=0),
    "flag": state(flags=1),
    "highest flag": state(flags=128),
    "short": state()[:-1],
    "long": state() + b"\0",
    "empty": b"",
    "text": b"x" * 44,
}
STRANGE_RECORDS = {
    "version": record(version=2),
    "version 0": record(version=0),
    "flag": record(options=2) + bytes(3),
    "highest flag": record(options=128) + bytes(3),
    **(
        DAMAGED_RECORDS := {
            "short": record()[:-1],
            "empty": b"",
            "surplus": record() + b"\0",
            "options missing": record(options=1),
            "options cut": record(options=1) + bytes(2),
        }
    ),
}


@pytest.mark.parametrize("name", [name for name in NAMES if "state" in SCRIPTS[name].keys])
def test_a_state_of_an_unknown_format_is_refused(lab: Lab, name: str) -> None:
    """LQ-VERSION-1."""
    for call, kind in cases(lab, name):
        for strange, value in STRANGE_STATES.items():
            lab.client.set(key("state"), value)
            before = lab.snapshot()
            outcome = lab.run(name, call.arguments(lab))
            unchanged(lab, outcome, "LEASEQ_FORMAT", before, (call, kind, strange))


@pytest.mark.parametrize(
    "name", [name for name in NAMES if "meta" in SCRIPTS[name].keys and name != "deep_clean"]
)
def test_a_record_of_an_unknown_format_is_refused_by_every_call_that_reads_it(lab: Lab, name: str) -> None:
    """LQ-VERSION-2: the record of an item that the call names, and of one that it sweeps or finds at the head."""
    read_at_all: set[bytes] = set()
    strange = list(STRANGE_RECORDS)
    for at, (call, kind) in enumerate(known_cases(lab, name)):
        well, after = lab.well(kind, name, call.arguments(lab))
        read_at_all |= well.records_read
        queue = lab.queue(kind)
        # the records that it reads, of long reads those at the edges; and some that it does not read
        ids = edges(well) if len(well.records_read) > 20 else sorted(well.records_read)
        stored: list[bytes] = sorted(send(lab.client, "HKEYS", key("meta")))
        ids += [item for item in stored if item not in well.records_read][:4]
        for turn, item in enumerate(ids):
            lab.restore(queue)
            lab.client.hset(key("meta"), item, STRANGE_RECORDS[strange[(at + turn) % len(strange)]])
            before = lab.snapshot()
            outcome = lab.run(name, call.arguments(lab))
            case = (call, kind, item, strange[(at + turn) % len(strange)])
            if item in well.records_read:
                unchanged(lab, outcome, "LEASEQ_FORMAT", before, case)
            else:
                assert (outcome.error, outcome.reply) == (None, well.reply), case
                assert set(lab.snapshot()) == set(after), case
    assert bool(read_at_all) == (name not in {"add", "remove"})


def edges(outcome: Outcome) -> list[bytes]:
    """The first and the last ids of each time that records were read."""
    reads = [
        command.args[1:] for command in outcome.commands if command.key == "meta" and command.name == "HMGET"
    ]
    return sorted({each for read in reads for each in (*read[:2], *read[-2:])})


def test_deep_clean_mends_a_record_that_is_too_short_and_refuses_an_unknown_one(lab: Lab) -> None:
    """LQ-DEEP-7, LQ-VERSION-2: damage is repaired; a newer client's record is never taken for damage."""
    for strange, value in STRANGE_RECORDS.items():
        lab.queue("quiet")
        lab.client.hset(key("meta"), "c1", value)
        before = lab.snapshot()
        outcome = lab.run("deep_clean", ["2:0", 256, 0])
        if strange in DAMAGED_RECORDS:
            assert outcome.reply[outcome.reply.index(b"bad_record") + 1] == 1, strange
            assert not lab.client.hexists(key("meta"), "c1")
        else:
            unchanged(lab, outcome, "LEASEQ_FORMAT", before, strange)


# -- the clock


@pytest.mark.parametrize("name", CLOCKED)
def test_a_clock_outside_the_years_2025_to_2059_is_refused(lab: Lab, name: str) -> None:
    """LQ-TIME-3."""
    for call, kind in cases(lab, name):
        before = lab.queue(kind)
        for now in (0, EPOCH_2025 - 1, END_2059, 2 * END_2059):
            outcome = lab.run(name, call.arguments(lab), now=now)
            unchanged(lab, outcome, "LEASEQ_CLOCK", before, (call, kind, now))
        for now in (EPOCH_2025, END_2059 - 1):
            lab.restore(before)
            outcome = lab.run(name, call.arguments(lab), now=now)
            assert outcome.code != "LEASEQ_CLOCK", (call, kind, now)


def test_which_scripts_need_no_clock(lab: Lab) -> None:
    """LQ-COMPLETE-5: a worker can say that the work is done whatever the clock says."""
    assert set(NAMES) - set(CLOCKED) == {"complete", "configure", "inspect", "list", "remove"}


@every_script
def test_the_virtual_time_hides_nothing(lab: Lab, name: str) -> None:
    """The scripts as they are, in the server's own time, on the same queues."""
    for call, kind in cases(lab, name):
        outcome = lab.run(name, call.arguments(lab), now=None)
        assert outcome.error is None, (call, kind, outcome.error)


# -- once more

SECOND: dict[str, Any] = {
    "add": lambda first: 0 if isinstance(first, int) else [0] * len(first),
    "complete": lambda first: 0 if isinstance(first, int) else [0] * len(first),
    "configure": lambda _: 1,
    "release": lambda first: b"lost" if isinstance(first, bytes) else [b"lost"] * len(first),
    "remove": lambda first: b"absent" if isinstance(first, bytes) else [b"absent"] * len(first),
    "settle": lambda _: 0,
}


@pytest.mark.parametrize("name", sorted(SECOND))
def test_the_second_of_two_equal_calls_finds_it_done(lab: Lab, name: str) -> None:
    """LQ-ADD-1, LQ-COMPLETE-2, LQ-RELEASE-1, LQ-REMOVE-1, LQ-SETTLE-1."""
    for call, kind in cases(lab, name, ("empty", "full", "quiet", "awake", "stale", "stateless", "crowded")):
        arguments = call.arguments(lab)
        first = lab.ok(name, *arguments)
        once = lab.snapshot()
        assert lab.ok(name, *arguments) == SECOND[name](first), (call, kind)
        assert lab.snapshot() == once, (call, kind)


@pytest.mark.parametrize("name", sorted({*READ_ONLY, "extend", "light_clean", "deep_clean"}))
def test_calls_that_may_be_repeated_change_nothing_more(lab: Lab, name: str) -> None:
    """LQ-EXTEND-1, LQ-LIGHT-1, LQ-READ-1, LQ-DEEP-2: at the same time, the second call changes nothing."""
    for call, kind in cases(lab, name):
        if name == "light_clean" and (kind == "crowded" or call.args != (256,)):
            continue  # more is left than one call does
        arguments = call.arguments(lab)
        lab.ok(name, *arguments)
        once = lab.snapshot()
        second = lab.ok(name, *arguments)
        assert lab.snapshot() == once, (call, kind, second)
        if name == "light_clean":
            assert second[:3] == [0, 0, 0], (call, kind)


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
        "clock", "next_due",
    }  # fmt: skip
    assert repairs(lab) == {}
    states = [lab.client.zrange(key(each), 0, -1) for each in ("ready", "delayed", "leased", "dead")]
    assert sorted(item for ids in states for item in ids) == sorted(lab.client.hkeys(key("items")))
    lab.queue("stateless")
    assert "state" in repairs(lab)
    assert repairs(lab) == {}


# -- protocol and server


@every_script
def test_resp2_and_resp3_give_the_same_replies(lab: Lab, url: str, name: str) -> None:
    """LQ-CALL-7."""
    clients = [servers.plain_client(url, protocol=protocol) for protocol in (2, 3)]
    for call, kind in cases(lab, name):
        results = []
        for client in clients:
            lab.queue(kind)
            outcome = lab.run(name, call.arguments(lab), client=client)
            results.append((outcome, lab.snapshot()))
        assert results[0] == results[1], (call, kind)
    for client in clients:
        client.close()


def test_no_script_leaves_a_global(lab: Lab) -> None:
    names = "local names = {} for name in pairs(_G) do names[#names + 1] = name end table.sort(names) return names"
    before = lab.client.eval(names, 0)
    for name in NAMES:
        for call, _ in cases(lab, name, ("full", "damaged")):
            lab.run(name, call.arguments(lab))
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
