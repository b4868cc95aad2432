"""`leaseq stats`, `queues`, `peek`, `inspect`, `list`, `dead`, `pause`, `configure`, `clean`, `drain`: a real server."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import pty
import signal
import subprocess
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console
from support.cli_runner import COMMAND, Calls
from support.servers import wait_until

import leaseq
from leaseq import formatting
from leaseq.cli import maintenance
from leaseq.cli.live_stats import LiveStats, sparkline

if TYPE_CHECKING:
    from collections.abc import Iterator

    import redis


@pytest.fixture
def queue(url: str) -> Iterator[leaseq.WorkQueue]:
    with leaseq.WorkQueue("q", url) as opened:
        yield opened


def fill(queue: leaseq.WorkQueue) -> None:
    """One item in each state; `a` is ready, `d` delayed, `l` leased, `x` dead."""
    queue.add_items([leaseq.Item(b"first", id="x"), leaseq.Item(b"second", id="l")])
    (dead,) = queue.lease_items(1, 3600)
    queue.dead_letter(dead, error="no such customer")
    queue.lease(3600)
    queue.add_item(leaseq.Item(b"third", id="a"), priority=2)
    queue.add_item(leaseq.Item(b"later", id="d"), delay=3600)


class TestStats:
    def test_a_table(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        fill(queue)
        queue.configure(max_items=9)
        rows = {line.split()[0]: line.split()[1:] for line in call.yes("stats", "q").lines[1:]}
        assert [rows[state][0] for state in ("ready", "delayed", "leased", "dead")] == list("1111")
        assert rows["dead"][1:] == ["see", "leaseq", "dead", "list"]
        assert rows["items"] == ["4", "3", "of", "9", "held,", "not", "counting", "dead", "ones"]
        assert (rows["added"], rows["completed"], rows["died"]) == (["4"], ["0"], ["1"])

    def test_json_has_every_field(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        fill(queue)
        record, stats = call.yes("stats", "q", "--json").document, queue.stats()
        assert set(record) == {"queue", "group", *(field.name for field in dataclasses.fields(stats))}
        assert record["queue"] == record["group"] == "q"
        moving = {"now", "waited"}
        assert {name: record[name] for name in record if name not in {"queue", "group", *moving}} == {
            name: value for name, value in dataclasses.asdict(stats).items() if name not in moving
        }

    def test_a_pause_is_told(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        fill(queue)
        call.yes("pause", "q")
        assert "PAUSED" in call.yes("stats", "q").out

    def test_watch_in_a_pipe_gives_a_line_for_each_look(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        fill(queue)
        done = call.yes("stats", "q", "--watch", "--count", "3", "--every", "100ms")
        assert len(done.lines) == 3
        assert all(line.endswith("UTC  1 ready, 1 delayed, 1 leased, 1 dead") for line in done.lines)

    def test_watch_in_json(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        fill(queue)
        looks = call.yes("stats", "q", "--watch", "--count", "2", "--every", "100ms", "--json").records
        assert [look["items"] for look in looks] == [4, 4]
        assert looks[0]["now"] < looks[1]["now"]

    def test_watch_goes_on_until_ctrl_c(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        fill(queue)
        with call.process(
            "stats", "q", "--watch", "--every", "100ms", stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as watching:
            assert watching.stdout is not None
            assert all("1 ready" in watching.stdout.readline() for _ in range(3))
            watching.send_signal(signal.SIGINT)
            _, err = watching.communicate(timeout=150)
        assert (watching.returncode, err) == (130, "leaseq stats: interrupted\n")

    def test_too_often_is_refused(self, call: Calls) -> None:
        call.refused(2, "100ms or more", "stats", "q", "--watch", "--every", "10ms")


def on_a_terminal(call: Calls, *args: str, stdin: bytes = b"") -> str:
    """Return what a command draws on a terminal."""
    screen, terminal = pty.openpty()
    env = os.environ | {"REDIS_URL": call.url, "TERM": "xterm", "COLUMNS": "100"}
    drawn = bytearray()
    with subprocess.Popen(
        [*COMMAND, *args], stdin=subprocess.PIPE, stdout=terminal, stderr=terminal, env=env
    ) as running:
        os.close(terminal)
        assert running.stdin is not None
        running.stdin.write(stdin)
        running.stdin.close()
        with contextlib.suppress(OSError):  # the error of a terminal whose writers are all gone
            while piece := os.read(screen, 65536):
                drawn += piece
    os.close(screen)
    assert running.returncode == 0, drawn.decode()
    return drawn.decode()


class TestOnATerminal:
    def test_watch_draws_a_picture_that_moves(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        fill(queue)
        drawn = on_a_terminal(call, "stats", "q", "--watch", "--count", "3", "--every", "100ms")
        assert "▁▁" in drawn
        assert "per second" in drawn
        assert "\x1b[1mq" in drawn, "colours"

    def test_adding_many_shows_how_far_it_is(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        drawn = on_a_terminal(call, "add", "q", "--lines", "-", stdin=b"line\n" * 20_000)
        assert "20000 added, 0 exist" in drawn
        assert "━" in drawn

    def test_an_id_cannot_draw_there(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        queue.add_item(leaseq.Item(b"data", id="\x1b[2J"))
        assert "\x1b[2J" not in on_a_terminal(call, "list", "q", "ready")


class TestRender:
    """Drawings of the live view, one after each sample."""

    def sample(self, now: float, **counts: Any) -> leaseq.QueueStats:
        fields = dict.fromkeys((field.name for field in dataclasses.fields(leaseq.QueueStats)), 0)
        return leaseq.QueueStats(**(fields | {"now": now, "paused": False} | counts))

    def drawn(self, watch: LiveStats) -> str:
        out = io.StringIO()
        Console(file=out, width=120).print(watch.render())
        return out.getvalue()

    def test_counts_and_rates_with_their_past(self) -> None:
        watch = LiveStats("orders")
        watch.add(self.sample(100, ready=8, added=0))
        watch.add(self.sample(102, ready=4, added=20))
        watch.add(self.sample(103, ready=0, added=20, dead=3))
        assert watch.rates("added") == [10, 0]
        drawn = self.drawn(watch)
        assert "orders" in drawn
        rows = {line.split()[0]: line.split()[1:] for line in drawn.splitlines()[2:] if line.strip()}
        assert rows["ready"] == ["0", "█▅▁"]
        assert rows["dead"] == ["3", "▁▁█"]
        assert rows["added"] == ["0.0", "█▁"]

    def test_what_wants_attention_is_said(self) -> None:
        watch = LiveStats("orders")
        watch.add(self.sample(100, ready=8, waited=90, overdue=2, leased=2, paused=True))
        drawn = self.drawn(watch)
        assert "PAUSED" in drawn
        assert "2 leases overdue" in drawn
        assert "waited 1.5 min" in drawn

    def test_a_server_that_starts_anew_has_no_negative_rates(self) -> None:
        watch = LiveStats("orders")
        watch.add(self.sample(100, added=50))
        watch.add(self.sample(100, added=0))
        assert watch.rates("added") == [0]

    def test_only_the_last_looks_are_kept(self) -> None:
        watch = LiveStats("orders")
        for now in range(500):
            watch.add(self.sample(now, added=now))
        assert watch.rates("added") == [1] * 60

    @pytest.mark.parametrize(
        ("values", "line"), [([], ""), ([0, 0], "▁▁"), ([0, 1, 2, 4, 8], "▁▂▃▅█"), ([5], "█")]
    )
    def test_sparkline(self, values: list[float], line: str) -> None:
        assert sparkline(values) == line


class TestQueues:
    def test_all_that_were_used(self, call: Calls) -> None:
        call.refused(1, "no client has entered a queue here", "queues")
        call.yes("add", "mails", "data", "--group", "shop")
        call.yes("add", "orders", "data", "data")
        (head, *rows) = call.yes("queues").lines
        assert head.split()[:6] == ["queue", "group", "ready", "delayed", "leased", "dead"]
        assert sorted(row.split()[:3] for row in rows) == [["mails", "shop", "1"], ["orders", "orders", "2"]]
        records = {each["queue"]: each for each in call.yes("queues", "--json").records}
        assert (records["mails"]["group"], records["orders"]["ready"]) == ("shop", 2)

    def test_the_largest_are_looked_for_among_all(self, call: Calls, url: str) -> None:
        for number, name in enumerate("abcd"):
            with leaseq.WorkQueue(name, url) as queue:
                queue.add_items(leaseq.Item(b"") for _ in range(number + 1))
                if number:
                    queue.dead_letter_items(queue.lease_items(number, 60))
        for order in ("ready", "dead", "items"):
            records = call.yes("queues", "--json", "--sort", order, "--limit", "2").records
            assert records[0]["queue"] == ("a" if order == "ready" else "d"), order
        assert [each["queue"] for each in call.yes("queues", "--json", "--limit", "2").records] == ["a", "b"]


class TestInspection:
    def test_peek(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        fill(queue)
        (_, row) = call.yes("peek", "q").lines
        assert row.split()[0] == "a"
        assert row.split()[-1] == "third"
        (record,) = call.yes("peek", "q", "--json", "--count", "5").records
        assert (record["id"], record["data"], record["priority"]) == ("a", "third", 2)
        assert queue.inspect("a").attempt == 0, "it was not taken"
        queue.remove("a")
        call.refused(1, "nothing is ready", "peek", "q")

    def test_peek_shows_any_data(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        queue.add_items([leaseq.Item(b"\xff\x1b[2J\n" + b"x" * 5000, id="a"), leaseq.Item(b"", id="b")])
        out = call.yes("peek", "q", "--count", "2").out
        assert "\x1b" not in out
        assert out.count("\n") == 3
        a, b = call.yes("peek", "q", "--count", "2", "--json").records
        assert "data_base64" in a
        assert b["data"] == ""

    def test_a_url_that_decodes_does_not_matter(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        queue.add_item(leaseq.Item(b"\xff", id="a"))
        decoding = Calls(call.url + "?decode_responses=True")
        assert decoding.yes("peek", "q", "--json").document["data_base64"] == "/w=="

    def test_inspect(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        fill(queue)
        out = call.yes("inspect", "q", "x", "l", "--data").out
        for expected in ("dead", "no such customer", "first", "leased", "second", "lease ends"):
            assert expected in out
        done = call("inspect", "q", "x", "nope", "--json")
        assert done.code == 1
        dead, absent = done.records
        assert dead == dataclasses.asdict(queue.inspect("x"))
        assert absent["state"] == "absent"

    @pytest.mark.parametrize(
        ("state", "item_id"), [("ready", "a"), ("delayed", "d"), ("leased", "l"), ("dead", "x")]
    )
    def test_list(self, state: str, item_id: str, call: Calls, queue: leaseq.WorkQueue) -> None:
        fill(queue)
        (head, row) = call.yes("list", "q", state).lines
        assert head.split()[0] == "id"
        assert row.split()[0] == item_id
        (record,) = call.yes("list", "q", state, "--json").records
        assert record == dataclasses.asdict(queue.inspect(item_id))

    def test_list_kept(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        queue.add_item(leaseq.Item(b"data", id="a"), keep=3600)
        call.refused(1, "nothing is kept", "list", "q", "kept")
        item = queue.lease(3600)
        assert item is not None
        queue.complete(item)
        assert call.yes("list", "q", "kept").lines[1].split()[:2] == ["a", "in"]
        assert call.yes("list", "q", "kept", "--json").document["id"] == "a"

    def test_list_page_by_page(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        queue.add_items(leaseq.Item(b"data", id=f"{n}") for n in range(600))

        def ids(*args: str) -> list[int]:
            done = call("list", "q", "ready", "--json", *args)
            assert done.code == 0, done
            return [int(each["id"]) for each in done.records]

        assert ids("--all") == list(range(600))
        assert ids() == list(range(100))
        assert ids("--limit", "300", "--offset", "200") == list(range(200, 500))
        assert ids("--limit", "3", "--backward") == [599, 598, 597]
        assert len(call.yes("list", "q", "ready", "--all").lines) == 601
        call.refused(2, "not both", "list", "q", "ready", "--all", "--limit", "3")

    def test_an_id_cannot_draw_on_the_terminal(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        """LQ-SAFE: ids, errors and data may come from anyone."""
        queue.add_item(leaseq.Item(b"[bold]\x07", id="\x1b[31m[red]\n\x9b"), keep=60)
        item = queue.lease(3600)
        assert item is not None
        queue.release(item, error="\x1b]0;title\x07[blink]")
        for args in (["list", "q", "ready"], ["peek", "q"], ["inspect", "q", item.id, "--data"]):
            out = call.yes(*args).out
            assert not {"\x1b", "\x07", "\x9b"} & set(out)
            assert r"\x1b[31m[red]\n\x9b" in out


class TestDead:
    def kill(self, queue: leaseq.WorkQueue, **errors: str) -> None:
        queue.add_items(leaseq.Item(b"data", id=each) for each in errors)
        for item in queue.lease_items(256, 3600):
            queue.dead_letter(item, error=errors[item.id])

    def test_list(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        self.kill(queue, a="timeout: bank", b="bad data")
        (head, *rows) = call.yes("dead", "list", "q").lines
        assert head.split() == ["id", "died", "attempts", "last", "error"]
        assert [row.split()[0] for row in rows] == ["a", "b"]
        assert "timeout: bank" in rows[0]
        records = call.yes("dead", "list", "q", "--json", "--backward", "--limit", "1").records
        assert records == [dataclasses.asdict(queue.inspect("b"))]

    def test_revive(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        self.kill(queue, a="timeout: bank", b="bad data", c="timeout: bank")
        done = call("dead", "revive", "q", "a", "nope")
        assert (done.code, done.lines) == (1, ["revived a", "not dead: nope"])
        assert call.yes("dead", "revive", "q", "--matching", "timeout", "--json").document == {"revived": 1}
        assert call.yes("dead", "revive", "q", "--all").out == "1 revived\n"
        assert queue.stats().ready == 3
        call.refused(1, "leaseq dead revive: nothing was revived", "dead", "revive", "q", "--all")

    def test_promote(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        queue.add_items([leaseq.Item("x", id="a"), leaseq.Item("x", id="b")], delay=3600)
        queue.add_item(leaseq.Item("x", id="c"))
        done = call("promote", "q", "a", "c", "nope")
        assert (done.code, done.lines) == (1, ["promoted a", "not delayed: c", "not delayed: nope"])
        assert call.yes("promote", "q", "b", "--json").document == {"id": "b", "promoted": True}
        assert [entry.id for entry in queue.list_items("ready").items] == ["c", "a", "b"]
        assert call("promote", "q").code == 2

    def test_purge(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        self.kill(queue, a="1", b="2", c="3")
        assert call.yes("dead", "purge", "q", "a", "--json").document == {"id": "a", "purged": True}
        call.refused(1, "nothing was purged", "dead", "purge", "q", "--older-than", "1h", "--yes")
        done = call("dead", "purge", "q", "--all", stdin="n\n")
        assert (done.code, queue.stats().dead) == (1, 2)
        assert "all of 2?" in done.err
        done = call("dead", "purge", "q", "--all", stdin="y\n")
        assert (done.code, done.out, queue.stats().dead) == (0, "2 purged\n", 0)
        call.refused(1, "leaseq dead purge: nothing was purged", "dead", "purge", "q", "--all")


class TestMaintenance:
    def test_pause_and_resume(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        queue.add_item(leaseq.Item(b"data"))
        assert call.yes("pause", "q").out == "q is paused\n"
        assert queue.lease(3600, block=False) is None
        assert call.yes("resume", "q", "--json").document == {"queue": "q", "paused": False}
        assert queue.lease(3600, block=False) is not None

    def test_configure(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        done = call.yes(
            "configure", "q", "--max-data", "10", "--max-items", "5", "--max-attempts", "3", "--json"
        )
        assert done.document == {"queue": "q", "max_data": 10, "max_items": 5, "max_attempts": 3}
        assert [line.split() for line in call.yes("configure", "q", "--max-items", "0").lines] == [
            ["max_data", "10"],
            ["max_items", "0"],
            ["max_attempts", "3"],
        ]

    def test_delete(self, call: Calls, queue: leaseq.WorkQueue, redis_client: redis.Redis) -> None:
        """LQ-DELETE-1: exit code 1 if the queue holds something, or does not exist."""
        queue.add_item(leaseq.Item(b"data", id="a"))
        queue.configure(max_items=9)
        call.refused(1, "the queue holds items: complete, remove or purge them first", "delete", "q")
        queue.remove("a")
        assert call.yes("delete", "q").out == "q is deleted\n"
        assert not redis_client.keys("*")
        done = call("delete", "q", "--json")
        assert (done.code, done.document) == (1, {"queue": "q", "deleted": False})

    def overdue(self, queue: leaseq.WorkQueue, client: redis.Redis) -> None:
        """A lease that is over: forged, by an extension to the shortest and the server's own clock."""
        item = queue.lease(3600)
        assert item is not None
        queue.extend(item, 0.001)
        wait_until(lambda: queue.stats().overdue == 1, 50)

    def test_light_clean(self, call: Calls, queue: leaseq.WorkQueue, redis_client: redis.Redis) -> None:
        queue.add_item(leaseq.Item(b"data", id="a"))
        self.overdue(queue, redis_client)
        assert call.yes("clean", "q", "--dry-run").out == "to do: 1 reclaimed\n"
        assert queue.stats().overdue == 1
        assert call.yes("clean", "q", "--json").document["done"] == {
            "promoted": 0,
            "reclaimed": 1,
            "died": 0,
            "expired": 0,
            "pruned": 0,
        }
        assert queue.stats().ready == 1
        assert call.yes("clean", "q").out == "nothing to do\n"

    def test_deep_clean(self, call: Calls, queue: leaseq.WorkQueue, redis_client: redis.Redis) -> None:
        queue.add_item(leaseq.Item(b"data", id="a"))
        redis_client.zrem("leaseq:{q}:q:ready", "a")
        found = call.yes("clean", "q", "--deep", "--dry-run", "--json").document
        assert (found["deep"], found["dry_run"], sum(found["done"].values())) == (True, True, 1)
        assert queue.inspect("a").state == "none"
        assert call.yes("clean", "q", "--deep").out.startswith("1 ")
        assert queue.inspect("a").state == "ready"

    @pytest.mark.parametrize(("rate", "pause"), [([], 0.01), (["--rate", "20"], 0.05)])
    def test_a_deep_clean_lets_others_in(
        self,
        call: Calls,
        queue: leaseq.WorkQueue,
        monkeypatch: pytest.MonkeyPatch,
        rate: list[str],
        pause: float,
    ) -> None:
        queue.add_items(leaseq.Item(b"x") for _ in range(1000))
        pauses: list[float] = []
        monkeypatch.setattr(maintenance, "time", SimpleNamespace(sleep=pauses.append))
        assert call.yes("clean", "q", "--deep", *rate).out == "nothing to do\n"
        assert len(pauses) >= 3
        assert set(pauses) == {pause}


