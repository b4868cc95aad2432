"""The benchmark beside other libraries: a smoke test of its plan, targets and pages, and of leaseq's own adapters for real."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support import servers

from peers import __main__ as program
from peers import environments, plan, report, results, targets
from peers.bench import FULL, QUICK, Bench, Record, start_server
from peers.libraries import JOBS, LIBRARIES
from peers.measures import ab_compare, check, jobs, memory
from peers.postgres import PostgresServer
from peers.process_guard import in_session
from peers.processes import AdapterError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peers.libraries import Library

BENCHMARKS = Path(__file__).parents[1]
OWN = [
    library.name
    for library in LIBRARIES
    if not library.is_peer and library.language not in environments.PROGRAMS
]
COMPILED = [library for library in LIBRARIES if library.language in environments.PROGRAMS]


def planned(size: Any = FULL, *only: str, suite: str = "items") -> list[Any]:
    return plan.steps(
        Bench(size, "redis-7.0", object()),  # type: ignore[arg-type]  # a plan asks no server
        [plan.Only.parse(text) for text in only],
        suite,
    )


def test_a_whole_run_ends_within_forty_minutes() -> None:
    assert 20 < plan.minutes(planned()) < 40
    assert plan.minutes(planned(QUICK)) < 10
    assert 3 < plan.minutes(planned(suite="jobs")) < 10
    assert all(2 < plan.minutes(planned(suite=suite)) < 12 for suite in ab_compare.BY_LANGUAGE)


@pytest.mark.parametrize(
    ("only", "measures"),
    [
        ("rq/latency", {"latency"}),
        ("leaseq*/drain", {"drain"}),
        ("leaseq-fused/pairs-drain", {"pairs-drain"}),
    ],
)
def test_only_leaves_what_it_names(only: str, measures: set[str]) -> None:
    assert {step.measure for step in planned(FULL, only)} == measures


@pytest.mark.parametrize(
    ("value", "at_least", "wanted"),
    [(1.05, True, True), (1.04, True, False), (0.95, False, True), (0.96, False, False)],
)
def test_a_target_is_met_with_five_percent_to_spare(value: float, at_least: bool, wanted: bool) -> None:
    assert targets.met(value, 1.0, at_least=at_least) is wanted


def test_a_target_without_records_is_not_judged_and_one_that_never_recovered_is_missed() -> None:
    assert {target.met for target in (*targets.targets([]), *targets.job_targets([]))} == {None}
    records = [Record("recovery-1s", "leaseq", 1, {"seconds": None}, "with a cleaner")]
    (target,) = [target for target in targets.targets(records) if target.met is not None]
    assert target.met is False
    assert "Infinity" not in json.dumps(results._finite(target.json()))


def test_a_suite_of_a_language_judges_each_pair_by_its_slices() -> None:
    def record(name: str, rate: float, case: str) -> Record:
        slices = {"per_second": [rate, rate], "server_us": [1 / rate, 1 / rate]}
        return Record(ab_compare.BULK, name, 1, {"slices": slices}, case)

    of = [record(name, rate, "leaseq-go : river") for name, rate in (("leaseq-go", 30.0), ("river", 20.0))]
    (target,) = [target for target in results.targets_of("go", of) if target.met is not None]
    assert (target.name, target.value, target.met) == ("leaseq, Go: enqueue in bulk, over River", 1.5, True)
    assert len(results.targets_of("go", of)) == 2 * len(results.targets_of("rust", of)) > 10


def test_every_library_is_pinned_and_has_its_settings_with_a_reference() -> None:
    for library in LIBRARIES:
        assert re.fullmatch(r"\d+(\.\d+)+", environments.version(library)), library.name
    text = "\n".join(report.settings())
    assert text.count("## ") == text.count("Reference: ") == len({library.adapter for library in LIBRARIES})


def test_committed_pages_match_the_committed_results() -> None:
    assert program.main(["tables", "--check"]) == 0
    found = json.loads(results.PATHS["items"].read_text())
    assert found["targets"] == [
        results._finite(each.json()) for each in targets.targets(results.records(found))
    ]
    assert "| never" not in (BENCHMARKS.parent / "docs" / "benchmarks.md").read_text()
    assert "†" in (BENCHMARKS / "README.md").read_text()
    rows = [row for row in report.target_rows(found) if row[-1] == "no: less than 5 % to spare"]
    assert rows
    assert any(before != "-" for *_, before, _ in rows), (
        "a missed target shows the figure of the run before too"
    )


@pytest.mark.slow
def test_a_killed_starter_takes_its_whole_session_with_it() -> None:
    starter = """
