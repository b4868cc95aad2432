"""The clients of `test_random_faults`, which writes down each call that breaks a promise. Run as `python -m programs.faulted_client SCENE`."""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import itertools
import json
import os
import random
import signal
import sys
import threading
import time
import traceback
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import redis
import redis.asyncio.sentinel
import redis.sentinel
import uvloop
from support.background_worker import background_worker
from support.client_flavours import AsyncioFlavour, ClientFlavour
from support.fault_scene import Member

import leaseq
from leaseq import Item
from leaseq.flows import REPLY_GRACE
from leaseq.time_limit import LARGE_BYTES, arrival_secs
from leaseq.worker import Hooks
from leaseq_cleaner import Cleaner
from leaseq_conformance.stall_probe import StallProbe

if TYPE_CHECKING:
    from collections.abc import Callable

CALLERS: Final = 8
"""Threads of a producer."""
LEASE_SECS: Final = 6.0
MARGIN_SECS: Final = 1.0
"""Added to each limit for the machine."""


class Uvloop(AsyncioFlavour):
    """Asyncio on uvloop."""

    new_loop = staticmethod(uvloop.new_event_loop)


FLAVOURS: Final = {"threads": ClientFlavour, "asyncio": AsyncioFlavour, "uvloop": Uvloop}


class Journal:
    """Lines that outlive a kill: each is one call of the system."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def write(self, word: str, what: str) -> None:
        """Write a line."""
        os.write(self._file, f"{word} {json.dumps(what)}\n".encode())


class Calls:
    """Makes calls, and writes down what is late or raises something else than a named error of leaseq."""

    def __init__(self, member: Member, journal: Journal, probe: StallProbe) -> None:
        self._limit = member.call_secs + MARGIN_SECS
        self._journal = journal
        self._probe = probe
        self.ends: Counter[str] = Counter()
        self.longest = 0.0

    def call(self, call: Callable[..., Any], *args: Any, more: float = 0.0, **options: Any) -> Any:
        """Return the answer or the error. `more` is how much longer than usual it may take, in seconds."""
        name = getattr(call, "__name__", str(call))
        began = time.monotonic()
        try:
            answer = call(*args, **options)
            end = "answered"
        except leaseq.LeaseqError as error:
            answer, end = error, type(error).__name__
        except BaseException as error:  # noqa: BLE001 (this is what is looked for)
            self._journal.write("wrong", f"{name}: {traceback.format_exc()}")
            answer, end = error, "wrong"
        took = time.monotonic() - began - self._probe.longest(began)
        self.longest = max(self.longest, took - more)
        if took > self._limit + more:
            self._journal.write(
                "late",
                f"{name} {args} {options}: {took:.2f} s, limit {self._limit + more} s: {end}, {answer!r}",
            )
        self.ends[end] += 1
        return answer


class Producer:
    """Threads that add, look, and lease and end items by hand, in every way there is."""

    def __init__(
        self, calls: Calls, journal: Journal, queues: list[Any], together: Any, over: threading.Event
    ) -> None:
        self._calls = calls
        self._together = together
        self._journal = journal
        self._queues = queues
        self._over = over

    def run(self) -> None:
        """Run until it is over."""
        threads = [threading.Thread(target=self._act, args=(number,)) for number in range(CALLERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _act(self, number: int) -> None:
        chance = random.Random()
        ids = (f"{os.getpid()}-{number}-{count}" for count in itertools.count())
        acts = (self._add, self._add, self._work, self._work, self._look)
        while not self._over.wait(chance.uniform(0, 0.02)):
            queue = chance.choice(self._queues)
            try:
                chance.choice(acts)(queue, ids, chance)
            except BaseException:  # noqa: BLE001 (the program itself is wrong, or a block raised)
                self._journal.write("wrong", traceback.format_exc())

    def _add(self, queue: Any, ids: Any, chance: random.Random) -> None:
        name = next(ids)
        self._journal.write("adding", name)
        item = Item(bytes(chance.choice((10, 10, 10, 100_000))), id=name)
        # a large command may be on its way for longer (LQ-CLIENT-19)
        late = arrival_secs(len(item.data)) if len(item.data) > LARGE_BYTES else 0.0
        options: Any = {"priority": chance.randrange(3), "keep": chance.choice((None, 5))}
        answer: Any = None
        while answer is None or (isinstance(answer, leaseq.LeaseqError) and answer.definite):
            if self._over.is_set():
                return
            if chance.random() < 0.5:
                answer = self._calls.call(queue.add_item, item, more=late, **options)
            else:
                more = 1 + REPLY_GRACE + late
                answer = self._calls.call(queue.add_item_when_room, item, timeout=1, more=more, **options)
            self._over.wait(0.01)
        if answer is True:
            self._journal.write("added", name)
            if options["keep"]:
                self._calls.call(queue.outcome, name, timeout=1, more=1 + REPLY_GRACE)

    def _work(self, queue: Any, _: Any, chance: random.Random) -> None:
        wait = chance.uniform(0.05, 2)
        source = chance.choice((queue, self._together))
        item = self._calls.call(source.lease, LEASE_SECS, timeout=wait, more=wait + REPLY_GRACE)
        while item is not None and not isinstance(item, BaseException):
            self._journal.write("handled", item.id)
            item = self._end(item.queue, item, chance)

    def _end(self, queue: Any, item: Any, chance: random.Random) -> Any:
        """End an item in one of the ways; returns the next one, if that brought one."""
        way = chance.choice(("complete", "complete", "extend", "release", "block", "fused"))
        if way == "release":
            self._calls.call(queue.release, item, delay=0.1)
        elif way == "block":
            self._calls.call(self._block, item, more=1 + REPLY_GRACE)
        elif way == "fused":
            done = self._calls.call(queue.complete_and_lease, item, LEASE_SECS)
            if isinstance(done, tuple):
                self._done(item, done[0])
                return done[1]
        else:
            if way == "extend":
                self._calls.call(queue.extend, item, LEASE_SECS)
            self._done(item, self._calls.call(queue.complete, item))
        return None

    @staticmethod
    def _block(item: Any) -> None:
        with item:
            time.sleep(random.uniform(0, 0.2))

    def _done(self, item: Any, answer: object) -> None:
        if answer is True:
            self._journal.write("true", item.id)

    def _look(self, queue: Any, ids: Any, chance: random.Random) -> None:
        del ids
        self._calls.call(
            chance.choice((queue.stats, queue.queue_len, queue.light_clean, queue.deep_clean)),
            more=self._calls._limit,
        )


class Record(Hooks):
    """Writes down which items a worker's handlers had."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def started(self, item: Any) -> None:
        """Before the handler."""
        self._journal.write("handled", item.id)


