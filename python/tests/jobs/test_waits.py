"""Many waits for results take few connections, and jobs that wait for jobs are noticed."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from support.job_app import TIMEOUT_SECS, JobAppFlavour, for_asyncio, until

import leaseq
import leaseq._aio.executor
import leaseq._sync.executor
from leaseq.jobs import App, JobCancelled, JobFailed, ResultNotKept
from leaseq.jobs.store._aio import shared_waits

if TYPE_CHECKING:
    from collections.abc import Iterator

    import redis

HOUR = 3600.0
KEPT = 60.0


@pytest.fixture
def flavour(url: str) -> Iterator[JobAppFlavour]:
    with JobAppFlavour(App(url), asynchronous=False) as made:
        made.app.job(name="f")(lambda number: number)
        yield made


def waits_of(client: Any) -> Any:
    return client.waits.get("default")


def others(client: Any) -> int:
    return 0 if waits_of(client) is None else sum(wait.is_known for wait in list(waits_of(client)._others))


def test_many_waits_of_an_event_loop_take_few_connections(
    flavour: JobAppFlavour, url: str, redis_client: redis.Redis
) -> None:
    f = flavour.app.function("f")
    handles = flavour.app.enqueue_many([f.call(number) for number in range(1500)])

    async def wait_for_all() -> list[Any]:
        return await asyncio.gather(*(for_asyncio(handle).result(TIMEOUT_SECS) for handle in handles))

    client = flavour.run(_client(flavour.app))
    waiting = flavour.start(wait_for_all())
    until(lambda: others(client) == 1500 - shared_waits.DIRECT)
    assert len(redis_client.client_list()) < 2 * shared_waits.DIRECT + 10
    with JobAppFlavour(App(url), asynchronous=False) as worker:
        worker.app.job(name="f")(lambda number: number)
        assert worker.burst() == 1500
    assert waiting.result(TIMEOUT_SECS) == list(range(1500))
    assert others(client) == 0


async def _client(app: App) -> Any:
    return app.aio._clients.aio


def test_many_waits_of_threads_take_few_connections(
    flavour: JobAppFlavour, redis_client: redis.Redis
) -> None:
    f = flavour.app.function("f")
    handles = flavour.app.enqueue_many([f.call(number) for number in range(150)])
    with ThreadPoolExecutor(150) as threads:
        waiting = [threads.submit(handle.result, TIMEOUT_SECS) for handle in handles]
        until(lambda: others(flavour.app._clients.sync) == 150 - shared_waits.DIRECT)
        assert len(redis_client.client_list()) < 2 * shared_waits.DIRECT + 10
        assert flavour.burst() == 150
        assert [each.result(TIMEOUT_SECS) for each in waiting] == list(range(150))


@pytest.fixture
def all_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    from leaseq.jobs.store._sync import shared_waits as of_threads

    monkeypatch.setattr(shared_waits, "DIRECT", 0)
    monkeypatch.setattr(of_threads, "DIRECT", 0)


@pytest.mark.usefixtures("all_shared", "cap_of_an_hour")
def test_a_wait_that_leaves_has_another_ask(flavour: JobAppFlavour) -> None:
    handles = [flavour.app.enqueue("f", number) for number in range(20)]

    async def leave_one_by_one() -> list[Any]:
        tasks = [asyncio.create_task(for_asyncio(handle).result(TIMEOUT_SECS)) for handle in handles]
        for task in tasks[:-1]:  # the first of them asks for all
            await asyncio.sleep(0.001)
            task.cancel()
        worker = asyncio.create_task(flavour.app.aio.run_worker(burst=True, handle_signals=False))
        answer = await tasks[-1]
        await worker
        return [answer, sum(task.cancelled() for task in tasks)]

    assert flavour.run(leave_one_by_one()) == [19, 19]


@pytest.mark.usefixtures("all_shared")
@pytest.mark.parametrize("asynchronous", [False, True])
def test_shared_waits_answer_as_others(url: str, asynchronous: bool) -> None:
    with JobAppFlavour(App(url), asynchronous=asynchronous) as flavour:

        @flavour.app.job(name="fail", retries=0)
        def fail() -> None:
            raise ValueError("no such order")

        failing, late, gone = fail.enqueue(), fail.with_options(delay=HOUR).enqueue(), fail.enqueue()
        with ThreadPoolExecutor() as threads:
            first, second = (
                threads.submit(flavour, each, "result", TIMEOUT_SECS) for each in (failing, gone)
            )
            with pytest.raises(TimeoutError, match="it is delayed"):
                flavour(late, "result", 0.05)
            assert gone.cancel()
            with pytest.raises(JobCancelled):
                second.result(TIMEOUT_SECS)
            flavour.burst()
            with pytest.raises(JobFailed, match="no such order"):
                first.result(TIMEOUT_SECS)
        unkept = fail.with_options(keep=None).enqueue()
        with pytest.raises(Exception, match="enqueued without `keep`"):
            flavour(unkept, "result", TIMEOUT_SECS)


@pytest.mark.usefixtures("all_shared")
@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_shared_wait_ends_with_its_job_and_not_with_a_later_one_of_its_id(
    url: str, monkeypatch: pytest.MonkeyPatch, asynchronous: bool
) -> None:
    """The id is free at once, and used again before the wait asks the next time."""
    with JobAppFlavour(App(url), asynchronous=asynchronous) as flavour:
        f = flavour.app.job(name="f")(lambda number: number).with_options(id="a")
        first = flavour(f, "enqueue", 1)
        client = flavour.run(_client(flavour.app)) if asynchronous else flavour.app._clients.sync
        queue, asked, used_again = client.store.queues["default"], threading.Event(), threading.Event()
        outcomes: Any = type(queue).outcomes

        async def later_async(self: Any, ids: Any) -> Any:
            while asked.is_set() and not used_again.is_set():  # noqa: ASYNC110 (set from another thread)
                await asyncio.sleep(0.001)
            answers = await outcomes(self, ids)
            asked.set()
            return answers

        def later(self: Any, ids: Any) -> Any:
            assert not asked.is_set() or used_again.wait(TIMEOUT_SECS)
            answers = outcomes(self, ids)
            asked.set()
            return answers

        monkeypatch.setattr(type(queue), "outcomes", later_async if asynchronous else later)
        with ThreadPoolExecutor() as threads:
            waiting = threads.submit(flavour, first, "result", TIMEOUT_SECS)
            assert asked.wait(TIMEOUT_SECS)
            assert flavour(first, "cancel")
            second = flavour(f, "enqueue", 2)
            flavour.burst()
            used_again.set()
            with pytest.raises(ResultNotKept):
                waiting.result(TIMEOUT_SECS)
        assert flavour(second, "result", 0) == 2


@pytest.mark.parametrize("where", ["thread", "loop"])
def test_a_worker_whose_jobs_all_wait_for_its_own_says_so(
    flavour: JobAppFlavour, caplog: pytest.LogCaptureFixture, where: str
) -> None:
    over = threading.Event()

    @flavour.app.job(name="thread")
    def thread() -> int:
        answer: int = flavour.app.enqueue("f", 1).result(TIMEOUT_SECS)
        return answer

    @flavour.app.job(name="loop")
    async def loop() -> int:
        answer: int = await (await flavour.app.aio.enqueue("f", 1)).result(TIMEOUT_SECS)
        return answer

    handles = [flavour.app.enqueue(where) for _ in range(2)]
    with flavour.working(concurrency=2, queues=["default"]):
        until(lambda: "wait for other jobs of its queues" in caplog.text)
        over.set()
        assert f"({where})" in caplog.text
        with flavour.working(concurrency=1):  # another process helps
            assert [handle.result(TIMEOUT_SECS) for handle in handles] == [1, 1]
    assert caplog.text.count("wait for other jobs of its queues") == 1


def test_a_job_that_waits_for_another_queue_is_nothing_to_warn_of(
    flavour: JobAppFlavour, caplog: pytest.LogCaptureFixture
) -> None:
    @flavour.app.job(name="wait")
    def wait() -> int:
        answer: int = flavour.app.function("f").with_options(queue="other").enqueue(1).result(TIMEOUT_SECS)
        return answer

    handle = wait.enqueue()
    with flavour.working(concurrency=1, queues=["default"]), flavour.working(queues=["other"]):
        assert handle.result(TIMEOUT_SECS) == 1
    assert "wait for other jobs" not in caplog.text


def test_waits_that_are_over_do_not_count(flavour: JobAppFlavour, caplog: pytest.LogCaptureFixture) -> None:
    @flavour.app.job(name="twice")
    def twice() -> int:
        return sum(flavour.app.enqueue("f", number).result(TIMEOUT_SECS) for number in (1, 2))

    handle = twice.enqueue()
    with flavour.working(concurrency=2, queues=["default"]):
        assert handle.result(TIMEOUT_SECS) == 3
    assert "wait for other jobs" not in caplog.text


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("ends", [True, False])
def test_a_wait_never_takes_the_result_of_a_later_job_with_its_id(
    url: str, monkeypatch: pytest.MonkeyPatch, *, asynchronous: bool, ends: bool
) -> None:
    """LQ-BLOCK-13: also if the id is removed and added again between the first look and the wait."""
    kind: Any = leaseq._aio.executor.Executor if asynchronous else leaseq._sync.executor.Executor
    run = kind.run
    with JobAppFlavour(App(url), asynchronous=asynchronous) as flavour:
        queue = flavour.app.queue()
        job = flavour(flavour.app.function("f").with_options(id="a"), "enqueue", 1)
        looks: list[str] = []

        def replace(command: Any) -> None:
            if command.script.name == "outcome" and not looks:
                looks.append("a")
                assert queue.remove("a") == "ready"
                assert queue.add_item(leaseq.Item(b"", id="a"), keep=KEPT)
                if ends:
                    item = queue.lease(60)
                    assert item is not None
                    queue.complete(item, result=b"of another")

        async def run_and_replace_async(self: Any, command: Any, *rest: Any, **named: Any) -> Any:
            answer = await run(self, command, *rest, **named)
            await asyncio.to_thread(replace, command)
            return answer

        def run_and_replace(self: Any, command: Any, *rest: Any, **named: Any) -> Any:
            answer = run(self, command, *rest, **named)
            replace(command)
            return answer

        monkeypatch.setattr(kind, "run", run_and_replace_async if asynchronous else run_and_replace)
        with pytest.raises(ResultNotKept):
            flavour(job, "result", 2)
        assert looks == ["a"]
