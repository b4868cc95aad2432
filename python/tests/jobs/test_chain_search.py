"""A chain that another program finds again by its id."""

from __future__ import annotations

import contextlib
import urllib.parse
from typing import TYPE_CHECKING, Any, Self

import pytest
from support.job_app import JobAppFlavour

from leaseq.jobs import App, JobCancelled, JobFailed, ResultNotKept
from leaseq.jobs.codecs import Zlib

if TYPE_CHECKING:
    import redis


def grow(numbers: list[int], more: int = 1) -> list[int]:
    return [*numbers, more]


def pair(numbers: list[int]) -> tuple[int, int]:
    return (numbers[0], numbers[-1])


class Programs:
    """A program that enqueues and works, and another that finds chains."""

    def __init__(self, url: str, *, asynchronous: bool, **options: Any) -> None:
        self._open = contextlib.ExitStack()
        apps = App(url, **options), App(url, **options)
        self.first, self.other = (
            self._open.enter_context(JobAppFlavour(app, asynchronous=asynchronous)) for app in apps
        )
        for each in (self.first, self.other):
            each.app.job(name="grow", retries=0)(grow)
            each.app.job(name="pair", queue="other", retries=0)(pair)

    def chain(self, first: list[Any], *, keep: float | None = 60, steps: int = 2, **options: Any) -> Any:
        function: Any = self.first.app.function("grow").with_options(keep=keep)
        chain: Any = self.first.app.chain(function.with_options(**options).call(first))
        for _ in range(steps - 1):
            chain = chain.then(function.partial())
        last: Any = self.first.app.function("pair").with_options(keep=60)
        return self.first(chain.then(last.partial()), "enqueue")

    def found(self, chain: Any, queue: str | None = None) -> Any:
        return self.other(self.other.app, "find_chain", chain.id, queue)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()


@pytest.fixture(params=[False, True], ids=["threads", "asyncio"])
def programs(url: str, request: pytest.FixtureRequest) -> Any:
    with Programs(url, asynchronous=request.param) as made:
        yield made


def test_a_chain_is_the_same_at_each_of_its_steps(programs: Programs) -> None:
    chain = programs.chain([1])
    assert urllib.parse.quote(chain.id, safe="") == chain.id
    stages = [(stage.id, stage.queue) for stage in chain.stages]
    for ended in range(4):
        found = programs.found(chain)
        assert found.id == chain.id
        assert [(stage.id, stage.queue) for stage in found.stages] == stages
        assert programs.other(found, "status") == ("ready" if ended < 3 else "succeeded")
        if ended < 3:
            assert programs.first.burst(queues=["default" if ended < 2 else "other"], max_jobs=1) == 1
    assert programs.other(found, "result", timeout=60) == (
        1,
        1,
    )  # converted by the annotation of the last function


@pytest.mark.parametrize(
    ("keep", "length"), [(None, 1), (60, 5000)], ids=["results are not kept", "too long for a copy"]
)
def test_a_chain_whose_first_jobs_are_gone_is_found_by_a_later_one(
    programs: Programs, keep: float | None, length: int
) -> None:
    """A result repeats a job of up to 4 kB only, so a longer one names neither its function nor what is behind it."""
    chain = programs.chain([1] * length, keep=keep, steps=3)
    assert programs.first.burst(queues=["default"], max_jobs=2) == 2
    found = programs.found(chain)
    assert [stage.id for stage in found.stages] == [stage.id for stage in chain.stages]
    assert programs.other(found, "status") == "ready"
    assert programs.first.burst(queues=["default", "other"]) == 2
    assert list(programs.other(programs.found(chain), "result", timeout=60)) == [1, 1]


def test_a_chain_is_cancelled_by_its_id(programs: Programs) -> None:
    chain = programs.chain([1])
    assert programs.first.burst(queues=["default"], max_jobs=1) == 1
    assert programs.other(programs.found(chain), "cancel") is True
    assert programs.first.burst(queues=["default", "other"]) == 0
    for program, handle in ((programs.other, programs.found(chain)), (programs.first, chain)):
        assert program(handle, "status") == "cancelled"
        with pytest.raises(JobCancelled):
            program(handle, "result", timeout=60)


def test_a_chain_that_failed_is_found(programs: Programs) -> None:
    chain = programs.chain(["no list"], steps=1, id="mine")
    programs.first.app.job(name="grow", retries=0)(grow)
    assert chain.id == "mine"
    assert programs.first.burst(queues=["default", "other"], max_jobs=1) == 1
    found = programs.found(chain)
    assert [stage.id for stage in found.stages] == ["mine", "mine/1"]
    with pytest.raises(JobFailed):
        programs.other(found, "result", timeout=60)


def test_an_older_chain_of_the_same_id_is_not_found(programs: Programs) -> None:
    """Its jobs that are left do not say how the newer chain goes on."""
    options: dict[str, Any] = {"id": "mine", "keep": None, "steps": 1}
    function: Any = programs.first.app.function("grow").with_options(keep=60)
    longer = programs.first.app.chain(function.with_options(id="mine", keep=None).call([1]))
    for _ in range(3):
        longer = longer.then(function.partial())
    programs.first(longer, "enqueue")
    assert programs.first.burst(queues=["default"]) == 4
    newer = programs.chain([5], **options)
    for ended in range(2):
        found = programs.found(newer)
        assert [stage.id for stage in found.stages] == ["mine", "mine/1"]
        assert programs.other(found, "status") == "ready"
        assert programs.first.burst(queues=["default", "other"], max_jobs=1) == 1, ended
    assert programs.other(programs.found(newer), "result", timeout=60) == (5, 1)


def test_a_chain_of_which_nothing_is_left(programs: Programs, redis_client: redis.Redis) -> None:
    chain = programs.chain([1])
    redis_client.flushall()
    with pytest.raises(ResultNotKept, match=f"there is no job of a chain '{chain.id}'"):
        programs.found(chain)


def test_a_chain_is_looked_for_in_the_queue_that_is_named(programs: Programs) -> None:
    chain = programs.chain([1], queue="elsewhere")
    with pytest.raises(ResultNotKept):
        programs.found(chain)
    assert [stage.queue for stage in programs.found(chain, "elsewhere").stages] == [
        "elsewhere",
        "default",
        "other",
    ]


def test_later_jobs_are_looked_for_in_the_queue_that_is_named(programs: Programs, url: str) -> None:
    chain = programs.chain([1], keep=None, steps=1, queue="other")
    assert programs.first.burst(queues=["other"]) == 2
    with App(url) as stranger, pytest.raises(ResultNotKept):
        stranger.find_chain(chain.id)
    with App(url) as stranger:
        assert stranger.find_chain(chain.id, "other").result(timeout=60) == [1, 1]


def test_a_chain_behind_a_codec_is_found_without_it(url: str) -> None:
    with Programs(url, asynchronous=False, codec=Zlib()) as programs, App(url) as plain:
        chain = programs.chain([1])
        assert [stage.id for stage in plain.find_chain(chain.id).stages] == [
            stage.id for stage in chain.stages
        ]
