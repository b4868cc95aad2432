"""A purge is planned: for ten minutes it can be undone, then a running dashboard carries it out."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from support.dashboard_site import Browser, browser, everything
from support.servers import wait_until

import leaseq
from leaseq.dashboard import purge_plans
from leaseq.dashboard.purge_plans import QUEUE, UNDO_SECS, PurgePlan, PurgePlans
from leaseq.dashboard.source import Source
from leaseq.dashboard.undo_change import UndoChange
from leaseq.errors import FormatError
from leaseq.keys import RegisteredQueue

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ERROR = "ValueError: no books"


@pytest.fixture
def site(url: str) -> Iterator[Browser]:
    with browser(url, allow=everything, user=lambda _: "ada") as made:
        yield made


@pytest.fixture
def orders(url: str) -> Iterator[leaseq.WorkQueue]:
    with leaseq.WorkQueue("orders", url) as queue:
        yield queue


@pytest.fixture
def plans(url: str) -> Iterator[PurgePlans]:
    source = Source(url)
    yield PurgePlans(source)
    source.close()


@pytest.fixture
def planned(url: str) -> Iterator[leaseq.WorkQueue]:
    """The queue of the plans."""
    with leaseq.WorkQueue(QUEUE.name, url) as queue:
        yield queue


def die(queue: leaseq.WorkQueue, *ids: str, error: str = ERROR) -> None:
    queue.add_items(leaseq.Item(b"", id=each) for each in ids)
    queue.dead_letter_items(queue.lease_items(len(ids), 60), error=error)


def let_due(planned: leaseq.WorkQueue) -> None:
    """Let ten minutes pass for the plans."""
    page = planned.list_items("delayed")
    assert all(planned.promote_items([each.id for each in page.items]))


def test_a_plan_waits_ten_minutes_and_hides_its_dead_letters(
    site: Browser, orders: leaseq.WorkQueue, planned: leaseq.WorkQueue
) -> None:
    die(orders, "a", "b")
    die(orders, "c", error="KeyError: x")
    answer = site.change(action="purge", queue="orders", error=ERROR)
    assert answer.startswith("2 dead letters go at ")
    (entry,) = planned.list_items("delayed").items
    assert UNDO_SECS - 30 < entry.time - planned.stats().now <= UNDO_SECS
    page = site.get("/dead", queue="orders")
    assert "2 dead letters with the error <bdi>ValueError: no books</bdi> go at" in page
    assert "planned by <bdi>ada</bdi>" in page
    assert "2 of them are not listed" in page
    assert "If no dashboard runs then" in page
    assert "action=purge" in page  # that of the other group
    assert "ValueError" not in page.split("<table>", 1)[1]
    assert "No dead letter has this error now" in site.get(
        "/change", action="purge", queue="orders", error=ERROR
    )
    assert orders.stats().dead == 3


def test_a_plan_is_undone_from_every_page_that_shows_it(site: Browser, orders: leaseq.WorkQueue) -> None:
    die(orders, "a")
    site.change(action="purge", queue="orders", id="a")
    (plan,) = site_plans(site)
    pages = [site.get("/"), site.get("/queue", queue="orders"), site.get("/dead", queue="orders")]
    pages.append(site.get("/item", queue="orders", id="a"))
    for page in pages:
        assert f"action=undo&amp;queue=orders&amp;group=orders&amp;plan={plan}" in page
    assert "action=purge" not in pages[-1]
    undo: dict[str, Any] = {"action": "undo", "queue": "orders", "plan": plan}
    assert "The dead letters stay" in site.get("/change", **undo)
    fields = site.fields(**undo)
    assert site.post(fields, **undo) == "Undone. The dead letter stays."
    assert "undone, or carried out" in site.post(fields, 409, **undo)
    assert "action=purge" in site.get("/item", queue="orders", id="a")


def site_plans(site: Browser) -> list[str]:
    return sorted(set(re.findall(r"plan=([0-9a-f-]+)", site.get("/"))))


@pytest.mark.slow
def test_a_dashboard_that_starts_later_carries_out_what_is_due(
    url: str, orders: leaseq.WorkQueue, planned: leaseq.WorkQueue
) -> None:
    die(orders, "a", "b", "c")
    with browser(url, allow=everything) as first:
        first.change(action="purge", queue="orders", error=ERROR)
    let_due(planned)
    orders.revive("b")
    with browser(url) as reader:  # it changes nothing
        reader.get("/")
    with browser(url, allow=everything):  # started, and not visited
        wait_until(lambda: planned.stats().items == 0)
    assert [orders.inspect(each).state for each in "abc"] == ["absent", "ready", "absent"]


@pytest.mark.slow
def test_a_dashboard_that_only_reads_carries_out_nothing(
    url: str, orders: leaseq.WorkQueue, planned: leaseq.WorkQueue, plans: PurgePlans
) -> None:
    die(orders, "a")
    plans.add(RegisteredQueue("orders", "orders"), [orders.inspect("a")], "ada")
    let_due(planned)
    with browser(url) as reader:
        before = orders.stats().now
        wait_until(lambda: reader.get("/") and orders.stats().now - before > 5)  # two reads of its reader
    assert (orders.inspect("a").state, planned.stats().ready) == ("dead", 1)


def test_only_the_same_dead_letters_go(
    orders: leaseq.WorkQueue, planned: leaseq.WorkQueue, plans: PurgePlans
) -> None:
    die(orders, "same", "revived", "died again", "another")
    items = orders.inspect_items(["same", "revived", "died again", "another"])
    plans.add(RegisteredQueue("orders", "orders"), items, "ada")
    orders.revive("died again")
    orders.dead_letter_items(orders.lease_items(1, 60), error=ERROR)
    orders.purge("another")
    die(orders, "another")
    orders.revive("revived")
    plans.carry_out()
    assert orders.stats().dead == 3  # it is not due yet
    let_due(planned)
    plans.carry_out()
    states = [orders.inspect(item.id).state for item in items]
    assert states == ["absent", "ready", "dead", "dead"]
    assert planned.stats().items == 0


def test_a_purge_that_was_interrupted_goes_on(
    orders: leaseq.WorkQueue, planned: leaseq.WorkQueue, plans: PurgePlans
) -> None:
    die(orders, "a", "b")
    plans.add(RegisteredQueue("orders", "orders"), orders.inspect_items(["a", "b"]), "ada")
    let_due(planned)
    assert planned.lease(0.001, block=False)  # by a dashboard that was killed
    orders.purge("a")
    wait_until(lambda: planned.stats().overdue)
    plans.carry_out()
    assert (orders.stats().dead, planned.stats().items) == (0, 0)


def test_a_plan_that_cannot_be_read_becomes_a_dead_letter(
    planned: leaseq.WorkQueue, plans: PurgePlans
) -> None:
    wrong = [b"{", b"[]", b'{"v": 9}', b'{"v": 1, "items": [1]}', b"\xff"]
    planned.add_items(leaseq.Item(data) for data in wrong)
    assert plans.pending() == []
    plans.carry_out()
    assert planned.stats().dead == len(wrong)
    for data in wrong:
        with pytest.raises(FormatError):
            PurgePlan.read("p", data)


def test_many_long_ids_are_several_plans(
    orders: leaseq.WorkQueue, planned: leaseq.WorkQueue, plans: PurgePlans, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purge_plans, "MAX_PLAN_BYTES", 1000)
    ids = ["\x01" * 200 + str(number) for number in range(3)] + ["e", "ü"]
    die(orders, *ids)
    made = plans.add(RegisteredQueue("orders", "orders"), orders.inspect_items(ids), "ada", "x")
    assert [len(plan.items) for plan in made] == [1, 1, 1, 2]
    assert sorted(plan.id for plan in plans.pending()) == sorted(plan.id for plan in made)
    let_due(planned)
    plans.carry_out()
    assert orders.stats().dead == 0


def test_the_queue_of_the_plans_is_neither_listed_nor_changed(
    site: Browser, orders: leaseq.WorkQueue
) -> None:
    die(orders, "a")
    site.change(action="purge", queue="orders", id="a")
    (plan,) = site_plans(site)
    assert "leaseq-dashboard</a>" not in site.get("/")
    for action in ("remove", "promote", "edit", "pause", "configure"):
        site.get("/change", 400, action=action, queue=QUEUE.name, id=plan)
    undo: dict[str, Any] = {"action": "undo", "queue": "other", "plan": plan}
    assert "This cannot be done now" in site.get("/change", **undo)


def test_a_user_who_may_not_purge_may_not_undo(url: str, site: Browser, orders: leaseq.WorkQueue) -> None:
    die(orders, "a")
    site.change(action="purge", queue="orders", id="a")
    (plan,) = site_plans(site)
    with browser(url, allow=lambda _, action: action in {"read", "revive"}) as other:
        assert "action=undo" not in other.get("/dead", queue="orders")
        other.get("/change", 403, action="undo", queue="orders", plan=plan)


def test_the_audit_log_has_the_plan_and_its_end_with_its_user(
    site: Browser,
    orders: leaseq.WorkQueue,
    planned: leaseq.WorkQueue,
    plans: PurgePlans,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = tmp_path / "audit.log"
    monkeypatch.setenv("LEASEQ_AUDIT_LOG", str(file))
    die(orders, "a", "b")
    site.change(action="purge", queue="orders", error=ERROR)
    (plan,) = site_plans(site)
    let_due(planned)
    plans.carry_out()  # or the dashboard does
    wait_until(lambda: planned.stats().items == 0 and "purge_due" in file.read_text().splitlines()[-1])
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    ended = [each for each in lines if each["event"] == "ended"]
    assert [(each["user"], each["command"], each["changed"]) for each in ended[:2]] == [
        ("ada", "dashboard purge", 2),
        ("ada", "dashboard purge_due", 2),
    ]
    assert ended[1]["options"] == {"plan": plan}


def test_without_an_audit_log_that_can_be_written_a_purge_waits(
    orders: leaseq.WorkQueue,
    planned: leaseq.WorkQueue,
    plans: PurgePlans,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    die(orders, "a")
    plans.add(RegisteredQueue("orders", "orders"), [orders.inspect("a")], "ada")
    let_due(planned)
    monkeypatch.setenv("LEASEQ_AUDIT_LOG", str(tmp_path / "none" / "audit.log"))
    plans.carry_out()
    assert (orders.inspect("a").state, planned.stats().leased) == ("dead", 1)


def test_a_plan_that_is_under_way_is_not_undone_silently(
    orders: leaseq.WorkQueue, planned: leaseq.WorkQueue, plans: PurgePlans
) -> None:
    die(orders, "a")
    shop = RegisteredQueue("orders", "orders")
    (plan,) = plans.add(shop, [orders.inspect("a")], "ada")
    let_due(planned)
    assert planned.lease(60, block=False)
    report = UndoChange(plans, shop, plan.id).perform({})
    assert report.text == "The purge had started. Some of its dead letters may be gone."
