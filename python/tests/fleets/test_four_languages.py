"""The integration scenario of redis-work-queue in Python, TypeScript, Go and Rust, under kills: nothing is lost or completed twice.

Producers in each language add items of one byte to the queue of each language. A worker of that language computes with the byte and hands
off two items in one step: one to a queue that all workers share, one to the queue of a language that the byte names. A worker there
keeps a sum and a product as the result. As in the original, workers complete some items twice, and are late with others.
`programs/fleet_member.py` is the program; the other languages have the same.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
from collections import Counter
from itertools import product
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest
from support import adapters, programs, servers
from support.leases import expire_leases

import leaseq

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.typescript, pytest.mark.timeout(900)]

LANGUAGES: Final = tuple(adapters.MEMBERS)
WORKERS: Final = 2 * LANGUAGES
"""As the original has them: two processes of each language."""
QUEUES: Final = (*LANGUAGES, *(f"to-{language}" for language in LANGUAGES), "shared")
TIMEOUT_SECS: Final = 300.0


class Numbers(NamedTuple):
    """The factor of a language for bytes, and its numbers for the two items that follow."""

    factor: int
    shared: int
    directed: int


NUMBERS: Final = {
    "python": Numbers(3, 13, 17),
    "typescript": Numbers(17, 17, 21),
    "go": Numbers(5, 7, 11),
    "rust": Numbers(7, 3, 5),
}
"""The numbers of the original."""


class Fleet:
    """Worker processes, each in its place, and producers."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url = url
        self._folder = folder
        self._started: list[subprocess.Popen[bytes]] = []
        self.workers = [self._start(language, "work") for language in WORKERS]
        self.kills: Counter[str] = Counter()

    def _start(self, language: str, role: str, *more: str) -> subprocess.Popen[bytes]:
        name = f"{len(self._started)}-{language}"
        command = [*adapters.MEMBERS[language], role, self._url, *more]
        with (
            (self._folder / f"{name}.log").open("wb") as log,
            (self._folder / f"{name}.err").open("wb") as err,
        ):
            process = subprocess.Popen(command, stdout=log, stderr=err, env=programs.environment())
        self._started.append(process)
        return process

    def produce(self, count: int) -> list[subprocess.Popen[bytes]]:
        """Start a producer in each language."""
        return [self._start(language, "produce", str(count)) for language in LANGUAGES]

    def kill(self, place: int) -> None:
        """Kill the worker in this place with SIGKILL, and start another."""
        self.workers[place].kill()
        self.workers[place].wait()
        self.kills[WORKERS[place]] += 1
        self.workers[place] = self._start(WORKERS[place], "work")

    def completed(self) -> Counter[tuple[str, str]]:
        """Return how often each item, by queue and id, was reported: a worker reports a `complete` that returned true."""
        lines = [line for log in self._folder.glob("*.log") for line in log.read_text().splitlines()]
        return Counter((queue, item_id) for _, queue, item_id, _ in map(str.split, lines))

    def check(self) -> None:
        """Fail if a worker has ended that was not killed."""
        assert [worker.poll() for worker in self.workers] == [None] * len(WORKERS), self.errors()

    def errors(self) -> str:
        """Return what the processes wrote to stderr."""
        return "".join(file.read_text(errors="replace") for file in sorted(self._folder.glob("*.err")))

    def end(self) -> None:
        """Kill all."""
        for process in self._started:
            process.kill()
            process.wait()


