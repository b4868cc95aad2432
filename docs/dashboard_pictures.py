"""Photograph the dashboard in the Chromium of `make dashboard`, light and dark: queues and jobs of a made-up shop."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import math
import os
import socket
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from playwright.sync_api import sync_playwright

import leaseq
from leaseq.dashboard.application import Dashboard
from leaseq.dashboard.history import MAX_SAMPLES, SAMPLE_SECS, QueueHistory
from leaseq.jobs import App, aio
from leaseq.registry import queues

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from leaseq.keys import RegisteredQueue

ROOT: Final = Path(__file__).parents[1]
FOLDER: Final = ROOT / "docs" / "pictures"
FETCHED: Final = Path(os.environ.get("LEASEQ_SERVERS_DIR", ROOT / ".servers")) / "browser"
WIDTH: Final = 1100
MAX_PICTURE_BYTES: Final = 150 << 10
QUEUES: Final = (
    ("orders", 3000, 42, 7),
    ("mails", 5400, 3, 0),
    ("invoices", 900, 0, 2),
    ("reports", 240, 18, 0),
    ("images", 1800, 96, 0),
)
"""The queues: name, items completed in the last hour, ready ones, dead ones."""
PAGES: Final = {
    "dashboard-queues-light": ("/", 540),
    "dashboard-queues-dark": ("/", 540),
    "dashboard-dead-light": ("/dead?queue=orders", 350),
    "dashboard-job-dark": ("/item?queue=default&group=jobs&id=order-17", 780),
}
"""The pages, by the names of their pictures, and how many pixels high a picture is."""
SHOP: Final = """\
def price_of_one(total: float, books: int) -> float:
    return total / books
"""
ERRORS: Final = ("TimeoutError: the bank does not answer", "KeyError: 'customer'")


def fill(url: str) -> None:
    """Add the items of the shop, complete most of them, and let some die."""
    for name, completed, ready, dead in QUEUES:
        with leaseq.WorkQueue(name, url) as queue:
            queue.add_items(
                leaseq.Item(b"two books", id=f"{name}-{n}") for n in range(completed)
            )
            while items := queue.lease_items(256, 600, block=False):
                queue.complete_items(items)
            queue.add_items(
                leaseq.Item(b"two books", id=f"{name}-dead-{n}") for n in range(dead)
            )
            items = queue.lease_items(256, 600, block=False)
            for number, item in enumerate(items):
                queue.dead_letter(item, error=ERRORS[number % 3 == 2])
            queue.add_items(
                leaseq.Item(b"two books", id=f"{name}-new-{n}") for n in range(ready)
            )
    with leaseq.WorkQueue("reports", url) as reports:
        reports.pause()
        reports.add_items(
            [leaseq.Item(b"", id=f"nightly-{n}") for n in range(4)], delay=3600
        )
    fail_a_job(url)


def fail_a_job(url: str) -> None:
    """Run a job of the shop that fails."""
    with App(url) as app:
        # the traceback on the picture has the file of the shop, not that of this program
        shop: dict[str, Any] = {}
        exec(compile(SHOP, "shop.py", "exec"), shop)  # noqa: S102 (it is above)
        job = app.job(name="shop.price_of_one", retries=0)(shop["price_of_one"])
        job.with_options(id="order-17").enqueue(30.0, books=0)
        asyncio.run(aio.App.of_program(app.program).run_worker(burst=True))


def invent_the_last_hour(app: Dashboard, url: str) -> None:
    """Give each queue a history that ends with its counts: without it, the sparklines would be empty for an hour."""
    for queue in queues(url):
        record = app.site.reader.record(queue)
        if record is None or record.stats is None:
            raise RuntimeError(f"queue {queue} is not read yet")
        record.history = history_to(record.stats, queue)


def history_to(stats: leaseq.QueueStats, queue: RegisteredQueue) -> QueueHistory:
    """Return an hour of work that comes in waves, and ends with these counts."""
    history = QueueHistory()
    phase = sum(map(ord, queue.name))
    done = 0.0
    weights = [1 + 0.6 * math.sin((n + phase) / 9) for n in range(MAX_SAMPLES)]
    for number, weight in enumerate(weights):
        share = done / sum(weights)
        history.add(
            dataclasses.replace(
                stats,
                now=stats.now - (MAX_SAMPLES - number) * SAMPLE_SECS,
                added=round(stats.added * share),
                completed=round(stats.completed * share),
                ready=round(stats.ready * weight),
            )
        )
        done += weight
    return history


def photograph(browser: Browser, address: str, name: str) -> None:
    """Write the picture of a page. Raises RuntimeError if it is too large."""
    address_of_page, height = PAGES[name]
    context = browser.new_context(
        viewport={"width": WIDTH, "height": height},
        color_scheme="dark" if name.endswith("-dark") else "light",
        locale="en-GB",
        timezone_id="UTC",
    )
    page = context.new_page()
    page.goto(address + address_of_page)
    path = FOLDER / f"{name}.png"
    page.screenshot(path=path)
    context.close()
    if path.stat().st_size > MAX_PICTURE_BYTES:
        raise RuntimeError(f"{path} has {path.stat().st_size} bytes")


def main() -> None:
    """Photograph all pages."""
    FOLDER.mkdir(exist_ok=True)
    # failures are part of the picture
    logging.getLogger("leaseq").setLevel(logging.CRITICAL)
    with (
        tempfile.TemporaryDirectory(prefix="leaseq-pictures-") as folder,
        socket.create_server(("127.0.0.1", 0)) as listening,
        sync_playwright() as playwright,
    ):
        url = f"embedded:{folder}"
        filling = threading.Thread(
            target=fill, args=(url,)
        )  # playwright's loop runs here
        filling.start()
        filling.join()
        app = Dashboard(url, lambda _request, _action: True, lambda _request: "ada")
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        thread = threading.Thread(
            target=server.run, kwargs={"sockets": [listening]}, daemon=True
        )
        thread.start()
        while not server.started:
            time.sleep(0.05)
        invent_the_last_hour(app, url)
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        # a container has no rights for Chromium's own sandbox, and these pages are ours
        browser = playwright.chromium.launch(
            executable_path=FETCHED / "chromium" / "run", args=["--no-sandbox"]
        )
        for name in PAGES:
            photograph(browser, address, name)
        browser.close()
        server.should_exit = True
        thread.join()


if __name__ == "__main__":
    main()
