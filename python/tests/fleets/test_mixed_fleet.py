"""Producers, workers and cleaners in Python, TypeScript, Go and Rust on one queue, killed at any moment: nothing is lost, and nothing
is completed twice.

The clients are driven as actors of the conformance suite, so that every call and its answer are known, and a call whose actor
was killed before it answered is known to be in doubt. The verdict is on the end alone.
"""

import contextlib
import random
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import redis
from support import adapters, servers
from support.leases import expire_leases

from leaseq_conformance.adapter_process import AdapterProcess, Answer
from leaseq_conformance.adapter_protocol import b64, unb64

ITEMS = 300
BATCH = 6
KILLS = 12
PREFIX = "leaseq:{fleet}:fleet:"
CLIENTS = tuple(adapters.FLEET)


pytestmark = pytest.mark.typescript


class KilledError(Exception):
    """The actor was killed before it answered."""


class Member:
    """One of the fleet: an actor that is started anew when it was killed."""

    def __init__(self, language: str, url: str) -> None:
        self.language = language
        self._url = url
        self._lock = threading.Lock()
        self._actor = self._start()

    def _start(self) -> AdapterProcess:
        actor = AdapterProcess(self.language, adapters.FLEET[self.language], self._url)
        actor.open("q", "fleet").ok  # noqa: B018
        return actor

    def call(self, method: str, **args: Any) -> Answer:
        """Raises KilledError, after the next one was started."""
        answer = self._actor.call("q", method, **args)
        if answer.kind != "killed":
            return answer
        with self._lock, contextlib.suppress(AssertionError):
            self._actor.stop()
            self._actor = self._start()
        raise KilledError

    def kill(self) -> None:
        with self._lock:
            self._actor.kill()

    def end(self) -> None:
        self._actor.stop()


class Fleet:
    """The processes that take part, and the replies that they got."""

    def __init__(self, url: str) -> None:
        self.over = threading.Event()
        self.added: set[str] = set()
        self.added_perhaps: set[str] = set()
        self.completed: Counter[str] = Counter()
        self.completed_perhaps: set[str] = set()
        self.calls: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._url = url
        self.members: list[Member] = []

    def member(self, language: str) -> Member:
        self.members.append(Member(language, self._url))
        return self.members[-1]

    def produce(self, member: Member, ids: list[str]) -> None:
        for start in range(0, len(ids), BATCH):
            batch = ids[start : start + BATCH]
            items = [{"id": b64(item_id.encode()), "data": b64(item_id.encode())} for item_id in batch]
            try:
                answers = member.call("add", items=items).ok
            except KilledError:
                # it may be there, and completed already: adding it again would be another item
                with self._lock:
                    self.added_perhaps.update(batch)
                continue
            assert answers == ["added"] * len(batch)
            with self._lock:
                self.added.update(batch)

    def work(self, member: Member, chance: random.Random) -> None:
        while not self.over.is_set():
            with contextlib.suppress(KilledError):
                leased = member.call("lease", duration_ms=30_000, count=chance.choice((1, 3)), wait_ms=500).ok
                for lease in leased["leases"]:
                    self._finish(member, lease, chance)

    def _finish(self, member: Member, lease: dict[str, Any], chance: random.Random) -> None:
        assert lease["id"] == lease["data"]
        held = {"id": lease["id"], "token": lease["token"]}
        if chance.random() < 0.1:
            assert member.call("release", items=[held]).ok[0] in {"ready", "lost"}
            return
        if chance.random() < 0.1:
            member.call("extend", items=[held], duration_ms=30_000).ok  # noqa: B018
        item_id = unb64(lease["id"]).decode()
        try:
            done = member.call("complete", items=[held]).ok[0]
        except KilledError:
            with self._lock:
                self.completed_perhaps.add(item_id)
            raise
        with self._lock:
            self.calls[member.language] += 1
            self.completed[item_id] += done

    def clean(self, member: Member) -> None:
        while not self.over.is_set():
            with contextlib.suppress(KilledError):
                member.call("light_clean").ok  # noqa: B018
                repairs = member.call("deep_clean", dry_run=False).ok
                assert repairs == {}, "a healthy queue was repaired"


@pytest.fixture
def fleet(own_server: servers.StartServer) -> Iterator[tuple[Fleet, redis.Redis]]:
    server = own_server()
    made = Fleet(server.url)
    with servers.plain_client(server.url) as client:
        yield made, client
    for member in made.members:
        member.end()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_all_languages_on_one_queue_under_kills(fleet: tuple[Fleet, redis.Redis]) -> None:
    fleet_run, client = fleet
    chance = random.Random(4)
    ids = [f"i{number}" for number in range(ITEMS)]
    producers = [fleet_run.member(language) for language in CLIENTS]
    workers = [fleet_run.member(language) for language in CLIENTS]
    cleaners = [fleet_run.member(language) for language in CLIENTS]
    with ThreadPoolExecutor(3 * len(CLIENTS)) as pool:
        producing = [
            pool.submit(fleet_run.produce, member, ids[place :: len(producers)])
            for place, member in enumerate(producers)
        ]
        others = [
            pool.submit(fleet_run.work, member, random.Random(place)) for place, member in enumerate(workers)
        ]
        others += [pool.submit(fleet_run.clean, member) for member in cleaners]
        try:
            for kill in range(1, KILLS + 1):
                # counted in completions, not in seconds: a slow machine is killed as often
                due = kill * ITEMS // (2 * KILLS)
                servers.wait_until(lambda due=due: sum(fleet_run.calls.values()) >= due, 120)  # type: ignore[misc]
                chance.choice(fleet_run.members).kill()
                expire_leases(client, [PREFIX])
            for future in producing:
                future.result(120)

            def nothing_left() -> bool:
                expire_leases(client, [PREFIX])
                return client.hlen(PREFIX + "items") == 0

            servers.wait_until(nothing_left, 120)
        finally:
            fleet_run.over.set()
        for future in others:
            future.result(60)
    # nothing is completed twice
    assert {item_id for item_id, count in fleet_run.completed.items() if count > 1} == set()
    assert not set(fleet_run.completed) - fleet_run.added - fleet_run.added_perhaps
    # nothing is lost: added items are completed, and a worker got that reply or may have got it
    completed_ids = {item_id for item_id, count in fleet_run.completed.items() if count}
    assert fleet_run.added - completed_ids <= fleet_run.completed_perhaps
    assert {language for language in CLIENTS if fleet_run.calls[language]} == set(CLIENTS)
