"""The benchmark beside other libraries: its plan, statistics, targets, pages, and leaseq's own roles for real."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
from support import servers

from peers import __main__ as program
from peers import (
    environments,
    figures,
    job_targets,
    pair_tables,
    plan,
    results,
    speed,
    tables,
    targets,
)
from peers.bench import FULL, QUICK, Bench, Record, start_server
from peers.leash import in_session
from peers.libraries import BY_NAME, JOB_PEERS, JOBS, LIBRARIES, PEERS
from peers.measures import check, jobs, latency, life, limit, pairs
from peers.page import page
from peers.processes import Process, RoleError, Traces, Worker
from peers.roles.kit import Orders

if TYPE_CHECKING:
    from collections.abc import Iterator

ONCE = pytest.mark.on("last")  # about the benchmark, not the server
OWN = [library.name for library in LIBRARIES if not library.is_peer]


class NoServer:
    """A plan asks no server."""


def planned(size: Any = FULL, *only: str, suite: str = "items") -> list[Any]:
    bench = Bench(size, "redis-7.0", NoServer())  # type: ignore[arg-type]
    return plan.steps(bench, [plan.Only.parse(text) for text in only], suite)


# figures


def test_a_percentile_is_a_value_that_was_measured() -> None:
    values = [float(number) for number in range(1, 1001)]
    assert [figures.percentile(values, share) for share in (50, 99, 99.9, 100)] == [500, 990, 999, 1000]
    assert figures.percentile([7.0], 99.9) == 7.0


def test_a_ratio_is_of_one_repetition() -> None:
    assert figures.ratios({1: 10.0, 2: 30.0, 4: 1.0}, {1: 5.0, 2: 3.0, 3: 1.0}) == [2.0, 10.0]


def test_a_figure_is_found_in_each_slice() -> None:
    records = [
        Record("m", name, repetition, {"slices": {"x": [value, 2 * value]}}, "a : b")
        for name, repetition, value in (("a", 1, 6.0), ("b", 1, 3.0), ("a", 2, 1.0))
    ]
    one, other = (figures.by_slice(records, "m", name, "x", "a : b") for name in "ab")
    assert one == {(1, 0): 6.0, (1, 1): 12.0, (2, 0): 1.0, (2, 1): 2.0}
    assert figures.ratios(one, other) == [2.0, 2.0]
    assert figures.by_slice(records, "m", "a", "x", "a : c") == {}


# targets

GOOD = {
    pairs.ENQUEUE: {"per_second": 1.4, "server_us": 0.1, "client_us": 1.0},
    pairs.BULK: {"per_second": 4.1, "server_us": 0.1, "client_us": 1.0},
    pairs.DRAIN: {"per_second": 9.0, "server_us": 0.1, "client_us": 1.0},
}
"""What leaseq's figures are where the other side's are 1."""


def pair_records(repetition: int, factor: float) -> Iterator[Record]:
    """Both sides of each pair; with a factor below one, leaseq is worse."""
    for measure, of in pairs.PAIRS.items():
        for pair in of:
            for name in pair:
                own = name == pair.one
                if measure == pairs.LATENCY:
                    took = sorted([0.9 / factor if own else 1.0] * 500)
                    shares = {
                        figure: figures.percentile(took, share)
                        for figure, share in latency.PERCENTILES.items()
                    }
                    values: dict[str, Any] = {**shares, "all_ms": took, "slices": {"probe_ms": [1.0, 2.0]}}
                else:
                    better = {
                        figure: value * factor if figure == "per_second" else value / factor
                        for figure, value in GOOD[measure].items()
                    }
                    given = better if own else dict.fromkeys(better, 1.0)
                    each = {figure: [value] * 4 for figure, value in given.items()} | {
                        "probe_ms": [1.0] * 4,
                        "busy": [0.9, 0.99] * 2,
                    }
                    values = {**given, "slices": each}
                yield Record(measure, name, repetition, values, pair.case)


def records_of(factor: float = 1.0) -> list[Record]:
    """A run in which leaseq keeps every target; with a factor below one, none."""
    found: list[Record] = []
    for repetition in (1, 2, 3):
        found += pair_records(repetition, factor)
        for library in LIBRARIES:
            for measure in ("enqueue", "bulk", "drain"):
                rate = {"per_second": 2.0 if library.name == "huey" else 1.0, "server_us": 1.0}
                found.append(Record(measure, library.name, repetition, rate))
            waiting = 1.0 if library.is_peer else 0.4 / factor
            found.append(Record("memory", library.name, repetition, {"bytes_waiting": waiting}))
            took = [1.0] * 500
            shares = {name: figures.percentile(took, share) for name, share in latency.PERCENTILES.items()}
            found.append(Record("latency", library.name, repetition, {**shares, "all_ms": took}))
            seconds = None if library.name == "huey" else 60.0
            for case in ("default", "quickest"):
                own_seconds = {"seconds": seconds if library.is_peer else 30 / factor}
                found.append(Record("recovery", library.name, repetition, own_seconds, case))
        for name in ("leaseq", "leaseq-asyncio"):
            found += [
                Record("recovery-1s", name, repetition, {"seconds": 1.05 / factor}, case)
                for case in ("without a cleaner", "with a cleaner")
            ]
        for name in ("leaseq", "leaseq-fused"):
            for case, cost in (("1,000 waiting", 10.0), ("1,000,000 waiting", 11.0 / factor)):
                found.append(Record("growth", name, repetition, {"server_us": cost}, case))
    return found


def test_every_target_can_be_met_and_missed() -> None:
    met, missed = targets.targets(records_of()), targets.targets(records_of(0.1))
    assert [(target.name, target.met) for target in met] == [(target.name, True) for target in met]
    assert [(target.name, target.met) for target in missed] == [(target.name, False) for target in met]
    assert len({target.name for target in met}) == len(met) == 27


def test_a_peer_that_drains_faster_than_the_one_beside_leaves_the_target_open() -> None:
    records = records_of()
    records += [Record("drain", "taskiq-list", repetition, {"per_second": 9.0}) for repetition in (1, 2, 3)]
    judged = {target.name: target.met for target in targets.targets(records)}
    assert judged["drain, threads, over the best Python peer"] is None
    assert judged["drain, threads, over BullMQ on Node"] is True


@pytest.mark.parametrize("slow", pairs.FASTEST)
def test_of_the_fastest_peers_the_one_that_leaseq_is_less_ahead_of_counts(slow: str) -> None:
    records = records_of()
    for record in records:
        if (record.measure, record.library) == (pairs.DRAIN, slow):
            record.values["slices"]["per_second"] = [1.25] * 4
    judged = {target.name: (target.value, target.met) for target in targets.targets(records)}
    assert judged["drain, threads, over the best Python peer"] == (7.2, False)
    assert judged["drain, asyncio, over the best Python peer"] == (7.2, False)
    beside_one = [record for record in records if slow not in record.case]
    judged = {target.name: (target.value, target.met) for target in targets.targets(beside_one)}
    assert judged["drain, threads, over the best Python peer"] == (None, None)


def test_what_an_item_costs_is_of_all_slices_of_both_measures() -> None:
    twice = {(1, at): float(at) for at in range(4)} | {(2, 0): 5.0, (2, 1): 6.0}
    assert targets.averaged(twice, 2) == {(1, 0): 0.5, (1, 1): 2.5, (2, 0): 5.5}
    records = [
        Record(measure, name, 1, {"slices": {"server_us": of, "per_second": of}}, f"{own} : redis-work-queue")
        for measure, own, costs, others in (
            (pairs.ENQUEUE, "leaseq", [1.0, 3.0, 4.0, 4.0], [10.0] * 4),
            (pairs.DRAIN, "leaseq-fused", [2.0, 4.0], [10.0] * 2),
        )
        for name, of in ((own, costs), ("redis-work-queue", others))
    ]
    judged = {target.name: target for target in targets.targets(records)}
    found = judged["server CPU of one item, one by one and fused, of redis-work-queue's"]
    assert (found.low, found.value, found.high) == (0.2, 0.3, 0.4)


def test_what_was_not_measured_is_not_judged() -> None:
    assert {target.met for target in (*targets.targets([]), *job_targets.targets([]))} == {None}


RATES = ("enqueue_per_second", "bulk_per_second", "drain_per_second")


def job_records(factor: float = 1.1, best: str = "huey") -> list[Record]:
    """A run in which leaseq's jobs are ahead of the best peer in everything; with a factor below one, in nothing."""
    found = []
    for repetition in (1, 2, 3):
        for measure, _ in job_targets.CASES:
            for name in (*JOBS, *JOB_PEERS):
                speed = factor if name in JOBS else 1.0 if name == best else 0.5
                values = dict.fromkeys(RATES, speed) | {"server_us": 1 / speed, "bulk_server_us": 1 / speed}
                if not BY_NAME[name].bulk:
                    values = {figure: value for figure, value in values.items() if "bulk" not in figure}
                found.append(Record(measure, name, repetition, values))
    return found


