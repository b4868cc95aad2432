# Generated from _aio/decorators.py by tools/unasync.py: do not edit.
"""The decorators of an App, for type checkers."""

from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from leaseq.jobs._sync.function import JobFunction
from leaseq.jobs.context import Context

P = ParamSpec("P")
T = TypeVar("T")


class Decorator(Protocol):
    """The decorator that `@app.job(...)` returns."""

    @overload
    def __call__(
        self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, T]], /
    ) -> JobFunction[P, T]: ...
    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, T]], /) -> JobFunction[P, T]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], T], /) -> JobFunction[P, T]: ...
    @overload
    def __call__(self, function: Callable[P, T], /) -> JobFunction[P, T]: ...


class Scheduler(Protocol):
    """The decorator that `@app.cron(...)` and `@app.every(...)` return, for a function or a job's function."""

    @overload
    def __call__(self, function: JobFunction[P, T], /) -> JobFunction[P, T]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, function: Callable[[Context], Coroutine[Any, Any, T]], /) -> JobFunction[[], T]: ...
    @overload
    def __call__(self, function: Callable[[], Coroutine[Any, Any, T]], /) -> JobFunction[[], T]: ...
    @overload
    def __call__(self, function: Callable[[Context], T], /) -> JobFunction[[], T]: ...
    @overload
    def __call__(self, function: Callable[[], T], /) -> JobFunction[[], T]: ...