def a_while() -> float:
    """Return how long a handler takes, in seconds: now and then longer than its lease."""
    return random.uniform(0, 0.02) if random.random() < 0.98 else random.uniform(0, LEASE_SECS + 2)


def handle(_: Any) -> None:
    """Take a while."""
    time.sleep(a_while())


async def handle_async(_: Any) -> None:
    """Take a while."""
    await asyncio.sleep(a_while())


def client_of(flavour: ClientFlavour, member: Member) -> Any:
    """The client of redis-py for a member's servers, or their URL."""
    limits: dict[str, Any] = {
        "socket_timeout": member.limit_secs,
        "socket_connect_timeout": member.limit_secs,
    }
    if member.sentinels:
        kind: Any = redis.sentinel.Sentinel if flavour.name == "sync" else redis.asyncio.sentinel.Sentinel
        places = [tuple(place) for place in member.sentinels]
        asked = kind(places, sentinel_kwargs=limits, **limits)
        for each in asked.sentinels:
            flavour.own(each)
        return flavour.own(asked.master_for(member.service))
    if member.nodes:
        return cluster_client(flavour, member, limits)
    return flavour.client(member.url, **limits)


def cluster_client(flavour: ClientFlavour, member: Member, limits: dict[str, Any]) -> Any:
    """A client for a cluster: that of redis-py for threads asks a node as it is made, which may be down."""
    while True:
        for host, port in member.nodes:
            with contextlib.suppress(redis.RedisError, redis.exceptions.RedisClusterException):
                return flavour.cluster_client(f"redis://{host}:{port}", **limits)


def clean(member: Member, journal: Journal) -> None:
    """Run a cleaner until SIGTERM."""

    async def main() -> None:
        cleaner = Cleaner(member.url, queues=member.queues, light_secs=0.5, deep_secs=5)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, cleaner.stop)
        await cleaner.run(lambda: journal.write("started", member.role))

    (uvloop.run if member.kind == "uvloop" else asyncio.run)(main())


def main() -> None:
    """Run one member until SIGTERM."""
    faulthandler.register(signal.SIGUSR1)
    member = Member(**json.loads(sys.argv[1]))
    journal = Journal(member.journal)
    if member.role == "cleaner":
        clean(member, journal)
        return
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    with StallProbe() as probe, FLAVOURS[member.kind]() as flavour:
        calls = Calls(member, journal, probe)
        client = client_of(flavour, member)
        queues = [flavour.queue(name, client) for name in member.queues]
        journal.write("started", member.role)
        if member.role == "producer":
            Producer(calls, journal, queues, flavour.queues(queues), over).run()
        else:
            handler = handle if member.kind == "threads" else handle_async
            options: Any = {"lease_secs": LEASE_SECS, "concurrency": 4, "max_attempts": 0, "announce": True}
            with background_worker(flavour, queues, handler, hooks=Record(journal), **options) as worker:
                while not over.wait(0.1):
                    if worker.future.done():
                        worker.result()  # raises why
                        over.set()
        for queue in queues:
            calls.call(queue.close, more=REPLY_GRACE)
        journal.write(
            "calls", f"{sum(calls.ends.values())}: {dict(calls.ends)}, longest {calls.longest:.2f} s"
        )


if __name__ == "__main__":
    main()