@pytest.mark.parametrize("best", JOB_PEERS)
def test_the_job_layer_has_to_be_ahead_of_whichever_peer_is_best(best: str) -> None:
    met, missed = job_targets.targets(job_records(best=best)), job_targets.targets(job_records(0.9, best))
    assert len({target.name for target in met}) == len(met) == 5 * len(JOBS) * 2
    assert [(target.name, target.met) for target in met] == [(target.name, True) for target in met]
    assert [(target.name, target.met) for target in missed] == [(target.name, False) for target in met]


def test_never_misses_and_is_no_number_in_the_results() -> None:
    records = [Record("recovery-1s", "leaseq", 1, {"seconds": None}, "with a cleaner")]
    (target,) = [target for target in targets.targets(records) if target.met is not None]
    assert target.met is False
    assert "Infinity" not in json.dumps(results._finite(target.json()))


# the plan


def test_a_whole_run_ends_within_forty_minutes() -> None:
    assert 20 < plan.minutes(planned()) < 40
    assert plan.minutes(planned(QUICK)) < 10
    assert 3 < plan.minutes(planned(suite="jobs")) < 10


def test_job_libraries_have_a_run_of_their_own() -> None:
    steps = [step for step in planned(suite="jobs") if step.measure != limit.NAME]
    both = {(step.measure, step.repetition, step.libraries[0]) for step in steps}
    wanted = {
        (measure, number, name)
        for measure in (jobs.OFF, jobs.ON)
        for number in range(1, FULL.repetitions + 1)
        for name in (*JOBS, *JOB_PEERS)
    }
    assert both == wanted
    assert len(steps) == len(wanted)
    assert len({step.libraries[0] for step in steps if step.repetition == 1}) == len(JOBS) + len(JOB_PEERS)
    assert {step.measure for step in planned(FULL, "rq/results-on", suite="jobs")} == {jobs.ON}
    assert not {name for step in planned() for name in step.libraries} & set(JOBS)
    assert [step.repetition for step in planned(FULL, "/limit", suite="jobs")] == [1, 2, 3, 4, 5]


