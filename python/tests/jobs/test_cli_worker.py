"""`leaseq worker`."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from support import programs
from support.cli_runner import COMMAND, Calls
from support.job_app import TIMEOUT_SECS, until

from leaseq.jobs import App

if TYPE_CHECKING:
    from pathlib import Path

    import redis

MODULE = f"""
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

@app.job(name="double")
def double(number: int) -> int:
    return number * 2
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop_tasks.py").write_text(MODULE)
    return tmp_path


def run(folder: Path, url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, "worker", *arguments],
        cwd=folder,
        env={**os.environ, "REDIS_URL": url},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECS,
        check=False,
    )


def test_an_app_for_asyncio_runs_too(folder: Path, url: str) -> None:
    with App(url) as app:
        handle = app.enqueue("triple", 7)
        ended = run(folder, url, "shop_tasks:for_asyncio", "--burst", "--processes", "1")
        assert (ended.returncode, handle.result(0)) == (0, 21), ended.stderr


def test_burst_ends_with_0_where_there_was_work(folder: Path, url: str) -> None:
    with App(url) as app:
        handles = [app.function("double").with_options(queue=queue).enqueue(21) for queue in ("a", "b")]
        done = run(folder, url, "shop_tasks:app", "-q", "b", "--queue", "a", "--burst", "-p", "1", "-c", "2")
        assert (done.returncode, done.stderr) == (0, "")
        assert [handle.result(0) for handle in handles] == [42, 42]
        again = run(folder, url, "shop_tasks:app", "--burst", "--processes", "2")
        assert (again.returncode, again.stderr) == (1, "")


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
    assert "asked to stop, 1 processes work; asked again, they give back what they run" in err
    until(lambda: not redis_client.zcard("leaseq:workers"))


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("shop_tasks", "'shop_tasks' does not look like shop.tasks:app"),
        ("shop_tasks:other", "other of shop_tasks is no leaseq.jobs.App"),
        ("shop_tasks:none", "none of shop_tasks is no leaseq.jobs.App"),
        ("no_such_module:app", "there is no module no_such_module"),
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
    done = run(folder, "redis://127.0.0.1:1", "shop_tasks:app", "--burst")
    assert done.returncode == 3
    assert "cannot be reached" in done.stderr
