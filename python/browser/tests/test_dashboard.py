"""The dashboard in a browser: every page and change, live numbers, an outage, a phone, a keyboard, a screen reader's rules."""

from __future__ import annotations

import re
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect
from starlette.applications import Starlette
from starlette.routing import Mount
from support.burst_work import work_off
from support.dashboard_site import everything
from support.served_site import served

import leaseq
from leaseq import dashboard
from leaseq.jobs import App
from leaseq.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Page
    from support.servers import SpawnedServer

PREFIX = "/deep/queues"
ERROR = "ValueError: no books"
HOSTILE = "<img src=x onerror=window.hacked=1>\u202egnp.exe\x1b[2J\x07"
PAGES = (
    "/",
    "/?show=dead&sort=dead",
    "/queue?queue=orders",
    "/queue?queue=orders&state=dead",
    "/queue?queue=empty",
    "/item?queue=orders&id=o-2",
    "/item?queue=orders&id=gone",
    "/item?queue=default&group=jobs&id=job-1",
    "/dead?queue=orders",
    f"/dead?queue=orders&error={ERROR}",
    "/workers",
    "/schedules",
    "/doctor",
    "/cleaner",
    "/search?id=o-2",
    "/search?for=function&id=shop",
    "/search?for=text&id=books",
    "/change?action=pause&queue=orders",
    "/change?action=configure&queue=orders",
    "/change?action=purge&queue=orders&id=o-0",
    "/change?action=edit&queue=orders&id=o-0",
    f"/change?action=revive&queue=orders&error={ERROR}",
    "/nothing",
)


@pytest.fixture
def orders(url: str) -> Iterator[leaseq.WorkQueue]:
    """A queue with two dead letters, a leased item and ready ones; and a job."""
    with leaseq.WorkQueue("orders", url) as queue, App(url) as app:
        queue.add_items(leaseq.Item(b'{"books": 2}', id=f"o-{number}") for number in range(60))
        items = queue.lease_items(3, 600)
        queue.dead_letter_items(items[:2], error=ERROR)
        app.function("shop.pack").with_options(id="job-1").enqueue("a book")
        yield queue


@pytest.fixture
def site(url: str, orders: leaseq.WorkQueue) -> Iterator[str]:
    """The dashboard, mounted below a path, with all actions."""
    mounted = dashboard.asgi(url, allow=everything, user=lambda _: "ada")
    with served(Starlette(routes=[Mount(PREFIX, mounted)])) as address:
        yield address + PREFIX
    mounted.close()


@pytest.mark.parametrize("look", ["light", "dark", "phone"])
def test_every_page_fits_and_follows_the_rules_for_screen_readers(
    site: str, chromium: Browser, axe: str, look: Any
) -> None:
    size = {"width": 390, "height": 800} if look == "phone" else {"width": 1280, "height": 800}
    context = chromium.new_context(
        viewport={"width": size["width"], "height": size["height"]},
        color_scheme="dark" if look == "dark" else "light",
        bypass_csp=True,  # axe is put into the page
    )
    page = context.new_page()
    for path in PAGES:
        page.goto(site + path)
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, path
        page.evaluate(axe)
        found = page.evaluate(
            "axe.run().then(result => result.violations.map(each => each.id + ': ' + each.nodes[0].html))"
        )
        assert found == [], path
    context.close()


def test_every_link_of_every_page_leads_somewhere(site: str, page: Page) -> None:
    links = set()
    for path in PAGES:
        page.goto(site + path)
        links |= set(page.eval_on_selector_all("a[href]", "all => all.map(each => each.href.split('#')[0])"))
    assert all(link.startswith(f"{site}/") for link in links)
    statuses = {link: page.request.get(link).status for link in links}
    missing = {link.removeprefix(site) for link, status in statuses.items() if status != 200}
    assert missing <= {"/nothing", "/item?queue=orders&id=gone"}


def test_numbers_change_while_you_watch_and_rest_in_the_background(
    site: str, page: Page, orders: leaseq.WorkQueue
) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{site}/queue?queue=orders")
    ready = page.locator(".cards li", has_text="ready").locator("b")
    expect(ready).to_have_text("57")
    orders.add_item(leaseq.Item(b""))
    expect(ready).to_have_text("58")
    page.evaluate("Object.defineProperty(document, 'hidden', {get: () => true})")
    page.wait_for_timeout(500)  # what is under way ends
    asked.clear()
    page.wait_for_timeout(4500)  # two refreshes of a page that is seen
    assert asked == []


def test_a_server_that_goes_away_and_returns(own_server: Callable[..., SpawnedServer], page: Page) -> None:
    server = own_server("--appendonly", "yes")
    with leaseq.WorkQueue("orders", server.url) as queue:
        queue.add_item(leaseq.Item(b"", id="a"))
    app = dashboard.asgi(server.url)
    with served(app) as address:
        page.goto(f"{address}/queue?queue=orders")
        expect(page.locator("#away")).to_be_hidden()
        server.kill()
        expect(page.locator("#away")).to_be_visible(timeout=15_000)
        expect(page.locator("#live")).to_contain_text("ready")
        server.start()
        expect(page.locator("#away")).to_be_hidden(timeout=15_000)
        page.goto(f"{address}/")
        expect(page.locator("#live")).to_contain_text("orders")


