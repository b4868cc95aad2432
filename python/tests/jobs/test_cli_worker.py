"""`leaseq worker`."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from support import programs
from support.cli_runner import COMMAND, Calls, run_worker
from support.job_app import TIMEOUT_SECS, until

import leaseq
from leaseq.jobs import App

if TYPE_CHECKING:
    from pathlib import Path

    import redis

pytestmark = pytest.mark.slow

MODULE = f"""
import asyncio
import os
import sys
from leaseq.jobs import App, aio

sys.path.append({str(programs.TESTS)!r})
from support.job_app import extend_program_timeouts

extend_program_timeouts()
app = App()
for_asyncio = aio.App()

@for_asyncio.job(name="triple")
async def triple(number: int) -> int:
    return number * 3

@app.job(name="nap")
async def nap() -> None:
    open("napping", "x").close()
    await asyncio.sleep(60)

@app.job(name="double")
def double(number: int) -> int:
    return number * 2
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop_tasks.py").write_text(MODULE)
    return tmp_path


def test_an_app_for_asyncio_runs_too(folder: Path, url: str) -> None:
    with App(url) as app:
        handle = app.enqueue("triple", 7)
        ended = run_worker(folder, url, "shop_tasks:for_asyncio", "--burst", "--processes", "1")
        assert (ended.returncode, handle.result(0)) == (0, 21), ended.stderr


def send(app: App, job_id: str, kind: str) -> None:
    app.function("shop.send").with_options(id=job_id).enqueue(kind)


TALKATIVE = """
import logging
from leaseq.jobs import App, Backoff, Retry

app = App()
empty = App()

@app.job(name="shop.send", retries=1, backoff=Backoff(0.001, 0.001))
def send(kind: str) -> None:
    logging.getLogger("shop").warning("my own line")
    if kind == "later":
        raise Retry("the shop is closed")
    raise ValueError("a bug")

@app.cron("0 4 * * *", name="nightly")
def nightly() -> None: ...
"""


def test_the_first_line_says_what_the_worker_is(folder: Path, url: str) -> None:
    (folder / "shop.py").write_text(TALKATIVE)
    first, *others = run_worker(
        folder, url, "shop:app", "-q", "default", "--burst", "-p", "1"
    ).stderr.splitlines()
    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} INFO leaseq.cli.worker: leaseq ", first)
    for part in (
        leaseq.__version__,
        "queues default",
        "functions nightly, shop.send",
        "schedules nightly",
        "processes: 1, 8",
    ):
        assert part in first
    assert others == []


def test_the_first_line_does_not_have_the_password(folder: Path, url: str, redis_client: redis.Redis) -> None:
    redis_client.acl_setuser(
        "anna", enabled=True, passwords=["+hidden"], keys=["*"], channels=["*"], commands=["+@all"]
    )
    try:
        ended = run_worker(
            folder, url.replace("://", "://anna:hidden@"), "shop_tasks:app", "--burst", "-p", "1"
        )
    finally:
        redis_client.acl_deluser("anna")
    assert "leaseq.cli.worker: leaseq " in ended.stderr
    assert "hidden" not in ended.stderr


def test_a_queue_that_never_existed_and_an_app_without_functions_are_warned_of(
    folder: Path, url: str
) -> None:
    (folder / "shop.py").write_text(TALKATIVE)
    wrong = run_worker(folder, url, "shop:app", "-q", "elsewhere", "--burst", "-p", "1").stderr
    assert (
        "queue elsewhere is new: nothing was ever added to it in group jobs. Queues of this App: default"
        in wrong
    )
    assert "this App has no functions" in run_worker(folder, url, "shop:empty", "--burst", "-p", "1").stderr


def test_a_failure_line_has_time_level_function_job_and_attempt(folder: Path, url: str) -> None:
    (folder / "shop.py").write_text(TALKATIVE)
    with App(url) as app:
        send(app, "a", "now")
        ended = run_worker(folder, url, "shop:app", "--burst", "-p", "1")
    assert re.search(
        r"^[-\d]+ [:,\d]+ WARNING leaseq.worker: job 'a' of shop.send failed, attempt 1: ValueError",
        ended.stderr,
        re.MULTILINE,
    )
    assert re.search(r"^[-\d]+ [:,\d]+ WARNING shop: my own line$", ended.stderr, re.MULTILINE)


