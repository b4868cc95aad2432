"""`leaseq worker --listen`: one page of metrics and health for all processes of a worker."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest
import yaml
from support.cli_runner import COMMAND, Calls, one_line
from support.job_app import TIMEOUT_SECS, until
from support.job_program import values_of
from support.snippets import ROOT, blocks
from support.watched_program import Series, WatchedProgram, went_back

from leaseq.extras import install_command
from leaseq.jobs import App
from leaseq.worker.work_counts import BUCKETS_SECS, EVENTS, MAX_KINDS, OTHER, WorkCounts, WorkKind, WorkTotals

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import redis
    from support.servers import StartServer

HOSTILE = 'a"b\\c\nd{e="f"} 1\n# TYPE x counter'
SHOP = f"""
import asyncio, os, time
from leaseq.jobs import App, Backoff
from programs.jobs_worker import has, note, wait_for
from support.job_app import extend_program_timeouts

extend_program_timeouts()
app = App()

@app.job(name="ok")
async def ok() -> None: ...

@app.job(name="fails", queue="mails", retries=1, backoff=Backoff(0.001, 0.001))
def fails() -> None:
    raise ValueError("no such customer")

@app.job(name="hold", retries=1, backoff=Backoff(0.001, 0.001))
async def hold(go: str) -> None:
    note("holding", os.getpid())
    while not has(go):
        await asyncio.sleep(0.01)

app.job(name={HOSTILE!r})(lambda: None)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SHOP)
    return tmp_path


@pytest.fixture
def app(url: str) -> Iterator[App]:
    with App(url) as made:
        yield made


def watched(url: str, folder: Path, *arguments: str) -> WatchedProgram:
    return WatchedProgram(url, folder, "worker", "shop:app", "--for", "10m", *arguments)


def probed_paths() -> list[str]:
    """The paths that the page gives to Kubernetes."""
    page = ROOT / "docs" / "worker-processes.md"
    (text,) = (block.text for block in blocks(page) if block.kind == "yaml")
    return [probe["httpGet"]["path"] for probe in yaml.safe_load(text).values()]


@contextlib.contextmanager
def scraping(program: WatchedProgram) -> Iterator[list[str]]:
    """Scrape all the time, beside the block. What goes back is in the list."""
    faults: list[str] = []
    over = threading.Event()

    def scrape() -> None:
        before: Series = program.series()
        while not over.is_set():
            after = program.series()
            faults.extend(went_back(before, after))
            before = after

    thread = threading.Thread(target=scrape)
    thread.start()
    try:
        yield faults
    finally:
        over.set()
        thread.join()


@pytest.mark.slow
def test_what_becomes_of_jobs_is_counted_by_function(
    app: App, url: str, folder: Path, redis_client: redis.Redis
) -> None:
    # a cancellation is heard of within a third of a lease
    with watched(url, folder, "-p", "2", "--for", "9s") as program:
        program.until_ready()
        assert program.events("started", "ok") == 0, "a rate needs the first one"
        for _ in range(20):
            app.enqueue("ok")
        app.function("fails").with_options(queue="mails", retries=1, backoff=0.001).enqueue()
        app.enqueue(HOSTILE)
        app.enqueue("unknown")
        held = app.enqueue("hold", "go")
        program.until(lambda: program.events("completed", "ok") == 20)
        program.until(lambda: program.events("died", "fails") == 1)
        program.until(lambda: program.events("completed", HOSTILE) == 1)
        program.until(lambda: program.events("released") == 1)
        program.until(lambda: program.value("in_flight", function="hold") == 1)
        assert [program.events(event, "fails") for event in EVENTS] == [2, 0, 2, 1, 0, 1, 0]
        assert program.value("run_seconds_count", function="ok") == 20
        assert program.value("lag_seconds_count", function="fails", queue="mails") == 1, "of first attempts"
        held.cancel()
        program.until(lambda: program.events("lost", "hold") == 1)
        program.until(lambda: program.value("in_flight") == 0)
        assert program.value("processes") == 2
        assert program.value("server_up") == 1
        assert [program.get(path) for path in probed_paths()] == [(200, "ok")] * 2
        assert program.get("/what")[0] == 404
        exported = {name for name, _ in program.series() if not name.endswith("_created")}
        assert program.end() == 0, program.written()
    page = (ROOT / "docs" / "metrics.md").read_text()
    documented = set(re.findall(r"^\| `(leaseq_worker_\w+)`", page, re.MULTILINE))
    assert {re.sub("_(bucket|count|sum)$", "", name) for name in exported} == documented


@pytest.mark.slow
def test_counters_do_not_go_back_when_processes_are_killed_and_replaced(
    app: App, url: str, folder: Path, redis_client: redis.Redis
) -> None:
    with watched(url, folder, "-p", "2", "-c", "1", "--max-jobs", "7") as program:
        program.until_ready()
        with scraping(program) as faults:
            app.enqueue("hold", "go")
            until(lambda: values_of(redis_client, "holding"))
            for _ in range(50):
                app.enqueue("ok")
            program.until(lambda: program.events("completed", "ok") >= 10)
            os.kill(int(values_of(redis_client, "holding")[0]), signal.SIGKILL)
            redis_client.set("go", 1)
            program.until(lambda: program.events("completed", "hold") == 1)
            program.until(lambda: program.events("completed", "ok") == 50)
            program.until(lambda: program.value("in_flight") == 0)
        assert faults == []
        assert [program.events(event, "hold") for event in EVENTS] == [2, 1, 1, 1, 0, 0, 0]
        assert program.events("started", "ok") == program.value("run_seconds_count", function="ok") == 50
        assert program.value("process_restarts_total", reason="died") == 1
        assert program.value("process_restarts_total", reason="recycled") >= 6


