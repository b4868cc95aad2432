"""Jobs between Python, TypeScript, Go and Rust under kills: enqueued in each language, run in each, read in each.

A worker of each language, the job worker program of its adapter, has a queue. Each language enqueues jobs and chains for every one of
them, and chains of two stages go from each to each: the worker of the first stage hands off to that of the second. Workers are killed in
the midst of it. Then every language must read the same end of every job.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from collections import Counter
from itertools import product
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest
from support import adapters, servers
from support.leases import expire_leases

import leaseq
from leaseq_conformance.adapter_process import AdapterProcess

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.typescript, pytest.mark.timeout(900)]

CLIENTS: Final = {"python": "python_sync", "typescript": "typescript", "go": "go", "rust": "rust"}
LANGUAGES: Final = tuple(CLIENTS)
GROUP: Final = "jobs"
LEASE_MS: Final = 600_000
"""Longer than the test: leases of killed workers are made to expire."""
OPTIONS: Final = {"keep_ms": 3_600_000, "max_attempts": 1000}
SLEEP_MS: Final = 2000
"""The time that a job runs which a worker must hold when it is killed."""
TIMEOUT_SECS: Final = 120.0
VALUE: Final = {"text": "ü𝄞", "list": [1, 0.5, True, None], "empty": {}}


class Job(NamedTuple):
    """A job or a chain to enqueue, and its end. `runs_in` has the language of each stage."""

    id: str
    enqueued_in: str
    runs_in: tuple[str, ...]
    function: str
    args: list[Any]
    end: dict[str, Any]

    @property
    def last(self) -> tuple[str, str]:
        """The language and the id of the last job."""
        return self.runs_in[-1], self.id if len(self.runs_in) == 1 else f"{self.id}/1"


def jobs_of(turn: int) -> Iterator[Job]:
    """Return a job of each kind from each language to each, and a chain from each to each."""
    for client, worker in product(LANGUAGES, LANGUAGES):
        name = f"{turn}-{client}-{worker}"
        yield Job(f"{name}-echo", client, (worker,), "echo", [VALUE], {"ended": "result", "result": VALUE})
        yield Job(f"{name}-add", client, (worker,), "add", [turn, 7], {"ended": "result", "result": turn + 7})
        yield Job(
            f"{name}-dies", client, (worker,), "never_again", [name], {"ended": "failure", "message": name}
        )
        for second in LANGUAGES:
            end = {"ended": "result", "result": turn + 1000}
            yield Job(f"{name}-{second}", client, (worker, second), "echo", [turn], end)


class Fleet:
    """An adapter and a worker in each language; a worker is started anew when it was killed."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url = url
        self._folder = folder
        self._started = 0
        self.clients = {
            name: AdapterProcess(name, adapters.FLEET[kind], url) for name, kind in CLIENTS.items()
        }
        for client, language in product(self.clients.values(), LANGUAGES):
            client.open(language, language, GROUP).ok  # noqa: B018
        self.workers = {language: self._start(language) for language in LANGUAGES}

    def _start(self, language: str) -> subprocess.Popen[bytes]:
        config = {"url": self._url, "group": GROUP, "queues": [language], "concurrency": 4}
        config |= {"lease_ms": LEASE_MS, "schedules": False}
        command = [*self.clients[language].hello["job_worker"], json.dumps(config)]
        with (self._folder / f"{self._started}-{language}.log").open("wb") as log:
            # a group, since a worker in Python runs jobs in a process below it
            process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        self._started += 1
        return process

    def enqueue(self, job: Job) -> None:
        """Enqueue a job in its language."""
        first, *later = job.runs_in
        then = [{"function": "add", "args": [1000], "queue": name, "options": OPTIONS} for name in later]
        call: dict[str, Any] = {"id": job.id, "function": job.function, "args": job.args, "options": OPTIONS}
        answer = self.clients[job.enqueued_in].call(
            first, "enqueue", **call, **({"then": then} if then else {})
        )
        assert answer.ok == {"id": job.id, "added": True}

    def end_of(self, job: Job, reader: str) -> dict[str, Any]:
        """Return the end of a job as a language reads it."""
        language, job_id = job.last
        end: dict[str, Any] = self.clients[reader].call(language, "job_result", id=job_id, wait_ms=1000).ok
        end.pop("kind", None)  # what a language calls a failure is for it to say
        return end

    def kill(self, language: str) -> None:
        """Kill the worker of a language with SIGKILL, and start another."""
        assert self.workers[language].poll() is None, "it has ended"
        _kill(self.workers[language])
        self.workers[language] = self._start(language)

    def close(self) -> None:
        """End all."""
        for process in self.workers.values():
            _kill(process)
        for client in self.clients.values():
            client.stop()