def test_a_planned_retry_logs_no_traceback(folder: Path, url: str) -> None:
    (folder / "shop.py").write_text(TALKATIVE)
    with App(url) as app:
        send(app, "b", "later")
        ended = run_worker(folder, url, "shop:app", "--burst", "-p", "1")
    assert (
        "job 'b' of shop.send failed, attempt 1: leaseq.jobs.errors.Retry: the shop is closed" in ended.stderr
    )
    assert "Traceback" not in ended.stderr


def test_a_log_in_json_has_an_object_for_each_line(folder: Path, url: str) -> None:
    (folder / "shop.py").write_text(TALKATIVE)
    with App(url) as app:
        send(app, "c", "now")
        ended = run_worker(folder, url, "shop:app", "--burst", "-p", "1", "--log-format", "json")
    lines = [json.loads(line) for line in ended.stderr.splitlines()]
    failed = next(line for line in lines if "failed" in line["message"])
    assert {name: failed[name] for name in ("level", "logger", "item", "function", "attempt")} == {
        "level": "warning",
        "logger": "leaseq.worker",
        "item": "c",
        "function": "shop.send",
        "attempt": 1,
    }
    assert all(line["time"] for line in lines)


def test_burst_ends_with_0_where_there_was_work(folder: Path, url: str) -> None:
    with App(url) as app:
        handles = [app.function("double").with_options(queue=queue).enqueue(21) for queue in ("a", "b")]
        done = run_worker(
            folder, url, "shop_tasks:app", "-q", "b", "--queue", "a", "--burst", "-p", "1", "-c", "2"
        )
        assert done.returncode == 0, done.stderr
        assert [handle.result(0) for handle in handles] == [42, 42]
        again = run_worker(folder, url, "shop_tasks:app", "--burst", "--processes", "2")
        assert again.returncode == 1, again.stderr


def test_a_log_that_nobody_reads_holds_nothing_up(folder: Path, url: str) -> None:
    read, write = os.pipe()
    os.set_blocking(write, False)
    with contextlib.suppress(BlockingIOError):
        while os.write(write, b"x" * 4096):
            pass
    os.set_blocking(write, True)
    command = [*COMMAND, "worker", "shop_tasks:app", "-p", "1", "--verbose"]
    with (
        App(url) as app,
        subprocess.Popen(command, cwd=folder, env={**os.environ, "REDIS_URL": url}, stderr=write) as program,
    ):
        os.close(write)
        try:
            assert app.enqueue("double", 4).result(TIMEOUT_SECS) == 8
            assert len(os.read(read, 1 << 20)) > 4096
            assert app.enqueue("double", 5).result(TIMEOUT_SECS) == 10
        finally:
            program.send_signal(signal.SIGTERM)
            program.wait(TIMEOUT_SECS)
        err = os.read(read, 1 << 20).decode()
        os.close(read)
    assert program.returncode == 0
    assert "lines of the log were not read, and are lost\n" in err


