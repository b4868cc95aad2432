"""Jobs where everything dies: none is lost, attempts are counted as specified, effects are those of an idempotent sink."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from job_shift import PATIENCE, Twin, until
from test_jobs_supervisor import Program, told

from leaseq.item import LeasedItemBase
from leaseq.jobs import App
from leaseq.worker.registry import live_workers

if TYPE_CHECKING:
    from collections.abc import Callable

    import redis
    import servers

pytestmark = [pytest.mark.on("last"), pytest.mark.slow, pytest.mark.timeout(600)]

KILLS = 100
JOBS = 400


def below(pid: int) -> list[int]:
    """The processes below one, those of workers, those that fork, those of jobs: all that live."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            parents[int(path.parent.name)] = int(fields[1])
    found: set[int] = set()
    fresh = {pid}
    while fresh:
        fresh = {child for child, parent in parents.items() if parent in fresh} - found
        found |= fresh
    return sorted(found)


def test_no_job_is_lost_under_a_hundred_kills(url: str, redis_client: redis.Redis) -> None:
    chance = random.Random(7)
    with App(url) as app, Program(url, processes=3, concurrency=4, lease_secs=600) as program:
        calls = [
            app.named(chance.choice(["effect", "effect", "forked"])).using(max_attempts=0).call(number)
            for number in range(JOBS)
        ]
        handles = app.enqueue_many(calls[: JOBS // 2])
        killed: Counter[str] = Counter()
        while killed.total() < KILLS:  # however long that takes: the test as a whole has its limit
            for pid in chance.sample(found := below(program.pid), k=min(1, len(found))):
                try:
                    title = Path(f"/proc/{pid}/cmdline").read_bytes().split(b":")[0].decode()
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    continue
                killed[title] += 1
            if killed.total() % 10 == 0 and len(handles) < JOBS:
                handles += app.enqueue_many(calls[len(handles) : len(handles) + 30])
            time.sleep(chance.random() * 0.05)
        handles += app.enqueue_many(calls[len(handles) :])
        assert killed["leaseq job"] or killed["leaseq worker"]
        until(lambda: all_ended(app))
        results = [handle.result(0) for handle in handles]
        assert results == list(range(JOBS))
        program.signal()
        code, _, err = program.end()
    assert code == 0, err[-2000:]
    stats = app.queue().stats()
    app.close()
    assert (stats.items, stats.dead, stats.completed) == (0, 0, JOBS)
    effects = [tuple(map(int, each.split(":"))) for each in told(redis_client, "effects")]
    assert {number for number, _ in effects} == set(range(JOBS))
    # an attempt runs once: what runs again is another attempt
    counted = Counter(pair for pair in effects if pair[1])
    assert set(counted.values()) == {1}


def all_ended(app: App) -> bool:
    """Whether all jobs have ended. Leases of which no worker knows, since it died as it was given them, end now."""
    queue = app.queue()
    stats = queue.stats()
    if stats.ready or stats.delayed:
        return False
    infos = queue.inspect_items(listed.id for listed in queue.list_items("leased").items)
    items = [LeasedItemBase(info.id, b"", info.token, info.attempt, 0.0, 0.0) for info in infos if info.token]
    queue.extend_items(items, 0.001)
    return stats.items == 0


def test_jobs_survive_a_restart_of_the_server(own_server: Callable[..., servers.Server]) -> None:
    server = own_server("--appendonly", "yes", "--appendfsync", "always")
    with App(server.url) as app, Program(server.url, processes=2, concurrency=4) as program:
        app.enqueue_many([app.named("effect").using(max_attempts=0).call(number) for number in range(100)])
        until(lambda: app.queue().stats().completed >= 10)
        server.kill9()
        server.start()
        handles = app.enqueue_many(
            [app.named("effect").using(max_attempts=0).call(number) for number in range(100, 120)]
        )
        assert [handle.result(PATIENCE) for handle in handles] == list(range(100, 120))
        until(lambda: all_ended(app))
        program.signal()
        assert program.end()[0] == 0
        with server.client() as client:
            numbers = {int(each.split(":")[0]) for each in told(client, "effects")}
        assert numbers == set(range(120))


def test_no_job_is_lost_in_cold_shutdowns(url: str, redis_client: redis.Redis) -> None:
    """A worker is told twice to stop while its jobs are in the middle: in threads, in processes of their own, on the loop."""
    with App(url) as app:
        handles = [
            *(app.enqueue(name, "go") for name in ("hold", "fhold") * 2),
            *(app.enqueue("ahold") for _ in range(2)),
        ]
        for _ in range(3):
            before = len(told(redis_client, "holding"))
            with Program(url, processes=2, concurrency=4, grace_secs=3600) as program:
                until(lambda before=before: len(told(redis_client, "holding")) == before + len(handles))  # type: ignore[misc]
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
        assert {each.split(":")[1] for each in told(redis_client, "holding")} == {"1"}
        assert len(told(redis_client, "holding")) == 4 * len(handles)


def test_two_workers_never_run_one_job_at_a_time(url: str) -> None:
    app = App(url)
    ran: Counter[int] = Counter()

    @app.job(name="f")
    async def f(number: int) -> None:
        ran[number] += 1

    with Twin(app, asynchronous=False) as twin:
        app.enqueue_many([f.call(number) for number in range(500)])
        options: Any = {"burst": True, "handle_signals": False, "lease_secs": 600}
        runs = [twin.start(app.arun_worker(**options)) for _ in range(3)]
        assert sum(run.result(PATIENCE) for run in runs) == 500
    assert set(ran.values()) == {1}
    assert len(ran) == 500
