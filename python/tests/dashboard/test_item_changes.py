"""Changes of an item act on the item that was shown, and say what they did or what happened meanwhile."""

from __future__ import annotations

import itertools
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
from support import servers
from support.dashboard_site import Browser, browser, everything

import leaseq
from leaseq import access_rules, dashboard
from leaseq.dashboard import group_changes, item_changes
from leaseq.jobs import App

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import redis
    from starlette.requests import Request


@pytest.fixture
def site(url: str) -> Iterator[Browser]:
    with browser(url, allow=everything, user=lambda _: "ada") as made:
        yield made


@pytest.fixture
def orders(url: str) -> Iterator[leaseq.WorkQueue]:
    with leaseq.WorkQueue("orders", url) as queue:
        yield queue


def die(queue: leaseq.WorkQueue, item_id: str, error: str = "ValueError: no books") -> None:
    queue.add_item(leaseq.Item(b"two books", id=item_id))
    item = queue.lease(60, block=False)
    assert item is not None
    queue.dead_letter(item, error=error)


def test_a_dead_item_is_revived(site: Browser, orders: leaseq.WorkQueue) -> None:
    die(orders, "a")
    assert site.change(action="revive", queue="orders", id="a") == "The item is ready again."
    assert orders.inspect("a").state == "ready"


def test_a_dead_item_is_purged(site: Browser, orders: leaseq.WorkQueue) -> None:
    die(orders, "a")
    assert "Until then, you can undo it." in site.get("/change", action="purge", queue="orders", id="a")
    assert site.change(action="purge", queue="orders", id="a").startswith("1 dead letter goes at ")
    assert orders.inspect("a").state == "dead"
    assert "planned already" in site.get("/change", action="purge", queue="orders", id="a")


def test_a_delayed_item_is_run_now(site: Browser, orders: leaseq.WorkQueue) -> None:
    orders.add_item(leaseq.Item(b"", id="a"), delay=600)
    assert "Run now</a>" in site.get("/item", queue="orders", id="a")
    fields = site.fields(action="promote", queue="orders", id="a")
    assert site.post(fields, action="promote", queue="orders", id="a") == "The item is ready now."
    assert orders.inspect("a").state == "ready"
    answer = site.post(fields, 409, action="promote", queue="orders", id="a")
    assert answer == "Nothing was done. The item was delayed when it was shown, and is ready now."


def test_an_item_is_removed(site: Browser, orders: leaseq.WorkQueue) -> None:
    orders.add_item(leaseq.Item(b"", id="a"))
    assert site.change(action="remove", queue="orders", id="a") == "The item was removed. It was ready."


def test_exactly_the_lease_that_was_shown_is_ended(site: Browser, orders: leaseq.WorkQueue) -> None:
    orders.add_item(leaseq.Item(b"", id="a"))
    orders.lease(60)
    fields = site.fields(action="release", queue="orders", id="a")
    assert "The lease was ended." in site.post(fields, action="release", queue="orders", id="a")
    again = orders.lease(60)
    assert again is not None
    answer = site.post(fields, 409, action="release", queue="orders", id="a")
    assert answer == "Nothing was done. The item was leased again since it was shown. This is attempt 2."
    assert orders.complete(again)


def test_another_item_of_the_same_id_is_left_alone(site: Browser, orders: leaseq.WorkQueue) -> None:
    die(orders, "a")
    fields = site.fields(action="purge", queue="orders", id="a")
    orders.purge("a")
    assert "The item is gone" in site.post(fields, 409, action="purge", queue="orders", id="a")
    die(orders, "a")
    assert "Another item has this id now" in site.post(fields, 409, action="purge", queue="orders", id="a")
    assert orders.inspect("a").state == "dead"


def test_an_item_in_another_state_is_left_alone(site: Browser, orders: leaseq.WorkQueue) -> None:
    die(orders, "a")
    fields = site.fields(action="revive", queue="orders", id="a")
    orders.revive("a")
    answer = site.post(fields, 409, action="revive", queue="orders", id="a")
    assert answer == "Nothing was done. The item was dead when it was shown, and is ready now."
    item = orders.lease(60, block=False)
    assert item is not None
    orders.dead_letter(item, error="again")
    answer = site.post(fields, 409, action="revive", queue="orders", id="a")
    assert answer.startswith("Nothing was done. The item")
    assert orders.inspect("a").state == "dead"


