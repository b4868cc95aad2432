"""Watching a job: what is known of it, now and whenever that changes."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from support.job_app import TIMEOUT_SECS, JobAppFlavour, until
from support.redis_probe import EVALS, calls

from leaseq import flows
from leaseq.jobs import App, Context, Handle, JobFailed, JobInfo, Retry
from leaseq.jobs.job_state import Change, JobState
from leaseq.jobs.store._aio import watch as async_watch
from leaseq.jobs.store._sync import watch as sync_watch

if TYPE_CHECKING:
    from collections.abc import Iterator

    import redis


@pytest.fixture(params=[False, True], ids=["threads", "asyncio"])
def flavour(request: pytest.FixtureRequest, url: str) -> Iterator[JobAppFlavour]:
    with JobAppFlavour(App(url), asynchronous=request.param) as made:
        yield made


@pytest.fixture
def hours_of_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change that wakes no watch is not seen: the next look is hours away."""
    monkeypatch.setattr(flows, "WAIT_CAP", 3600.0)


class Watcher:
    """A watch in a thread, or in the event loop of a flavour, and what it has yielded."""

    def __init__(self, flavour: JobAppFlavour, handle: Handle[Any], timeout: float | None = None) -> None:
        self.seen: list[JobInfo] = []
        self.error: Exception | None = None
        self._flavour, self._handle, self._timeout = flavour, handle, timeout
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self) -> None:
        try:
            if self._flavour.asynchronous:
                self._flavour.run(self._watch_on_loop())
            else:
                for info in self._handle.watch(self._timeout):
                    self.seen.append(info)
        except Exception as error:  # noqa: BLE001 (raised in the test)
            self.error = error

    async def _watch_on_loop(self) -> None:
        async for info in self._handle.aio.watch(self._timeout):
            self.seen.append(info)

    def until(self, status: str, progress: object = None) -> None:
        """Wait until this is the last that was seen."""

        def is_seen() -> bool:
            assert self.error is None
            return bool(self.seen) and (self.seen[-1].status, self.seen[-1].progress) == (status, progress)

        until(is_seen)

    def ended(self) -> list[str]:
        """Wait for the end. Return the statuses that were seen; raise what was raised."""
        self._thread.join(TIMEOUT_SECS)
        assert not self._thread.is_alive()
        if self.error is not None:
            raise self.error
        return [info.status for info in self.seen]


@pytest.mark.usefixtures("hours_of_wait")
@pytest.mark.parametrize("keep", [60.0, 0.0], ids=["kept", "not kept"])
def test_a_watch_yields_each_change_until_the_end(flavour: JobAppFlavour, keep: float) -> None:
    steps = [threading.Event() for _ in range(4)]

    @flavour.app.job(name="f", keep=keep)
    def f(ctx: Context) -> str:
        steps[0].wait(TIMEOUT_SECS)
        ctx.progress(1, 3)
        steps[1].wait(TIMEOUT_SECS)
        ctx.progress({"part": "second"})
        steps[2].wait(TIMEOUT_SECS)
        return "done"

    handle = f.enqueue()
    watcher = Watcher(flavour, handle)
    watcher.until("ready")
    with flavour.working():
        watcher.until("running")
        steps[0].set()
        watcher.until("running", (1, 3))
        steps[1].set()
        watcher.until("running", {"part": "second"})
        steps[2].set()
        end = "succeeded" if keep else "unknown"
        assert watcher.ended() == ["ready", "running", "running", "running", end]
    assert watcher.seen[-1].result == ("done" if keep else None)


@pytest.mark.usefixtures("hours_of_wait")
def test_a_watch_sees_that_a_short_job_succeeds(flavour: JobAppFlavour) -> None:
    @flavour.app.job(name="f")
    def f() -> int:
        return 7

    handle = f.enqueue()
    watcher = Watcher(flavour, handle)
    watcher.until("ready")
    flavour.burst()
    assert watcher.ended()[-1] == "succeeded"
    assert watcher.seen[-1].result == 7


@pytest.mark.usefixtures("hours_of_wait")
def test_a_watch_sees_that_a_failed_attempt_is_followed_by_another(flavour: JobAppFlavour) -> None:
    @flavour.app.job(name="f", retries=1)
    def f(ctx: Context) -> None:
        if ctx.attempt == 1:
            raise Retry(delay=3600)
        raise ValueError("again")

    handle = f.enqueue()
    watcher = Watcher(flavour, handle)
    watcher.until("ready")
    with flavour.working():
        watcher.until("retrying")
        assert flavour(handle, "promote")
        assert watcher.ended()[-1] == "failed"
    assert watcher.seen[-1].attempt == 2
    assert "ValueError: again" in watcher.seen[-1].error