import sys, time
from peers.processes import Process
process = Process([sys.executable, "-c", "import subprocess, os, time; subprocess.Popen(['sleep', '600'], process_group=0); time.sleep(600)"])
print(process.session, flush=True)
time.sleep(600)
"""
    with subprocess.Popen(
        [sys.executable, "-c", starter],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(BENCHMARKS)},
    ) as process:
        assert process.stdout is not None
        session = int(process.stdout.readline())
        servers.wait_until(lambda: len(in_session(session)) == 3)
        process.send_signal(signal.SIGKILL)
    servers.wait_until(lambda: not in_session(session))


@pytest.fixture(scope="module")
def bench(server_name: str) -> Iterator[Bench]:
    name = str(servers.find_program(servers.startable(server_name)))
    with start_server(name) as server:
        yield Bench(QUICK, name, server)


@pytest.mark.slow
@pytest.mark.parametrize("name", OWN)
def test_each_way_to_work_handles_every_item_once(bench: Bench, name: str) -> None:
    (record,) = check.check(bench, name)
    ways = 3 if name in ab_compare.IN_CROWDS else 2
    assert record.values == {"items": ways * check.ITEMS}


@pytest.mark.nightly
@pytest.mark.timeout(1500)  # the first run compiles with all optimisations
@pytest.mark.parametrize("library", COMPILED, ids=lambda library: str(library.name))
def test_each_compiled_adapter_handles_every_item_once(bench: Bench, library: Library) -> None:
    environments.make_missing([library], print)
    with contextlib.ExitStack() as stack:
        if library.on_postgres:
            bench.postgres = stack.enter_context(PostgresServer())
            stack.callback(setattr, bench, "postgres", None)
        (record,) = check.check(bench, library.name)
        assert record.values == {"items": 3 * check.ITEMS}
        (record,) = memory.memory(bench, library.name, 1)
        assert 200 < record.values["bytes_waiting"] < 2_000


@pytest.mark.slow
def test_a_worker_that_handles_nothing_fails_the_check(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "HANDLER", "count")
    with pytest.raises(AdapterError, match="0 different items"):
        check.check(bench, "leaseq")


@pytest.mark.slow
@pytest.mark.parametrize("kept", [False, True], ids=[jobs.OFF, jobs.ON])
def test_every_job_is_handled_once_and_its_result_read(bench: Bench, kept: bool) -> None:
    (record,) = jobs.jobs(bench, JOBS[0], 1, results=kept)
    assert min(record.values[f"{what}_per_second"] for what in ("enqueue", "bulk", "drain")) > 0
    assert (bench.server.client.dbsize() > record.values["jobs"]) == kept


@pytest.mark.slow
@pytest.mark.parametrize("measure", [ab_compare.DRAIN, ab_compare.LATENCY])
def test_both_sides_of_a_pair_are_measured_in_each_slice(bench: Bench, measure: str) -> None:
    pair = ab_compare.Pair("leaseq-fused", "leaseq-two-calls")
    for record in ab_compare.RUNS[measure](bench, measure, pair, 1):
        short = measure != ab_compare.DRAIN
        assert {len(of) for of in record.values["slices"].values()} == {QUICK.slices * (2 if short else 1)}
        for item in record.values.get("slowest", ()):
            assert item["ms"] > 0
            assert min(item["waited_ms"].values()) >= 0


@pytest.mark.slow
def test_an_unknown_library_is_refused_with_the_names_that_there_are() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "peers", "--only", "nosuch"],
        cwd=BENCHMARKS,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 2
    assert "redis-work-queue" in ended.stderr
    assert "latency" in ended.stderr
