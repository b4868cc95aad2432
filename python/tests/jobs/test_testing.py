"""Tests of programs that have jobs: run at once in this process, and with fixtures of pytest."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from support.job_app import late_replies

from leaseq.errors import UnavailableError
from leaseq.jobs import App, Context, JobFailed
from leaseq.jobs.testing import at_once
from leaseq.jobs.worker.scheduler import Scheduler

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOBODY = "redis://127.0.0.1:1"


@pytest.fixture(autouse=True)
def _late_replies() -> Iterator[None]:
    with late_replies():
        yield


def test_jobs_run_here_as_they_are_enqueued(url: str) -> None:
    app = App(NOBODY)
    ran: list[str] = []

    @app.job(name="child")
    def child(name: str) -> None:
        ran.append(name)

    @app.job(name="parent")
    async def parent(ctx: Context, name: str) -> str:
        ran.append(name)
        child.enqueue(name + "/1")
        await child.aio.enqueue(name + "/2")
        return f"{name} {ctx.attempt}"

    with at_once(app, url):
        handle = parent.enqueue("a")
        assert sorted(ran) == ["a", "a/1", "a/2"]
        assert handle.result(0) == "a 1"
        app.enqueue_many([child.call("b"), child.with_options(delay=3600).call("c")])
        assert sorted(ran) == ["a", "a/1", "a/2", "b"]
        chained = app.chain(parent.call("d")).then(parent.partial()).enqueue()
        assert chained.result(0) == "d 1 1"
    with pytest.raises(UnavailableError):  # its own server again
        child.enqueue("e")


def test_failures_are_seen_as_with_workers(url: str) -> None:
    app = App(url)

    @app.job(name="f", retries=0)
    def f(number: int) -> None:
        raise ValueError(number)

    with at_once(app):
        with pytest.raises(JobFailed, match="ValueError: 7") as failed:
            f.enqueue(7).result(0)
        assert "raise ValueError(number)" in failed.value.traceback


def test_a_job_that_is_revived_runs_here_too(url: str) -> None:
    app = App(url)
    mended: list[int] = []

    @app.job(name="f", retries=0)
    def f() -> str:
        if not mended:
            raise ValueError("a bug")
        return "ok"

    with at_once(app):
        handle = f.enqueue()
        assert handle.status() == "failed"
        mended.append(1)
        assert handle.revive()
        assert handle.result(0) == "ok"


def test_what_a_schedule_is_triggered_for_runs_here_too(url: str) -> None:
    app = App(url)
    ran: list[str] = []

    @app.every(1_700_000_000, name="s")
    def s() -> None:
        ran.append("s")

    async def begin() -> None:
        await Scheduler(
            app.program.clients.aio.store, app.program.schedules, ["default"], app.program.clients.settings
        ).begin()
        await app.schedules.aio.trigger("s")
        await app.aio.close()

    with at_once(app):
        asyncio.run(begin())
        assert ran == ["s"]
        app.schedules.trigger("s")
        assert ran == ["s", "s"]


def test_what_ends_the_run_reaches_the_test(url: str) -> None:
    app = App(url)

    @app.on_startup
    def fails() -> None:
        raise ValueError("no such table")

    @app.job(name="f")
    def f() -> None: ...

    with at_once(app) as clock:
        with pytest.raises(ValueError, match="no such table"):
            f.enqueue()
        with pytest.raises(ValueError, match="no such table"):
            clock.advance(1)
        app.program.startup.clear()
        assert f.enqueue().status() == "succeeded"


def test_each_job_runs_at_its_time(url: str) -> None:
    app = App(url)
    ran: list[tuple[str, float]] = []

    with at_once(app) as clock:

        @app.job(name="f")
        def f(name: str) -> None:
            ran.append((name, round(clock.now() - started)))

        started = clock.now()
        f.with_options(delay="2h").enqueue("second")
        f.with_options(delay="1h").enqueue("first")
        clock.advance("3h")
    assert ran == [("first", 3600), ("second", 7200)]


def test_in_an_event_loop(url: str) -> None:
    app = App(url)

    @app.job(name="f")
    async def f(number: int) -> int:
        return number + 1

    async def main() -> tuple[int, int]:
        with at_once(app):
            try:
                one = await f.aio.enqueue(1)
                two = f.enqueue(2)  # in a separate loop: this one is at work here
                return await one.result(0), two.result(0)
            finally:
                await app.aio.close()

    assert asyncio.run(main()) == (2, 3)


def test_in_an_event_loop_whose_app_has_a_client_already(url: str) -> None:
    app = App(NOBODY)

    @app.job(name="f")
    async def f(number: int) -> int:
        return number + 1

    async def main() -> int:
        with pytest.raises(UnavailableError):
            await f.aio.enqueue(1)
        with at_once(app, url):
            try:
                answer = await (await f.aio.enqueue(1)).result(0)
            finally:
                await app.aio.close()
        with pytest.raises(UnavailableError):  # its own client again
            await f.aio.enqueue(1)
        return answer

    assert asyncio.run(main()) == 2


USERS_TESTS = """
import leaseq
from leaseq.jobs import App

app = App("redis://127.0.0.1:1")


@app.job(name="double")
def double(number: int) -> int:
    return 2 * number


def test_one(leaseq_jobs):
    with leaseq_jobs(app):
        assert double.with_options(id="a").enqueue(4).result(0) == 8


def test_two(leaseq_jobs):
    leaseq_jobs(app)
    assert app.handle("a", queue="default").status() == "unknown"
    assert double.with_options(id="a").enqueue(5).result(0) == 10


def test_an_hour_later(leaseq_jobs):
    leaseq_jobs(app)
    later = double.with_options(delay="1h").enqueue(6)
    leaseq_jobs.clock.advance("1h")
    assert later.result(0) == 12


def test_three(leaseq_url):
    with leaseq.WorkQueue("q", leaseq_url) as queue:
        assert queue.add_item(leaseq.Item("a", id="a"))
"""


@pytest.mark.slow
def test_fixtures_of_pytest(tmp_path: Path) -> None:
    (tmp_path / "test_users.py").write_text(USERS_TESTS)
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "error",
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:randomly",
            "-p",
            "no:asyncio",
            "-p",
            "no:valkey",
            ".",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert "4 passed" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0


def test_pytest_starts_without_the_job_layer() -> None:
    """The plugin is imported wherever leaseq is installed, with or without its extras."""
    code = "import leaseq.pytest_plugin, sys; print({'msgspec', 'leaseq.jobs'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=True
    )
    assert done.stdout == "set()\n"