@pytest.mark.usefixtures("hours_of_wait")
def test_a_watch_looks_until_an_attempt_is_over_whose_note_is_gone(
    flavour: JobAppFlavour, redis_client: redis.Redis
) -> None:
    """A worker deletes the note before it releases the item, and the list of the first change is gone by then."""
    flavour.app.job(name="f")(lambda: None)
    handle = flavour.app.enqueue("f")
    store, queue = flavour.app._clients.sync.store, flavour.app.queue()
    item = queue.lease(3600)
    assert item is not None
    store.write_states("default", [(item.id, 1, JobState(token=item.token, done=1))])
    watcher = Watcher(flavour, handle)
    watcher.until("running", (1, None))
    redis_client.delete(f"leaseq:{{jobs}}:default:changed:{item.id}:1.0")
    store.drop_states("default", [Change(item.id, 1, 1)])
    watcher.until("running")
    looks = calls(redis_client, *EVALS)
    until(lambda: calls(redis_client, *EVALS) > looks + 4)
    queue.release(item, delay=3600, error="again")
    watcher.until("retrying")
    assert flavour(handle, "cancel")
    assert watcher.ended()[-1] == "cancelled"


@pytest.mark.usefixtures("hours_of_wait")
def test_a_watch_ends_with_the_cancellation_of_the_job(flavour: JobAppFlavour) -> None:
    @flavour.app.job(name="f")
    def f() -> None: ...

    handle = f.enqueue()
    watcher = Watcher(flavour, handle)
    watcher.until("ready")
    assert flavour(handle, "cancel")
    assert watcher.ended() == ["ready", "cancelled"]


def test_a_watch_of_no_job_and_one_without_time(flavour: JobAppFlavour) -> None:
    @flavour.app.job(name="f")
    def f() -> None: ...

    assert Watcher(flavour, flavour.app.handle("none")).ended() == ["unknown"]
    watcher = Watcher(flavour, f.enqueue(), timeout=0.01)
    with pytest.raises(TimeoutError, match="has not ended: it is ready"):
        watcher.ended()
    assert [info.status for info in watcher.seen] == ["ready"]


@pytest.mark.usefixtures("hours_of_wait")
def test_more_watches_than_may_block_at_a_time(
    flavour: JobAppFlavour, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (sync_watch, async_watch):
        monkeypatch.setattr(module, "DIRECT", 1)

    @flavour.app.job(name="f")
    def f() -> None: ...

    watchers = [Watcher(flavour, f.enqueue()) for _ in range(3)]
    for watcher in watchers:
        watcher.until("ready")
    flavour.burst()
    for watcher in watchers:
        assert watcher.ended()[-1] == "succeeded"


def test_what_wakes_a_watch_is_gone_soon(flavour: JobAppFlavour, redis_client: redis.Redis) -> None:
    begun, end = threading.Event(), threading.Event()

    @flavour.app.job(name="f")
    def f(ctx: Context) -> None:
        ctx.progress(1)
        begun.set()
        end.wait(TIMEOUT_SECS)

    handle = f.enqueue()
    with flavour.working() as worker:
        assert begun.wait(TIMEOUT_SECS)
        worker.flush()
        first = [f"leaseq:{{jobs}}:default:changed:{handle.id}:1.{number}" for number in range(3)]
        lives = [redis_client.pttl(key) for key in first]
        assert all(life == -2 or 0 < life <= 4000 for life in lives)
        assert max(lives) > 0
        end.set()
        handle.result(TIMEOUT_SECS)


def test_a_watch_that_would_block_the_loop_of_a_worker_is_refused(flavour: JobAppFlavour) -> None:
    @flavour.app.job(name="inner")
    def inner() -> None: ...

    @flavour.app.job(name="outer", retries=0)
    async def outer() -> None:
        for _ in inner.enqueue().watch():
            pass

    handle = outer.enqueue()
    flavour.burst()
    with pytest.raises(JobFailed, match=r"BlockedLoopError.*watch\(\) would block.*handle\.aio\.watch\(\)"):
        handle.result(TIMEOUT_SECS)
