"""What every script owes where something is wrong: a key, a counter, a record, a server without memory.

What a call touches when all is well (seen in MONITOR) says what must happen when something is wrong with exactly that.
"""

from collections.abc import Iterator
from typing import Any

import pytest
import redis
from support.script_calls import NEEDS_MEMORY, declared, known_cases, paths, unchanged, whole
from support.script_lab import Lab, Outcome, Snapshot, key, record, send, state, tail

from leaseq import _scripts

NAMES = [script.name for script in _scripts.SCRIPTS]
every_script = pytest.mark.parametrize("name", NAMES)

WRONG: dict[str, list[Any]] = {
    "string": ["SET", "text"],
    "list": ["RPUSH", "element"],
    "hash": ["HSET", "field", "value"],
    "zset": ["ZADD", 1, "member"],
    "set": ["SADD", "member"],
    "stream": ["XADD", "1-1", "field", "value"],
}
RIGHT = {
    **dict.fromkeys(("items", "meta", "counters"), "hash"),
    **dict.fromkeys(("wake", "room", "result"), "list"),
    "state": "string",
}


@pytest.fixture
def lab(redis_client: redis.Redis) -> Iterator[Lab]:
    laboratory = Lab(redis_client)
    yield laboratory
    laboratory.close()


# -- keys and counters


@pytest.mark.parametrize(("name", "wrong_key"), [(name, each) for name in NAMES for each in declared(name)])
def test_a_key_of_another_type_changes_nothing(lab: Lab, name: str, wrong_key: str) -> None:
    """LQ-ERROR-1, LQ-ERROR-3: refused where the call needs the key, and done as ever where it does not."""
    right = RIGHT.get(wrong_key.removeprefix("other:").split(":")[0], "zset")
    wrong = [each for each in WRONG if each != right]
    seen = set()
    for at, (call, kind, well) in enumerate(paths(lab, name)):
        for each in wrong if kind == "full" else [wrong[at % len(wrong)]]:
            lab.queue(kind)
            lab.client.delete(key(wrong_key))
            send(lab.client, WRONG[each][0], key(wrong_key), *WRONG[each][1:])
            before = lab.snapshot()
            outcome = call.run(lab)
            case = (call, kind, wrong_key, each)
            if wrong_key not in well.touched:
                assert (outcome.error, outcome.reply) == (None, well.reply), case
                assert lab.snapshot()[key(wrong_key).encode()] == before[key(wrong_key).encode()], case
            elif name == "lease_any" and outcome.error is None:
                broken = [each for each in call.keys if ("other:" in each) == ("other:" in wrong_key)]
                a_broken_queue_is_as_it_was(outcome, well, before, lab.snapshot(), whole(broken))
            else:
                unchanged(lab, outcome, "LEASEQ_WRONG_TYPE", before, case)
                seen.add(outcome.code)
    assert "LEASEQ_WRONG_TYPE" in seen


def a_broken_queue_is_as_it_was(
    outcome: Outcome, well: Outcome, before: Snapshot, after: Snapshot, broken: list[str]
) -> None:
    """What an earlier queue gave is given, whatever is wrong with a later one, which is left as it was."""
    if outcome.reply != well.reply:
        assert (outcome.reply[0], outcome.reply[1], outcome.reply[3]) == (0, 0, 0)
    assert {each: before.get(each.encode()) for each in broken} == {
        each: after.get(each.encode()) for each in broken
    }


@every_script
def test_a_damaged_counter_begins_anew(lab: Lab, name: str) -> None:
    """LQ-READ-6, LQ-ITEM-3: each in turn is no number or at the end of its range; every item is where it would have been."""
    for call, kind, well in paths(lab, name):
        counts = [command for command in well.commands if command.name == "HINCRBY"]
        for at, count in enumerate(counts):
            where = str(count.key)
            lab.queue(kind)
            lab.client.hset(key(where), mapping={count.args[1]: b"x" if at % 2 else b"%d" % (2**63 - 1)})
            outcome = call.run(lab)
            assert (outcome.error, outcome.reply) == (None, well.reply), (call, kind, count)
            # a script may count the same twice in one call
            same = [each for each in counts if (each.key, each.args[1]) == (where, count.args[1])]
            expected = dict(call.well(lab, kind)[1])
            numbers = expected.pop(key(where).encode()).content
            after = lab.snapshot()
            assert after.pop(key(where).encode()).content == {
                **numbers,
                count.args[1]: b"%d" % sum(int(each.args[2]) for each in same),
            }, (call, kind, count)
            assert after == expected, (call, kind, count)


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        *((text, 0) for text in (b"x", b"", b"1.5", b"1e3", b"0x10", b"01", b" 1", b"+1", b"nan", b"-1")),
        *((b"%d" % number, 0) for number in (2**63 - 1, 2**63, 10**19, 2**64, -(2**63))),
        *((b"%d" % number, number) for number in (1, 2**53 - 1, 10**18, 2**63 - 1024)),
        (b"%d" % (2**63 - 2), 2**63 - 1024),
    ],
)
def test_a_damaged_counter_is_read_as_0(lab: Lab, damage: bytes, told: int) -> None:
    """LQ-READ-6, LQ-READ-3: what stats takes for a number is what HINCRBY takes, and `completed` stays one."""
    lab.queue("full")
    reply = lab.ok("stats")
    numbers = dict(zip(reply[::2], reply[1::2], strict=True))
    for name in (b"promoted", b"removed"):
        lab.client.hset(key("counters"), name.decode(), damage)
        reply = lab.ok("stats")
        now = dict(zip(reply[::2], reply[1::2], strict=True))
        assert now[name] == told, name
        assert now[b"completed"] == max(0, numbers[b"completed"] - told * (name == b"removed"))