class Scenario:
    """A server, a fleet, and what must have become of each item."""

    def __init__(self, url: str, folder: Path, count: int, seed: int) -> None:
        self._client = servers.plain_client(url)
        self.queues = {name: leaseq.WorkQueue(name, url, group="fleet") for name in QUEUES}
        self._count = count
        self._chance = random.Random(seed)
        self.fleet = Fleet(url, folder)

    def run(self, kills: int) -> None:
        """Add all, kill workers meanwhile, and wait until nothing is left."""
        producers = self.fleet.produce(self._count)
        items = 3 * self._count * len(LANGUAGES) ** 2
        # by a plan: each place is killed as often, after a number of completions and not of seconds
        plan = [place % len(WORKERS) for place in range(kills)]
        self._chance.shuffle(plan)
        for number, place in enumerate(plan, 1):
            self._wait_for(number * items // (kills + 1) - kills)
            self.fleet.kill(place)
            self._expire()
        for producer in producers:
            assert producer.wait(TIMEOUT_SECS) == 0, self.fleet.errors()
        servers.wait_until(self._nothing_left, TIMEOUT_SECS)

    def _wait_for(self, reports: int) -> None:
        seen = -1

        def there() -> bool:
            nonlocal seen
            self.fleet.check()
            before, seen = seen, self.fleet.completed().total()
            if before == seen:
                self._expire()  # workers may be late with all that is left
            return seen >= reports

        servers.wait_until(there, TIMEOUT_SECS)

    def _nothing_left(self) -> bool:
        self.fleet.check()
        if not any(queue.stats().items for queue in self.queues.values()):
            return True
        self._expire()
        return False

    def _expire(self) -> None:
        expire_leases(self._client, [f"leaseq:{{fleet}}:{name}:" for name in QUEUES])

    def results(self) -> Iterator[tuple[str, str, dict[str, int | str]]]:
        """Return queue, id and result of each item that was handed off, as the server keeps them."""
        ids: dict[str, list[str]] = {name: [] for name in QUEUES}
        for language, item_id, byte in self.items():
            ids["shared"].append(f"{item_id}/shared")
            ids[f"to-{LANGUAGES[byte % 4]}"].append(f"{item_id}/directed")
            assert language in LANGUAGES
        for name, some in ids.items():
            for outcome in self.queues[name].outcomes(some):
                assert outcome.state == "result", (name, outcome)
                yield name, outcome.id, json.loads(outcome.content)

    def items(self) -> Iterator[tuple[str, str, int]]:
        """Return the language, the id and the byte of each item that was added."""
        for language, producer, number in product(LANGUAGES, LANGUAGES, range(self._count)):
            yield language, f"{language}-{producer}-{number}", number % 256

    def close(self) -> None:
        """End all."""
        self.fleet.end()
        self._client.close()
        for queue in self.queues.values():
            queue.close()


@contextlib.contextmanager
def scenario(url: str, folder: Path, count: int) -> Iterator[Scenario]:
    """A scenario; LEASEQ_SEED repeats its plan of kills."""
    seed = int(os.environ.get("LEASEQ_SEED") or random.SystemRandom().randrange(10**6))
    print(f"LEASEQ_SEED={seed}")  # noqa: T201 (pytest shows it when the test fails)
    made = Scenario(url, folder, count, seed)
    try:
        yield made
    finally:
        made.close()


@pytest.mark.parametrize(
    ("count", "kills"),
    [
        pytest.param(24, 8, marks=pytest.mark.slow),
        pytest.param(192, 96, marks=pytest.mark.nightly, id="as many items as the original has"),
    ],
)
def test_four_languages_lose_nothing_and_complete_nothing_twice(
    own_server: servers.StartServer, tmp_path: Path, count: int, kills: int
) -> None:
    with scenario(own_server().url, tmp_path, count) as play:
        play.run(kills)
        fleet = play.fleet
        assert fleet.errors() == ""
        assert fleet.kills == dict.fromkeys(LANGUAGES, kills // len(LANGUAGES))

        # the server's own counts: each item was completed once, and nothing was given up
        added = len(LANGUAGES) * count
        expected = dict.fromkeys([name for name in QUEUES if name != "shared"], added)
        expected["shared"] = added * len(LANGUAGES)
        stats = {name: queue.stats() for name, queue in play.queues.items()}
        assert {name: each.added for name, each in stats.items()} == expected
        assert {name: each.completed for name, each in stats.items()} == expected
        assert {(each.items, each.dead, each.dropped, each.expired) for each in stats.values()} == {
            (0, 0, 0, 0)
        }
        assert sum(each.reclaimed for each in stats.values()) > 0, "leases of late and killed workers ended"
        assert [queue.deep_clean().repairs for queue in play.queues.values()] == [{}] * len(QUEUES)

        # the replies that workers got: true once for each item; a kill may come before the worker writes it down
        reported = fleet.completed()
        assert [item for item, times in reported.items() if times > 1] == []
        assert sum(expected.values()) - kills <= len(reported)

        # the results
        byte_of = {item_id: (language, byte) for language, item_id, byte in play.items()}
        pairs: Counter[tuple[str, str]] = Counter()
        for name, item_id, result in play.results():
            first, step = item_id.split("/")
            language, byte = byte_of[first]
            numbers = NUMBERS[language]
            a, b = numbers.shared if step == "shared" else numbers.directed, byte * numbers.factor % 256
            worker = str(result["worker"])
            assert result == {"a": a, "sum": a + b, "prod": a * b, "worker": worker}
            assert name in {"shared", f"to-{worker}"}
            pairs[language, worker] += 1
        assert set(pairs) == set(product(LANGUAGES, LANGUAGES)), "each language handed off to each"