class TestDrain:
    def test_it_asks(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        fill(queue)
        done = call("drain", "q", stdin="n\n")
        assert (done.code, queue.stats().items) == (1, 4)
        assert "Remove 1 ready, 1 delayed, 1 leased, 1 dead from q permanently?" in done.err
        done = call("drain", "q", stdin="y\n")
        assert (done.code, done.out, queue.stats().items) == (0, "4 removed\n", 0)
        call.refused(1, "nothing was removed", "drain", "q")

    @pytest.mark.parametrize(
        ("args", "answer"),
        [
            (["drain", "q"], {"removed": 0}),
            (["expire", "q", "--all"], {"expired": 0}),
            (["dead", "revive", "q", "--all"], {"revived": 0}),
            (["dead", "purge", "q", "--all"], {"purged": 0}),
        ],
    )
    def test_a_program_is_told_a_number_also_where_it_is_0(
        self, args: list[str], answer: dict[str, int], call: Calls, queue: leaseq.WorkQueue
    ) -> None:
        queue.pause()  # so that there is a queue
        done = call(*args, "--json")
        assert (done.code, done.document, done.err) == (1, answer, "")

    @pytest.mark.parametrize("args", [["drain", "q"], ["dead", "purge", "q", "--all"]])
    def test_where_nobody_answers_nothing_is_done(
        self, args: list[str], call: Calls, queue: leaseq.WorkQueue
    ) -> None:
        fill(queue)
        done = call(*args, stdin="")
        assert done.code == 2
        assert done.err.endswith("there is no terminal to ask on; pass --yes\n")
        assert queue.stats().items == 4

    def test_states(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        fill(queue)
        done = call.yes("drain", "q", "--state", "dead", "--state", "delayed", "--yes", "--json")
        assert done.document == {"removed": 2}
        assert (queue.stats().ready, queue.stats().leased) == (1, 1)

    def test_what_is_added_meanwhile_stays(
        self, call: Calls, queue: leaseq.WorkQueue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Else a drain would never end while a producer is faster."""
        queue.add_items(leaseq.Item(b"data") for _ in range(600))
        remove = leaseq.WorkQueue.remove_items

        def produce(opened: leaseq.WorkQueue, ids: list[str]) -> list[Any]:
            queue.add_items(leaseq.Item(b"data", id=f"new-{item_id}") for item_id in ids)
            return [*remove(opened, ids)]

        monkeypatch.setattr(leaseq.WorkQueue, "remove_items", produce)
        assert call.yes("drain", "q", "--yes").out == "600 removed\n"
        assert queue.stats().items == 600


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0 s"),
        (0.0123, "12.3 ms"),
        (1.5, "1.5 s"),
        (90, "1.5 min"),
        (7200, "2 h"),
        (200000, "2.31 d"),
        (0.9996, "1000 ms"),
        (3.1536e8, "3650 d"),
    ],
)
def test_durations_in_words(seconds: float, expected: str) -> None:
    assert formatting.duration(seconds) == expected


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1536, "1.5 KiB"),
        (2**20, "1 MiB"),
        (2**40, "1024 GiB"),
        (20 * 2**40, "20480 GiB"),
    ],
)
def test_sizes_in_words(count: int, expected: str) -> None:
    assert formatting.size(count) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("あ" * 60, "あ" * 60), ("あ" * 100, "あ" * 59 + "…"), ("𝄞" * 61, "𝄞" * 59 + "…"), ("a\nb", "a\\nb")],
)
def test_previews(text: str, expected: str) -> None:
    assert formatting.preview(text.encode()) == expected