def test_repetitions_take_turns() -> None:
    steps = [step for step in planned() if step.measure == "drain"]
    rounds = [[step.libraries[0] for step in steps if step.repetition == number] for number in range(1, 6)]
    assert all(sorted(of) == sorted(set(BY_NAME) - set(JOBS)) for of in rounds)
    assert len({of[0] for of in rounds}) == len(rounds) == FULL.repetitions >= 5
    assert [step.repetition for step in steps] == sorted(step.repetition for step in steps)


@pytest.mark.parametrize(
    ("only", "libraries", "measures"),
    [
        ("rq/latency", {"rq"}, {"latency"}),
        ("saq/payload", {"saq"}, {"payload"}),
        ("/idle", {"leaseq", "leaseq-asyncio", *PEERS}, {"idle"}),
        ("leaseq*/drain", set(OWN) - set(JOBS), {"drain"}),
        ("leaseq-jobs/drain", {"leaseq-jobs"}, {"drain"}),
        ("leaseq-fused/pairs-drain", {"leaseq-fused", "redis-work-queue"}, {"pairs-drain"}),
    ],
)
def test_only_leaves_what_it_names(only: str, libraries: set[str], measures: set[str]) -> None:
    steps = planned(FULL, only)
    assert {name for step in steps for name in step.libraries} == libraries
    assert {step.measure for step in steps} == measures


