"""A function whose work is still to be done when it returns: what is awaitable is awaited, and a generator is refused or fails."""

from __future__ import annotations

import asyncio
import functools
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import pytest
from support.job_app import JobAppFlavour

import leaseq.worker
import leaseq.worker.aio
from leaseq import BadTypeError
from leaseq.jobs import App, JobFailed
from leaseq.jobs.definition import Definition
from leaseq.jobs.options import Options

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator


@pytest.fixture
def flavour(url: str) -> Iterator[JobAppFlavour]:
    with JobAppFlavour(App(url), asynchronous=False) as made:
        yield made


async def double(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


class Doubler:
    async def __call__(self, number: int) -> int:
        return await double(number)

    async def method(self, number: int) -> int:
        return await double(number)


class Later:
    """Awaitable, and no coroutine."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __await__(self) -> Any:
        return double(self.number).__await__()


@functools.wraps(double)
def wrapper(*args: Any) -> Any:
    return double(*args)


@functools.wraps(double)
def finishing(*args: Any) -> Any:
    return asyncio.run(double(*args))


async def forgetful(number: int) -> Any:
    return double(number)


def later(number: int) -> Any:
    return Later(number)


def count(number: int) -> Iterator[int]:
    yield number


async def async_count(number: int) -> AsyncIterator[int]:
    yield number


class Counter:
    def __call__(self, number: int) -> Iterator[int]:
        yield number


@functools.wraps(count)
def counter(number: int) -> Iterator[int]:
    return count(number)


AWAITED: list[Callable[..., Any]] = [
    double,
    functools.partial(double),
    functools.partial(functools.partial(double)),
    Doubler(),
    functools.partial(Doubler()),
    Doubler().method,
    wrapper,
    finishing,
    forgetful,
    later,
    lambda number: double(number) if number else None,
]


@pytest.mark.parametrize("fork", [False, True])
@pytest.mark.parametrize("keep", [60, None])
def test_what_is_awaitable_is_awaited(flavour: JobAppFlavour, fork: bool, keep: int | None) -> None:
    handles = [
        flavour.app.job(name=f"f{number}", fork=fork, keep=keep)(function).enqueue(21)
        for number, function in enumerate(AWAITED)
    ]
    assert flavour.burst(concurrency=2) == len(AWAITED)
    if keep:
        assert [handle.result(0) for handle in handles] == [42] * len(AWAITED)
    assert flavour.app.queue().stats().dead == 0


@pytest.mark.parametrize("fork", [False, True])
def test_what_is_awaited_has_the_rest_of_the_time_of_its_job(flavour: JobAppFlavour, fork: bool) -> None:
    async def sleep() -> None:
        await asyncio.sleep(60)

    @flavour.app.job(name="f", timeout=0.4, retries=0, fork=fork)
    def f() -> Any:
        time.sleep(0.2)
        return sleep()

    handle = f.enqueue()
    started = time.monotonic()
    flavour.burst()
    assert time.monotonic() - started < 30
    with pytest.raises(JobFailed, match=r"longer than 0\.4 seconds"):
        handle.result(0)


def test_functions_that_run_in_the_loop_are_known() -> None:
    found = [Definition("f", each, Options()).is_async for each in AWAITED]
    assert found == [True] * 6 + [False, False, True, False, False]


GENERATORS: list[Callable[..., Any]] = [
    count,
    async_count,
    functools.partial(count),
    functools.partial(functools.partial(async_count), 1),
    Counter(),
    Counter().__call__,
    counter,
    functools.partial(counter),
]


@pytest.mark.parametrize("function", GENERATORS)
def test_a_generator_function_is_refused(function: Callable[..., Any]) -> None:
    app = App()
    with pytest.raises(BadTypeError, match=r"job f must not be a generator function: .* as a list"):
        app.job(name="f")(function)
    with pytest.raises(BadTypeError, match="generator function"):
        app.cron("* * * * *", name="f")(function)
    for hook in (app.on_startup, app.on_shutdown, app.on_fork_shutdown, app.aio.on_startup):
        with pytest.raises(BadTypeError, match="a hook must not be a generator function"):
            hook(function)
    for worker in (leaseq.worker.Worker, leaseq.worker.aio.Worker):
        with pytest.raises(BadTypeError, match="a handler must not be a generator function"):
            worker([], function)
    assert not app.functions


@pytest.mark.parametrize("fork", [False, True])
@pytest.mark.parametrize("keep", [60, None])
def test_a_generator_that_is_returned_is_a_failure(
    flavour: JobAppFlavour, fork: bool, keep: int | None
) -> None:
    def gives() -> Any:
        return count(1)

    async def async_gives() -> Any:
        return async_count(1)

    handles = [
        flavour.app.job(name=name, fork=fork, keep=keep)(function).enqueue()
        for name, function in (("gives", gives), ("async_gives", async_gives))
    ]
    assert flavour.burst() == 2
    for handle in handles:
        assert handle.status() == "failed"
        assert "gives returned a generator, and nothing of it has run" in handle.info().error


@pytest.mark.parametrize("handler", [double, functools.partial(double), Doubler()])
def test_a_worker_of_threads_takes_no_asynchronous_handler(handler: Any) -> None:
    with pytest.raises(BadTypeError, match="not an async def"):
        leaseq.worker.Worker([], handler)


UNFINISHED: list[Callable[..., Any]] = [
    lambda: [double(1), double(2)],
    lambda: {"one": double(1)},
    lambda: map(print, [1]),
    Future,
    lambda: [count(1)],
]


@pytest.mark.promise("G12")
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
@pytest.mark.parametrize("fork", [False, True])
def test_work_that_nothing_waits_for_is_no_success(flavour: JobAppFlavour, fork: bool) -> None:
    """Also where no result is kept, and nothing looks at it for that reason."""
    functions = [
        flavour.app.job(name=f"f{number}", fork=fork, keep=None)(function)
        for number, function in enumerate(UNFINISHED)
    ]
    handles = [function.enqueue() for function in functions]
    flavour.burst(concurrency=2)
    for number, handle in enumerate(handles):
        assert handle.status() == "failed", number
        assert f"f{number} returned" in str(handle.info().error)