def test_it_says_that_it_stops_and_what_it_gives_back(
    folder: Path, url: str, redis_client: redis.Redis
) -> None:
    with App(url) as app:
        handle = app.enqueue("nap")
        program = subprocess.Popen(
            [*COMMAND, "worker", "shop_tasks:app", "-p", "1", "--grace", "100ms"],
            cwd=folder,
            env={**os.environ, "REDIS_URL": url},
            stderr=subprocess.PIPE,
            text=True,
        )
        with program:
            until((folder / "napping").exists)  # a job that has not started goes back without a word
            program.send_signal(signal.SIGTERM)
            _, err = program.communicate(timeout=TIMEOUT_SECS)
    assert "stopping: running jobs have 0.1 s to finish" in err
    assert f"stops before 1 items are done, which go back uncounted: {handle.id}\n" in err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_with_0(
    folder: Path, url: str, redis_client: redis.Redis, number: signal.Signals
) -> None:
    program = subprocess.Popen(
        [*COMMAND, "worker", "shop_tasks:app", "-p", "1", "--verbose"],
        cwd=folder,
        env={**os.environ, "REDIS_URL": url},
        stderr=subprocess.PIPE,
        text=True,
    )
    with App(url) as app, program:
        try:
            handle = app.enqueue("double", 4)
            assert handle.result(TIMEOUT_SECS) == 8
        finally:
            program.send_signal(number)
        _, err = program.communicate(timeout=TIMEOUT_SECS)
    assert program.returncode == 0
    assert ": listens to default\n" in err
    assert f"default: double(4), job {handle.id}, attempt 1" in err
    assert (
        "stopping: running jobs have 25 s to finish, in 1 processes; a second signal gives them back" in err
    )
    until(lambda: not redis_client.zcard("leaseq:workers"))


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("shop_tasks", "'shop_tasks' does not look like shop.tasks:app"),
        ("shop_tasks:other", "other of shop_tasks is no leaseq.jobs.App"),
        ("shop_tasks:none", "none of shop_tasks is no leaseq.jobs.App"),
        ("no_such_module:app", "there is no module no_such_module"),
        ("shop_tasks.py:app", "shop_tasks.py is a file; name the module: shop_tasks:app"),
        ("shop/tasks.py:app", "shop/tasks.py is a file; name the module: shop.tasks:app"),
        ("shop_broken:app", "shop_broken cannot be imported: RuntimeError: no such table"),
        ("shop_lacking:app", "No module named 'nothing_like_this'"),
    ],
)
def test_what_is_no_app_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, why: str
) -> None:
    (tmp_path / "shop_tasks.py").write_text("other = 3\n")
    (tmp_path / "shop_broken.py").write_text("raise RuntimeError('no such table')\n")
    (tmp_path / "shop_lacking.py").write_text("import nothing_like_this\n")
    monkeypatch.syspath_prepend(tmp_path)
    done = Calls("")("worker", target)
    assert done.code == 2
    assert why in done.err
    sys.modules.pop("shop_tasks", None)


def test_a_server_that_is_away_is_told_at_once(folder: Path) -> None:
    done = run_worker(folder, "redis://127.0.0.1:1", "shop_tasks:app", "--burst")
    assert done.returncode == 3
    assert "cannot be reached" in done.stderr


OPTIONS = """
import os
import time
from leaseq.jobs import App, Context

app = App()

@app.job(name="here", retries=0)
def here(ctx: Context) -> list:
    info = app.queue(ctx.queue).inspect(ctx.id)
    return [os.getpid(), info.time - app.queue(ctx.queue).stats().now]

@app.job(name="together", retries=0)
def together(number: int) -> int:
    open(f"at-{number}", "x").close()
    until = time.monotonic() + 60
    while not all(os.path.exists(f"at-{each}") for each in range(3)):
        assert time.monotonic() < until
        time.sleep(0.01)
    return number
"""


def test_each_option_reaches_the_processes(folder: Path, url: str) -> None:
    (folder / "shop.py").write_text(OPTIONS)
    with App(url) as app:
        handles = [app.enqueue("here") for _ in range(3)]
        options = ["-p", "1", "-c", "1", "--for", "20m", "--max-jobs", "2", "--burst"]
        done = run_worker(folder, url, "shop:app", *options)
        assert done.returncode == 0, done.stderr
        found = [handle.result(0) for handle in handles]
        assert len({pid for pid, _ in found}) == 2  # of two jobs and of one
        assert all(1100 < left <= 1200 for _, left in found)
        at_once = [app.enqueue("together", number) for number in range(3)]
        done = run_worker(folder, url, "shop:app", "-p", "1", "--concurrency", "3", "--burst")
        assert [handle.result(0) for handle in at_once] == [0, 1, 2], done.stderr
