"""A fleet of worker processes under kills, stops, server restarts and a bad network: nothing is lost, nothing done twice."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from support import programs, servers
from support.weather import Weather

import leaseq
from leaseq import Item
from leaseq_conformance.fault_proxy import FaultProxy, Listener

if TYPE_CHECKING:
    from pathlib import Path

    import redis

pytestmark = pytest.mark.timeout(900)

TIMEOUT_SECS = 300.0
"""Seconds that a condition may take on a machine that stalls."""

FEW_KILLS, MANY_KILLS = 20, 100
ROUND = 10
"""Kills in a row: some of the killed processes have just started."""
FLEET = ("threads", "async", "threads", "async")

BESIDE = os.environ.get("LEASEQ_BESIDE")
"""An interpreter that has another version of leaseq: every other process is of that one."""

EXPIRE = """
local now = redis.call('TIME')
local past = now[1] * 1000000 + now[2] - 1000000
for _, id in ipairs(redis.call('ZRANGE', KEYS[1], '0', '-1')) do
  redis.call('ZADD', KEYS[1], 'XX', string.format('%.0f', past), id)
end
local state = redis.call('GET', KEYS[2])
if state then
  redis.call('SET', KEYS[2], string.sub(state, 1, 10) .. struct.pack('<d', 0) .. string.sub(state, 19))