def test_the_plan_tells_its_minutes() -> None:
    for suite, measures in plan.SUITES.items():
        told = plan.told(planned(suite=suite))
        assert all(measure.name in told for measure in measures)
        assert re.search(r"in all +\d+ min", told)


# environments


def test_every_library_is_pinned() -> None:
    for library in LIBRARIES:
        assert re.fullmatch(r"\d+(\.\d+)+", environments.version(library)), library.name
        assert (
            (BENCHMARKS / "peers" / "roles" / f"{library.role.removesuffix('.mjs')}")
            .with_suffix(".mjs" if library.on_node else ".py")
            .exists()
        )
    assert environments.packages("")["redis"] == importlib.metadata.version("redis")
    assert environments.packages("taskiq").keys() >= {"taskiq", "taskiq-redis", "redis", "hiredis"}
    assert environments.packages("node").keys() >= {"bullmq", "ioredis"}
    for file in environments.REQUIREMENTS.glob("*.txt"):
        assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in file.read_text().split()), file.name


BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


# results and pages


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """Results as a run has them, of records that were made up."""

    class Told:
        def version(self) -> str:
            return "Redis 7.0.0"

    bench = Bench(FULL, "redis-7.0", Told(), records_of(), ["rq: what went wrong"])  # type: ignore[arg-type]
    machine = {"cpu_model": "a CPU", "cpus": 2, "load_before": [0.1], "load_after": [0.2]}
    return results.collected(bench, machine, seconds=600.0)


def test_results_can_be_read_again(found: dict[str, Any]) -> None:
    text = results.compact_json(found)
    assert json.loads(text) == json.loads(json.dumps(found))
    assert results.records(json.loads(text)) == records_of()
    assert found["packages"].keys() == {library.environment or "leaseq" for library in LIBRARIES}
    for library in LIBRARIES:
        assert (
            found["packages"][library.environment or "leaseq"][library.package]
            == found["versions"][library.name]
        )


def test_the_page_needs_nothing_else_and_its_plots_are_whole(found: dict[str, Any]) -> None:
    text = page(found)
    assert not re.findall(r"(?:src|href)=|@import|url\(", text)
    plots = re.findall(r"<svg.*?</svg>", text)
    assert len(plots) == 10
    for plot in plots:
        for element in ET.fromstring(plot).iter():  # noqa: S314 (our own)
            numbers = [value for name, value in element.attrib.items() if name in {"x", "y", "width", "d"}]
            assert not any("nan" in value or "inf" in value for value in numbers)
    assert "rq: what went wrong" in text
    assert all(library.title in text for library in LIBRARIES)


def test_the_speed_of_the_machine_is_told_for_each_repetition(found: dict[str, Any]) -> None:
    rows = tables.speed_rows(found)
    assert [row[0] for row in rows] == ["repetition 1", "repetition 2", "repetition 3"]
    assert {row[1:] for row in rows} == {("100%", "50%", "100%", "94%", "90%")}
    told = "the machine ran at 50% to 100% of its best, both ends had 90% to 99% of the CPU"
    assert speed.told(records_of(), records_of()) == told
    assert "both ends had 94% of it" in speed.disturbed(records_of())
    assert "both ends had 94% of it" in tables.machine_line(found)
    undisturbed = Record("m", "a", 1, {"slices": {"busy": [0.99, 0.98, 0.1]}}, "a : b")
    assert not speed.disturbed([undisturbed])
    assert not speed.disturbed([])
    assert not speed.told([], [Record("check", "rq", 1, {"items": 1})])
    assert speed.probe() > 0