@pytest.mark.slow
def test_it_is_ready_while_it_leases(own_server: StartServer, folder: Path) -> None:
    server = own_server("--appendonly", "yes")
    with App(server.url) as app:
        app.enqueue("ok")
    with watched(server.url, folder, "-p", "2") as program:
        program.until_ready()
        before = program.value("server_answer_timestamp_seconds")
        server.stop()
        program.until(lambda: program.get("/readyz") == (503, "the server does not answer, or refuses"))
        assert program.get("/healthz") == (200, "ok"), "nothing that a restart would mend"
        assert program.value("server_up") == 0
        server.start()
        program.until_ready()
        program.until(lambda: program.value("server_answer_timestamp_seconds") > before)
        assert program.value("server_up") == 1
        with App(server.url) as app:
            app.enqueue("hold", "go")
        program.until(lambda: program.value("in_flight", function="hold") == 1)
        program.process.send_signal(signal.SIGTERM)
        program.until(lambda: program.get("/readyz") == (503, "the worker stops"))
        assert program.get("/healthz") == (200, "ok")


@pytest.mark.slow
def test_a_process_that_stands_still_is_not_healthy(
    app: App, url: str, folder: Path, redis_client: redis.Redis
) -> None:
    app.enqueue("hold", "go")
    with WatchedProgram(url, folder, "worker", "shop:app", "-p", "1", "--for", "12s") as program:
        until(lambda: values_of(redis_client, "holding"))
        program.until_ready()
        assert program.get("/healthz") == (200, "ok")
        pid = values_of(redis_client, "holding")[0]
        os.kill(int(pid), signal.SIGSTOP)
        program.until(lambda: program.get("/healthz")[0] == 503)
        program.until(lambda: program.value("process_restarts_total", reason="silent") == 1)
        program.until(lambda: program.get("/healthz") == (200, "ok"))
        program.until_ready()


def run(url: str, folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, "worker", "shop:app", "-p", "1", "--burst", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python" / "tests"), "REDIS_URL": url, **more},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECS,
        check=False,
    )


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    return done.stderr.rstrip("\n").rpartition("\n")[2]


def test_an_address_that_cannot_be_had_is_bad_input(url: str, folder: Path) -> None:
    (folder / "shop.py").write_text("from leaseq.jobs import App\napp = App()\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = run(url, folder, LEASEQ_WORKER_LISTEN=address)
    assert done.returncode == 2
    assert last_line(done).startswith(f"leaseq worker: cannot listen on {address}: [Errno")
    assert last_line(done).endswith("--listen takes another HOST:PORT, or off")


def test_without_the_extra(url: str, folder: Path, tmp_path: Path) -> None:
    (folder / "shop.py").write_text("from leaseq.jobs import App\napp = App()\n")
    (folder / "prometheus_client.py").write_text("raise ModuleNotFoundError('no', name='prometheus_client')")
    done = run(url, folder, "--listen", "127.0.0.1:0", PYTHONPATH=str(folder))
    assert (done.returncode, last_line(done)) == (
        2,
        f"leaseq worker: --listen needs prometheus_client; install it with: {install_command('cleaner')}",
    )
    code = "from leaseq.jobs import App; App().run_worker(listen='127.0.0.1:0')"
    called = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(folder), "REDIS_URL": url},
        capture_output=True,
        text=True,
        check=False,
    )
    assert last_line(called).startswith(
        "ModuleNotFoundError: a worker that listens needs the extra `cleaner`"
    )


def test_an_address_has_a_host_and_a_port(call: Calls) -> None:
    for command in (["worker", "shop:app"], ["exec", "orders", "true"]):
        done = call(command[0], "--listen", "9743", *command[1:])
        assert done.code == 2
        one_line(done.err, "write HOST:PORT, or off")


def test_kinds_of_work_are_bounded() -> None:
    reported: list[WorkKind] = []
    counts = WorkCounts(announce=reported.append)
    for number in range(MAX_KINDS + 10):
        counts.count(counts.row(WorkKind("g", "q", f"f{number}")), "started")
    assert reported == counts.kinds
    assert len(reported) == MAX_KINDS + 1
    totals = WorkTotals()
    totals.add(counts)
    assert totals[OTHER].events[0] == 10
    assert sum(row.events[0] for row in totals.values()) == MAX_KINDS + 10


def test_what_takes_as_long_as_a_bucket_ends_is_in_it() -> None:
    counts, kind = WorkCounts(), WorkKind("g", "q", "f")
    row = counts.row(kind)
    for secs in BUCKETS_SECS:
        counts.ran(row, secs)
    totals = WorkTotals()
    totals.add(counts)
    assert list(totals[kind].run[1:]) == [1.0] * len(BUCKETS_SECS) + [0.0]


def test_nothing_runs_in_a_process_that_has_ended() -> None:
    counts, kind = WorkCounts(), WorkKind("g", "q", "f")
    row = counts.row(kind)
    counts.count(row, "started")
    counts.running(row, 1)
    totals = WorkTotals()
    totals.add(counts)
    assert (totals[kind].running, totals[kind].events[0]) == (1, 1)
    totals = WorkTotals()
    totals.retire(counts)
    assert (totals[kind].running, totals[kind].events[0]) == (0, 1)
