"""Three tasks of a new user, from the overview, with how many clicks and how long each takes. `-s` prints them."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Literal

import pytest
from playwright.sync_api import expect
from support.burst_work import work_off
from support.dashboard_site import everything
from support.served_site import served
from support.servers import wait_until

import leaseq
from leaseq import dashboard
from leaseq.jobs import App
from leaseq.worker import Worker
from leaseq.worker.registry import live_workers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page


class Trial:
    """A user at work, who starts at the overview.

    Attributes:
        clicks: links and buttons that were used so far; Enter in a form counts as one.
    """

    def __init__(self, page: Page, address: str) -> None:
        self._page = page
        page.goto(f"{address}/")
        self.clicks = 0
        self._started = time.monotonic()

    def click(self, name: str, role: Literal["link", "button"] = "link") -> None:
        """Use a link or button by its words."""
        self._page.get_by_role(role, name=name, exact=True).first.click()
        self._page.wait_for_load_state()
        self.clicks += 1

    def find(self, text: str) -> None:
        """Type into the search of the header, and press Enter."""
        self._page.get_by_role("textbox", name="Id of an item or job").fill(text)
        self._page.keyboard.press("Enter")
        self._page.wait_for_load_state()
        self.clicks += 1

    def report(self, task: str) -> None:
        """Print what the task took."""
        took = time.monotonic() - self._started
        print(f"{task}: {self.clicks} clicks, {took:.1f} s of waiting for the browser")  # noqa: T201 (is asked for)


def holds_more_than(url: str, count: int) -> bool:
    return sum(worker.held for worker in live_workers(url)) > count


@pytest.fixture
def site(url: str) -> Iterator[str]:
    mounted = dashboard.asgi(url, allow=everything, user=lambda _: "ada")
    with served(mounted) as address:
        yield address
    mounted.close()


def test_find_why_order_17_failed_and_run_it_again(url: str, site: str, page: Page) -> None:
    with App(url) as app:

        @app.job(name="shop.pack", retries=0)
        def pack(books: int) -> float:
            return 10 / books

        for number in range(30):
            pack.with_options(id=f"order-{number}").enqueue(0 if number == 17 else 2)
        work_off(app)
        trial = Trial(page, site)
        trial.find("order-17")
        trial.click("order-17")
        expect(page.locator("#live")).to_contain_text("ZeroDivisionError: division by zero")
        expect(page.locator("#live")).to_contain_text("Traceback")
        trial.click("Revive")
        trial.click("Revive", "button")
        expect(page.get_by_role("status")).to_have_text("The item is ready again.")
        trial.report("find why order-17 failed and run it again")
        assert trial.clicks <= 4
        assert app.queue().inspect("order-17").state == "ready"


def test_stop_a_queue_and_start_it(url: str, site: str, page: Page) -> None:
    with leaseq.WorkQueue("orders", url) as queue:
        queue.add_item(leaseq.Item(b""))
        trial = Trial(page, site)
        trial.click("orders")
        trial.click("Pause")
        trial.click("Pause", "button")
        expect(page.get_by_role("status")).to_have_text("The queue is paused.")
        assert queue.stats().paused
        trial.click("To the queue")
        trial.click("Resume")
        trial.click("Resume", "button")
        expect(page.get_by_role("status")).to_have_text("The queue goes on.")
        trial.report("stop a queue and start it")
        assert trial.clicks <= 6
        assert not queue.stats().paused


def test_find_the_worker_that_holds_an_item_too_long(url: str, site: str, page: Page) -> None:
    over = threading.Event()
    with leaseq.WorkQueue("orders", url) as queue, leaseq.WorkQueue("mails", url) as mails:

        def stuck(_item: leaseq.LeasedItem) -> None:
            over.wait(60)

        workers = [Worker(each, stuck, handle_signals=False) for each in (queue, mails)]
        threads = [threading.Thread(target=each.run) for each in workers]
        for held, (each, item_id) in enumerate(((queue, "slow"), (mails, "later"))):
            each.add_item(leaseq.Item(b"", id=item_id))
            threads[held].start()
            wait_until(partial(holds_more_than, url, held), 60)
        trial = Trial(page, site)
        trial.click("Workers")
        first = page.locator("tbody tr").first
        expect(first).to_contain_text("slow")
        trial.report("find the worker that holds an item too long")
        assert trial.clicks == 1
        over.set()
        for worker, thread in zip(workers, threads, strict=True):
            worker.stop()
            thread.join()