def test_tables_have_a_row_for_each(found: dict[str, Any]) -> None:
    rows = [line for line in tables.comparison(found) if line.startswith("| ")]
    assert len(rows) == len(LIBRARIES) + len(tables.LIMITS) + 2
    assert len({row.count("|") for row in rows}) == 1
    assert "| never |" in next(row for row in rows if row.startswith("| huey"))
    assert len(tables.verdicts(found)) == len(found["targets"]) + 2


def test_tables_of_jobs_have_a_row_for_each_library_and_a_ratio_to_each_peer() -> None:
    class Told:
        def version(self) -> str:
            return "Redis 7.0.0"

    bench = Bench(FULL, "redis-7.0", Told(), job_records())  # type: ignore[arg-type]
    machine = {"cpu_model": "a CPU", "cpus": 2, "load_before": [0.1], "load_after": [0.2]}
    found = results.collected(bench, machine, seconds=600.0, suite="jobs")
    assert len(found["targets"]) == 20
    table, of_peers = tables.job_comparison(found), tables.job_ratios(found)
    assert [line.split("|")[1].strip() for line in table if line.startswith("| ")][2:] == [
        *(BY_NAME[name].title for name in (*JOBS, *JOB_PEERS)),
        "limit",
        "limit, one item at a time",
    ]
    rows = {line.split("|")[1].strip(): line for line in of_peers if line.startswith("| ")}
    assert rows["huey (def)"].count("| 1.1x ") == rows["arq (async def)"].count("| 2.2x ") == 8
    text = page(found)
    assert text.count("<svg") == 8
    assert all(BY_NAME[name].title in text for name in (*JOBS, *JOB_PEERS))


def test_generated_parts_of_pages_are_fresh() -> None:
    assert program.main(["tables", "--check"]) == 0


def test_a_stale_part_is_noticed_and_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "page.md"
    file.write_text("a\n<!-- peers: begin settings (x) -->\nold\n<!-- peers: end settings -->\nb\n")
    monkeypatch.setattr(program, "PAGES", (file,))
    monkeypatch.setattr(program, "ROOT", tmp_path)
    kept = {suite: tmp_path / path.name for suite, path in results.PATHS.items()}
    for suite, path in kept.items():
        path.write_bytes(results.PATHS[suite].read_bytes())
    monkeypatch.setattr(results, "PATHS", kept)
    assert program.main(["tables", "--check"]) == 1
    assert capsys.readouterr().err.endswith(": page.md, peers.html, jobs.html\n")
    assert "old" in file.read_text()
    assert program.main(["tables"]) == 0
    assert (tmp_path / "jobs.html").read_text() == page(json.loads(kept["jobs"].read_text()))
    assert program.main(["tables", "--check"]) == 0
    assert "old" not in file.read_text()
    assert "### RQ" in file.read_text()
    file.write_text("<!-- peers: begin nosuch -->\n<!-- peers: end nosuch -->")
    with pytest.raises(SystemExit):
        program.main(["tables"])


def test_what_both_ends_of_a_pair_spend_is_told(found: dict[str, Any]) -> None:
    lines = pair_tables.pair_shares(found)
    judged = sum(len(of) for measure, of in pairs.PAIRS.items() if measure != pairs.LATENCY)
    assert len(lines) == judged + 2
    assert lines[2].startswith("| enqueue, leaseq : redis-work-queue | ")
    assert pair_tables.pair_shares({"records": []}) == ["The committed run was made before there were pairs."]


def test_settings_name_their_reference() -> None:
    text = "\n".join(tables.settings())
    assert text.count("### ") == text.count("Reference: ") == len({library.role for library in LIBRARIES})


# processes


def alive(session: int) -> list[int]:
    return in_session(session)


def test_everything_on_a_leash_ends_with_its_starter() -> None:
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
        servers.wait_until(lambda: len(alive(session)) == 3)
        process.send_signal(signal.SIGKILL)
    servers.wait_until(lambda: not alive(session))