def test_find_a_failed_order_and_run_it_again(site: str, page: Page, orders: leaseq.WorkQueue) -> None:
    page.goto(f"{site}/")
    page.get_by_role("textbox", name="Id of an item or job").fill("o-1")
    page.get_by_role("button", name="Find").first.click()
    page.get_by_role("link", name="o-1").click()
    expect(page.locator("#live")).to_contain_text(ERROR)
    page.get_by_role("link", name="Revive").click()
    page.get_by_role("button", name="Revive").click()
    expect(page.get_by_role("status")).to_have_text("The item is ready again.")
    page.get_by_role("link", name="To the item").click()
    expect(page.locator("#live")).to_contain_text("ready")
    assert orders.inspect("o-1").state == "ready"


def test_stop_a_queue_and_start_it(site: str, page: Page, orders: leaseq.WorkQueue) -> None:
    for action, answer, paused in (
        ("Pause", "The queue is paused.", True),
        ("Resume", "The queue goes on.", False),
    ):
        page.goto(f"{site}/queue?queue=orders")
        page.get_by_role("link", name=action).click()
        page.get_by_role("button", name=action).click()
        expect(page.get_by_role("status")).to_have_text(answer)
        assert orders.stats().paused is paused


def test_set_a_limit(site: str, page: Page, orders: leaseq.WorkQueue) -> None:
    page.goto(f"{site}/queue?queue=orders")
    page.get_by_role("link", name="Set limits").click()
    page.get_by_role("textbox", name="max_items").fill("500")
    page.get_by_role("button", name="Configure").click()
    expect(page.get_by_role("status")).to_have_text("Changed max_items from 0 to 500.")
    assert orders.stats().max_items == 500


def test_two_people_at_once(site: str, page: Page, chromium: Browser, orders: leaseq.WorkQueue) -> None:
    context = chromium.new_context()
    other = context.new_page()
    for each in (page, other):
        each.goto(f"{site}/dead?queue=orders")
        each.get_by_role("link", name="Purge all").click()
    page.get_by_role("button", name="Purge").click()
    expect(page.get_by_role("status")).to_contain_text("2 dead letters go at ")
    other.get_by_role("button", name="Purge").click()
    expect(other.get_by_role("status")).to_contain_text("No dead letter that was shown is left.")
    other.goto(f"{site}/dead?queue=orders")
    other.get_by_role("link", name="Undo").click()
    other.get_by_role("button", name="Undo").click()
    expect(other.get_by_role("status")).to_have_text("Undone. The 2 dead letters stay.")
    page.goto(f"{site}/dead?queue=orders")
    expect(page.locator("#live")).to_contain_text("Purge all")
    assert orders.stats().dead == 2
    context.close()


def test_a_purge_is_undone(site: str, page: Page, orders: leaseq.WorkQueue) -> None:
    page.goto(f"{site}/item?queue=orders&id=o-0")
    page.get_by_role("link", name="Purge").click()
    page.get_by_role("button", name="Purge").click()
    page.get_by_role("link", name="To the item").click()
    expect(page.locator("#live")).to_contain_text("1 dead letter goes at")
    page.get_by_role("link", name="Undo").click()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("status")).to_have_text("Undone. The dead letter stays.")
    assert orders.inspect("o-0").state == "dead"


def test_requeue_with_edited_data(site: str, page: Page, orders: leaseq.WorkQueue) -> None:
    page.goto(f"{site}/item?queue=orders&id=o-0")
    page.get_by_role("link", name="Requeue with edited data").click()
    area = page.get_by_role("textbox", name="data")
    expect(area).to_have_value('{"books": 2}')
    area.fill('{\n"books": 3\n}')
    page.get_by_role("button", name="Requeue").click()
    expect(page.get_by_role("status")).to_contain_text("Added as item ")
    page.get_by_role("link", name="To the new item").click()
    expect(page.locator("#live")).to_contain_text('"books": 3')
    expect(page.locator("#live")).to_contain_text("ready")


@pytest.mark.parametrize(
    ("item_id", "link", "answer", "state"),
    [
        ("o-0", "Revive", "The item is ready again.", "ready"),
        ("o-2", "Release", "The lease was ended. The item can be leased again.", "ready"),
        ("o-2", "Remove", "The item was removed. It was leased.", "absent"),
        ("o-9", "Remove", "The item was removed. It was ready.", "absent"),
    ],
)
def test_change_an_item(
    site: str, page: Page, orders: leaseq.WorkQueue, item_id: str, link: str, answer: str, state: str
) -> None:
    page.goto(f"{site}/item?queue=orders&id={item_id}")
    page.get_by_role("link", name=link).click()
    page.get_by_role("button", name=link).click()
    expect(page.get_by_role("status")).to_have_text(answer)
    assert orders.inspect(item_id).state == state