end
"""
"""Lets all leases end now: what a killed worker held comes back, and those that live are taken over too."""


class Fleet:
    """Worker processes, each in its place, with separate logs."""

    def __init__(self, url: str, folder: Path, kinds: tuple[str, ...]) -> None:
        self._url = url
        self.folder = folder
        self._started = 0
        self.places = [self._start(kind) for kind in kinds]
        self._kinds = kinds
        self.ends: Counter[int] = Counter()

    def _start(self, kind: str) -> tuple[subprocess.Popen[bytes], Path]:
        self._started += 1
        log = self.folder / f"{self._started}.log"
        errors = (self.folder / f"{self._started}.err").open("wb")
        with errors:
            command = programs.command("fleet_worker", kind, self._url, str(log))
            if self._started % 2 and BESIDE:
                command[0] = BESIDE
            return subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=errors, env=programs.environment()
            ), log

    def send(self, place: int, number: signal.Signals) -> None:
        """Send a signal to the process in this place, and wait for its end: then start another."""
        process, _ = self.places[place]
        process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            if number is signal.SIGTERM and random.random() < 0.5:
                process.wait(0.05)
                process.send_signal(number)
        process.wait(TIMEOUT_SECS)
        self.ends[process.returncode] += 1
        self.places[place] = self._start(self._kinds[place])

    def kill_at_random(self) -> None:
        """SIGTERM for all at once; each is replaced when it has ended."""
        for process, _ in self.places:
            process.send_signal(signal.SIGTERM)
        for place in range(len(self.places)):
            self.send(place, signal.SIGTERM)

    def alive(self) -> list[bool]:
        """Return whether each process runs."""
        return [process.poll() is None for process, _ in self.places]

    def end(self) -> None:
        """Kill all."""
        for process, _ in self.places:
            process.kill()
            process.wait()

    @staticmethod
    def count(log: Path) -> int:
        """Return the number of handlers that a process has started."""
        return log.read_text().count("handled") if log.exists() else 0

    def lines(self, what: str) -> list[tuple[str, int]]:
        """Return what all have written down: ids and tokens."""
        found = []
        for log in self.folder.glob("*.log"):
            for line in log.read_text().splitlines():
                word, item_id, token = line.split(" ")
                if word == what:
                    found.append((item_id, int(token)))
        return found

    def errors(self) -> str:
        """Return what the processes complained of, without the usual lines of the log."""
        texts = (file.read_text(errors="replace") for file in sorted(self.folder.glob("*.err")))
        return "\n".join(
            text for text in texts if "Traceback" in text and "ValueError: now and then" not in text
        )


class FleetRun:
    """A server with an AOF, a proxy before it, a fleet behind that."""

    def __init__(
        self, server: servers.SpawnedServer, proxy: Listener, folder: Path, kinds: tuple[str, ...], seed: int
    ) -> None:
        self.chance = random.Random(seed)
        self.server = server
        self.weather = Weather(proxy, self.chance)
        self.fleet = Fleet(proxy.url, folder, kinds)
        self.queue = leaseq.WorkQueue("fleet", server.url)
        self.added = 0

    def add(self, count: int) -> None:
        """Add `count` items; the server is there."""
        self.queue.add_items(Item(b"x" * 20, id=f"i{self.added + number}") for number in range(count))
        self.added += count

    def expire(self) -> None:
        """Let all leases end."""
        with self.server.client() as client:
            client.eval(EXPIRE, 2, "leaseq:{fleet}:fleet:leased", "leaseq:{fleet}:fleet:state")

    def drained(self) -> bool:
        """Return whether nothing is left; what the dead held comes back."""
        if self.queue.stats().items == 0:
            return True
        self.expire()
        return False

    def trouble(self, kills: int) -> None:
        """Kills, storms, restarts and weather, with items coming in; all killed workers were at work."""
        done = 0
        while done < kills:
            self.all_work()
            self.weather.change()
            self.add(40)
            for _ in range(ROUND):
                self.fleet.send(self.chance.randrange(len(self.fleet.places)), signal.SIGKILL)
                done += 1
            self.expire()
            if done % 20 == 0:
                self.all_work()
                self.server.kill() if self.chance.random() < 0.5 else self.server.stop()
                self.server.start()
                self.fleet.kill_at_random()

    def all_work(self) -> None:
        """In fine weather, each process that is there handles something from now on."""
        self.weather.clear()
        before = {log: self.fleet.count(log) for _, log in self.fleet.places}

        def each() -> bool:
            self.add(20)
            self.expire()
            return all(self.fleet.count(log) > before[log] for log in before)

        servers.wait_until(each, TIMEOUT_SECS)

    def close(self) -> None:
        """End all."""
        self.fleet.end()
        self.queue.close()


@contextlib.contextmanager
def fleet_run(server: servers.SpawnedServer, folder: Path, kinds: tuple[str, ...]) -> Any:
    """A scene; LEASEQ_SEED repeats its chances."""
    seed = int(os.environ.get("LEASEQ_SEED") or random.SystemRandom().randrange(10**6))
    print(f"LEASEQ_SEED={seed}")  # noqa: T201 (pytest shows it when the test fails)
    with FaultProxy(server.url) as proxy:
        made = FleetRun(server, proxy.listener("fleet"), folder, kinds, seed)
        try:
            yield made
        finally:
            made.close()


@pytest.mark.promise("G1", "G2", "G5")
@pytest.mark.parametrize(
    "kills",
    [pytest.param(FEW_KILLS, marks=pytest.mark.slow), pytest.param(MANY_KILLS, marks=pytest.mark.nightly)],
)
def test_a_fleet_loses_nothing_and_completes_nothing_twice(
    own_server: servers.StartServer, tmp_path: Path, kills: int
) -> None:
    """LQ-COMPLETE-2, LQ-ITEM-3, LQ-FAIL-1: kills -9, storms of SIGTERM, restarts of the server, a bad network.

    The server's own counts decide: each item was completed once, by the one call that was answered true. Then every
    process that is there works, and it was not restarted.
    """
    server = own_server("--appendonly", "yes", "--appendfsync", "always")
    with fleet_run(server, tmp_path, FLEET) as play:
        play.trouble(kills)
        play.all_work()
        servers.wait_until(play.drained, TIMEOUT_SECS)
        assert all(play.fleet.alive())
        stats = play.queue.stats()
        assert (stats.added, stats.completed, stats.items, stats.dropped) == (play.added, play.added, 0, 0)
        assert play.queue.deep_clean().repairs == {}
        handled = {item_id for item_id, _ in play.fleet.lines("handled")}
        assert len(handled) == play.added, "every item was handled"
        assert play.fleet.ends[-signal.SIGKILL] == kills
        assert set(play.fleet.ends) == {-signal.SIGKILL, 0}, play.fleet.ends
        assert stats.reclaimed > 0, "kills really left leases behind"
        assert play.fleet.errors() == ""


@pytest.mark.nightly
def test_at_most_once_never_runs_twice(own_server: servers.StartServer, tmp_path: Path) -> None:
    """Under the same troubles: what is lost with a killed process never comes back, and no handler runs twice."""
    server = own_server("--appendonly", "yes", "--appendfsync", "always")
    with fleet_run(server, tmp_path, ("threads once", "async once")) as play:
        play.trouble(FEW_KILLS)
        play.all_work()
        servers.wait_until(play.drained, TIMEOUT_SECS)
        ran = Counter(item_id for item_id, _ in play.fleet.lines("handled"))
        assert [item_id for item_id, count in ran.items() if count > 1] == []
        assert len(ran) > play.added / 2, "and most of them ran"
        assert play.queue.stats().completed == play.added
        assert play.fleet.errors() == ""


def test_expiring_is_what_the_test_says(redis_client: redis.Redis, url: str) -> None:
    """The forged deadlines really let others lease."""
    with leaseq.WorkQueue("fleet", url) as queue:
        queue.add_item(Item(b"", id="a"))
        assert queue.lease(3600) is not None
        assert queue.lease(3600, block=False) is None
        redis_client.eval(EXPIRE, 2, "leaseq:{fleet}:fleet:leased", "leaseq:{fleet}:fleet:state")
        again = queue.lease(3600, block=False)
        assert again is not None
        assert again.attempt == 2
