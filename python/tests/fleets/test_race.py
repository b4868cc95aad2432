"""Many processes on one queue, killed all the time: every item is completed exactly once and none is lost."""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import pytest
from support import programs

import leaseq

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support import servers

ITEMS = 3000
KILLS = 100
WORKERS = 5
LIMIT = 600.0
"""Seconds after which a race that does not end has hung: many times what it takes."""


class Crowd:
    """The processes of one race, each in its place, started again when killed."""

    def __init__(self, url: str, folder: Path, seed: int) -> None:
        self._url = url
        self._folder = folder
        self._chance = random.Random(seed)
        self._started = 0
        self.places: list[tuple[str, subprocess.Popen[bytes]]] = []
        self.producers: list[subprocess.Popen[bytes]] = []

    def start(self, role: str, *args: str) -> subprocess.Popen[bytes]:
        """Start one; its log is a file of its own."""
        self._started += 1
        log = str(self._folder / f"{self._started}.log")
        seeded = [str(self._chance.random())] if role in {"work", "async"} else []
        command = programs.command("race_worker", role, self._url, log, *seeded, *args)
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, env=programs.environment())

    def kill_one(self) -> str:
        """Kill a random worker or cleaner and put another in its place."""
        place = self._chance.randrange(len(self.places))
        role, process = self.places[place]
        process.kill()
        process.wait()
        self.places[place] = (role, self.start(role))
        return role

    def end(self) -> None:
        """Kill all."""
        for process in [process for _, process in self.places] + self.producers:
            process.kill()
            process.wait()


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_every_item_is_completed_exactly_once(
    own_server: Callable[..., servers.SpawnedServer], tmp_path: Path
) -> None:
    """LQ-COMPLETE-2, LQ-LEASE-2, LQ-ITEM-3, LQ-FAIL-1, LQ-FAIL-3, LQ-DEEP-2: 3000 items, 100 kills -9.

    What a killed worker was answered it may not have written down, so the server's count of completions decides, and
    no item has two answers of true. LEASEQ_SEED repeats the order of the kills.
    """
    seed = int(os.environ.get("LEASEQ_SEED") or random.SystemRandom().randrange(10**6))
    print(f"LEASEQ_SEED={seed}")  # noqa: T201 (pytest shows it when the test fails)
    chance = random.Random(seed)
    server = own_server()
    queue = leaseq.WorkQueue("race", server.url)
    crowd = Crowd(server.url, tmp_path, seed)
    kills: Counter[str] = Counter()
    try:
        roles = ["work"] * (WORKERS - 2) + ["async"] * 2 + ["clean"]
        crowd.places = [(role, crowd.start(role)) for role in roles]
        half = ITEMS // 2
        crowd.producers = [crowd.start("produce", str(first), str(half)) for first in (0, half)]
        until = time.monotonic() + LIMIT
        while kills.total() < KILLS or queue.stats().items or any(p.poll() is None for p in crowd.producers):
            assert time.monotonic() < until, (queue.stats(), kills, seed)
            time.sleep(chance.uniform(0.05, 0.35))
            if kills.total() < KILLS:
                kills[crowd.kill_one()] += 1
            elif queue.stats().items:
                time.sleep(0.1)
    finally:
        crowd.end()
    assert [producer.returncode for producer in crowd.producers] == [0, 0]
    check(tmp_path, queue, seed)
    queue.close()


def check(folder: Path, queue: leaseq.WorkQueue, seed: int) -> None:
    """Compare what the processes wrote down with what the server counted."""
    lines = [line.split(" ", 2) for log in folder.glob("*.log") for line in log.read_text().splitlines()]
    won = Counter(item_id for item_id, _, answer in lines if answer == "True")
    added = {item_id for item_id, _, answer in lines if answer == "added"}
    leases: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for item_id, token, answer in lines:
        if answer.startswith("leased "):
            leases[item_id].append((int(answer.removeprefix("leased ")), int(token)))
    stats = queue.stats()
    assert len(added) == ITEMS
    assert [item_id for item_id, count in won.items() if count > 1] == [], seed
    assert (stats.added, stats.completed, stats.items, stats.dropped) == (ITEMS, ITEMS, 0, 0), (stats, seed)
    assert ITEMS - KILLS * 3 <= len(won) <= ITEMS, (
        "a killed worker leaves at most one answer unwritten for each task"
    )
    every = [token for several in leases.values() for _, token in several]
    assert len(every) == len(set(every)), "no token is given twice"
    for several in leases.values():
        by_attempt = [token for _, token in sorted(several)]
        assert by_attempt == sorted(by_attempt), "tokens grow from attempt to attempt"
    repairs = [answer for item_id, _, answer in lines if item_id == "repair"]
    assert repairs == [], seed
    assert stats.reclaimed > 0, "kills really left leases behind"
