"""The states of running jobs, while other jobs of the same worker end, or the server refuses some of them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from leaseq import Item
from leaseq.errors import UnavailableError
from leaseq.jobs import aio
from leaseq.jobs.job_state import LIFE_SECS
from leaseq.jobs.worker.progress import ProgressReporter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from leaseq._aio.queue import LeasedItem
    from leaseq.jobs.job_state import JobState
    from leaseq.jobs.store._aio.store import Store


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    async with aio.App(url) as app:
        yield app._clients.aio.store


async def leased(store: Store) -> list[LeasedItem]:
    """Return an item of each of two queues."""
    items = []
    for name in ("one", "two"):
        queue = store.queue(name)
        await queue.add_item(Item(b"", id=name))
        item = await queue.lease(3600)
        assert item is not None
        items.append(item)
    return items


async def test_a_job_that_ends_while_those_of_another_queue_are_written_is_dropped(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = await leased(store)
    reporter = ProgressReporter(store, "worker")
    for item in items:
        reporter.begin(item, time.time())
    write, written = store.write_states, list[str]()

    async def write_states(name: str, states: Iterable[tuple[str, int, JobState]]) -> None:
        await write(name, states)
        if not written:
            [other] = [item for item in items if item.queue.name != name]
            reporter.end(other, failed=False)
        written.append(name)

    monkeypatch.setattr(store, "write_states", write_states)
    await reporter.flush()
    await reporter.flush()
    first, second = written[:2]
    assert [(await store.states(name, [name]))[0].worker for name in (first, second)] == ["worker", ""]


async def test_a_queue_whose_states_cannot_be_written_keeps_back_no_other(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    reporter = ProgressReporter(store, "worker")
    for item in await leased(store):
        reporter.begin(item, time.time())
    write, refused = store.write_states, list[str]()

    async def write_states(name: str, states: Iterable[tuple[str, int, JobState]]) -> None:
        if not refused:
            refused.append(name)
            raise UnavailableError("the node of this queue is away")
        await write(name, states)

    monkeypatch.setattr(store, "write_states", write_states)
    await reporter.flush()
    [other] = {"one", "two"} - set(refused)
    assert (await store.states(other, [other]))[0].worker == "worker"


async def test_a_job_that_ended_and_runs_here_again_keeps_its_state(store: Store) -> None:
    item = (await leased(store))[0]
    reporter = ProgressReporter(store, "worker")
    reporter.begin(item, time.time())
    await reporter.flush()
    reporter.end(item, failed=False)
    await item.queue.release(item)
    again = await item.queue.lease(3600)
    assert again is not None
    reporter.begin(again, time.time())
    await reporter.flush()
    assert (await store.states("one", ["one"]))[0].token == again.token


async def test_the_state_of_a_long_job_is_written_again_before_it_is_forgotten(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    item, other = await leased(store)
    reporter = ProgressReporter(store, "worker")
    for each in (item, other):
        reporter.begin(each, time.time())
    await reporter.flush()
    write, written = store.write_states, list[str]()

    async def write_states(name: str, states: Iterable[tuple[str, int, JobState]]) -> None:
        written.extend(job_id for job_id, _, _ in states)
        await write(name, states)

    monkeypatch.setattr(store, "write_states", write_states)
    await reporter.flush()
    assert written == []
    reporter._written[item] -= LIFE_SECS / 2  # that long ago
    await reporter.flush()
    await reporter.flush()
    assert written == ["one"]


async def test_each_report_of_a_job_is_written(store: Store) -> None:
    (item, _) = await leased(store)
    reporter = ProgressReporter(store, "worker")
    reporter.begin(item, time.time())
    for done, total in ((1.0, 5.0), (2.0, None)):
        reporter.report(item, done, total)
        await reporter.flush()
        (state,) = await store.states("one", ["one"])
        assert (state.done, state.total, state.token, state.worker) == (done, total, item.token, "worker")