def _kill(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.parametrize(
    ("turns", "kills"),
    [pytest.param(1, 8, marks=pytest.mark.slow), pytest.param(20, 80, marks=pytest.mark.nightly)],
)
def test_jobs_of_each_language_run_in_each(
    own_server: servers.StartServer, tmp_path: Path, turns: int, kills: int
) -> None:
    seed = int(os.environ.get("LEASEQ_SEED") or random.SystemRandom().randrange(10**6))
    print(f"LEASEQ_SEED={seed}")  # noqa: T201 (pytest shows it when the test fails)
    chance = random.Random(seed)
    jobs = [job for turn in range(turns) for job in jobs_of(turn)]
    chance.shuffle(jobs)
    all_held: list[Job] = []
    plan = [LANGUAGES[place % len(LANGUAGES)] for place in range(kills)]
    chance.shuffle(plan)
    url = own_server().url
    queues = {language: leaseq.WorkQueue(language, url, group=GROUP) for language in LANGUAGES}
    fleet = Fleet(url, tmp_path)
    try:
        with servers.plain_client(url) as client:
            prefixes = [f"leaseq:{{{GROUP}}}:{language}:" for language in LANGUAGES]
            for number, victim in enumerate(plan):
                for job in jobs[number::kills]:
                    fleet.enqueue(job)
                end = {"ended": "result", "result": SLEEP_MS}
                held = Job(f"held-{number}", chance.choice(LANGUAGES), (victim,), "sleep", [SLEEP_MS], end)
                fleet.enqueue(held)
                all_held.append(held)
                servers.wait_until(lambda: queues[victim].inspect(held.id).state == "leased", TIMEOUT_SECS)  # noqa: B023
                fleet.kill(victim)
                expire_leases(client, prefixes)

            def nothing_left() -> bool:
                return not any(queue.stats().items - queue.stats().dead for queue in queues.values())

            servers.wait_until(nothing_left, TIMEOUT_SECS)

        jobs += all_held
        expected = Counter(language for job in jobs for language in job.runs_in)
        dead = Counter(job.runs_in[0] for job in jobs if job.end["ended"] == "failure")
        stats = {language: queue.stats() for language, queue in queues.items()}
        assert {name: each.added for name, each in stats.items()} == expected
        assert {name: each.dead for name, each in stats.items()} == dead
        assert {name: each.completed for name, each in stats.items()} == expected - dead
        # what killed workers held: its lease expired, or the guard of a worker in Python gave it back; a job that dies is released too
        returned = {name: each.reclaimed + each.released - each.died for name, each in stats.items()}
        assert all(returned[job.runs_in[0]] > 0 for job in all_held), stats
        assert sum(returned.values()) >= len(all_held), stats
        assert [queue.deep_clean().repairs for queue in queues.values()] == [{}] * len(LANGUAGES)
        for job, reader in product(jobs, LANGUAGES):
            assert fleet.end_of(job, reader) == job.end, (reader, job)
    finally:
        fleet.close()
        for queue in queues.values():
            queue.close()
