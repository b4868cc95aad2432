"""Export and import: what can be carried is carried, what cannot is reported, and an import that is cut is run again."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support import servers
from support.cli_runner import Calls

import leaseq
from leaseq import Item
from leaseq._scripts import ADD
from leaseq.flows import CHUNK_BYTES
from leaseq.registry import queues
from leaseq.transfer import export_queue, import_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    import redis

    from leaseq_conformance.fault_proxy import Listener

DOCS = Path(__file__).parents[3] / "docs"
HOUR = 3600


@pytest.fixture
def queue(redis_client: redis.Redis) -> Iterator[leaseq.WorkQueue]:
    with leaseq.WorkQueue("old", redis_client) as made:
        yield made


@pytest.fixture
def other(redis_client: redis.Redis) -> Iterator[leaseq.WorkQueue]:
    with leaseq.WorkQueue("new", redis_client) as made:
        yield made


def exported(queue: leaseq.WorkQueue) -> list[str]:
    return [json.dumps(line) for line in export_queue(queue)]


def items(lines: list[str]) -> dict[str, dict[str, Any]]:
    return {line["id"]: line for line in map(json.loads, lines) if "id" in line}


def fill(queue: leaseq.WorkQueue) -> None:
    """An item of every kind."""
    queue.add_item(Item(b"x", id="held"))
    held = queue.lease(HOUR)
    assert held is not None
    queue.add_item(Item(b"x", id="dead"))
    dead = queue.lease(HOUR)
    assert dead is not None
    queue.dead_letter(dead, error="no such bank")
    queue.add_item(Item(b"x", id="again"))
    again = queue.lease(HOUR)
    assert again is not None
    queue.release(again, error="timeout")
    queue.add_item(Item(b"\x00\xff", id="bytes \u00e9\n"))
    queue.add_item(Item(b"", id="empty"), priority=7, max_attempts=3, keep=60)
    queue.add_item(Item("\u00e9", id="rich", headers={"trace": "7f", "odd": "\udcff"}, content_type=""))
    queue.add_item(Item(b"x", id="later"), delay=HOUR, max_attempts=0)
    queue.add_item(Item(b"x", id="expiring"), expires_in=HOUR, dead_on_expiry=True)


def test_everything_of_an_item_is_in_its_line(queue: leaseq.WorkQueue) -> None:
    fill(queue)
    lines = exported(queue)
    first, last = json.loads(lines[0]), json.loads(lines[-1])
    assert first["leaseq_export"] == 1
    assert (first["queue"], first["group"], first["limits"]["max_data"]) == ("old", "old", 1048576)
    assert last == {"end": True, "items": 8, "changed": False}
    found = items(lines)
    for item_id, line in found.items():
        info = queue.inspect(item_id)
        assert line["state"] == info.state
        assert line["created"] == info.created
        assert info.time in line.values()
        assert line.get("priority", 0) == info.priority
        assert line.get("attempt", 0) == info.attempt
        assert line.get("token", 0) == info.token
        assert line.get("error", "") == info.error
        assert line.get("keep", 0) == info.keep
        assert line.get("expires", 0) == info.expires
    assert found["bytes \u00e9\n"]["data_base64"] == "AP8="
    assert found["rich"]["data"] == "\u00e9"
    assert found["rich"]["headers"] == {"trace": "7f", "odd": "\udcff"}
    assert found["rich"]["content_type"] == ""
    assert found["empty"]["data"] == ""
    assert {item_id: line["max_attempts"] for item_id, line in found.items() if "max_attempts" in line} == {
        "empty": 3,
        "later": 0,
    }
    assert [item_id for item_id, line in found.items() if line.get("dead_on_expiry")] == ["expiring"]


def test_what_is_imported_is_what_was_exported(queue: leaseq.WorkQueue, other: leaseq.WorkQueue) -> None:
    fill(queue)
    lines = exported(queue)
    done = import_lines(other, lines)
    assert (done.added, done.exist, done.dead, done.expired) == (7, 0, 1, 0)
    assert (done.restarted, done.errors, done.held, done.complete) == (2, 1, 1, True)
    before, after = items(lines), items(exported(other))
    assert set(after) == set(before) - {"dead"}
    begun_anew = {
        "created",
        "ready_since",
        "lease_ends",
        "due",
        "state",
        "attempt",
        "token",
        "error",
        "expires",
    }
    for item_id, line in after.items():
        old = {name: value for name, value in before[item_id].items() if name not in begun_anew}
        assert {name: value for name, value in line.items() if name not in begun_anew} == old
    # held: due when that lease ends; to the millisecond, which is what the wire has
    assert (after["held"]["state"], after["later"]["state"]) == ("delayed", "delayed")
    assert after["held"]["due"] == pytest.approx(before["held"]["lease_ends"], abs=0.001)
    assert after["later"]["due"] == pytest.approx(before["later"]["due"], abs=0.001)
    assert "attempt" not in after["again"]
    # what is left of an hour, counted from just before the call
    assert after["expiring"]["expires"] >= before["expiring"]["expires"] - 0.002


def test_order_is_kept(queue: leaseq.WorkQueue, other: leaseq.WorkQueue) -> None:
    queue.add_items([Item(b"", id=f"{n:04}") for n in range(600)])
    queue.add_item(Item(b"", id="urgent"), priority=1)
    import_lines(other, exported(queue))
    leased = [item.id for _ in range(3) for item in other.lease_items(256, HOUR, block=False)]
    assert leased == ["urgent", *(f"{n:04}" for n in range(600))]


def test_dead_items_come_in_ready_where_that_is_wanted(
    queue: leaseq.WorkQueue, other: leaseq.WorkQueue
) -> None:
    fill(queue)
    done = import_lines(other, exported(queue), revive_dead=True)
    assert (done.added, done.dead) == (8, 0)
    assert other.inspect("dead").state == "ready"


def test_an_expired_item_is_left_out(queue: leaseq.WorkQueue, other: leaseq.WorkQueue) -> None:
    queue.add_item(Item(b"x", id="a"), expires_in=HOUR)
    lines = exported(queue)
    line = json.loads(lines[1])
    line["expires"] -= 2 * HOUR  # as if the import came two hours later
    done = import_lines(other, [lines[0], json.dumps(line), lines[2]])
    assert (done.added, done.expired) == (0, 1)


def test_expiries_count_from_the_call_that_adds_an_item(other: leaseq.WorkQueue) -> None:
    """Also where lines come slowly, as from a pipe."""
    start = other.stats().now
    expires = {"soon": start + 0.2, "later": start + HOUR}

    def slowly() -> Iterator[str]:
        yield '{"leaseq_export": 1}'
        for name, time in expires.items():
            yield json.dumps({"id": name, "data": "x", "expires": time, "dead_on_expiry": True})
        servers.wait_until(lambda: other.stats().now > start + 1)

    done = import_lines(other, slowly())
    assert (done.added, done.expired) == (1, 1)
    assert other.inspect("later").expires == pytest.approx(expires["later"], abs=0.5)
    assert other.inspect("soon").state == "absent"


def test_what_has_all_expired_is_not_sent(other: leaseq.WorkQueue) -> None:
    start = other.stats().now

    def slowly() -> Iterator[str]:
        yield '{"leaseq_export": 1}'
        yield json.dumps({"id": "a", "data": "x", "expires": start + 0.2})
        servers.wait_until(lambda: other.stats().now > start + 0.2)

    done = import_lines(other, slowly())
    assert (done.added, done.expired) == (0, 1)


def test_what_was_leased_once_is_exported_without_an_expiry(
    queue: leaseq.WorkQueue, other: leaseq.WorkQueue
) -> None:
    """LQ-LEASE-10: the first lease ends the expiry, and nothing dies of it later, also if it was revived."""
    for name in ("held", "again", "revived"):
        queue.add_item(Item(b"x", id=name), expires_in=HOUR, dead_on_expiry=True)
    held, again, revived = (queue.lease(HOUR) for _ in range(3))
    assert held is not None
    assert again is not None
    assert revived is not None
    queue.release(again)
    queue.dead_letter(revived, error="no such bank")
    assert queue.revive("revived")
    queue.add_item(Item(b"x", id="expired"), expires_in=0.001, dead_on_expiry=True)
    servers.wait_until(lambda: queue.light_clean().died == 1)
    assert queue.revive("expired")
    lines = exported(queue)
    assert [
        (line["id"], line.get("expires"), line.get("dead_on_expiry")) for line in items(lines).values()
    ] == [
        ("again", None, None),
        ("revived", None, None),
        ("expired", None, None),
        ("held", None, None),
    ]
    done = import_lines(other, lines)
    assert (done.added, done.held) == (4, 1)


def test_a_line_that_dies_of_no_expiry_is_imported(other: leaseq.WorkQueue) -> None:
    """Exports had such lines for items that had been leased."""
    line = {"id": "a", "data": "x", "dead_on_expiry": True, "attempt": 1}
    done = import_lines(
        other, ['{"leaseq_export": 1}', json.dumps(line), json.dumps({**line, "id": "b", "expires": 0})]
    )
    assert (done.added, done.restarted) == (2, 2)
    assert [(other.inspect(name).state, other.inspect(name).expires) for name in "ab"] == [
        ("ready", 0),
        ("ready", 0),
    ]


def test_existing_ids_are_answered_and_left_alone(queue: leaseq.WorkQueue, other: leaseq.WorkQueue) -> None:
    fill(queue)
    other.add_item(Item(b"mine", id="empty"))
    done = import_lines(other, exported(queue))
    assert (done.added, done.exist) == (6, 1)
    assert items(exported(other))["empty"]["data"] == "mine"


def test_an_import_that_is_cut_is_run_again(
    queue: leaseq.WorkQueue, proxy: Listener, redis_client: redis.Redis
) -> None:
    queue.add_items([Item(b"x", id=f"{n:04}") for n in range(1000)])
    lines = exported(queue)
    with leaseq.WorkQueue("new", proxy.url) as cut:

        def until_cut() -> Iterator[str]:
            for number, line in enumerate(lines):
                if number == 700:
                    proxy.refuse = True
                    proxy.reset()
                yield line

        with pytest.raises(leaseq.LeaseqError):
            import_lines(cut, until_cut())
    with leaseq.WorkQueue("new", redis_client) as other:
        there = other.stats().items
        assert 0 < there < 1000
        done = import_lines(other, lines)
        assert (done.added, done.exist) == (1000 - there, there)
        assert other.stats().items == 1000


def test_a_full_queue_says_so_and_goes_on_later(queue: leaseq.WorkQueue, other: leaseq.WorkQueue) -> None:
    queue.add_items([Item(b"x", id=f"{n:04}") for n in range(600)])
    lines = exported(queue)
    other.configure(max_items=300)
    with pytest.raises(leaseq.QueueFullError, match="300 items were added and 0 exist"):
        import_lines(other, lines)
    other.configure(max_items=0)
    done = import_lines(other, lines)
    assert (done.added, done.exist) == (300, 300)


def test_a_queue_that_is_used_meanwhile_is_told(queue: leaseq.WorkQueue) -> None:
    queue.add_items([Item(b"x") for _ in range(3)])
    lines = export_queue(queue)
    next(lines)
    queue.lease(HOUR)
    assert list(lines)[-1]["changed"] is True


def test_an_item_that_goes_meanwhile_has_no_line(queue: leaseq.WorkQueue, redis_client: redis.Redis) -> None:
    queue.add_items([Item(b"x", id=name) for name in "ab"])
    # gone between the list and the look at it
    redis_client.zadd("leaseq:{old}:old:ready", {"gone": 1})
    assert set(items(exported(queue))) == {"a", "b"}


def test_no_call_carries_more_than_a_chunk(own_server: servers.StartServer) -> None:
    with (
        own_server("--slowlog-max-len", "1000").client() as client,
        leaseq.WorkQueue("old", client) as queue,
        leaseq.WorkQueue("new", client) as new,
    ):
        queue.configure(max_data=CHUNK_BYTES)
        new.configure(max_data=CHUNK_BYTES)
        for n in range(6):
            queue.add_item(Item(bytes(CHUNK_BYTES // 3 * 2), id=f"{n}"))
        client.config_set("slowlog-log-slower-than", 0)
        client.slowlog_reset()
        assert import_lines(new, (json.dumps(line) for line in export_queue(queue))).added == 6
        calls = [entry["command"].split(b" ") for entry in client.slowlog_get(1000)]
    read = [len(call) - 2 for call in calls if call[:2] == [b"HMGET", b"leaseq:{old}:old:items"]]
    added = [int(call[3 + len(ADD.keys)]) for call in calls if len(call) > 1 and call[1] == ADD.sha1.encode()]
    assert (read, added) == ([1] * 6, [1] * 6)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("no json", "line 2: this is not JSON"),
        ("[1]", "line 2: this is no JSON object"),
        ('{"data": "x"}', 'line 2: .*see "id"'),
        ('{"id": "a"}', 'line 2: .*see "data"'),
        ('{"id": "a", "data_base64": "?"}', "line 2: data_base64 is not base64"),
        ('{"id": "a", "data": "x", "expires": "soon"}', 'line 2: "expires" is a number'),
        ('{"id": "a", "data": "x", "headers": [1]}', 'line 2: "headers" is an object'),
        ('{"id": "a", "data": "x", "priority": "high"}', "line 2: priority must be an int"),
        ('{"id": "", "data": "x"}', "line.? 2.*an id is"),
        ('{"id": "a", "data": "x", "priority": 99}', "line.? 2"),
    ],
)
def test_a_bad_line_is_named(other: leaseq.WorkQueue, line: str, message: str) -> None:
    with pytest.raises(leaseq.LeaseqError, match=message) as raised:
        import_lines(other, ['{"leaseq_export": 1}', line])
    assert raised.value.definite
    assert other.stats().added == 0


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999", "1" + "0" * 400, "true", '"1"'])
@pytest.mark.parametrize("name", ["expires", "due", "keep"])
def test_what_is_no_number_is_refused(other: leaseq.WorkQueue, name: str, value: str) -> None:
    """Python's JSON takes some of these: an item that expires at no time was gone at once."""
    line = f'{{"id": "a", "data": "x", "state": "delayed", "{name}": {value}}}'
    with pytest.raises(leaseq.BadArgumentError, match=f'"{name}" is a number of seconds'):
        import_lines(other, ['{"leaseq_export": 1}', line])
    assert other.stats().added == 0