def test_a_role_that_fails_says_why() -> None:
    with Process([sys.executable, "-c", "raise SystemExit('no such thing')"]) as process:
        process.process.wait()
        with pytest.raises(RoleError, match="no such thing"):
            process.check()


def test_polls_are_the_default_ones_where_recovery_by_defaults_is_measured() -> None:
    holds = {
        recovery: Orders("work", 0, "", "hold", recovery=recovery) for recovery in ("default", "quickest")
    }
    assert holds["default"].as_shipped
    assert not holds["quickest"].as_shipped
    assert not Orders("work", 0, "").as_shipped


def test_only_the_first_handler_holds() -> None:
    with Traces() as traces:
        assert traces.holder() is None
        (traces.path / "held").write_text("7")
        assert traces.holder() == 7
        code = "from peers.roles import kit; kit.handle(b'0000000012xxx'); kit.handle('0000000013')"
        orders = {"role": "work", "port": 0, "folder": str(traces.path), "handler": "hold"}
        environment = os.environ | {"PYTHONPATH": str(BENCHMARKS), "LEASEQ_BENCH": json.dumps(orders)}
        subprocess.run([sys.executable, "-c", code], check=True, env=environment)
        assert [number for number, _ in traces.times()] == [12, 13]
        count, first, last = traces.count()
        assert (count, first <= last) == (2, True)


# leaseq's own roles, on a real server


@pytest.fixture(scope="module")
def bench(server_name: str) -> Iterator[Bench]:
    name = str(servers.find_program(servers.startable(server_name)))
    with start_server(name) as server:
        yield Bench(QUICK, name, server)


@ONCE
@pytest.mark.parametrize("name", OWN)
def test_each_way_to_work_handles_every_item_once(bench: Bench, name: str) -> None:
    (record,) = check.check(bench, name)
    assert record.values == {"items": 2 * check.ITEMS}


@ONCE
@pytest.mark.parametrize("name", JOBS)
@pytest.mark.parametrize("kept", [False, True], ids=[jobs.OFF, jobs.ON])
def test_every_job_is_handled_once_and_its_result_read(bench: Bench, name: str, kept: bool) -> None:
    (record,) = jobs.jobs(bench, name, 1, results=kept)
    assert (record.measure, record.library) == (jobs.ON if kept else jobs.OFF, name)
    figures_of = ("enqueue", "bulk", "drain")
    assert min(record.values[f"{what}_per_second"] for what in figures_of) > 0
    parts = record.values["enqueue_server_us"] + record.values["drain_server_us"]
    assert record.values["server_us"] == pytest.approx(parts)
    assert speed.told([], [record]).startswith("the machine ran at ")
    assert "both ends" not in speed.told([], [record])
    assert (bench.server.client.dbsize() > record.values["jobs"]) == kept