def between_look_and_change(
    monkeypatch: pytest.MonkeyPatch, name: str, act: Callable[[], object], nth: int = 2
) -> None:
    """Let something happen when the change has been decided: behind the nth comparison with what was shown."""
    module: Any = group_changes if name == "_death" else item_changes
    real, calls = getattr(module, name), itertools.count(1)

    def compare(*args: Any) -> Any:
        answer = real(*args)
        if next(calls) == nth:
            act()
        return answer

    monkeypatch.setattr(module, name, compare)


@pytest.mark.parametrize("action", ["revive", "promote", "remove"])
def test_an_item_that_is_replaced_at_the_last_moment_is_left_alone(
    site: Browser, orders: leaseq.WorkQueue, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    """The change is void, and the page reports what the next look finds."""

    def add() -> None:
        if action == "revive":
            die(orders, "a")
        else:
            orders.add_item(leaseq.Item(b"", id="a"), delay=600 if action == "promote" else 0)

    def replace() -> None:
        orders.remove("a")
        add()

    add()
    fields = site.fields(action=action, queue="orders", id="a")
    between_look_and_change(monkeypatch, "meanwhile_of", replace)
    answer = site.post(fields, 409, action=action, queue="orders", id="a")
    assert answer.startswith("Nothing was done. Another item has this id now.")
    assert orders.inspect("a").state == {"revive": "dead", "promote": "delayed", "remove": "ready"}[action]


def test_a_job_that_is_replaced_at_the_last_moment_is_not_cancelled(
    site: Browser, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with App(url) as app:
        job = app.function("shop.pack").with_options(id="a")
        job.enqueue(1)

        def replace() -> None:
            app.queue().remove("a")
            job.enqueue(2)

        where: Any = {"action": "remove", "queue": "default", "group": "jobs", "id": "a"}
        fields = site.fields(**where)
        between_look_and_change(monkeypatch, "meanwhile_of", replace)
        assert site.post(fields, 409, **where).startswith("Nothing was done.")
        handle = app.handle("a")
        assert handle.status() == "ready"
        assert handle.info().args == (2,)


def test_dead_letters_of_a_group_that_are_replaced_at_the_last_moment_are_left_alone(
    site: Browser, orders: leaseq.WorkQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    for item_id in "ab":
        die(orders, item_id)
    where: Any = {"action": "revive", "queue": "orders", "error": "ValueError: no books"}
    fields = site.fields(**where)

    def replace() -> None:
        orders.remove("a")
        die(orders, "a")

    between_look_and_change(monkeypatch, "_death", replace, nth=4)  # two that were shown, two that are seen
    assert site.post(fields, **where) == "1 item made ready again."
    assert [orders.inspect(item_id).state for item_id in "ab"] == ["dead", "ready"]


def test_an_operator_has_the_rights_of_each_change(
    orders: leaseq.WorkQueue, redis_client: redis.Redis, url: str
) -> None:
    admin: Any = redis_client
    admin.execute_command("ACL", "SETUSER", "shop", *access_rules.rules("operator", "secret"))
    try:
        with browser(url.replace("redis://", "redis://shop:secret@"), allow=everything) as site:
            die(orders, "a")
            assert site.change(action="revive", queue="orders", id="a") == "The item is ready again."
            assert (
                site.change(action="remove", queue="orders", id="a") == "The item was removed. It was ready."
            )
            orders.add_item(leaseq.Item(b"", id="a"), delay=600)
            assert site.change(action="promote", queue="orders", id="a") == "The item is ready now."
    finally:
        admin.execute_command("ACL", "DELUSER", "shop")


def test_a_change_on_a_queue_that_never_stands_still(
    site: Browser, orders: leaseq.WorkQueue, url: str
) -> None:
    """Other items die and come back all the time: the change is made between two of those."""
    die(orders, "a")
    over = threading.Event()

    def disturb() -> None:
        with leaseq.WorkQueue("orders", url) as queue:
            die(queue, "b")
            while not over.is_set():
                queue.revive("b")
                item = queue.lease(60, block=False)
                assert item is not None
                queue.dead_letter(item)

    disturbing = threading.Thread(target=disturb)
    disturbing.start()
    try:
        servers.wait_until(lambda: orders.stats().died > 20)
        assert site.change(action="revive", queue="orders", id="a") == "The item is ready again."
    finally:
        over.set()
        disturbing.join()


def test_a_form_without_what_was_shown_does_nothing(site: Browser, orders: leaseq.WorkQueue) -> None:
    die(orders, "a")
    site.post({}, 409, action="purge", queue="orders", id="a")
    assert orders.inspect("a").state == "dead"


def test_a_job_that_is_removed_is_cancelled(site: Browser, url: str) -> None:
    with App(url) as app:
        handle = app.enqueue("shop.pack", 1)
        answer = site.change(action="remove", queue="default", group="jobs", id=handle.id)
        assert (answer, handle.status()) == ("The job was cancelled.", "cancelled")


def test_what_cannot_be_done_now_has_no_button(site: Browser, orders: leaseq.WorkQueue) -> None:
    orders.add_item(leaseq.Item(b"", id="a"))
    page = site.get("/change", action="revive", queue="orders", id="a")
    assert "This cannot be done now. The item is ready." in page
    assert "<button class" not in page


def test_changes_are_written_to_the_audit_log_with_their_user(
    site: Browser, orders: leaseq.WorkQueue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "audit.log"
    monkeypatch.setenv("LEASEQ_AUDIT_LOG", str(log))
    die(orders, "a")
    site.change(action="revive", queue="orders", id="a")
    started, ended = (json.loads(line) for line in log.read_text().splitlines())
    expected = {"user": "ada", "command": "dashboard revive", "queue": "orders", "group": "orders"}
    assert started.items() >= {**expected, "event": "started"}.items()
    assert ended.items() >= {**expected, "event": "ended", "changed": 1, "error": None}.items()
    assert ended["options"] == {"id": "a"}


def test_nothing_is_changed_if_the_audit_log_cannot_be_written(
    site: Browser, orders: leaseq.WorkQueue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    die(orders, "a")
    fields = site.fields(action="purge", queue="orders", id="a")
    monkeypatch.setenv("LEASEQ_AUDIT_LOG", str(tmp_path / "no folder" / "audit.log"))
    answer = site.post(fields, 500, action="purge", queue="orders", id="a")
    assert "audit log" in answer
    assert orders.inspect("a").state == "dead"


@pytest.mark.parametrize("action", ["revive", "purge", "remove", "release"])
def test_without_permission_nothing_is_shown_or_done(url: str, orders: leaseq.WorkQueue, action: str) -> None:
    die(orders, "a")
    with browser(url) as reader:
        assert "/change?" not in reader.get("/item", queue="orders", id="a")
        reader.get("/change", 403, action=action, queue="orders", id="a")
        reader.post({"shown_state": "dead"}, 403, action=action, queue="orders", id="a")
    assert orders.inspect("a").state == "dead"


class AskedLater:
    """Returns an awaitable, and is no `async def`."""

    async def __call__(self, _: Request, action: dashboard.Action) -> bool:
        return action == "read"

    def ask(self, request: Request, action: dashboard.Action) -> Any:
        return self(request, action)


@pytest.mark.parametrize("allow", [AskedLater(), AskedLater().ask])
def test_an_answer_of_the_application_is_awaited(url: str, orders: leaseq.WorkQueue, allow: Any) -> None:
    die(orders, "a")
    with browser(url, allow=allow) as site:
        assert "/change?" not in site.get("/item", queue="orders", id="a")
        site.get("/change", 403, action="revive", queue="orders", id="a")


def test_a_role_may_do_what_the_application_says(url: str, orders: leaseq.WorkQueue) -> None:
    async def allow(request: Request, action: dashboard.Action) -> bool:
        return action in {"read", "revive"} or request.headers.get("x-role") == "admin"

    die(orders, "a")
    with browser(url, allow=allow) as site:
        page = site.get("/item", queue="orders", id="a")
        assert "action=revive" in page
        assert "action=purge" not in page
        site.client.headers["x-role"] = "admin"
        assert "action=purge" in site.get("/item", queue="orders", id="a")
