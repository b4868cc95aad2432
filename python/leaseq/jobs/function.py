"""A function that can be enqueued."""

import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeVar, Unpack

import msgspec

from leaseq.errors import BadArgumentError, BadTypeError
from leaseq.jobs.call import Call
from leaseq.jobs.chain import Step
from leaseq.jobs.options import CallOptions, Options, exceptions
from leaseq.jobs.signature import Signature

if TYPE_CHECKING:
    from leaseq.jobs.enqueuing import Enqueuing
    from leaseq.jobs.handle import Handle

P = ParamSpec("P")
T = TypeVar("T")
Q = ParamSpec("Q")
R_contra = TypeVar("R_contra", contravariant=True)


class _Following(Protocol[R_contra, Q, T]):
    """An Enqueuer, seen as that of a function whose first argument comes from elsewhere: so type checkers find its type."""

    _app: "Enqueuing"
    _given: frozenset[str]
    name: str
    options: Options

    def call(self, first: R_contra, /, *args: Q.args, **kwargs: Q.kwargs) -> Call[T]: ...


class Enqueuer(Generic[P, T]):
    """What enqueues calls of one function with the same options: `fn.using(delay=5).enqueue(1, 2)`."""

    def __init__(
        self, app: "Enqueuing", name: str, options: Options, given: frozenset[str] = frozenset()
    ) -> None:
        self._app = app
        self.name = name
        self.options = options
        self._given = given

    def using(self, **options: Unpack[CallOptions]) -> "Enqueuer[P, T]":
        """The same with other options, for one call or many. Raises BadArgumentError, BadTypeError."""
        changed = self.options.with_(options, CallOptions)
        return Enqueuer(self._app, self.name, changed, self._given | options.keys())

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call[T]:
        """A call, for `app.enqueue_many`. Raises BadTypeError for arguments that the function does not take."""
        return self._app._call(self.name, args, kwargs, self.options, self._given)

    def step(self: "_Following[R_contra, Q, T]", *args: Q.args, **kwargs: Q.kwargs) -> "Step[R_contra, T]":
        """A call whose first argument is what the job before it returns, for `app.chain(...).then(...)`.

        Raises BadTypeError for arguments that the function does not take with one before them, BadArgumentError.
        """
        call = self._app._call(self.name, (None, *args), kwargs, self.options, self._given)
        return Step(msgspec.structs.replace(call, args=args))

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> "Handle[T]":
        """Enqueue a call; `added` of the handle is false where a job of its id is in the queue already.

        Raises BadTypeError for arguments that the function does not take, SerializationError for those that cannot be
        written, and the errors of `WorkQueue.add_item`.
        """
        return self._app._enqueue(self.call(*args, **kwargs))

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> "Handle[T]":
        """`enqueue` for asyncio."""
        return await self._app._aenqueue(self.call(*args, **kwargs))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"


class JobFunction(Enqueuer[P, T]):
    """A function that was decorated with `@app.job`. Called, it runs here and now, as without the decorator."""

    def __init__(
        self, app: "Enqueuing", function: Callable[..., T | Awaitable[T]], name: str, options: Options
    ) -> None:
        super().__init__(app, name, options)
        self.function = function
        self.is_async = inspect.iscoroutinefunction(function)
        self.signature = Signature(function)
        self.retry_on = exceptions(options.retry_on)
        self.__doc__ = function.__doc__
        self.__wrapped__ = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it here and now. One that takes a Context is given it by the caller."""
        return self.function(*args, **kwargs)


def name_of(function: Any, name: Any) -> str:
    """The name of a function among jobs. Raises BadTypeError, BadArgumentError."""
    if not callable(function):
        raise BadTypeError(f"a job is a function, not {type(function).__name__}")
    if name is None:
        qualified = getattr(function, "__qualname__", "<none>")
        if "<lambda>" in qualified or "<none>" in qualified:
            raise BadArgumentError("a function without a name of its own needs one: @app.job(name=...)")
        return f"{function.__module__}.{qualified}"
    if not isinstance(name, str) or not 1 <= len(name) <= 200:
        raise BadArgumentError("the name of a job's function is a str of 1 to 200 characters")
    return name


def check_module(name: str) -> None:
    """Raises BadArgumentError for a function that only this very program knows."""
    if name.startswith("__main__."):
        raise BadArgumentError(
            f"{name} cannot be enqueued: a worker is another program, in which __main__ is another module; put the"
            " function in a module that both import, or give it a name: @app.job(name=...)"
        )


def listed(calls: Iterable[Call[T]]) -> list[Call[T]]:
    """The calls. Raises BadTypeError."""
    given: Any = calls
    if isinstance(given, Call) or not isinstance(given, Iterable):
        raise BadTypeError(
            f"this takes several calls, as in [fn.call(1), fn.call(2)], not {type(given).__name__}"
        )
    found = list(given)
    for each in found:
        if not isinstance(each, Call):
            raise BadTypeError(f"this takes calls, as in fn.call(1), not {type(each).__name__}")
    return found
