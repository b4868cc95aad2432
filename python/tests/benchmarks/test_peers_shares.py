"""What the server could do, and every figure of the benchmark beside other libraries as a share of that."""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from support import servers

import floor
from leaseq.worker import Worker
from peers import page, pair_tables, results, shares, tables
from peers.bench import QUICK, Bench, Record, start_server
from peers.figures import by_repetition, middle
from peers.libraries import LIBRARIES
from peers.load import Load, packed
from peers.measures import latency, limit, pairs, sweeps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench_server import BenchServer

ONCE = pytest.mark.on("last")  # about the benchmark, not the server
SMALL = replace(QUICK, limit_commands=1_000, waiting=(1_000, 100_000), payloads=(10, 100_000, 1_000_000))
CASES = {
    "growth": [f"{size:,} waiting" for size in SMALL.waiting],
    "payload": [f"{size:,} bytes" for size in SMALL.payloads],
    "workers": ["1 handlers", "200 handlers"],
    "servers": ["AOF everysec", "AOF always", "Valkey"],
}


def committed(suite: str = "items") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(results.PATHS[suite].read_text())
    return found


def made_up() -> list[Record]:
    """A limit in which each call of the floor takes another time."""
    costs = {
        "floor add, 1 at a time": 10.0,
        "floor lease, 1 at a time": 15.0,
        "floor complete, 1 at a time": 5.0,
        "floor complete and lease, 1 at a time": 16.0,
        "floor add, batches of 100": 2.0,
        "floor lease, batches of 100": 3.0,
        "floor complete, batches of 100": 1.0,
    }
    found = [_limit(limit.NAME, case, cost) for case, cost in costs.items()]
    found += [_limit(limit.CASES, f"{case}, Valkey", cost / 2) for case, cost in costs.items()]
    found += [_limit(limit.CASES, f"{case}, 10 bytes", cost / 4) for case, cost in costs.items()]
    found += [
        _limit(limit.CASES, "SET, 1 at a time, 1,000,000 bytes", 200.0),
        _limit(limit.CASES, "GET, 1 at a time, 1,000,000 bytes", 100.0),
    ]
    woken = {"all_ms": [0.1] * 985 + [0.2] * 14 + [0.4]}
    return [*found, Record(limit.NAME, limit.WHO, 1, woken, limit.WAKE_UP)]


def _limit(measure: str, case: str, cost: float) -> Record:
    values = {"server_us": cost, "per_second": 1e6 / cost, "commands": cost / 5}
    return Record(measure, limit.WHO, 1, values, case)


@pytest.mark.parametrize(
    ("measure", "library", "figure", "value", "case", "share"),
    [
        ("enqueue", "leaseq", "per_second", 25_000.0, "", 0.25),
        ("pairs-enqueue", "huey", "server_us", 20.0, "", 0.5),
        ("bulk", "leaseq", "per_second", 250_000.0, "", 0.5),
        ("drain", "leaseq", "per_second", 125_000.0, "", 0.5),
        ("drain", "leaseq-two-calls", "per_second", 12_500.0, "", 0.25),
        ("pairs-drain", "leaseq-fused", "per_second", 12_500.0, "", 0.2),
        ("drain-4", "huey", "per_second", 5_000.0, "", 0.1),
        ("drain", "leaseq-fused", "server_us", 32.0, "", 0.5),
        ("drain", "taskiq-list", "server_us", 10.0, "", 2.0),
        ("drain", "leaseq-two-calls", "commands", 16.0, "", 0.25),
        ("results-off", "leaseq-jobs", "server_us", 28.0, "", 0.5),
        ("results-on", "huey", "drain_per_second", 5_000.0, "", 0.1),
        ("servers", "leaseq", "enqueue_per_second", 20_000.0, "Valkey", 0.1),
        ("servers", "leaseq", "drain_per_second", 50_000.0, "Valkey", 0.1),
        ("servers", "leaseq", "drain_per_second", 50_000.0, "AOF always", None),
        ("growth", "leaseq", "server_us", 28.0, "1,000 waiting", None),
        ("payload", "leaseq", "drain_per_second", 100_000.0, "10 bytes", 0.1),
        ("payload", "huey", "enqueue_per_second", 500.0, "1,000,000 bytes", 0.1),
        ("payload", "leaseq", "drain_per_second", 1_000.0, "1,000,000 bytes", 0.1),
        ("workers", "leaseq", "per_second", 100.0, "1 handlers", 0.5),
        ("workers", "leaseq", "per_second", 25_000.0, "2,000 handlers", 0.1),
        ("memory", "leaseq", "bytes_waiting", 230.0, "", 0.5),
        ("latency", "leaseq", "p50_ms", 0.5, "", 0.2),
        ("pairs-latency", "huey", "p99_ms", 0.8, "", 0.25),
        ("pairs-latency", "huey", "p99_9_ms", 0.8, "", 0.25),
        ("recovery", "leaseq", "seconds", 59.76, "default", 0.5),
        ("recovery-1s", "leaseq-asyncio", "seconds", 0.88, "with a cleaner", 1.0),
        ("recovery", "huey", "seconds", 60.0, "default", None),
        ("idle", "huey", "commands_per_second", 4.0, "", None),
        ("pairs-drain", "leaseq", "client_us", 4.0, "", None),
        ("enqueue", "leaseq", "per_second", None, "", None),
    ],
)
def test_a_figure_is_a_share_of_what_does_the_same(
    measure: str, library: str, figure: str, value: float | None, case: str, share: float | None
) -> None:
    assert shares.share_of(made_up(), measure, library, figure, value, case) == (
        None if share is None else pytest.approx(share)
    )


