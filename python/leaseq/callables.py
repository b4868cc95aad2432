"""The behaviour of a callable when it is called, as far as it can be known before."""

import inspect
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from itertools import starmap
from types import AsyncGeneratorType, GeneratorType
from typing import Any

from leaseq.errors import BadTypeError


def is_async(function: Callable[..., Any]) -> bool:
    """Return whether a call gives a coroutine: of an `async def`, a partial of one, an object with such a `__call__`."""
    while isinstance(function, partial):
        function = function.func
    called = function if inspect.isroutine(function) else type(function).__call__
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)


def refuse_other_arguments(function: Callable[..., Any], what: str, gets: str) -> None:
    """Raise BadTypeError for a function that cannot be called with one argument, as far as its signature is known."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(None)
    except TypeError as error:
        raise BadTypeError(f"{what} is called with {gets} alone, and this one cannot be: {error}") from None


def refuse_generators(function: Callable[..., Any], what: str) -> None:
    """Raise BadTypeError for a generator function, however wrapped: a call of it runs nothing."""
    for each in layers(function):
        if inspect.isgeneratorfunction(each) or inspect.isasyncgenfunction(each):
            raise BadTypeError(
                f"{what} must not be a generator function: a call of it runs nothing; write a function that goes through"
                " it, without functools.wraps, and returns the values as a list"
            )


def refuse_unfinished(value: Any, what: str) -> None:
    """Raise BadTypeError for a returned value whose work is still to be done.

    That is a generator or the like, a future of a pool, something to be awaited, or a list, tuple, set or dict of such.
    """
    if isinstance(value, _LAZY):
        name = type(value).__name__.removeprefix("async_")
        raise BadTypeError(
            f"{what} returned a {name}, and nothing of it has run: return its values as a list"
        )
    if isinstance(value, Future):
        _end(value)
        raise BadTypeError(f"{what} returned a future, for which nothing waits: return its result()")
    if hasattr(value, "__await__"):
        _end(value)
        raise BadTypeError(
            f"{what} returned {type(value).__name__}, which nothing awaits: await it in an async def"
        )
    if isinstance(value, list | tuple | set | frozenset | dict):
        _refuse_unfinished_parts(list(value.values() if isinstance(value, dict) else value), what)


_LAZY = (GeneratorType, AsyncGeneratorType, map, filter, starmap)
"""Types of values that run as they are read."""


def _refuse_unfinished_parts(values: list[Any], what: str) -> None:
    unfinished = tuple(
        kind
        for kind in set(map(type, values))
        if issubclass(kind, _LAZY) or issubclass(kind, Future) or hasattr(kind, "__await__")
    )
    if not unfinished:
        return
    parts = [each for each in values if isinstance(each, unfinished)]
    for each in parts:
        _end(each)
    raise BadTypeError(
        f"{what} returned {type(parts[0]).__name__} among its values, and nothing waits for its work: await or finish each"
    )


def _end(value: Any) -> None:
    """End what nothing awaits, which then gives no warning."""
    for end in (getattr(value, "close", None), getattr(value, "cancel", None)):
        if callable(end):
            end()


def returns_nothing(function: Callable[..., Any]) -> bool:
    """Return whether a function that is no `async def` says by its annotation that it returns None or a plain value."""
    try:
        returned = inspect.signature(function, eval_str=True).return_annotation
    except (NameError, SyntaxError, TypeError, ValueError):
        return False
    return not is_async(function) and (returned is None or returned in _PLAIN)


_PLAIN = (bool, bytes, dict, float, int, list, str, tuple)


async def awaited(value: Any) -> Any:
    """Return what a value gives in the end, if it is awaitable, or what that gives is."""
    while hasattr(value, "__await__"):
        value = await value
    return value


def name_of_callable(function: Any) -> str:
    """Return the name of a callable for messages: of an object, that of its class."""
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def layers(function: Any) -> Iterator[Any]:
    """A callable, and what it calls."""
    while True:
        yield function
        if isinstance(function, partial):
            function = function.func
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif not inspect.isroutine(function) and not isinstance(function, type):
            function = type(function).__call__
        else:
            return