# -- full servers


@every_script
def test_a_full_server_can_be_drained(lab: Lab, name: str) -> None:
    """LQ-SCRIPT-6, LQ-HANDOFF-5, LQ-CONFIG-4: on a server out of memory only adding is refused; the rest is as ever."""
    before_test: Any = lab.client.config_get("maxmemory*")
    try:
        lab.client.config_set("maxmemory-policy", "noeviction")
        for call, kind in known_cases(lab, name):
            well, after = call.well(lab, kind)
            before = lab.queue(kind)
            call.run(lab, keys=[])  # so that the script is loaded
            lab.client.config_set("maxmemory", 1)
            outcome = call.run(lab)
            lab.client.config_set("maxmemory", 0)
            if name in NEEDS_MEMORY and any(command.name in {"HSETNX", "SET"} for command in well.commands):
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
    "flag": state(flags=4),
    "highest flag": state(flags=128),
    "short": state()[:-1],
    "long": state() + b"\0",
    "empty": b"",
    "text": b"x" * 44,
}
STRANGE_RECORDS = {
    "version": record(version=2),
    "version 0": record(version=0),
    "no tail, an extra": record(options=2),
    "options without a tail": record(options=6) + tail(),
    "flag": record(options=9) + tail(),
    "highest flag": record(options=129) + tail(),
    **(
        DAMAGED_RECORDS := {
            "short": record()[:-1],
            "empty": b"",
            "surplus": record() + b"\0",
            "options missing": record(options=1),
            "options cut": record(options=7) + tail()[:-1],
            "surplus behind options": record(options=5) + tail() + b"\0",
        }
    ),
}


@pytest.mark.parametrize("name", [name for name in NAMES if "state" in declared(name)])
def test_a_state_of_an_unknown_format_is_refused(lab: Lab, name: str) -> None:
    """LQ-VERSION-1."""
    for at, (call, kind, _) in enumerate(list(paths(lab, name))):
        if "state" not in call.keys[:11]:
            continue  # of a later queue, where an earlier one may have given items
        lab.queue(kind)
        for turn, (strange, value) in enumerate(STRANGE_STATES.items()):
            if at and (at + turn) % 4:
                continue  # every one on the first path, two on each of the others
            lab.client.set(key("state"), value)
            before = lab.snapshot()
            outcome = call.run(lab)
            unchanged(lab, outcome, "LEASEQ_FORMAT", before, (call, kind, strange))


@pytest.mark.parametrize(
    "name", [name for name in NAMES if "meta" in declared(name) and name != "deep_clean"]
)
def test_a_record_of_an_unknown_format_is_refused_by_every_call_that_reads_it(lab: Lab, name: str) -> None:
    """LQ-VERSION-2: the record of an item that the call names, and of one that it sweeps or finds at the head."""
    read_at_all: set[bytes] = set()
    strange = list(STRANGE_RECORDS)
    for at, (call, kind, well) in enumerate(paths(lab, name)):
        after = call.well(lab, kind)[1]
        if "meta" not in call.keys[:11]:
            continue  # of a later queue, where an earlier one may have given items
        read = well.records_read
        if name == "revive":  # of no other item
            dead = [command.args[1:] for command in well.commands if command.name == "ZREM"]
            read = {item for ids in dead for item in ids}
        read_at_all |= read
        queue = lab.queue(kind)
        # the records that it reads, of long reads those at the edges; and some that it does not read
        ids = edges(well) if len(read) > 20 else sorted(read - {b""})
        stored: list[bytes] = sorted(send(lab.client, "HKEYS", key("meta")))
        stored = [item for item in stored if not item.startswith(b"\0")]
        ids += [item for item in stored if item not in read][:4]
        for turn, item in enumerate(ids):
            lab.restore(queue)
            lab.client.hset(key("meta"), item, STRANGE_RECORDS[strange[(at + turn) % len(strange)]])
            before = lab.snapshot()
            outcome = call.run(lab)
            case = (call, kind, item, strange[(at + turn) % len(strange)])
            if item in read:
                unchanged(lab, outcome, "LEASEQ_FORMAT", before, case)
            else:
                assert (outcome.error, outcome.reply) == (None, well.reply), case
                assert set(lab.snapshot()) == set(after), case
    assert bool(read_at_all) == (name not in {"add", "purge", "remove"})


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
