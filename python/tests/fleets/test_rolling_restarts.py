"""Rolling restarts of a fleet of `leaseq worker` under load, with good jobs of every kind beside those that crash and hang."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import signal
import subprocess
import time
import uuid
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import pytest
from programs import fleet_jobs
from support import programs
from support.cli_runner import COMMAND
from support.process_watch import ProcessWatch, marked_environment, own_zombies
from support.servers import wait_until

from leaseq.jobs import App

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import redis

    from leaseq.jobs import Handle

pytestmark = pytest.mark.timeout(1200)

TIMEOUT_SECS: Final = 300.0
"""Seconds that a condition may take on a machine that stalls."""
OPTIONS: Final = ["-p", "1", "-c", "4", "--max-jobs", "20", "--grace", "1s", "--for", "10s"]
ZOMBIE_SECS: Final = 10.0
"""A process that stands still is killed after 5 s of silence: until then it waits for none of its children."""
MARK: Final = "LEASEQ_FLEET"
GOOD_RETRIES: Final = 3
"""For leases whose replies are lost with a process, and for a machine that stalls: no death and no restart takes another."""
COMPLAINTS: Final = (
    "was never retrieved",
    "Exception in callback",
    "Exception ignored",
    "wait for the end of their leases",
)
"""Words that no worker may log, whatever its jobs do."""


class Fleet:
    """Workers. A worker that is replaced ends while its successor runs."""

    def __init__(self, url: str, folder: Path, client: redis.Redis) -> None:
        self._mark = uuid.uuid4().hex
        self._environment = programs.environment(REDIS_URL=url, **marked_environment(MARK, self._mark))
        self._folder = folder
        self._client = client
        self._started = 0
        self._workers: list[subprocess.Popen[bytes]] = []
        self._ending: list[subprocess.Popen[bytes]] = []
        self.ends: Counter[int] = Counter()
        self.watch = ProcessWatch(f"{MARK}={self._mark}", ZOMBIE_SECS)

    def start(self) -> None:
        """Start a worker, and wait until a process of its is about to work."""
        self._started += 1
        name = str(self._started)
        with (self._folder / f"{name}.log").open("wb") as log:
            self._workers.append(
                subprocess.Popen(
                    [*COMMAND, "worker", "programs.fleet_jobs:app", *OPTIONS],
                    env={**self._environment, "LEASEQ_WORKER": name},
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            )
        wait_until(lambda: self._client.hexists(fleet_jobs.BEGUN, name), TIMEOUT_SECS)

    def replace(self) -> None:
        """Start another worker, and ask the oldest one to stop."""
        self.start()
        oldest = self._workers.pop(0)
        oldest.send_signal(signal.SIGTERM)
        self._ending.append(oldest)
        self.collect()

    def collect(self) -> bool:
        """Note which of those that were asked to stop have ended; whether all have."""
        self.ends.update(each.returncode for each in self._ending if each.poll() is not None)
        self._ending = [each for each in self._ending if each.returncode is None]
        return not self._ending

    def stop(self) -> None:
        """Ask all to stop, and wait for their ends."""
        for each in self._workers:
            each.send_signal(signal.SIGTERM)
        self._ending += self._workers
        self._workers = []
        wait_until(self.collect, TIMEOUT_SECS)

    def kill(self) -> None:
        """Kill whatever still runs of it."""
        for each in (*self._workers, *self._ending):
            each.kill()
            each.wait()
        for process in self.watch.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)

    def complaints(self) -> list[str]:
        """Return what the workers wrote that none may write."""
        lines = (
            line
            for log in self._folder.glob("*.log")
            for line in log.read_text(errors="replace").splitlines()
        )
        return [line for line in lines if any(each in line for each in COMPLAINTS)]


class Load:
    """Jobs, as they are enqueued: most are good."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._good = itertools.cycle(fleet_jobs.GOOD)
        self._quick = itertools.cycle(fleet_jobs.QUICK)
        self._hanging = itertools.cycle(fleet_jobs.HANGING)
        self.good: list[Handle[Any]] = []
        self.bad: list[tuple[str, Handle[Any]]] = []
        self.revived = 0

    def add_good(self, count: int) -> None:
        """Enqueue good jobs; each has the next number."""
        for name in itertools.islice(self._good, count):
            job = self._app.function(name).with_options(retries=GOOD_RETRIES)
            self.good.append(job.enqueue(len(self.good)))

    def add_quick(self, count: int) -> None:
        """Enqueue bad jobs that end at once."""
        self._add_bad(itertools.islice(self._quick, count))

    def add_hanging(self, count: int) -> None:
        """Enqueue bad jobs that never end."""
        self._add_bad(itertools.islice(self._hanging, count))

    def _add_bad(self, names: Iterator[str]) -> None:
        for name in names:
            self.bad.append((name, self._app.function(name).with_options(retries=0).enqueue()))

    def ended(self) -> bool:
        """Return whether all jobs have ended. A job that died of a lease whose reply was lost with a process is revived: no worker ran it."""
        stats = self._app.queue().stats()
        if stats.items > stats.dead:
            return False
        infos = self._app.inspect_jobs(handle for _, handle in self.bad)
        unknown = [
            handle
            for (_, handle), info in zip(self.bad, infos, strict=True)
            if info.status == "failed" and not info.error
        ]
        self.revived += sum(handle.revive() for handle in unknown)
        return not unknown

    def wrong_reasons(self) -> list[tuple[str, str, str]]:
        """The bad jobs that did not end as dead with their reasons."""
        infos = self._app.inspect_jobs(handle for _, handle in self.bad)
        return [
            (name, info.status, info.error)
            for (name, _), info in zip(self.bad, infos, strict=True)
            if info.status != "failed" or not re.search(fleet_jobs.REASONS[name], info.error)
        ]

    def unsuccessful(self) -> list[tuple[str, str, str]]:
        """The good jobs that did not succeed with their numbers."""
        return [
            (info.function, info.status, info.error)
            for number, info in enumerate(self._app.inspect_jobs(self.good))
            if info.status != "succeeded" or info.result != number
        ]

    def lost_attempts(self) -> int:
        """Return how many attempts of good jobs came to nothing, and were counted."""
        return sum(info.attempt - 1 for info in self._app.inspect_jobs(self.good))


