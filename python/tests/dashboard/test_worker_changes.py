"""Changes of a live worker: quiet, resume, stop."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from support.dashboard_site import Browser, browser, everything
from support.servers import wait_until

import leaseq
from leaseq.worker import Worker
from leaseq.worker.registry import live_workers

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def site(url: str) -> Iterator[Browser]:
    with browser(url, allow=everything) as made:
        yield made


@pytest.fixture
def worker_id(url: str) -> Iterator[str]:
    """A worker that waits for items."""
    with leaseq.WorkQueue("orders", url) as queue:
        worker = Worker(queue, lambda _: None, handle_signals=False)
        thread = threading.Thread(target=worker.run)
        thread.start()
        wait_until(lambda: live_workers(url))
        yield live_workers(url)[0].id
        worker.stop()
        thread.join()


@pytest.mark.slow
def test_a_worker_is_quieted_resumed_and_stopped(url: str, site: Browser, worker_id: str) -> None:
    page = site.get("/workers")
    assert "action=quiet_worker" in page
    assert "action=resume_worker" not in page
    assert "not quiet" in site.get("/change", action="resume_worker", worker=worker_id)
    asked = site.change(action="quiet_worker", worker=worker_id)
    assert asked == (
        "The worker is asked to lease nothing more. It does so with its next report, within 15 seconds."
    )
    wait_until(lambda: live_workers(url)[0].quiet, 30)
    wait_until(lambda: "action=resume_worker" in site.get("/workers"))
    assert "quiet already" in site.get("/change", action="quiet_worker", worker=worker_id)
    assert site.change(action="resume_worker", worker=worker_id).startswith("The worker is asked to lease")
    wait_until(lambda: not live_workers(url)[0].quiet, 30)
    assert site.change(action="stop_worker", worker=worker_id).startswith("The worker is asked to stop.")
    wait_until(lambda: not live_workers(url), 30)
    assert "no such worker" in site.get("/change", action="stop_worker", worker=worker_id)


@pytest.mark.slow
def test_without_permission_a_worker_is_left_alone(url: str, worker_id: str) -> None:
    with browser(url) as reader:
        assert "/change?" not in reader.get("/workers")
        for action in ("quiet_worker", "resume_worker", "stop_worker"):
            reader.get("/change", 403, action=action, worker=worker_id)


def test_a_worker_that_is_not_there_is_reported(site: Browser) -> None:
    assert "There is no such worker now" in site.get("/change", action="stop_worker", worker="<b>x</b>")
    site.get("/change", 400, action="stop_worker", queue="q")