def test_revive_all_of_an_error(site: str, page: Page, orders: leaseq.WorkQueue) -> None:
    page.goto(f"{site}/dead?queue=orders")
    page.get_by_role("link", name="Revive all").click()
    page.get_by_role("button", name="Revive").click()
    expect(page.get_by_role("status")).to_have_text("2 items made ready again.")
    assert orders.stats().dead == 0


def test_a_role_sees_what_it_may_do(url: str, orders: leaseq.WorkQueue, page: Page) -> None:
    support = dashboard.asgi(url, allow=lambda _, action: action in {"read", "revive"})
    with served(support) as address:
        page.goto(f"{address}/item?queue=orders&id=o-0")
        links = page.get_by_role("list", name="What you can do").get_by_role("link")
        expect(links).to_have_text(["Revive"])
        page.goto(f"{address}/change?action=purge&queue=orders&id=o-0")
        expect(page.locator("main")).to_contain_text("You may not purge here.")
        assert page.get_by_role("button", name="Purge").count() == 0
    assert orders.inspect("o-0").state == "dead"


def test_pause_and_trigger_a_schedule(url: str, site: str, page: Page) -> None:
    with App(url) as app:

        @app.every(timedelta(days=30), name="nightly")
        def tidy() -> None: ...

        work_off(app)
        assert app.schedules.inspect()
        for link, answer in (
            ("Pause", "The schedule is paused."),
            ("Resume", "The schedule goes on with its next slot."),
            ("Trigger", "Enqueued the job "),
        ):
            page.goto(f"{site}/schedules")
            expect(page.locator("#live")).to_contain_text("nightly")
            page.get_by_role("link", name=link).click()
            page.locator("main form button").click()
            expect(page.get_by_role("status")).to_contain_text(answer)
        assert app.queue().stats().ready == 1  # the job of the fixture has no worker, and was put off


def test_quiet_and_stop_a_worker(site: str, page: Page, orders: leaseq.WorkQueue) -> None:
    orders.pause()
    worker = Worker(orders, lambda _: None, handle_signals=False)
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        for link, answer in (("Quiet", "lease nothing more"), ("Resume", "lease again"), ("Stop", "to stop")):
            page.goto(f"{site}/workers")
            page.get_by_role("link", name=link).click(
                timeout=30_000
            )  # it reports every 10 s, and the page renews
            page.locator("main form button").click()
            expect(page.get_by_role("status")).to_contain_text(answer)
    finally:
        worker.stop()
        thread.join()


def test_run_a_delayed_item_now(site: str, page: Page, orders: leaseq.WorkQueue) -> None:
    orders.add_item(leaseq.Item(b"", id="later"), delay=600)
    page.goto(f"{site}/item?queue=orders&id=later")
    page.get_by_role("link", name="Run now").click()
    page.get_by_role("button", name="Promote").click()
    expect(page.get_by_role("status")).to_have_text("The item is ready now.")
    assert orders.inspect("later").state == "ready"


def test_all_by_keyboard(site: str, page: Page) -> None:
    page.goto(f"{site}/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    page.get_by_role("link", name="orders", exact=True).focus()
    page.wait_for_timeout(2500)  # a refresh does not take the focus away
    expect(page.get_by_role("link", name="orders", exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Queue orders")


def test_hostile_texts_do_nothing(url: str, site: str, page: Page) -> None:
    with leaseq.WorkQueue("hostile", url) as queue:
        item_id = HOSTILE.replace("\x1b", "\x9b")[:200]
        queue.add_item(leaseq.Item(b"\xff\xfe<script>window.hacked=1</script>" * 30_000, id=item_id))
        item = queue.lease(60)
        assert item is not None
        queue.dead_letter(item, error=f"{HOSTILE}{'x' * 3000}")
    for path in ("/queue?queue=hostile&state=dead", "/dead?queue=hostile"):
        page.goto(site + path)
        page.locator("#live table a[href*='/item?']").first.click()
        page.wait_for_load_state()
        expect(page.get_by_role("heading", level=1)).to_contain_text("<img src=x")
        page.get_by_role("link", name="text", exact=True).click()
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0
        assert page.evaluate("window.hacked") is None
        shown = page.inner_text("body")
        assert not re.search("[\u202e\x1b\x07\x9b]", shown)


def test_a_reader_sees_no_change_and_no_data(url: str, orders: leaseq.WorkQueue, page: Page) -> None:
    with served(dashboard.asgi(url)) as address:
        for path in PAGES[:9]:
            page.goto(address + path)
            assert page.locator("a[href*='/change?']").count() == 0
        page.goto(f"{address}/item?queue=orders&id=o-2")
        expect(page.locator("#live")).to_contain_text("hidden from you")
        assert "books" not in page.inner_text("#live")


def test_times_are_those_of_the_reader(site: str, page: Page, orders: leaseq.WorkQueue) -> None:
    page.goto(f"{site}/item?queue=orders&id=o-5")
    moment = page.locator("time.moment").first
    expect(moment).not_to_contain_text("UTC")
    assert (moment.get_attribute("title") or "").endswith("UTC")