def test_an_import_that_may_have_taken_effect_says_so(other: leaseq.WorkQueue, proxy: Listener) -> None:
    """LQ-ERROR-4: an error of the server may come from a script that had written something."""
    with leaseq.WorkQueue(other.name, proxy.url, group=other.group) as through:
        point = proxy.add_breakpoint("EVALSHA", nth=2)  # behind the call for the time
        with ThreadPoolExecutor(1) as pool:
            importing = pool.submit(
                import_lines, through, ['{"leaseq_export": 1}', '{"id": "a", "data": "x"}']
            )
            point.wait()
            point.reply_with(b"-ERR something stopped the script halfway\r\n")
            with pytest.raises(leaseq.LeaseqError, match=r"lines? 2") as raised:
                importing.result(servers.TIMEOUT_SECS)
    assert not raised.value.definite


def test_what_was_imported_can_be_found(queue: leaseq.WorkQueue, other: leaseq.WorkQueue) -> None:
    """By cleaners and `leaseq queues`: LQ-REGISTRY-2."""
    queue.add_item(Item(b"data"))
    import_lines(other, exported(queue))
    found = [each.name for each in queues(other.executor.client)]
    assert other.name in found


def test_what_is_no_export_is_refused(other: leaseq.WorkQueue) -> None:
    with pytest.raises(leaseq.BadArgumentError, match="no export of leaseq"):
        import_lines(other, ['{"id": "a", "data": "x"}'])
    with pytest.raises(leaseq.BadArgumentError, match="no export of leaseq"):
        import_lines(other, [])
    with pytest.raises(leaseq.BadArgumentError, match=r"version 2.*update leaseq"):
        import_lines(other, ['{"leaseq_export": 2}'])


