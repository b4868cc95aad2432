"""A job that blocks the event loop of its worker is named, and a call that would block it is refused."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest
from support.job_app import TIMEOUT_SECS, JobAppFlavour

from leaseq.jobs import App, JobFailed
from leaseq.jobs.worker import loop_watch

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def flavour(url: str) -> Iterator[JobAppFlavour]:
    with JobAppFlavour(App(url), asynchronous=False) as made:
        yield made


def test_a_job_that_blocks_the_loop_is_named_once(
    flavour: JobAppFlavour, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_watch, "TICK_SECS", 0.02)

    @flavour.app.job(name="shop.block", timeout=0.01)
    async def block() -> str:
        until = time.monotonic() + TIMEOUT_SECS
        while "blocked the event loop" not in caplog.text and time.monotonic() < until:
            time.sleep(0.01)  # noqa: ASYNC251 (the fault)
        time.sleep(0.2)  # noqa: ASYNC251 (likewise)
        return "done"

    handle = block.enqueue()
    assert flavour.burst() == 1
    assert handle.result(0) == "done"  # it returned
    messages = [record.getMessage() for record in caplog.records]
    # a machine that stalls may block the loop elsewhere
    (blocked,) = [message for message in messages if f"{handle.id} of shop.block has blocked" in message]
    assert "time.sleep(0.01)" in blocked or "caplog" in blocked  # where it stands
    (late,) = [message for message in messages if "past its limit of 0.01 s" in message]
    assert f"job {handle.id} of shop.block" in late


def test_a_loop_that_answers_is_not_named(
    flavour: JobAppFlavour, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_watch, "TICK_SECS", 0.04)

    @flavour.app.job(name="f")
    async def f() -> None:
        await asyncio.sleep(0.4)

    @flavour.app.job(name="g")
    def g() -> None:
        time.sleep(0.4)

    f.enqueue()
    g.enqueue()
    assert flavour.burst() == 2
    assert "has blocked" not in caplog.text


def test_a_result_that_would_block_the_loop_is_refused(flavour: JobAppFlavour) -> None:
    @flavour.app.job(name="f", retries=0)
    async def f(how: str) -> Any:
        handle = flavour.app.function("g").with_options(delay=3600).enqueue()
        chain = flavour.app.chain(flavour.app.function("g").call()).enqueue()
        match how:
            case "result":
                handle.result()
            case "within a time":
                handle.result(timeout=5)
            case "chain":
                chain.result()
            case "look":
                try:
                    handle.result(timeout=0)
                except TimeoutError:
                    return "not ended"
            case _:
                try:
                    await asyncio.to_thread(handle.result, 0.01)
                except TimeoutError:
                    return "not ended"
        return "not refused"

    @flavour.app.job(name="g")
    async def g() -> None:
        pass

    refused = [f.enqueue(how) for how in ("result", "within a time", "chain")]
    allowed = [f.enqueue(how) for how in ("look", "thread")]
    flavour.burst()
    for handle in refused:
        with pytest.raises(JobFailed, match=r"BlockedLoopError.*await handle\.aio\.result\(\)"):
            handle.result(0)
    assert [handle.result(0) for handle in allowed] == ["not ended"] * 2