def test_a_limit_that_lacks_one_of_its_calls_is_none() -> None:
    records = [record for record in made_up() if record.case != "floor complete, batches of 100"]
    assert shares.limit_of(records, "drain", "leaseq", "per_second") is None
    assert shares.limit_of(records, "enqueue", "leaseq", "per_second") == pytest.approx(100_000)
    assert shares.limit_of([], "latency", "leaseq", "p50_ms") is None


def test_a_share_is_told_with_two_digits() -> None:
    told = [shares.percent(share) for share in (None, 1.234, 0.5, 0.096, 0.0949, 0.0012, 0.0001)]
    assert told == ["", "(123%)", "(50%)", "(10%)", "(9.5%)", "(0.1%)", "(<0.1%)"]


def test_who_groups_is_what_was_measured() -> None:
    of = results.records(committed())
    commands = {each.name: middle(by_repetition(of, "drain", each.name, "commands")) for each in LIBRARIES}
    grouping = {name for name, each in commands.items() if each is not None and each < 0.5}
    measured = {name for name, each in commands.items() if each is not None}
    assert grouping == shares.GROUPING & measured


def test_the_lease_is_the_worker_s() -> None:
    default = inspect.signature(Worker).parameters["lease_secs"].default
    assert shares.LEASE_SECS["default"] == default


# pages and tables


def shown() -> Iterator[tuple[str, str, str]]:
    """Measure, figure and case of everything that a page shows of the server's work."""
    for _, measure, figure, _ in page.BARS:
        if measure not in shares.NO_LIMIT:
            yield measure, figure, ""
    for _, measure, figure, _, _ in page.SWEEPS:
        for case in CASES[measure]:
            yield measure, figure, case
    for case in CASES["servers"]:
        for figure in ("enqueue_per_second", "drain_per_second"):
            yield "servers", figure, case
    for measure in (pairs.ENQUEUE, pairs.BULK, pairs.DRAIN):
        for figure in ("per_second", "server_us"):
            yield measure, figure, ""
    for figure in latency.PERCENTILES:
        yield latency.NAME, figure, ""


def test_committed_pages_have_a_share_or_say_that_its_limit_was_not_measured() -> None:
    for suite in results.PATHS:
        text = page.page(committed(suite))
        plots = re.findall(r"<svg[^>]*><title>([^<]+)</title>(.*?)</svg>", text)
        bars = [(title, plot) for title, plot in plots if "<rect" in plot]
        assert len(bars) >= 8
        for title, plot in bars:
            numbers = re.findall(r'text-anchor="start" fill="#222">(\d[^<]*)<', plot)
            assert len(numbers) == plot.count("<rect") > 1
            if "idle" in title:
                assert not any("%" in each or "limit" in each for each in numbers)
            else:
                assert all(re.search(r" \([\d.<]+%\)$| \(limit not measured\)$", each) for each in numbers)


def test_limits_are_told_above_bars_and_drawn_beside_lines() -> None:
    found = committed()
    found["records"] = [
        *(each for each in found["records"] if each["measure"] != limit.NAME),
        *(record.json() for record in made_up()),
    ]
    text = page.page(found)
    assert "Limit: 250,000 (floor lease, batches of 100 + floor complete, batches of 100); 50,000 (" in text
    assert text.count("limit: a wake-up</text>") == 2
    assert text.count('stroke="#222" stroke-width="1.6" stroke-dasharray="1 3"') > 2
    assert "<td>limit: an LPUSH wakes a BLPOP<td>0.10<td>0.20" in text
    table = tables.comparison(found)
    assert next(line for line in table if line.startswith("| limit |")) == (
        "| limit | 100,000 | 500,000 | 250,000 | 14 | 115 | 0.10 | 0.20 | its lease |"
    )
    row = next(line for line in table if line.startswith("| leaseq |"))
    assert len(re.findall(r"\d \([\d.]+%\)|s \([\d.]+%\)", row)) == 8


def test_tables_say_where_a_limit_was_not_measured() -> None:
    found = committed()
    found["records"] = [each for each in found["records"] if each["measure"] != limit.NAME]
    table = tables.comparison(found)
    limits = [line for line in table if line.startswith("| limit")]
    assert len(limits) == len(tables.LIMITS)
    assert all(line.count("not measured") == 6 for line in limits)


