"""A process of the pipeline demo: passes the orders of one stage on to the next, or cleans, until it is killed.

Passing on is done in one of two ways: by a hand-off, which completes and adds in one step, or by a complete and then an
add, between which a worker can die. Some workers get a moment at which to wait for their death, so that kills
really meet the moments that matter.
"""

import json
import os
import threading
import time
from collections.abc import Sequence
from typing import Any, Final

import redis

import leaseq
from leaseq import commands
from leaseq.commands import Command
from leaseq_demo.client import open_client
from leaseq_demo.worker import SETTINGS, end_with_starter

STAGES: Final = ("charge", "pack", "ship")
LAST: Final = "shipped"
QUEUES: Final = (*STAGES, LAST)
MOMENTS: Final = ("before", "sent", "answered")
"""When a worker dies: before it completes; when it has sent that, unanswered; when it knows the answer and no more."""

_POLL_SECS: Final = 0.3  # how often a worker without items looks whether it shall end
_PAUSE_SECS: Final = 0.005  # what work there is in each batch
_CLEAN_SECS: Final = 0.02  # between two rounds of a cleaner


def open_queue(client: redis.Redis, name: str, stage: str) -> leaseq.WorkQueue:
    """One queue of a pipeline: all are of one group, so that they can hand items to each other."""
    return leaseq.WorkQueue(f"{name}.{stage}", client, group=name)


class Signals:
    """The signals between the demo and its workers, in a few keys on the same server."""

    def __init__(self, client: redis.Redis, name: str) -> None:
        self._client: Any = client
        self._prefix = f"leaseq-demo:{name}:"

    def condemn(self, stage: str, moment: str) -> None:
        """Tell the next worker of a stage that has items to wait for its death at a moment."""
        self._client.rpush(f"{self._prefix}{stage}", moment)

    def sentence(self, stage: str) -> str | None:
        """The moment at which the worker that asks shall wait for its death."""
        moment = self._client.lpop(f"{self._prefix}{stage}")
        return None if moment is None else str(moment.decode())

    def wait_for_death(self, items: int) -> None:
        """Say who waits, and what it holds or has won; then do nothing more."""
        self._client.rpush(f"{self._prefix}waiting", json.dumps([os.getpid(), items]))
        threading.Event().wait()

    def waiting(self) -> tuple[int, int] | None:
        """A worker that waits for its death: its process id, and how many items it holds or has won."""
        found = self._client.lpop(f"{self._prefix}waiting")
        if found is None:
            return None
        pid, items = json.loads(found)
        return pid, items

    def end(self, stage: str) -> None:
        """Tell the workers of a stage to end once they find no items."""
        self._client.set(f"{self._prefix}end-{stage}", 1)

    def ended(self, stage: str) -> bool:
        """Return whether a stage is to end."""
        return bool(self._client.exists(f"{self._prefix}end-{stage}"))

    def clear(self) -> None:
        """Delete everything."""
        keys = [*STAGES, "waiting", *(f"end-{stage}" for stage in STAGES)]
        self._client.delete(*(self._prefix + key for key in keys))


class Stage:
    """The work of one stage."""

    def __init__(self, url: str, name: str, stage: str) -> None:
        self._client = open_client(url)
        self._stage = stage
        self._next = QUEUES[QUEUES.index(stage) + 1]
        self._here = open_queue(self._client, name, stage)
        self._beyond = open_queue(self._client, name, self._next)
        self._signals = Signals(self._client, name)
        self._moment: str | None = None

    def work(self, lease_secs: float, batch: int, *, handoff: bool) -> None:
        """Pass items on, until the stage ends."""
        while True:
            items = self._here.lease_items(batch, lease_secs, timeout=_POLL_SECS)
            if items:
                self._moment = self._signals.sentence(self._stage)
                time.sleep(_PAUSE_SECS)
                self._death("before", len(items))
                self._hand_off(items) if handoff else self._complete_then_add(items)
            elif self._signals.ended(self._stage):
                return

    def _hand_off(self, items: Sequence[leaseq.LeasedItem]) -> None:
        finished = [leaseq.Completion(item, then=[(self._beyond, self._follow_up(item))]) for item in items]
        self._death_when_sent(commands.complete(self._here.keys, finished), len(items))
        done = self._here.complete_items(finished)
        self._death("answered", sum(each.completed for each in done))
        if any(each.added != [each.completed or None] for each in done):
            message = f"an item that was completed once had its follow-up before: {done}"
            raise RuntimeError(message)

    def _complete_then_add(self, items: Sequence[leaseq.LeasedItem]) -> None:
        self._death_when_sent(
            commands.complete(self._here.keys, list(map(leaseq.Completion, items))), len(items)
        )
        answers = self._here.complete_items(items)
        won = [item for item, completed in zip(items, answers, strict=True) if completed]
        self._death("answered", len(won))
        self._beyond.add_items(map(self._follow_up, won))

    def _follow_up(self, item: leaseq.LeasedItem) -> leaseq.Item:
        return leaseq.Item(item.data + f" {self._stage}".encode(), id=item.derived_id(self._next))

    def _death(self, moment: str, items: int) -> None:
        if self._moment == moment:
            self._signals.wait_for_death(items)

    def _death_when_sent(self, command: Command[Any], items: int) -> None:
        if self._moment == "sent":
            self._client.connection_pool.make_connection().send_command(*command.eval())
            self._signals.wait_for_death(items)


def clean(url: str, name: str) -> None:
    """Clean the queues of the stages without end. There is nothing to repair: a process that dies leaves no damage."""
    client = open_client(url)
    queues = [open_queue(client, name, stage) for stage in STAGES]
    while True:
        for queue in queues:
            queue.light_clean()
            if repairs := queue.deep_clean().repairs:
                message = f"there was damage to repair: {repairs}"
                raise RuntimeError(message)
            time.sleep(_CLEAN_SECS)


def main() -> None:
    """Run one process."""
    settings = json.loads(os.environ[SETTINGS])
    if settings["stage"] is None:
        clean(settings["url"], settings["name"])
    stage = Stage(settings["url"], settings["name"], settings["stage"])
    stage.work(settings["lease_secs"], settings["batch"], handoff=settings["handoff"])


if __name__ == "__main__":
    threading.Thread(target=end_with_starter, daemon=True).start()
    main()
