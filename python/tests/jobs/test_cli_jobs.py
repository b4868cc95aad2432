"""`leaseq jobs`: what became of jobs, dead ones, schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.job_app import JobAppFlavour

from leaseq.jobs import App
from leaseq.jobs.worker.scheduler import Scheduler

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.cli_runner import Calls


@pytest.fixture
def flavour(url: str) -> Iterator[JobAppFlavour]:
    with JobAppFlavour(App(url), asynchronous=False) as made:

        @made.app.job(name="add")
        def add(one: int, two: int) -> int:
            return one + two

        @made.app.job(name="fail", retries=0)
        def fail(what: str) -> None:
            raise ValueError(what)

        yield made


def test_jobs_are_listed_by_their_states(flavour: JobAppFlavour, call: Calls) -> None:
    call.refused(1, "no job is ready", "jobs", "list", "ready")
    assert call("jobs", "list", "ready", "--json").code == 1
    flavour.app.function("add").with_options(id="a").enqueue(1, 2)
    listed = call.yes("jobs", "list", "ready")
    assert listed.lines[0].split() == ["id", "status", "attempt", "call", "last", "error"]
    assert listed.lines[1].split() == ["a", "ready", "0", "add(1,", "2)"]
    flavour.app.function("fail").with_options(id="b").enqueue("no money")
    flavour.burst()
    assert "ValueError: no money" in call.yes("jobs", "list", "failed").lines[1]
    (record,) = call.yes("jobs", "list", "succeeded", "--json").records
    assert (record["id"], record["status"], record["args"], record["function"]) == (
        "a",
        "succeeded",
        [1, 2],
        "add",
    )
    call.refused(1, "no job is ready", "jobs", "list", "ready", "--queue", "other")
    assert call("jobs", "list", "gone").code == 2


def test_a_job_is_watched(flavour: JobAppFlavour, call: Calls) -> None:
    call.refused(
        1, "has not ended: it is ready", "jobs", "watch", _enqueued(flavour, "add", 1, 2), "--timeout", "10ms"
    )
    flavour.burst()
    failed = _enqueued(flavour, "fail", "no money")
    with flavour.working():
        watched = call("jobs", "watch", failed)
    assert watched.code == 1
    assert watched.lines[-1] == f"{failed} failed ValueError: no money"
    (record,) = call.yes("jobs", "watch", "a", "--json").records
    assert (record["status"], record["result"]) == ("succeeded", 3)
    assert call("jobs", "watch", "none").lines == ["none unknown"]


def _enqueued(flavour: JobAppFlavour, function: str, *args: object) -> str:
    return str(flavour.app.function(function).with_options(id=function[0]).enqueue(*args).id)


def test_jobs_are_listed_without_a_state(flavour: JobAppFlavour, call: Calls) -> None:
    call.refused(1, "there is no job", "jobs", "list")
    call.refused(2, "--offset is for one state", "jobs", "list", "--offset", "1")
    flavour.app.function("add").with_options(id="a").enqueue(1, 2)
    flavour.app.function("fail").with_options(id="b").enqueue("no money")
    flavour.burst()
    flavour.app.function("add").with_options(id="c").enqueue(1, 2)
    flavour.app.function("add").with_options(id="d", delay=60).enqueue(1, 2)
    listed = [line.split()[:2] for line in call.yes("jobs", "list").lines[1:]]
    assert listed == [["c", "ready"], ["d", "delayed"], ["b", "failed"], ["a", "succeeded"]]


def test_a_page_of_those_that_succeeded_is_full_behind_failures(flavour: JobAppFlavour, call: Calls) -> None:
    for number in range(3):
        flavour.app.function("fail").with_options(keep=100).enqueue(f"no {number}")
        flavour.app.function("add").with_options(id=f"j{number}", keep=1000 + number).enqueue(1, 2)
    flavour.burst()
    listed = call.yes("jobs", "list", "succeeded", "--limit", "2").lines[1:]
    assert [line.split()[0] for line in listed] == ["j0", "j1"]
    listed = call.yes("jobs", "list", "succeeded", "--limit", "2", "--offset", "2").lines[1:]
    assert [line.split()[0] for line in listed] == ["j2"]


def test_what_became_of_jobs(flavour: JobAppFlavour, call: Calls) -> None:
    flavour.app.function("fail").with_options(id="b").enqueue("no money")
    flavour.burst()
    (record,) = call.yes("jobs", "status", "b", "--json").records
    assert record["status"] == "failed"
    assert "raise ValueError(what)" in record["traceback"]
    done = call("jobs", "status", "b", "c")
    assert done.code == 1
    assert [line.split()[:2] for line in done.lines[1:3]] == [["b", "failed"], ["c", "unknown"]]
    assert done.lines[3:6] == ["", "b:", "Traceback (most recent call last):"]
    assert done.lines[-1] == "ValueError: no money"
    assert done.out.count("raise ValueError(what)") == 1


def test_jobs_are_cancelled(flavour: JobAppFlavour, call: Calls) -> None:
    flavour.app.function("add").with_options(id="a").enqueue(1, 2)
    assert call.yes("jobs", "cancel", "a").out == "cancelled a\n"
    done = call("jobs", "cancel", "a", "--json")
    assert (done.code, done.records) == (1, [{"id": "a", "cancelled": False}])
    assert flavour.app.handle("a", queue="default").status() == "cancelled"


def test_delayed_jobs_are_promoted(flavour: JobAppFlavour, call: Calls) -> None:
    flavour.app.function("add").with_options(id="later", delay=3600).enqueue(2, 3)
    done = call("jobs", "promote", "later", "other")
    assert (done.code, done.lines) == (1, ["promoted later", "not delayed: other"])
    assert flavour.burst() == 1


def test_dead_jobs_are_revived_and_purged(flavour: JobAppFlavour, call: Calls) -> None:
    for number in range(4):
        flavour.app.function("fail").with_options(id=f"j{number}").enqueue(f"no {number}")
    flavour.burst()
    done = call("jobs", "revive", "j0", "other")
    assert (done.code, done.lines) == (1, ["revived j0", "not dead: other"])
    assert call.yes("jobs", "revive", "--matching", "no 1").out == "1 revived\n"
    assert flavour.burst() == 2
    assert call.yes("jobs", "purge", "j2", "--json").records == [{"id": "j2", "purged": True}]
    assert call.yes("jobs", "purge", "--all", "--yes").out == "3 purged\n"
    call.refused(1, "nothing was revived", "jobs", "revive", "--all")
    assert call("jobs", "revive").code == 2
    assert call("jobs", "purge", "a", "--all").code == 2


def test_schedules_are_listed_paused_resumed_and_triggered(flavour: JobAppFlavour, call: Calls) -> None:
    flavour.app.every(3600, name="hourly")(flavour.app.job(name="tick")(lambda: None))
    call.refused(1, "no worker has entered a schedule", "jobs", "cron", "list")

    async def begin() -> None:
        await Scheduler(
            flavour.app.program.clients.aio.store,
            flavour.app.program.schedules,
            ["default"],
            flavour.app.program.clients.settings,
        ).begin()

    flavour.run(begin())
    listed = call.yes("jobs", "cron", "list")
    assert listed.lines[0].split() == ["schedule", "rule", "missed", "last", "next", "function"]
    assert listed.lines[1].split() == ["hourly", "every", "3600", "s", "last", "never", "never", "tick"]
    assert call.yes("jobs", "cron", "pause", "hourly").out == "paused hourly\n"
    assert "PAUSED" in call.yes("jobs", "cron", "list").lines[1]
    assert call.yes("jobs", "cron", "list", "--json").records[0]["paused"] is True
    assert call.yes("jobs", "cron", "resume", "hourly").out == "resumed hourly\n"
    assert "PAUSED" not in call.yes("jobs", "cron", "list").out
    for verb, paused in (("pause", True), ("resume", False)):
        printed = call.yes("jobs", "cron", verb, "hourly", "--json").records
        assert printed == [{"name": "hourly", "paused": paused}]
    (made,) = call.yes("jobs", "cron", "trigger", "hourly", "--json").records
    assert call.yes("jobs", "cron", "trigger", "hourly").out.startswith("enqueued ")
    assert flavour.app.handle(made["id"], queue="default").info().function == "tick"
    assert flavour.app.queue().stats().ready == 2
    flavour.burst()
    assert call.yes("jobs", "status", made["id"]).lines[1].split()[:2] == [made["id"], "succeeded"]
    call.refused(
        2, "there is no schedule 'daily' in this queue: it has hourly", "jobs", "cron", "pause", "daily"
    )
