"""Jobs where everything dies: none is lost, attempts are counted as specified, effects are those of an idempotent sink."""

from __future__ import annotations

import contextlib
import os
import random
import signal
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.job_app import TIMEOUT_SECS, JobAppFlavour, until
from support.job_program import Program, values_of

from leaseq.item import LeasedItemBase
from leaseq.jobs import App
from leaseq.worker.registry import live_workers

if TYPE_CHECKING:
    import redis
    from support import servers

    from leaseq.jobs import Handle

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

FEW_KILLS, MANY_KILLS = 10, 100

GENERATIONS = 3
"""Workers, the processes that fork, and those of jobs. A killer of the next process to live would kill workers only: they come first."""


def generations(pid: int) -> list[list[int]]:
    """Return the live processes below a process: workers, their forkservers, jobs."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            if fields[0] != "Z":
                children.setdefault(int(fields[1]), []).append(int(path.parent.name))
    found = [[pid]]
    for _ in range(GENERATIONS):
        found.append([child for parent in found[-1] for child in children.get(parent, [])])
    return found[1:]


class Killer:
    """Kills processes of a program, of any generation, and gives it more to do whenever it is about to have nothing."""

    def __init__(self, app: App, program: Program) -> None:
        self._app = app
        self._program = program
        self._chance = random.Random(7)
        self.handles: list[Handle[Any]] = []

    def kill(self, count: int) -> None:
        """Kill `count` processes, of each generation a third."""
        planned = [number % GENERATIONS for number in range(count)]
        self._chance.shuffle(planned)
        for generation in planned:
            until(lambda generation=generation: self._kill_one(generation))  # type: ignore[misc]

    def _kill_one(self, generation: int) -> bool:
        """Return whether there was one to kill."""
        self._enqueue()
        found = generations(self._program.pid)[generation]
        if not found:
            return False
        try:
            os.kill(self._chance.choice(found), signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True

    def _enqueue(self) -> None:
        if self._app.queue().stats().ready < 20:
            first = len(self.handles)
            self.handles += self._app.enqueue_many(
                [
                    self._app.function(self._chance.choice(["effect", "forked", "lingers"]))
                    .with_options(retries=None)
                    .call(number)
                    for number in range(first, first + 20)
                ]
            )


@pytest.mark.promise("G1", "G5")
@pytest.mark.parametrize("kills", [FEW_KILLS, pytest.param(MANY_KILLS, marks=pytest.mark.nightly)])
def test_no_job_is_lost_under_kills(url: str, redis_client: redis.Redis, kills: int) -> None:
    with App(url) as app:
        with Program(url, processes=3, concurrency=4, lease_secs=600) as program:
            killer = Killer(app, program)
            killer.kill(kills)
            until(lambda: is_idle(app))
            program.signal()
            code, _, err = program.end()
            assert code == 0, err[-2000:]
        end_leases(app)
        with Program(url, burst=True) as last:
            code, _, err = last.end()
            assert code == 0, err[-2000:]
        jobs = len(killer.handles)
        assert [handle.result(0) for handle in killer.handles] == list(range(jobs))
        stats = app.queue().stats()
    assert (stats.items, stats.dead, stats.completed) == (0, 0, jobs)
    # an attempt is run again where it was one of several when its process died
    assert max(each_attempt(values_of(redis_client, "effects"), jobs).values()) <= 1 + kills


def each_attempt(effects: list[str], jobs: int) -> Counter[tuple[int, ...]]:
    """Every job had its effect; how often each attempt of each."""
    pairs = Counter(tuple(map(int, each.split(":"))) for each in effects)
    assert {number for number, _ in pairs} == set(range(jobs))
    assert min(attempt for _, attempt in pairs) == 1
    return pairs


def each_attempt_once(effects: list[str], jobs: int) -> None:
    """Every job had its effect, and what ran again was another attempt."""
    assert set(each_attempt(effects, jobs).values()) == {1}


def is_idle(app: App) -> bool:
    """Return whether workers have taken all that they can take."""
    stats = app.queue().stats()
    return not stats.ready and not stats.delayed


def end_leases(app: App) -> None:
    """End all leases, when no worker lives: they are of workers that died while they received them."""
    queue = app.queue()
    infos = queue.inspect_items(listed.id for listed in queue.list_items("leased").items)
    items = [LeasedItemBase(info.id, b"", info.token, info.attempt, 0.0, 0.0) for info in infos if info.token]
    queue.extend_items(items, 0.001)
    until(lambda: (stats := queue.stats()).leased == stats.overdue)


def test_jobs_survive_a_restart_of_the_server(own_server: servers.StartServer) -> None:
    server = own_server("--appendonly", "yes", "--appendfsync", "always")
    with App(server.url) as app, Program(server.url, processes=2, concurrency=4) as program:
        app.enqueue_many(
            [app.function("effect").with_options(retries=None).call(number) for number in range(100)]
        )
        until(lambda: app.queue().stats().completed >= 10)
        server.kill()
        server.start()
        handles = app.enqueue_many(
            [app.function("effect").with_options(retries=None).call(number) for number in range(100, 120)]
        )
        assert [handle.result(TIMEOUT_SECS) for handle in handles] == list(range(100, 120))
        until(lambda: is_idle(app))
        program.signal()
        assert program.end()[0] == 0
        end_leases(app)  # given by a server that died before it could say so
        with Program(server.url, burst=True) as last:
            assert last.end()[0] == 0
        assert app.queue().stats().completed == 120
        with server.client() as client:
            each_attempt_once(values_of(client, "effects"), 120)


def test_no_job_is_lost_in_cold_shutdowns(url: str, redis_client: redis.Redis) -> None:
    """A worker gets two signals to stop while its jobs are in the middle: in threads, in separate processes, on the loop."""
    with App(url) as app:
        handles = [
            *(app.enqueue(name, "go") for name in ("hold", "fhold") * 2),
            *(app.enqueue("ahold") for _ in range(2)),
        ]
        for _ in range(3):
            before = len(values_of(redis_client, "holding"))
            with Program(url, processes=2, concurrency=4, grace_secs=3600) as program:
                until(lambda before=before: len(values_of(redis_client, "holding")) == before + len(handles))  # type: ignore[misc]
                program.signal()
                until(lambda: {worker.state for worker in live_workers(url)} == {"stopping"})
                program.signal()
                code, _, err = program.end()
            assert code == 0, err[-2000:]
            assert [handle.status() for handle in handles] == ["ready"] * len(handles)
        redis_client.set("go", 1)
        with Program(url, processes=2, burst=True) as program:
            assert program.end()[0] == 0
        assert [handle.result(0) for handle in handles] == ["whole"] * 4 + [1] * 2
        # what was cut short does not count
        assert {each.split(":")[1] for each in values_of(redis_client, "holding")} == {"1"}
        assert len(values_of(redis_client, "holding")) == 4 * len(handles)


@pytest.mark.promise("G3")
def test_two_workers_never_run_one_job_at_a_time(url: str) -> None:
    app = App(url)
    ran: Counter[int] = Counter()

    @app.job(name="f")
    async def f(number: int) -> None:
        ran[number] += 1

    with JobAppFlavour(app, asynchronous=False) as flavour:
        app.enqueue_many([f.call(number) for number in range(500)])
        options: Any = {"burst": True, "handle_signals": False, "lease_secs": 600}
        runs = [flavour.start(app.aio.run_worker(**options)) for _ in range(3)]
        assert sum(run.result(TIMEOUT_SECS) for run in runs) == 500
    assert set(ran.values()) == {1}
    assert len(ran) == 500