@pytest.fixture
def fleet(url: str, tmp_path: Path, redis_client: redis.Redis) -> Iterator[Fleet]:
    made = Fleet(url, tmp_path, redis_client)
    yield made
    made.kill()


def counts(client: redis.Redis, name: str) -> dict[int, int]:
    """Return how often each good job was counted."""
    found: Any = client.hgetall(name)
    return {int(number): int(count) for number, count in found.items()}


@pytest.mark.parametrize(
    ("size", "turns"),
    [pytest.param(3, 1, marks=pytest.mark.slow), pytest.param(10, 30, marks=pytest.mark.nightly)],
)
def test_rolling_restarts_do_each_good_job_once_and_end_each_bad_one(
    fleet: Fleet, url: str, redis_client: redis.Redis, size: int, turns: int
) -> None:
    """LQ-WORK-1, LQ-WORK-2, LQ-WORK-10, LQ-WORK-12: in each turn each worker is replaced, one after the other, while jobs come in.

    A good job may run more than once, where a bad one killed its process or a restart cut it short; it is completed once.
    """
    began = time.monotonic()
    with App(url) as app:
        load = Load(app)
        load.add_good(2 * len(fleet_jobs.GOOD))
        load.add_quick(len(fleet_jobs.QUICK))
        load.add_hanging(min(turns, len(fleet_jobs.HANGING)))
        with fleet.watch:
            for _ in range(size):
                fleet.start()
            for _ in range(turns):
                load.add_hanging(1)
                for _ in range(size):
                    load.add_good(6)
                    load.add_quick(1)
                    fleet.replace()
            restarted = time.monotonic()
            wait_until(load.ended, TIMEOUT_SECS)
            finished = time.monotonic()
            fleet.stop()
            wait_until(lambda: not fleet.watch.alive())
        stats = app.queue().stats()
        runs, effects = counts(redis_client, fleet_jobs.RUNS), counts(redis_client, fleet_jobs.EFFECTS)
        print(  # noqa: T201 (pytest shows it when the test fails)
            f"{len(load.good)} good, {len(load.bad)} bad; runs {sorted(Counter(runs.values()).items())},"
            f" effects {sorted(Counter(effects.values()).items())}; lost attempts {load.lost_attempts()},"
            f" reclaimed {stats.reclaimed}, revived {load.revived}; {fleet.watch.most} processes at most;"
            f" {restarted - began:.0f} s of restarts, {finished - restarted:.0f} s to drain"
        )
        assert load.unsuccessful() == []
        assert load.wrong_reasons() == []
        assert (stats.added, stats.completed) == (len(load.good) + len(load.bad), len(load.good))
        assert (stats.dead, stats.ready, stats.delayed, stats.leased) == (len(load.bad), 0, 0, 0)
        assert set(effects) == set(runs) == set(range(len(load.good)))
        assert load.lost_attempts() <= stats.reclaimed, "no death or restart takes an attempt of a good job"
        assert app.queue().deep_clean().repairs == {}
    assert fleet.ends == {0: size * (turns + 1)}
    assert fleet.watch.most >= 2 * size, "processes are found by their mark, those with titles too"
    assert fleet.watch.zombies == set()
    assert own_zombies() == []
    assert fleet.complaints() == []
