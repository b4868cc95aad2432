"""The definition of a job: a function with its name, options and signature."""

import inspect
from collections.abc import Callable
from typing import Any

from leaseq.callables import is_async, refuse_generators
from leaseq.errors import BadArgumentError, BadTypeError
from leaseq.jobs.annotations import signature_of, warn
from leaseq.jobs.envelope import VERSION, Envelope
from leaseq.jobs.options import Options, exceptions
from leaseq.jobs.signals import listed_receivers
from leaseq.jobs.signature import Signature


class Definition:
    """A function as an App and its workers know it. Raises BadTypeError for a generator function.

    Attributes:
        name: the name by which producers and workers know the function.
        function: the function that a worker calls.
        options: the options of its jobs, unless a call gives others.
        signature: the types of its parameters and of its result.
        template: the envelope of its jobs, without arguments and times.
        is_async: True if it runs in the event loop, else in a thread. An awaitable that it returns is awaited in both cases.
        retry_on: the exceptions after which there is a next attempt.
        on_success: the receivers of its successes.
        on_failure: the receivers of its failures.
    """

    __slots__ = (
        "function",
        "is_async",
        "name",
        "on_failure",
        "on_success",
        "options",
        "retry_on",
        "signature",
        "template",
    )

    def __init__(self, name: str, function: Callable[..., Any], options: Options) -> None:
        refuse_generators(function, f"job {name}")
        self.name = name
        self.function = function
        self.options = options
        self.signature = Signature(function)
        self.template = Envelope(
            v=VERSION, function=name, attempt=options.attempt, description=options.description
        )
        warn(name, self.signature.unresolved)
        self.is_async = is_async(function)
        self.retry_on = exceptions(options.retry_on)
        self.on_success = listed_receivers(options.on_success)
        self.on_failure = listed_receivers(options.on_failure)


def name_of(function: Any, name: Any) -> str:
    """Return the name of a function: `name` if it is given, else its module and name. Raises BadTypeError, BadArgumentError."""
    if not callable(function):
        raise BadTypeError(
            f"a job is a function, not {type(function).__name__}; an enqueued job is found by app.handle(id)"
        )
    qualified = getattr(function, "__qualname__", "<none>")
    owner, _, own_name = qualified.rpartition(".")
    first = next(iter(signature_of(function).parameters), None) if inspect.isfunction(function) else None
    if owner and not owner.endswith("<locals>") and first in ("self", "cls"):
        raise BadTypeError(
            f"a job is a function, and {own_name} is a method of {owner}: no worker has its {first}; put @app.job on a function"
            " that makes or finds the object"
        )
    if name is not None:
        return checked_name(name)
    if "<lambda>" in qualified or "<none>" in qualified:
        raise BadArgumentError("a function without a name needs one: @app.job(name=...)")
    return f"{function.__module__}.{qualified}"


def checked_name(name: Any) -> str:
    """Return the name, or raise BadArgumentError if it cannot be one."""
    if not isinstance(name, str) or not 1 <= len(name) <= 200:
        raise BadArgumentError("the name of a job's function is a str of 1 to 200 characters")
    return name
