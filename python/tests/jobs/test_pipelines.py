"""Jobs that are enqueued in a pipeline of redis-py, with other commands."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
import redis
import redis.asyncio
from support.job_app import JobAppFlavour

from leaseq import Replicas
from leaseq.errors import BadArgumentError, BadTypeError
from leaseq.jobs import App

if TYPE_CHECKING:
    from collections.abc import Iterator

    from leaseq.jobs.signals import JobEvent


@pytest.fixture(params=[False, True], ids=["threads", "asyncio"])
def flavour(url: str, request: pytest.FixtureRequest) -> Iterator[JobAppFlavour]:
    with JobAppFlavour(App(url), asynchronous=request.param) as made:
        made.app.job(name="double")(double)
        yield made


def double(number: int) -> int:
    return 2 * number


class Pipeline:
    """A pipeline of the kind that a flavour takes."""

    def __init__(self, flavour: JobAppFlavour, url: str) -> None:
        self._flavour = flavour
        kind: Any = redis.asyncio.Redis if flavour.asynchronous else redis.Redis
        self._client = kind.from_url(url)
        self.pipe = self._client.pipeline(transaction=True)

    def execute(self) -> list[Any]:
        found: Any = self.pipe.execute()
        if not self._flavour.asynchronous:
            self._client.close()
            return list(found)

        async def end() -> Any:
            answers = await found
            await self._client.aclose()
            return answers

        return list(self._flavour.run(end()))


def test_jobs_are_enqueued_with_the_commands_beside_them(
    flavour: JobAppFlavour, url: str, redis_client: redis.Redis
) -> None:
    function = flavour.app.function("double")
    pipeline = Pipeline(flavour, url)
    pipeline.pipe.set("order", "7")
    later = function.with_options(at=datetime.now(UTC) + timedelta(hours=1), queue="mail")
    calls = [function.call(1), function.with_options(priority=3, headers={"a": "b"}).call(2), later.call(3)]
    handles = flavour(flavour.app, "enqueue_many", calls, pipe=pipeline.pipe)
    assert [handle.added for handle in handles] == [True] * 3
    assert redis_client.exists("order") == 0
    assert flavour.app.queue().stats().items == 0
    stored, of_default, of_mail = pipeline.execute()
    assert (stored, len(of_default)) == (True, 2)
    assert of_mail > 0
    item = flavour.app.queue("mail").inspect(handles[2].id)
    assert item.state == "delayed"
    assert item.expires - item.time == pytest.approx(86400, abs=1)
    assert flavour.burst() == 2
    assert [flavour(handle, "result") for handle in handles[:2]] == [2, 4]


def test_a_pipeline_behind_watch_would_send_at_once(flavour: JobAppFlavour, url: str) -> None:
    pipeline = Pipeline(flavour, url)
    watched: Any = pipeline.pipe.watch("order")
    if flavour.asynchronous:
        flavour.run(_awaited(watched))
    calls = [flavour.app.function("double").call(1)]
    with pytest.raises(BadArgumentError, match=r"call its multi\(\) first"):
        flavour(flavour.app, "enqueue_many", calls, pipe=pipeline.pipe)
    pipeline.pipe.multi()
    flavour(flavour.app, "enqueue_many", calls, pipe=pipeline.pipe)
    assert len(pipeline.execute()) == 1
    assert flavour.app.queue().stats().added == 1


async def _awaited(given: Any) -> Any:
    return await given


def test_many_jobs(flavour: JobAppFlavour, url: str) -> None:
    pipeline = Pipeline(flavour, url)
    calls = [flavour.app.function("double").call(number) for number in range(300)]
    handles = flavour(flavour.app, "enqueue_many", calls, pipe=pipeline.pipe)
    assert [len(answers) for answers in pipeline.execute()] == [256, 44]
    assert len({handle.id for handle in handles}) == flavour.app.queue().stats().items == 300


def test_what_cannot_be_in_a_pipeline_queues_nothing(flavour: JobAppFlavour, url: str) -> None:
    function, pipeline = flavour.app.function("double"), Pipeline(flavour, url)
    chosen: list[Any] = [{"id": "a"}, {"unique": True}, {"throttle": 60}]
    for calls in [[function.call(1), function.with_options(**options).call(2)] for options in chosen]:
        with pytest.raises(BadArgumentError, match="leave out id, unique and throttle"):
            flavour(flavour.app, "enqueue_many", calls, pipe=pipeline.pipe)
    calls = [function.call(1), function.with_options(id="").call(2)]
    with pytest.raises(BadArgumentError):
        flavour(flavour.app, "enqueue_many", calls, pipe=pipeline.pipe)
    with pytest.raises(BadTypeError, match="pipe takes what the pipeline"):
        flavour(flavour.app, "enqueue_many", [function.call(1)], pipe=[])
    assert pipeline.execute() == []


def test_an_app_that_waits_for_replicas_takes_no_pipeline(url: str) -> None:
    with App(url, durable=Replicas(1, timeout=1)) as app:
        pipe = redis.Redis.from_url(url).pipeline()
        with pytest.raises(BadArgumentError, match="durable does not apply to a pipeline"):
            app.enqueue_many([app.function("double").call(1)], pipe=pipe)
        pipe.close()


def test_a_pipeline_has_the_headers_of_the_app_and_emits_no_signal(flavour: JobAppFlavour, url: str) -> None:
    events: list[JobEvent] = []
    flavour.app.on("enqueued")(events.append)
    flavour.app.headers(lambda call: {"number": str(call.args[0])})
    pipeline = Pipeline(flavour, url)
    (handle,) = flavour(
        flavour.app, "enqueue_many", [flavour.app.function("double").call(5)], pipe=pipeline.pipe
    )
    pipeline.execute()
    (item,) = flavour.app.queue().lease_items(1, 30)
    assert (item.id, dict(item.headers)) == (handle.id, {"number": "5"})
    assert events == []
