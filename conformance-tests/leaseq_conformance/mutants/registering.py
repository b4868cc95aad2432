"""Clients that say the wrong thing, or nothing, about the queues they use and their workers."""

from __future__ import annotations

import time
from typing import Any

import redis

from leaseq import registry
from leaseq._sync.calls import Held
from leaseq._sync.registry import Registration
from leaseq.keys import REGISTRY, RegisteredQueue
from leaseq.worker import live
from leaseq.worker._sync.live import Announcer
from leaseq.worker._sync.run import Run
from leaseq_conformance.mutants.registry import mutant, patch


@mutant("LQ-REGISTRY-1", "scenarios/registry")
def registered_without_group() -> None:
    """Enters a queue into the registry by its name alone: whose group is another's cannot be found again."""
    own = Registration.__init__

    def init(self: Registration, client: Any, keys: Any) -> None:
        own(self, client, keys)
        self._entry = keys.name

    patch(Registration, "__init__", init)


@mutant("LQ-REGISTRY-2", "scenarios/registry")
def never_registered() -> None:
    """Enters no queue into the registry, though it says that it does."""
    patch(Registration, "enter", lambda _self: None)


@mutant("LQ-REGISTRY-3", "scenarios/registry")
def registry_fails_the_call() -> None:
    """Takes a registry that it cannot write for a failure of the call behind which it wrote."""

    def enter(self: Registration) -> None:
        self._calls.talk(self._say, Held())

    patch(Registration, "enter", enter)


@mutant("LQ-REGISTRY-4", "scenarios/registry-listed")
def registry_read_whole() -> None:
    """Reads the registry with one SMEMBERS, however long it is, and takes all that it finds for queues."""

    def queues(server: Any) -> list[RegisteredQueue]:
        with redis.Redis.from_url(server) as client:
            members = client.smembers(REGISTRY)
        halves = [member.decode().partition(":") for member in members]
        return sorted(RegisteredQueue(name, group) for group, _, name in halves)

    patch(registry, "queues", queues)


@mutant("LQ-WORKER-1", "scenarios/live-worker")
def worker_announced_for_an_hour() -> None:
    """Announces a worker with a time to live of an hour: one that was killed is seen for so long."""
    patch(live, "LIFE_SECS", 3600)


@mutant("LQ-WORKER-2", "scenarios/live-worker")
def worker_not_in_the_index() -> None:
    """Writes what a worker does under its own key, and enters it nowhere: nobody finds it."""

    def enter(self: Announcer) -> None:
        self._started = time.time()

    patch(Announcer, "_enter", enter)


@mutant("LQ-WORKER-3", "scenarios/live-worker-unseen")
def announces_before_it_works() -> None:
    """Announces a worker before it begins, and does not begin where that fails."""
    own = Run.work

    def work(self: Run) -> int:
        self.announcer.announce()
        return own(self)

    patch(Run, "work", work)


@mutant("LQ-WORKER-4", "scenarios/live-worker")
def worker_leaves_its_traces() -> None:
    """Ends a worker and leaves its key and its place in the index to time."""
    patch(Announcer, "leave", lambda _self: None)


@mutant("LQ-WORKER-5", "scenarios/live-workers-listed")
def gone_workers_listed() -> None:
    """Lists every id of the index, whether its key is there or not."""
    own = live.read

    def read(worker_id: bytes, text: bytes | None) -> live.LiveWorker | None:
        name = worker_id.decode(errors="replace")
        gone = live.LiveWorker(name, "", 0, "", 0, False, 0, 0, 0, (), ())
        return own(worker_id, text) or gone

    patch(live, "read", read)
