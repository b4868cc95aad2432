"""A headless Chromium for the tests of the dashboard, fetched by tools/browser/fetch.sh."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
FETCHED = Path(os.environ.get("LEASEQ_SERVERS_DIR", ROOT / ".servers")) / "browser"


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # a container has no rights for Chromium's own sandbox, and these pages are ours
        browser = playwright.chromium.launch(
            executable_path=FETCHED / "chromium" / "run", args=["--no-sandbox"]
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core."""
    return (FETCHED / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """A page in which no script fails and the policy refuses nothing: else the test fails."""
    context = chromium.new_context(locale="en-GB", timezone_id="Europe/Berlin")
    made = context.new_page()
    complaints: list[str] = []
    made.on("pageerror", lambda error: complaints.append(str(error)))
    made.on(
        "console",
        lambda message: complaints.append(message.text) if "Content Security" in message.text else None,
    )
    yield made
    context.close()
    assert complaints == []