def test_pairs_are_in_the_page_with_their_ratios_and_ranges() -> None:
    found = committed()
    of = results.records(found)
    judged = sum(len(several) for measure, several in pairs.PAIRS.items() if measure != pairs.LATENCY)
    rows = pair_tables.pair_rows(of)
    assert len(rows) <= judged
    text = page.page(found)
    for row in rows:
        assert re.fullmatch(r"[\d.]+ \([\d.]+ to [\d.]+\)", row[1])
        assert f"<td>{row[0]}<td>{row[1]}" in text
    waiting = list(pair_tables.latency_pairs(of))
    assert [title for title, _ in waiting][:2] == ["leaseq (beside huey)", "huey (beside leaseq)"]
    assert all(f">{title}</text>" in text for title, _ in waiting)


def test_a_page_of_nothing_has_no_plot() -> None:
    found = committed() | {"records": []}
    assert "<svg" not in page.page(found)


# the limit, on a real server


@pytest.fixture(scope="module")
def bench(server_name: str) -> Iterator[Bench]:
    name = str(servers.find_program(servers.startable(server_name)))
    with start_server(name) as server:
        yield Bench(SMALL, name, server)


@ONCE
def test_everything_that_is_shown_has_its_limit_measured(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other_servers(on: Bench) -> dict[str, tuple[str, tuple[str, ...]]]:
        found = sweeps.other_servers(on)
        return found | {"Valkey": (on.server_name, ())}  # which product it is matters to no test

    monkeypatch.setattr(limit, "other_servers", other_servers)
    monkeypatch.setattr(limit, "WAKE_UPS", 20)
    steps = [*limit.steps(bench, ["rq"]), *limit.case_steps(bench, ["rq"])]
    records = [record for step in steps for record in step.run()]
    assert {record.measure for record in records} == {step.measure for step in steps}
    for measure, figure, case in shown():
        for library in ("leaseq", "leaseq-fused", "huey"):
            most = shares.limit_of(records, measure, library, figure, case)
            assert most, (measure, library, figure, case)
            assert most > 0
    commands = {
        record.case: record.values["commands"] for record in records if record.measure == limit.NAME and "commands" in record.values
    }  # fmt: skip
    assert commands["floor add, 1 at a time"] == pytest.approx(4, abs=0.1)
    assert commands["floor lease, 1 at a time"] + commands["floor complete, 1 at a time"] == pytest.approx(
        9, abs=0.1
    )
    assert commands["floor complete and lease, 1 at a time"] == pytest.approx(8, abs=0.1)
    assert commands["floor lease, batches of 100"] == pytest.approx(0.05, abs=0.01)
    assert not list(limit.steps(bench, [])) + list(limit.case_steps(bench, []))


def waiting(server: BenchServer) -> list[int]:
    client = server.client
    return [client.zcard(floor.READY), client.zcard(floor.LEASED), client.hlen(floor.ITEMS)]


@ONCE
def test_the_floor_is_left_as_it_was_found(bench: Bench) -> None:
    bench.empty()
    limit.fill(bench.server, 0, 25_000)
    assert waiting(bench.server) == [25_000, 0, 25_000]
    limit.floor_records(bench.server, 1, "x", 200, first=30_000)
    assert waiting(bench.server) == [25_000, 0, 25_000]


@ONCE
def test_the_fused_call_of_the_floor_tells_who_is_late_and_when_nothing_is_left(bench: Bench) -> None:
    bench.empty()
    server = bench.server
    limit.fill(server, 0, 2)
    lease, fused = (server.load(source) for source in (floor.LEASE, floor.COMPLETE_AND_LEASE))
    three = (3, *floor.KEYS[:3])
    first, _, _, deadline = server.call("EVALSHA", lease, *three, 60_000)
    won, second, data, attempt, until = server.call("EVALSHA", fused, *three, 60_000, first, deadline)
    assert (won, first, second, data, attempt) == (1, b"f00000000", b"f00000001", limit.DATA, 1)
    assert server.call("EVALSHA", fused, *three, 60_000, first, deadline) == [0]
    assert server.call("EVALSHA", fused, *three, 60_000, second, until) == [1]
    assert waiting(server) == [0, 0, 0]


@ONCE
def test_an_error_among_replies_ends_the_measure(bench: Bench) -> None:
    bench.empty()
    with Load(bench.server, 2) as load:
        spent, replies = load.run([packed("SET", "key", b"x" * 300_000)] * 3)
        assert (replies, spent.commands) == (b"+OK\r\n" * 3, 1.0)
        _, replies = load.run([packed("GET", "key")] * 3, lines=2)
        assert len(replies) == 3 * len(b"$300000\r\n" + b"x" * 300_000 + b"\r\n")
        with pytest.raises(RuntimeError, match="WRONGTYPE"):
            load.run([packed("LPUSH", "key", "x")])
        with pytest.raises(RuntimeError, match="closed the connection"):
            load.run([packed("QUIT"), packed("QUIT")], lines=2)
    with pytest.raises(RuntimeError, match="0 of 1 were leased"):
        limit._held(b"$-1\r\n", 1)
    with pytest.raises(RuntimeError, match="0 of 100 were leased"):
        limit._held_many(b"$-1\r\n", 100)
