"""Where a command acts: on the server of --url, in the group of --group, on the queue of --queue, and nowhere else."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from support.cli_runner import Calls, Done, run
from support.job_app import JobAppFlavour
from support.servers import wait_until

import leaseq
from leaseq.jobs import App
from leaseq.jobs.worker.scheduler import Scheduler

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import redis

HOUR = 3600.0
CHANGES = {
    "add": ["data", "--id", "new"],
    "lease": [],
    "complete": ["leased", "TOKEN"],
    "release": ["leased", "TOKEN"],
    "extend": ["leased", "TOKEN", "--for", "2h"],
    "remove": ["ready"],
    "expire": ["leased"],
    "drain": ["--state", "ready", "--yes"],
    "pause": [],
    "configure": ["--max-items", "77"],
    "clean": [],
    "dead revive": ["dead"],
    "dead purge": ["dead"],
    "import": ["FILE"],
    "exec": ["--burst", "--quiet", "--", "true"],
}
"""Commands that change a queue, with what follows its name."""
VIEWS = {
    "stats": ["--json"],
    "peek": ["--json"],
    "inspect": ["ready", "--json"],
    "list": ["ready"],
    "dead list": [],
    "export": [],
}
"""Commands that show a queue."""


def fill(queue: leaseq.WorkQueue) -> int:
    """A leased item, a dead one, two ready ones. Return the token of the first."""
    queue.add_items([leaseq.Item(b"x", id="dead"), leaseq.Item(b"x", id="leased")])
    dead, leased = queue.lease_items(2, HOUR)
    queue.dead_letter(dead)
    queue.add_items([leaseq.Item(b"x", id="ready"), leaseq.Item(b"x", id="more")])
    return leased.token


def state_of(queue: leaseq.WorkQueue) -> Any:
    """The things that a command can change."""
    infos = queue.inspect_items(["dead", "leased", "ready", "more", "late", "new"])
    stats = queue.stats()
    return [(info.state, info.time, info.attempt) for info in infos], stats.paused, stats.max_items


@pytest.fixture
def here(redis_client: redis.Redis) -> Iterator[leaseq.WorkQueue]:
    with leaseq.WorkQueue("q", redis_client, group="g") as opened:
        yield opened


@pytest.fixture
def elsewhere(redis_client: redis.Redis) -> Iterator[leaseq.WorkQueue]:
    """The queue of the same name in its own group."""
    with leaseq.WorkQueue("q", redis_client) as opened:
        yield opened


@pytest.fixture
def lost(closed_url: str) -> Calls:
    """Calls with a REDIS_URL that is not to be used."""
    return Calls(closed_url)


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_made_in_the_group_alone(
    name: str,
    lost: Calls,
    url: str,
    here: leaseq.WorkQueue,
    elsewhere: leaseq.WorkQueue,
    tmp_path: Path,
) -> None:
    token, other = fill(here), fill(elsewhere)
    assert token != other
    (tmp_path / "items").write_text(
        Calls(url)("export", "q", "-g", "g").out.replace('"id": "ready"', '"id": "new"')
    )
    if name == "clean":
        for queue in (here, elsewhere):
            queue.add_item(leaseq.Item(b"x", id="late"), expires_in=0.001)
            expired = queue.stats().now + 0.002
            wait_until(lambda queue=queue, expired=expired: queue.stats().now > expired)  # type: ignore[misc]
    before = state_of(here), state_of(elsewhere)
    after_name = [
        {"TOKEN": str(token), "FILE": str(tmp_path / "items")}.get(each, each) for each in CHANGES[name]
    ]
    args = [*name.split(), "--url", url, "--group", "g", "q", *after_name]
    if name == "exec":  # writes to the descriptor
        assert run(args, env={**os.environ, "REDIS_URL": lost.url}).returncode == 0
    else:
        lost.yes(*args)
    assert state_of(here) != before[0]
    assert state_of(elsewhere) == before[1]


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_is_of_the_group(
    name: str, lost: Calls, url: str, here: leaseq.WorkQueue, elsewhere: leaseq.WorkQueue
) -> None:
    fill(here)
    elsewhere.add_item(leaseq.Item(b"x", id="other"), delay=HOUR)
    done = lost(*name.split(), "--url", url, "-g", "g", "q", *VIEWS[name])
    assert done.code == 0, done
    assert "other" not in done.out
    assert ("dead" if name == "dead list" else "ready") in done.out
    if name == "stats":
        assert (done.document["group"], done.document["items"]) == ("g", 4)


def test_a_pause_ends_and_a_queue_is_deleted_in_the_group_alone(
    lost: Calls, url: str, here: leaseq.WorkQueue, elsewhere: leaseq.WorkQueue
) -> None:
    for queue in (here, elsewhere):
        queue.configure(max_items=5)
        queue.pause()
    lost.yes("resume", "--url", url, "--group", "g", "q")
    assert (here.stats().paused, elsewhere.stats().paused) == (False, True)
    lost.yes("delete", "--url", url, "--group", "g", "q")
    assert (here.stats().max_items, elsewhere.stats().max_items) == (0, 5)


class Shop:
    """Jobs of queue "mail" in group "shop", and the same in the default one."""

    def __init__(self, url: str, lost: Calls) -> None:
        self.url = url
        self._lost = lost
        self.here = App(url, group="shop", queue="mail")
        self.others = [App(url), App(url, group="shop"), App(url, queue="mail")]
        for app in (self.here, *self.others):
            app.job(name="fail", retries=0)(self._fail)
            app.every(HOUR, name="hourly")(lambda: None)

    @staticmethod
    def _fail(what: str) -> None:
        raise ValueError(what)

    def fill(self) -> None:
        for app in (self.here, *self.others):
            app.function("fail").with_options(id="dead").enqueue("no money")
            with JobAppFlavour(app, asynchronous=False) as flavour:
                flavour.burst()
                queue = app.queues[0]

                async def begin(app: App = app, queue: str = queue) -> None:
                    program = app.program
                    await Scheduler(
                        program.clients.aio.store, program.schedules, [queue], app.program.clients.settings
                    ).begin()

                flavour.run(begin())
            app.function("fail").with_options(id="ready").enqueue("no time")

    def __call__(self, *words: str) -> Done:
        """`leaseq jobs` with options that say where."""
        return self._lost.yes("jobs", *words, "--url", self.url, "--group", "shop", "--queue", "mail")

    def states(self, app: App) -> Any:
        """The things that a command can change."""
        jobs = [app.handle(job_id, queue=app.queues[0]).status() for job_id in ("dead", "ready")]
        (schedule,) = app.schedules.inspect()
        return jobs, schedule.paused, app.queue().stats().ready

    def close(self) -> None:
        for app in (self.here, *self.others):
            app.close()


@pytest.fixture
def shop(url: str, lost: Calls) -> Iterator[Shop]:
    made = Shop(url, lost)
    yield made
    made.close()


def test_jobs_are_those_of_the_queue_and_the_group(shop: Shop) -> None:
    shop.fill()
    others = [shop.states(app) for app in shop.others]
    assert shop.states(shop.here) == (["failed", "ready"], False, 1)
    assert [record["id"] for record in shop("list", "--json").records] == ["ready", "dead"]
    assert [record["queue"] for record in shop("status", "dead", "--json").records] == ["mail"]
    assert [record["queue"] for record in shop("cron", "list", "--json").records] == ["mail"]
    shop("cancel", "ready")
    assert shop.states(shop.here) == (["failed", "cancelled"], False, 0)
    shop("revive", "dead")
    assert shop.states(shop.here) == (["ready", "cancelled"], False, 1)
    shop("cron", "pause", "hourly")
    assert shop.states(shop.here)[1] is True
    shop("cron", "resume", "hourly")
    assert shop.states(shop.here)[1] is False
    (made,) = shop("cron", "trigger", "hourly", "--json").records
    assert made["queue"] == "mail"
    assert shop.here.queue().stats().ready == 2
    with JobAppFlavour(shop.here, asynchronous=False) as flavour:
        flavour.burst()
    assert shop("purge", "dead").out == "purged dead\n"
    assert [shop.states(app) for app in shop.others] == others
