"""`leaseq add`, `lease`, `complete`, `release`, `extend`, `remove`, `expire` against a real server."""

from __future__ import annotations

import base64
import json
import os
import pty
import struct
import subprocess
import threading
from typing import TYPE_CHECKING, Any, cast

import pytest
from support.cli_runner import COMMAND, Calls
from support.servers import wait_until

import leaseq
from leaseq.cli import add_input

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import redis


@pytest.fixture
def queue(url: str) -> Iterator[leaseq.WorkQueue]:
    with leaseq.WorkQueue("q", url) as opened:
        yield opened


def leased(call: Calls, *args: str) -> Any:
    (lease,) = call.yes("lease", "q", "--json", *args).records
    return lease


class TestAdd:
    def test_an_argument(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        assert call.yes("add", "q", "two books", "--id", "a").out == "added a\n"
        item = queue.lease(30)
        assert item is not None
        assert (item.id, item.data) == ("a", b"two books")

    def test_an_argument_of_any_bytes(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        call.yes("add", "q", os.fsdecode(b"\xff\xfe"), "--id", "a", "--keep", "1h")
        item = queue.lease(3600)
        assert item is not None
        assert item.data == b"\xff\xfe"
        call.yes("complete", "q", "a", str(item.token), "--result", os.fsdecode(b"\xfd"))
        assert queue.outcome("a").content == b"\xfd"

    def test_an_id_that_exists_is_a_no(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        call.yes("add", "q", "one", "--id", "a")
        done = call("add", "q", "two", "--id", "a")
        assert (done.code, done.out, done.err) == (1, "exists a\n", "")
        assert call("add", "q", "two", "--id", "a", "--json").document == {"id": "a", "added": False}

    def test_all_options(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        options = "--delay 1h --priority 3 --max-attempts 4 --expires-in 2h --dead-on-expiry --keep 5m"
        call.yes("add", "q", "data", "--id", "a", *options.split())
        info, now = queue.inspect("a"), queue.stats().now
        assert info.state == "delayed"
        assert 3000 < info.time - now <= 3600
        assert (info.priority, info.max_attempts, info.keep) == (3, 4, 300)
        assert 6600 < info.expires - now <= 7200
        call.yes("add", "q", "data", "--id", "b", "--header", "trace=a=b", "--content-type", "text/plain")
        item = queue.lease(30)
        assert item is not None
        assert (item.headers, item.content_type) == ({"trace": "a=b"}, "text/plain")

    @pytest.mark.parametrize(
        "moment", ["2040-01-01T00:00:00Z", "2040-01-01T01:00:00+01:00", "2208988800", "2208988800.0"]
    )
    def test_a_time_is_written_in_several_ways(
        self, moment: str, call: Calls, queue: leaseq.WorkQueue
    ) -> None:
        call.yes("add", "q", "data", "--id", "a", "--not-before", moment)
        assert queue.inspect("a").time == 2208988800

    @pytest.mark.parametrize(
        ("text", "seconds"),
        [("30", 30), ("30s", 30), ("1.5 s", 1.5), ("500ms", 0.5), ("5m", 300), ("2h", 7200), ("7d", 604800)],
    )
    def test_a_duration_is_written_in_several_ways(
        self, text: str, seconds: float, call: Calls, queue: leaseq.WorkQueue
    ) -> None:
        call.yes("add", "q", "data", "--id", "a", "--keep", text)
        assert queue.inspect("a").keep == seconds

    def test_files(self, call: Calls, queue: leaseq.WorkQueue, tmp_path: Path) -> None:
        (tmp_path / "a").write_bytes(b"\x00\xff\n")
        call.yes("add", "q", "-f", str(tmp_path / "a"), "-f", "-", stdin=b"from stdin\n")
        assert [item.data for item in queue.lease_items(9, 30)] == [b"\x00\xff\n", b"from stdin\n"]

    def test_lines(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        done = call.yes("add", "q", "--lines", "-", stdin=b"one\n\ntwo\r\n\xff\nno end")
        assert done.out == "4 added, 0 exist\n"
        assert [item.data for item in queue.lease_items(9, 30)] == [b"one", b"two", b"\xff", b"no end"]

    def test_many_lines(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        lines = "".join(f"line {n}\n" for n in range(5000))
        assert call.yes("add", "q", "--lines", "-", stdin=lines).out == "5000 added, 0 exist\n"
        assert queue.queue_len() == 5000

    def test_a_line_is_added_before_the_next_is_written(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        """As in `tail -f log | leaseq add ...`."""
        with call.process(
            "add", "q", "--lines", "-", stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as adding:
            assert adding.stdin is not None
            for n in (1, 2):
                adding.stdin.write("line\nbeginning of another ")
                adding.stdin.flush()
                wait_until(lambda n=n: queue.queue_len() == n, 50)  # type: ignore[misc]
            out, _ = adding.communicate("\n", timeout=150)
        assert out == "3 added, 0 exist\n"

    def test_json_lines(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        lines: list[dict[str, Any]] = [
            {"data": "text", "id": "a", "headers": {"k": "v"}, "content_type": "text/plain", "priority": 1},
            {"data_base64": base64.b64encode(b"\xff").decode(), "id": "b", "keep": "5m", "max_attempts": 9},
            {"data_json": {"books": 2}, "id": "c"},
            {"data": "later", "id": "d", "not_before": "2040-01-01T00:00:00Z"},
            {"data": "again", "id": "a"},
        ]
        stdin = "\n".join(map(json.dumps, lines))
        done = call("add", "q", "--json-lines", "-", "--max-attempts", "3", "--json", stdin=stdin)
        assert (done.code, done.err) == (1, "")
        assert done.records == [
            {"id": each, "added": added} for each, added in zip("abcda", [*[True] * 4, False], strict=True)
        ]
        infos = {info.id: info for info in queue.inspect_items(list("abcd"))}
        assert {key: info.max_attempts for key, info in infos.items()} == {"a": 3, "b": 9, "c": 3, "d": 3}
        assert (infos["a"].priority, infos["b"].keep, infos["d"].time) == (1, 300, 2208988800)
        a, b, c = queue.lease_items(9, 30)
        assert (a.headers, a.content_type, b.data, c.data_json()) == (
            {"k": "v"},
            "text/plain",
            b"\xff",
            {"books": 2},
        )

    def test_a_zero_in_a_line_goes_before_the_option(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        line = json.dumps({"data": "x", "id": "a", "priority": 0, "max_attempts": 0})
        call.yes("add", "q", "--json-lines", "-", "--priority", "3", "--max-attempts", "5", stdin=line)
        assert (queue.inspect("a").priority, queue.inspect("a").max_attempts) == (0, 0)

    @pytest.mark.parametrize(
        ("line", "expected"),
        [
            ("{", "this is not JSON"),
            ("[]", "an item is an object with one of data, data_base64 and data_json"),
            ("{}", "with one of data"),
            ('{"data": "a", "data_json": 1}', "with one of data"),
            ('{"data": "a", "idd": 1}', "an item is an object"),
            ('{"data_base64": "?"}', "data_base64 is not base64"),
            ('{"data": 5}', "data"),
            ('{"data": "a", "delay": "soon"}', "'soon' is no duration"),
            ('{"data": "a", "not_before": "2026-13-01"}', "no time"),
            ('{"data": "a", "priority": 8}', "LEASEQ_BAD_ARGUMENT"),
            ('{"data": "a", "priority": "high"}', "priority must be an int"),
            ('{"data": "a", "id": ""}', "LEASEQ_BAD_ID"),
        ],
    )
    def test_a_bad_line_is_named_and_those_before_it_are_added(
        self, line: str, expected: str, call: Calls, queue: leaseq.WorkQueue
    ) -> None:
        stdin = (
            '{"data": "1", "id": "1"}\n\n{"data": "2", "id": "2"}\n' + line + '\n{"data": "3", "id": "3"}\n'
        )
        done = call.refused(2, expected, "add", "q", "--json-lines", "-", stdin=stdin)
        assert "line 4: " in done.err
        assert "(2 added before)" in done.err
        assert [info.state for info in queue.inspect_items(list("123"))] == ["ready", "ready", "absent"]

    def test_a_long_line_too_large_is_named(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        queue.configure(max_data=100)
        done = call.refused(2, "LEASEQ_TOO_LARGE", "add", "q", "--lines", "-", stdin="a\nb\n" + "x" * 101)
        assert "line 3: " in done.err
        assert queue.queue_len() == 2

    def test_wait_waits_for_room(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        queue.configure(max_items=2)
        done: list[Any] = []
        adding = threading.Thread(
            target=lambda: done.append(call("add", "q", "--lines", "-", "--wait", stdin="a\nb\nc\nd\ne\n"))
        )
        adding.start()
        seen = []
        for item in queue.items(30, timeout=60):
            seen.append(item.data)
            queue.complete(item)
            if len(seen) == 5:
                break
        adding.join(60)
        assert seen == [b"a", b"b", b"c", b"d", b"e"]
        assert (done[0].code, done[0].out) == (0, "5 added, 0 exist\n")

    def test_a_refusal_while_it_waits_names_the_line(
        self, call: Calls, queue: leaseq.WorkQueue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: Any, **__: Any) -> bool:
            raise leaseq.ServerError("MISCONF no writes now")

        monkeypatch.setattr(leaseq.WorkQueue, "add_item_when_room", refuse)
        queue.configure(max_items=2)
        done = call.refused(3, "MISCONF", "add", "q", "--lines", "-", "--wait", stdin="a\nb\nc\nd\n")
        assert "line 3: " in done.err
        assert "(2 added before)" in done.err

    def test_without_wait_it_says_how_far_it_came(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        queue.configure(max_items=2)
        done = call.refused(5, "queue q is full", "add", "q", "--lines", "-", stdin="a\nb\nc\nd\n")
        assert "line 3: " in done.err
        assert "(2 added before)" in done.err

    def test_lines_are_split_wherever_the_pieces_end(self) -> None:
        class Pieces:
            def __init__(self, *pieces: bytes) -> None:
                self.pieces = [*pieces, b""]

            def read1(self, _size: int) -> bytes:
                return self.pieces.pop(0)

        pieces: Any = Pieces(b"a", b"b\nc", b"\n", b"\n\nd\ne", b"f")
        found = list(add_input.lines(pieces))
        assert [line for some in found for line in some] == [(1, b"ab"), (2, b"c"), (5, b"d"), (6, b"ef")]

    def test_the_bar_says_how_many_were_added(self, call: Calls, tmp_path: Path) -> None:
        file = tmp_path / "words"
        file.write_text("word\n" * 300)
        terminal, stderr = pty.openpty()
        with os.fdopen(terminal, "rb", buffering=0) as shown:
            command = [*COMMAND, "add", "q", "--lines", str(file)]
            env = os.environ | {"REDIS_URL": call.url, "TERM": "xterm", "COLUMNS": "100"}
            subprocess.run(command, env=env, stdout=subprocess.DEVNULL, stderr=stderr, check=True)
            os.close(stderr)
            assert b"300 added, 0 exist" in shown.read(1 << 16)


class TestLease:
    def test_token_and_id(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        queue.add_item(leaseq.Item(b"data", id="an id with spaces"))
        token, _, item_id = call.yes("lease", "q").out.rstrip("\n").partition(" ")
        assert item_id == "an id with spaces"
        assert queue.inspect(item_id).token == int(token)

    def test_an_id_adds_no_line(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        """Otherwise a producer could make a script act on ids and tokens that it chooses."""
        queue.add_item(leaseq.Item(b"data", id="a\n17 b\x1b[2J"))
        (line,) = call.yes("lease", "q").lines
        assert line.endswith(r" a\n17 b\x1b[2J")

    def test_json_has_everything(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        queue.add_item(leaseq.Item(b"\xff", id="a\n", headers={"k": "v"}, content_type="c/t"), keep=60)
        lease = leased(call, "--for", "1h")
        info = queue.inspect("a\n")
        assert lease == {
            "id": "a\n",
            "token": info.token,
            "attempt": 1,
            "deadline": info.time,
            "headers": {"k": "v"},
            "content_type": "c/t",
            "keep": 60.0,
            "data_base64": base64.b64encode(b"\xff").decode(),
        }
        assert 3000 < info.time - queue.stats().now <= 3600

    def test_nothing_there(self, call: Calls) -> None:
        call.refused(1, "nothing to lease", "lease", "q")

    def test_several(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        queue.add_items(leaseq.Item(b"data", id=each) for each in "abc")
        assert [each["id"] for each in call.yes("lease", "q", "--json", "--count", "2").records] == ["a", "b"]

    def test_data_goes_to_a_file(self, call: Calls, queue: leaseq.WorkQueue, tmp_path: Path) -> None:
        queue.add_item(leaseq.Item(b"\x00\xff", id="a"))
        call.yes("lease", "q", "--data", str(tmp_path / "data"))
        assert (tmp_path / "data").read_bytes() == b"\x00\xff"

    def test_a_file_is_replaced_only_by_data(
        self, call: Calls, queue: leaseq.WorkQueue, tmp_path: Path
    ) -> None:
        file = tmp_path / "data"
        file.write_bytes(b"of an earlier item")
        call.refused(1, "nothing to lease", "lease", "q", "--data", str(file))
        assert file.read_bytes() == b"of an earlier item"
        queue.add_item(leaseq.Item(b"new", id="a"))
        call.yes("lease", "q", "--data", str(file))
        assert file.read_bytes() == b"new"

    def test_an_output_that_is_added_to_keeps_what_it_has(
        self, call: Calls, queue: leaseq.WorkQueue, tmp_path: Path
    ) -> None:
        queue.add_item(leaseq.Item(b"new", id="a"))
        file = tmp_path / "data"
        file.write_bytes(b"of an earlier item, ")
        with (
            file.open("ab") as out,
            call.process("lease", "q", "--data", "/dev/stdout", stdout=out) as leasing,
        ):
            assert leasing.wait(50) == 0
        assert file.read_bytes().startswith(b"of an earlier item, new")

    def test_where_the_file_cannot_be_written_the_item_goes_back(
        self, call: Calls, queue: leaseq.WorkQueue
    ) -> None:
        queue.add_item(leaseq.Item(b"data", id="a"))
        call.refused(74, "No space left", "lease", "q", "--data", "/dev/full")
        assert (queue.inspect("a").state, queue.inspect("a").attempt) == ("ready", 0)

    def test_wait_waits(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        with call.process("lease", "q", "--wait", "0", stdout=subprocess.PIPE) as leasing:
            client: Any = queue.executor.client
            wait_until(lambda: client.info("clients")["blocked_clients"], 50)
            queue.add_item(leaseq.Item(b"data", id="a"))
            out, _ = leasing.communicate(timeout=150)
        assert leasing.returncode == 0
        assert out.endswith(" a\n")

    def test_wait_ends(self, call: Calls) -> None:
        call.refused(1, "nothing to lease", "lease", "q", "--wait", "10ms")


class TestEndsOfALease:
    def test_complete_answers_yes_once(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        queue.add_item(leaseq.Item(b"data", id="a"))
        token = str(leased(call)["token"])
        assert call.yes("complete", "q", "a", token).out == "completed a\n"
        call.refused(1, "a was not completed by this call", "complete", "q", "a", token)
        done = call("complete", "q", "a", token, "--json")
        assert (done.code, done.document, done.err) == (1, {"id": "a", "completed": False}, "")
        assert queue.inspect("a").state == "absent"

    @pytest.mark.parametrize("args", [["--result", "14.80"], ["--result-file", "-"]])
    def test_a_result_is_kept_where_the_item_says_so(
        self, args: list[str], call: Calls, queue: leaseq.WorkQueue
    ) -> None:
        queue.add_item(leaseq.Item(b"data", id="a"), keep=3600)
        token = str(leased(call)["token"])
        call.yes("complete", "q", "a", token, *args, stdin="14.80")
        assert queue.outcome("a").content == b"14.80"
        call.yes("complete", "q", "a", token)

    def test_and_where_it_does_not_nothing_is(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        queue.add_items([leaseq.Item(b"data", id="a"), leaseq.Item(b"data", id="b")])
        call.yes("complete", "q", "a", str(leased(call)["token"]), "--result", "14.80")
        assert queue.outcome("a", timeout=0).state == "absent"
        call.yes("complete", "q", "b", str(leased(call)["token"]), "--result", "1", "--keep", "1h", "--json")
        assert queue.outcome("b").content == b"1"

    def test_only_current(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        queue.add_item(leaseq.Item(b"data", id="a"))
        token = str(leased(call)["token"])
        call.yes("release", "q", "a", token)
        call.refused(1, "not completed", "complete", "q", "a", token, "--only-current")
        call.yes("complete", "q", "a", token)

    def test_release(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        queue.add_item(leaseq.Item(b"data", id="a"))
        token = str(leased(call)["token"])
        assert call.yes("release", "q", "a", token, "--error", "bank is away").out == "ready a\n"
        assert (queue.inspect("a").error, queue.inspect("a").attempt) == ("bank is away", 1)
        call.refused(1, "the lease of a is lost", "release", "q", "a", token)
        assert call("release", "q", "a", token, "--json").document == {"id": "a", "state": "lost"}
        token = str(leased(call)["token"])
        assert call.yes("release", "q", "a", token, "--uncounted", "--delay", "1h").out == "delayed a\n"
        assert queue.inspect("a").attempt == 1

    def test_release_dead(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        queue.add_item(leaseq.Item(b"data", id="a"), keep=60)
        token = str(leased(call)["token"])
        done = call.yes("release", "q", "a", token, "--dead", "--error", "no such customer", "--json")
        assert done.document == {"id": "a", "state": "dead"}
        assert queue.outcome("a").error == "no such customer"
        assert call("release", "q", "a", token, "--dead").code == 1

    def test_extend(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        queue.add_item(leaseq.Item(b"data", id="a"))
        token = str(leased(call)["token"])
        assert call.yes("extend", "q", "a", token, "--for", "2h").out == "extended a\n"
        time = queue.inspect("a").time
        assert 6000 < time - queue.stats().now <= 7200
        done = call.yes("extend", "q", "a", token, "--json").document
        assert done == {"id": "a", "extended": True, "deadline": queue.inspect("a").time}
        queue.remove("a")
        call.refused(1, "stop working on it", "extend", "q", "a", token)
        assert call("extend", "q", "a", token, "--json").document["deadline"] is None


class TestRemove:
    def test_from_any_state(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        queue.add_items([leaseq.Item(b"data", id="a"), leaseq.Item(b"data", id="b")])
        queue.lease(30)
        done = call("remove", "q", "a", "b", "c")
        assert (done.code, done.err) == (1, "")
        assert done.lines == ["removed a, which was leased", "removed b, which was ready", "absent c"]
        assert call("remove", "q", "a", "--json").document == {"id": "a", "state": "absent"}


class TestExpire:
    def test_a_lease_ends_and_its_holder_learns_it(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        queue.add_item(leaseq.Item(b"data", id="a"), keep=60)
        item = queue.lease(3600)
        assert item is not None
        assert call.yes("expire", "q", "a").out == "expired a\n"
        info = queue.inspect("a")
        assert (info.state, info.attempt, info.error) == ("ready", 1, "the lease was ended by leaseq expire")
        assert queue.extend(item, 30) is False
        assert queue.complete(item), "the work was done"

    def test_an_attempt_may_be_given_back(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        queue.add_item(leaseq.Item(b"data", id="a"))
        queue.lease(3600)
        call.yes("expire", "q", "a", "--uncounted", "--error", "host is down")
        assert (queue.inspect("a").attempt, queue.inspect("a").error) == (0, "host is down")

    def test_what_is_not_leased_is_a_no(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        queue.add_items([leaseq.Item(b"data", id="a"), leaseq.Item(b"data", id="b")])
        queue.lease(3600)
        done = call("expire", "q", "a", "b", "c", "--json")
        assert done.code == 1
        assert done.records == [
            {"id": "a", "expired": True},
            {"id": "b", "expired": False},
            {"id": "c", "expired": False},
        ]

    def test_all_spares_leases_that_come_later(
        self, call: Calls, queue: leaseq.WorkQueue, redis_client: redis.Redis
    ) -> None:
        """Else it would end the new lease of what it has just released, again and again."""
        queue.add_items([leaseq.Item(b"data", id="a"), leaseq.Item(b"data", id="b")])
        queue.lease_items(2, 3600)
        record = cast("bytes", redis_client.hget("leaseq:{q}:q:meta", "b"))
        version, options, attempt, token, created = struct.unpack("<BBIdd", record)
        later = struct.pack("<BBIdd", version, options, attempt, token + 3_600_000_000, created)
        redis_client.hset("leaseq:{q}:q:meta", "b", later)
        assert call.yes("expire", "q", "--all").out == "1 expired\n"
        assert [info.state for info in queue.inspect_items(["a", "b"])] == ["ready", "leased"]

    def test_all_of_many(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        queue.add_items(leaseq.Item(b"data", id=f"{n}") for n in range(600))
        for _ in range(3):
            queue.lease_items(200, 3600)
        assert call.yes("expire", "q", "--all", "--json").document == {"expired": 600}
        assert (queue.stats().ready, queue.stats().leased) == (600, 0)
        assert call("expire", "q", "--all").code == 1

    def test_a_later_lease_is_left_alone(
        self, call: Calls, queue: leaseq.WorkQueue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Between the look and the end of the lease, the item was released and leased again."""
        queue.add_item(leaseq.Item(b"data", id="a"))
        first = queue.lease(3600)
        assert first is not None
        look = leaseq.WorkQueue.inspect_items

        def inspect_too_late(self: leaseq.WorkQueue, ids: Any) -> Any:
            infos = look(self, ids)
            if look(queue, ["a"])[0].token == first.token:
                queue.release(first)
                assert queue.lease(3600) is not None
            return infos

        monkeypatch.setattr(leaseq.WorkQueue, "inspect_items", inspect_too_late)
        assert call("expire", "q", "a").code == 1
        monkeypatch.undo()
        assert queue.inspect("a").state == "leased"
        assert queue.inspect("a").attempt == 2


@pytest.mark.slow
def test_a_life_in_a_shell_script(call: Calls, queue: leaseq.WorkQueue, tmp_path: Path) -> None:
    """The example of `leaseq lease --help`, on a real shell."""
    queue.add_item(leaseq.Item(b"two books", id="order 1"))
    program = tmp_path / "leaseq"
    quoted = " ".join(f"'{part}'" for part in COMMAND)
    program.write_text(f'#!/bin/sh\nexec {quoted} "$@"\n')
    program.chmod(0o755)
    script = """
        leaseq lease q --for 5m --data data | {
            read -r token id && cat data && leaseq complete q "$id" "$token"
        }
    """
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=tmp_path,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "REDIS_URL": call.url},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "two bookscompleted order 1\n"
    assert queue.stats().completed == 1


def list_ready(url: str, *more: str) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, "list", "q", "ready", "--url", url, *more]
    return subprocess.run(command, capture_output=True, text=True, check=True)


def test_a_list_that_is_cut_says_how_to_see_more(queue: leaseq.WorkQueue, url: str) -> None:
    queue.add_items(leaseq.Item(b"", id=str(number)) for number in range(101))
    cut = list_ready(url)
    assert "there are more; say --all, --limit N or --offset 100" in cut.stderr
    assert len(cut.stdout.splitlines()) == 101  # with the heading
    for more in (["--all"], ["--limit", "5"], ["--offset", "1"]):
        assert list_ready(url, *more).stderr == ""