@ONCE
def test_results_that_are_wrong_or_kept_against_what_was_asked_are_told(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = BY_NAME["leaseq-jobs"]
    bench.empty()
    with bench.producer(library, results=True) as producer:
        ids = producer.enqueue("one", 60, size=jobs.SIZE)["ids"]
    with bench.drained(library, 60, handler="tally", results=True) as (_, traces):
        with bench.producer(library, results=True) as reader:
            reader.check_results(ids, size=jobs.SIZE)
        with (
            bench.producer(library, results=True) as reader,
            pytest.raises(RoleError, match="'0000000000', is '0000000001'"),
        ):
            reader.check_results([ids[1], *ids[1:]], size=jobs.SIZE)
        traces.check_tally(60)
        with pytest.raises(RoleError, match=r"once \(1\): 60: 0"):
            traces.check_tally(61)
    monkeypatch.setattr(jobs, "GONE_SECS", 0.0)
    with pytest.raises(RoleError, match=r"\d\d keys are left"):
        jobs._wait_gone(bench, library.name)


def test_what_is_handled_twice_or_not_at_all_is_told() -> None:
    with Traces() as traces:
        with pytest.raises(RoleError, match="all"):
            traces.check_tally(2)
        code = "from peers.roles import kit; [kit.handle(f'{number:010d}') for number in (0, 1, 3, 3)]"
        orders = {"role": "work", "port": 0, "folder": str(traces.path), "handler": "tally"}
        environment = os.environ | {"PYTHONPATH": str(BENCHMARKS), "LEASEQ_BENCH": json.dumps(orders)}
        subprocess.run([sys.executable, "-c", code], check=True, env=environment)
        assert traces.count()[0] == 4
        with pytest.raises(RoleError, match=r"once \(2\): 2: 0, 3: 2$"):
            traces.check_tally(4)


@ONCE
def test_commands_and_requests_are_counted_for_each_item(bench: Bench) -> None:
    library = BY_NAME["leaseq-two-calls"]
    bench.empty()
    added = life.enqueue(bench, library, "one", 500, bench.server)
    drained = bench.drain(library, 500)
    # connecting and looking on cost some more, once
    assert 7 <= added["commands"] < 7.2
    assert 1 <= added["reads"] < 1.1
    assert 2 + 10 + 5 <= drained["commands"] < 17.3
    assert 2 <= drained["reads"] < 2.1
    assert min(added["server_us"], added["per_second"], drained["server_us"], drained["per_second"]) > 0


@ONCE
@pytest.mark.parametrize("measure", pairs.PAIRS)
def test_both_sides_of_a_pair_are_measured_in_each_slice(bench: Bench, measure: str) -> None:
    pair = pairs.Pair("leaseq-fused", "leaseq-two-calls")
    one, other = pairs.RUNS[measure](bench, measure, pair, 1)
    assert [(record.measure, record.library, record.case) for record in (one, other)] == [
        (measure, name, pair.case) for name in pair
    ]
    for record in (one, other):
        slices = record.values["slices"]
        short = measure != pairs.DRAIN
        assert {len(of) for of in slices.values()} == {QUICK.slices * (2 if short else 1)}
        assert min(value for of in slices.values() for value in of) > 0
        if measure != pairs.LATENCY:
            assert slices.keys() == {"per_second", "server_us", "client_us", "busy", "probe_ms"}
    if measure == pairs.LATENCY:
        assert len(one.values["all_ms"]) == QUICK.slices * 2 * QUICK.turn_samples


def test_sides_take_turns_to_begin() -> None:
    first, second = (list(pairs.turns(4, repetition)) for repetition in (1, 2))
    assert first == [(0, 1), (1, 0), (0, 1), (1, 0)]
    assert second == [(1, 0), (0, 1), (1, 0), (0, 1)]


@ONCE
def test_a_slice_ends_with_its_queue_and_a_stopped_worker_does_nothing(bench: Bench) -> None:
    bench.empty()
    with contextlib.ExitStack() as stack:
        works = pairs.Works(pairs.Database(bench, "leaseq-fused", 3), stack)
        works.prepare()
        assert works.traces.count()[0] == 0 < works.filled
        handled = works.slice().items
        while works.traces.count()[0] < works.filled:
            handled += works.slice().items
        assert handled == works.filled
        assert works._until(1 << 62) == works.traces.count()[2]
        works.prepare()
        works.filled += 1
        assert works._until(1 << 62) == 1 << 62


@ONCE
def test_a_worker_that_handles_nothing_fails_the_check(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "HANDLER", "count")
    with pytest.raises(RoleError, match="0 different items"):
        check.check(bench, "leaseq")


@ONCE
def test_a_role_that_cannot_start_is_told(bench: Bench) -> None:
    orders = Orders("work", bench.server.port, "/nowhere", variant="nosuch")
    with Worker(BY_NAME["leaseq"], orders) as worker:
        worker.process.wait()
        with pytest.raises(RoleError, match="nosuch"):
            worker.check()


def test_a_name_that_is_not_there_is_told(capsys: pytest.CaptureFixture[str]) -> None:
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
