"""Changes of groups of dead letters, queues and schedules."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from support.dashboard_site import Browser, browser, everything
from support.job_app import JobAppFlavour, until

import leaseq
from leaseq.jobs import App

if TYPE_CHECKING:
    from collections.abc import Iterator

ERROR = "ValueError: no books"


@pytest.fixture
def site(url: str) -> Iterator[Browser]:
    with browser(url, allow=everything) as made:
        yield made


@pytest.fixture
def queue(url: str) -> Iterator[leaseq.WorkQueue]:
    with leaseq.WorkQueue("q", url) as opened:
        yield opened


def die(queue: leaseq.WorkQueue, *ids: str, error: str = ERROR) -> None:
    queue.add_items(leaseq.Item(b"", id=item_id) for item_id in ids)
    queue.dead_letter_items(queue.lease_items(len(ids), 60), error=f"{error}\nmore of {ids}")


def test_a_group_is_revived(site: Browser, queue: leaseq.WorkQueue) -> None:
    die(queue, *(f"a{number}" for number in range(250)))
    die(queue, "b", error="KeyError: x")
    answer = site.change(action="revive", queue="q", error=ERROR)
    assert answer == "250 items made ready again."
    assert (queue.stats().dead, queue.inspect("b").state) == (1, "dead")


def test_items_that_died_after_a_group_was_shown_stay(site: Browser, queue: leaseq.WorkQueue) -> None:
    die(queue, "a", "b")
    fields = site.fields(action="purge", queue="q", error=ERROR)
    queue.revive("b")
    queue.dead_letter_items(queue.lease_items(1, 60), error=ERROR)
    die(queue, "c")
    answer = site.post(fields, action="purge", queue="q", error=ERROR)
    assert answer.startswith("1 dead letter goes at ")
    assert answer.endswith(" 2 items died later and stay.")
    assert "2 dead letters" not in site.get("/queue", queue="q")


def test_a_form_without_its_moment_changes_no_group(site: Browser, queue: leaseq.WorkQueue) -> None:
    die(queue, "a")
    for fields in ({}, {"shown_until": "nan"}, {"shown_until": "x"}):
        site.post(fields, 409, action="purge", queue="q", error=ERROR)
    assert queue.stats().dead == 1


def test_a_queue_is_paused_and_resumed(site: Browser, queue: leaseq.WorkQueue) -> None:
    fields = site.fields(action="pause", queue="q")
    assert site.post(fields, action="pause", queue="q") == "The queue is paused."
    assert queue.stats().paused
    assert "paused already" in site.post(fields, 409, action="pause", queue="q")
    assert site.change(action="resume", queue="q") == "The queue goes on."
    assert not queue.stats().paused


def test_limits_are_set(site: Browser, queue: leaseq.WorkQueue) -> None:
    fields = site.fields(action="configure", queue="q")
    given = {**fields, "max_items": "5", "max_attempts": "0", "max_data": "1048576"}
    answer = site.post(given, action="configure", queue="q")
    assert answer == "Changed max_items from 0 to 5."
    assert queue.stats().max_items == 5
    assert "were changed since" in site.post({**given, "max_items": "7"}, 409, action="configure", queue="q")
    assert queue.stats().max_items == 5


@pytest.mark.parametrize("wrong", ["-1", "1.5", "x", "٣"])
def test_a_limit_is_a_whole_number(site: Browser, queue: leaseq.WorkQueue, wrong: str) -> None:
    fields = site.fields(action="configure", queue="q")
    answer = site.post({**fields, "max_items": wrong}, 409, action="configure", queue="q")
    assert answer == "Nothing was done. max_items must be a whole number, 0 or more."
    assert queue.stats().max_items == 0


def test_a_limit_that_the_server_refuses_is_reported(site: Browser, queue: leaseq.WorkQueue) -> None:
    fields = site.fields(action="configure", queue="q")
    site.post({**fields, "max_items": "9" * 12}, 400, action="configure", queue="q")
    assert queue.stats().max_items == 0


def test_a_schedule_is_paused_resumed_and_triggered(site: Browser, url: str) -> None:
    with App(url) as app:

        @app.every(timedelta(days=30), name="nightly")
        def tidy() -> None: ...

        with JobAppFlavour(app, asynchronous=True) as flavour, flavour.working():
            until(app.schedules.inspect)  # a worker writes it
        named = {"queue": "default", "group": "jobs", "schedule": "nightly"}
        assert "nightly" in site.get("/schedules")
        assert site.change(action="pause_schedule", **named) == "The schedule is paused."
        assert app.schedules.inspect()[0].paused
        assert "paused already" in site.get("/change", action="pause_schedule", **named)
        assert site.change(action="resume_schedule", **named) == "The schedule goes on with its next slot."
        assert site.change(action="trigger", **named).startswith("Enqueued the job ")
        assert app.queue().stats().ready == 1
        assert "no such schedule" in site.get("/change", action="trigger", queue="default", schedule="x")


def test_a_change_without_a_name_is_refused(site: Browser) -> None:
    for query in ({"action": "drain"}, {"action": "read"}, {"action": "revive"}, {"action": "trigger"}):
        site.get("/change", 400, queue="q", **query)
    site.get("/change", 400, action="pause")