def test_a_damaged_record_is_told(queue: leaseq.WorkQueue, redis_client: redis.Redis) -> None:
    queue.add_item(Item(b"x", id="a"), priority=1)
    record = redis_client.hget("leaseq:{old}:old:meta", "a")
    assert isinstance(record, bytes)
    redis_client.hset("leaseq:{old}:old:meta", "a", b"\x09" + record[1:])
    with pytest.raises(leaseq.FormatError):
        exported(queue)


@pytest.mark.parametrize("extra", [b"\x01", b"\0\0\0\0\xff\xff\xff\x7fx", b"\0\0\0\0\x01\0\0\0x"])
def test_a_damaged_extra_is_told(queue: leaseq.WorkQueue, redis_client: redis.Redis, extra: bytes) -> None:
    queue.add_item(Item(b"x", id="a", headers={"k": "v"}))
    redis_client.hset("leaseq:{old}:old:meta", b"\0a", extra)
    with pytest.raises(leaseq.FormatError):
        exported(queue)


def test_the_commands(url: str, queue: leaseq.WorkQueue, other: leaseq.WorkQueue, tmp_path: Path) -> None:
    fill(queue)
    file = tmp_path / "old.jsonl"
    written = Calls(url)("export", "old", "--output", str(file))
    assert (written.code, written.out) == (0, ""), written.err
    assert "8 items" in written.err
    done = Calls(url)("import", "new", str(file))
    assert done.code == 0, done.err
    assert "7 added, 0 exist" in done.out
    assert "1 were dead and are left out" in done.out
    assert other.stats().items == 7
    again = Calls(url)("import", "new", "--json", stdin=file.read_bytes())
    assert json.loads(again.out)["exist"] == 7
    cut = Calls(url)("import", "new", stdin=b"".join(file.read_bytes().splitlines(keepends=True)[:-1]))
    assert cut.code == 1
    assert cut.err.startswith("leaseq import: the file has no end")
    missing = Calls(url)("export", "nothing")
    assert (missing.code, "no queue nothing" in missing.err) == (1, True)
    wrong = Calls(url)("import", "new", stdin=b"{}")
    assert (wrong.code, "no export" in wrong.err, "Traceback" in wrong.err) == (2, True, False)
    assert Calls(url)("import", "new", str(tmp_path / "none")).code == 2


def test_the_page_has_every_field(queue: leaseq.WorkQueue) -> None:
    fill(queue)
    fields = {name for line in export_queue(queue) for name in line}
    page = (DOCS / "transfer.md").read_text()
    assert set(re.findall(r"^\| `(\w+)`", page, re.MULTILINE)) == fields
