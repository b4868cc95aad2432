"""Middleware: context managers in which jobs run, the first one outermost.

A middleware is a part of the attempt. What it raises is as if the function had raised it. It cannot make a failed attempt a
success: if it catches the exception of the function and raises nothing, that exception counts.
"""

import asyncio
import contextvars
import inspect
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import partial
from typing import Any, TypeVar

from leaseq.callables import layers, name_of_callable, refuse_other_arguments
from leaseq.errors import BadTypeError
from leaseq.jobs.context import Context

Manager = AbstractContextManager[Any, bool | None] | AbstractAsyncContextManager[Any, bool | None]

Middleware = Callable[[Context], Manager]
"""Takes the context of a job and returns the context manager in which the job runs."""

Synchronous = Callable[[Context], AbstractContextManager[Any]]

M = TypeVar("M", bound=Middleware)


def check(middleware: Any) -> None:
    """Raise BadTypeError for what is seen to return no context manager."""
    if not callable(middleware):
        raise BadTypeError(
            f"a middleware takes the Context of a job and returns a context manager; {type(middleware).__name__} cannot be called"
        )
    kinds = (inspect.isgeneratorfunction, inspect.isasyncgenfunction, inspect.iscoroutinefunction)
    if any(kind(middleware) for kind in kinds):
        wanted = "contextmanager" if inspect.isgeneratorfunction(middleware) else "asynccontextmanager"
        raise BadTypeError(
            f"a middleware returns a context manager: put @contextlib.{wanted} between @app.middleware and the function, which"
            " yields once"
        )
    refuse_other_arguments(middleware, "a middleware", "the Context of a job")


def needs_loop(middleware: Middleware) -> bool:
    """Return whether a middleware returns context managers for `async with` alone."""
    if inspect.isclass(middleware):
        return hasattr(middleware, "__aenter__") and not hasattr(middleware, "__enter__")
    return any(inspect.isasyncgenfunction(each) for each in layers(middleware))


def run(middleware: Sequence[Synchronous], context: Context, call: Callable[[], Any]) -> Any:
    """Return what the call returns, made within these context managers."""
    if not middleware:
        return call()
    failed: BaseException | None = None
    with _entered(middleware[0], middleware[0](context), "__enter__"):
        try:
            return run(middleware[1:], context, call)
        except BaseException as error:
            failed = error
            raise
    raise failed  # the manager has suppressed it


async def run_in_loop(
    middleware: Sequence[Middleware], context: Context, call: Callable[[], Awaitable[Any]]
) -> Any:
    """The same for a call that is awaited. Of a manager for both, `async with` is used."""
    if not middleware:
        return await call()
    manager: Any = middleware[0](context)
    failed: BaseException | None = None
    if hasattr(manager, "__aenter__"):
        async with manager:
            try:
                return await run_in_loop(middleware[1:], context, call)
            except BaseException as error:
                failed = error
                raise
    else:
        with _entered(middleware[0], manager, "__enter__"):
            try:
                return await run_in_loop(middleware[1:], context, call)
            except BaseException as error:
                failed = error
                raise
    raise failed


def _entered(middleware: Any, manager: Any, method: str) -> Any:
    """Return the manager. Raises BadTypeError if it is none."""
    if hasattr(manager, method):
        return manager
    raise BadTypeError(
        f"the middleware {name_of_callable(middleware)} returned {type(manager).__name__}, which is no context manager for a `def` function"
    )


def with_runner(middleware: Middleware, runner: asyncio.Runner) -> Synchronous:
    """Return the middleware for a program without a running loop: what it awaits is run by `runner`."""
    return partial(_Run, middleware, runner) if needs_loop(middleware) else middleware  # type: ignore[return-value]


class _Run:
    """Enters and leaves a context manager for asyncio. Variables that it sets are set for the caller."""

    def __init__(self, middleware: Middleware, runner: asyncio.Runner, context: Context) -> None:
        self._manager: Any = middleware(context)
        self._runner = runner
        self._variables = contextvars.copy_context()

    def __enter__(self) -> None:
        self._runner.run(self._manager.__aenter__(), context=self._variables)
        for variable, value in self._variables.items():
            if variable.get(...) is not value:
                variable.set(value)

    def __exit__(self, *how: object) -> bool | None:
        answer: bool | None = self._runner.run(self._manager.__aexit__(*how), context=self._variables)
        return answer
