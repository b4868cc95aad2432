"""A function that can be enqueued."""

from collections.abc import Callable, Coroutine
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, Unpack, cast

import msgspec

from leaseq import commands
from leaseq.errors import BadArgumentError, NotDurableError

# threads: from leaseq.jobs._aio.function import Enqueuer as AsyncEnqueuer
from leaseq.jobs._aio.handle import Handle
from leaseq.jobs.call import Call, Partial, template_with
from leaseq.jobs.clients import Clients
from leaseq.jobs.definition import Definition
from leaseq.jobs.envelope import Envelope
from leaseq.jobs.options import CallOptions, Options
from leaseq.jobs.round_trip import check_call
from leaseq.jobs.signature import Signature

P = ParamSpec("P")
T = TypeVar("T")
Q = ParamSpec("Q")
R_contra = TypeVar("R_contra", contravariant=True)


class _Following(Protocol[R_contra, Q, T]):
    """An Enqueuer, seen as that of a function whose first argument comes from elsewhere: so type checkers find its type."""

    def call(self, first: R_contra, /, *args: Q.args, **kwargs: Q.kwargs) -> Call[T]: ...


class Enqueuer(Generic[P, T]):
    """Enqueues calls of one function with the same options: `fn.with_options(delay=5).enqueue(1, 2)`."""

    def __init__(
        self,
        clients: Clients,
        template: Envelope,
        options: Options,
        signature: Signature | None,
    ) -> None:
        """`template` is the envelope of its calls; without a signature the function is not defined here."""
        self.name = template.function
        self.options = options
        self._clients = clients
        self._template = template
        self._signature = signature

    # threads: @property
    # threads: def aio(self) -> "AsyncEnqueuer[P, T]":
    # threads:     """The same for asyncio: `await fn.aio.enqueue(1, 2)`."""
    # threads:     return AsyncEnqueuer(self._clients, self._template, self.options, self._signature)

    def with_options(self, **options: Unpack[CallOptions]) -> "Enqueuer[P, T]":
        """Return the same function with other options, for one call or many: `f.with_options(delay=5).enqueue(1)`.

        The options are those of `leaseq.jobs.options.Options`, except `retry_on`, `fork`, `on_success` and `on_failure`.
        Raises BadArgumentError, BadTypeError.
        """
        changed = self.options.with_(options, CallOptions)
        template = template_with(self._template, changed, options)
        return Enqueuer(self._clients, template, changed, self._signature)

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call[T]:
        """Return a call with these arguments, for `app.enqueue_many` and `app.chain`. Nothing is enqueued.

        Raises BadTypeError for arguments that the function does not take, SerializationError for arguments that the
        format would change, and BadArgumentError for a function of `__main__`, which a worker cannot import.
        """
        if self.name.startswith("__main__."):
            raise BadArgumentError(
                f"{self.name} cannot be enqueued: a worker is another program, in which __main__ is another module; put"
                " the function in a module that both import, or give it a name: @app.job(name=...)"
            )
        signature, settings = self._signature, self._clients.settings
        if signature is not None and (kwargs or len(args) not in signature.positional):
            signature.check(self.name, args, kwargs)
        if settings.checks_values:
            check_call(self.name, args, kwargs, signature, settings.form)
        convert = None if signature is None else signature.result
        return Call(self.name, args, kwargs, self.options, self._template, convert)

    def partial(
        self: "_Following[R_contra, Q, T]", *args: Q.args, **kwargs: Q.kwargs
    ) -> "Partial[R_contra, T]":
        """Return a call whose first argument is the result of the job before it, for `app.chain(...).then(...)`.

        Raises BadTypeError for arguments that the function does not take after the first, BadArgumentError with the option
        `id`, `unique`, `throttle` or `at`, and the errors of `call`.
        """
        return Partial(msgspec.structs.replace(self.call(cast("Any", None), *args, **kwargs), args=args))

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle[T]:
        """Enqueue a call with these arguments. Return its handle; `added` is false if a job with its id is in the queue already.

        Takes one round trip, with `id` or `at` another. A job that is `unique` takes three, one with `throttle` four.

        Raises the errors of `call`, for arguments that do not fit, and those of `WorkQueue.add_item`.
        """
        client, options, of_item = self._clients.aio, self.options, self.options.of_item
        call = self.call(*args, **kwargs)
        if options.once:
            return await self._enqueue_once(call)
        if client.settings.headers:
            call = call.with_headers(client.settings.headers)
        queue = client.store.queues.get(options.queue) or client.store.queue(options.queue)
        item = call.item(client.settings)
        if options.needs_server_time or client.settings.ahead:
            of_item = options.counted_from(await client.store.now(options.queue), client.settings.ahead)
        command, durable = commands.add_one(queue.keys, item, of_item), client.settings.durable
        if durable is None:
            created, shortfall = await queue.adds.run(command), None
        else:
            confirmed = await queue.executor.run(commands.durably(command, durable))
            created, shortfall = confirmed
        if created < 0:
            raise commands.queue_full(queue.name, [None])
        if created and options.id is not None:
            await client.forget_earlier([call])
        if created and client.settings.receivers.by_signal:
            client.settings.receivers.call(call.event(item))
        if client.after is not None:
            await client.after()
        handle: Handle[T] = Handle(self._clients, item.id, options.queue, call.convert, created > 0)
        if shortfall is not None:
            shortfall.answer = handle
            raise shortfall
        return handle

    async def _enqueue_once(self, call: Call[T]) -> Handle[T]:
        """Enqueue a call that is unique or throttled, unless there is such a job."""
        client = self._clients.aio
        (call,) = await client.identified([call])
        handle: Handle[T] = Handle(self._clients, call.derived, call.options.queue, call.convert)
        try:
            [(_, handle.added)] = await client.enqueue_many([call])
        except NotDurableError as error:
            handle.added = bool(error.answers[0])
            error.answer = handle
            raise
        return handle

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"


class JobFunction(Enqueuer[P, T]):
    """A function that was decorated with `@app.job`: enqueue it, or call it, which runs it here as without the decorator."""

    function: Callable[..., T | Coroutine[Any, Any, T]]

    def __init__(self, clients: Clients, definition: Definition) -> None:
        super().__init__(clients, definition.template, definition.options, definition.signature)
        self.function = definition.function
        self.__doc__ = definition.function.__doc__
        self.__wrapped__ = definition.function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function in this process and return its value. If it takes a `Context`, pass one."""
        return self.function(*args, **kwargs)
