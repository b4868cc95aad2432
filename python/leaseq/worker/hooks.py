"""Hooks of a worker: for metrics, traces and operators."""

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from leaseq.exception_text import formatted, is_printable
from leaseq.item import LeasedItemBase

logger = logging.getLogger("leaseq.worker")


def _make_printable(record: logging.LogRecord) -> bool:
    """Give a record of an exception that no formatter can print the text of that exception."""
    error = record.exc_info[1] if record.exc_info else None
    if error is not None and not is_printable(error):
        record.exc_text = formatted(error, error.__traceback__).rstrip()
    return True


logger.addFilter(_make_printable)


class Hooks:
    """Methods that a worker calls, for metrics, traces and logs. Subclass it and override those that you need.

    Keep them short: they run in the worker's threads or event loop. An exception in a hook is logged and changes nothing.
    `item` is a leased item, and `item.queue.name` the name of its queue.

    In a worker of jobs, `around` and `ended` get the exception that the job raised, with its traceback. If the job ran in a
    separate process, they get a `leaseq.jobs.JobFailed` with its text.
    """

    def leased(self, items: Sequence[LeasedItemBase]) -> None:
        """Called when one call has leased these items."""

    def started(self, item: LeasedItemBase) -> None:
        """Called when the handler of an item starts."""

    def around(self, item: LeasedItemBase) -> AbstractContextManager[Any] | None:  # noqa: ARG002
        """Return a context manager in which the handler runs, such as a span, or None. It sees the handler's exception."""
        return None

    def ended(self, item: LeasedItemBase, seconds: float, error: BaseException | None) -> None:
        """Called when the handler of an item has ended after `seconds`: it raised `error`, or returned (None)."""

    def completed(self, item: LeasedItemBase) -> None:
        """Called when the server has completed an item."""

    def released(self, item: LeasedItemBase, delay: float, error: str | None) -> None:
        """Called when an item was given back, to be leased again after `delay` seconds.

        `error` is the text that is kept as its last error; None if there is none, for example when the worker stops.
        """

    def dead_lettered(self, item: LeasedItemBase, error: str | None) -> None:
        """Called when an item became a dead letter: the worker decided it, or the item's attempts are used up.

        `error` is the text that is kept as its last error, or None.
        """

    def lost(self, item: LeasedItemBase) -> None:
        """Called when an item is no longer this worker's: another has leased or finished it, or it was removed.

        If the worker finds out while the handler runs, this is called at once; in asyncio the handler is cancelled.
        """

    def server_away(self, error: BaseException) -> None:
        """Called when calls to the server start to fail. The worker goes on trying."""

    def server_back(self, seconds: float) -> None:
        """Called when calls to the server work again, after `seconds` of failures."""


class SafeHooks:
    """Calls hooks, and logs their failures, which must not reach the worker.

    A hook that no object overrides is not called.
    """

    def __init__(self, hooks: Sequence[Hooks]) -> None:
        self._calls: dict[str, list[Callable[..., Any]]] = {}
        for name in vars(Hooks):
            overriding = [each for each in hooks if getattr(type(each), name) is not getattr(Hooks, name)]
            if not name.startswith("_") and overriding:
                self._calls[name] = [getattr(each, name) for each in overriding]
        self.per_item = bool(self._calls.keys() & {"started", "around", "ended"})
        """True if a hook for the start or end of handlers is overridden."""
        self.overridden = frozenset(self._calls)
        """The names of the hooks that are overridden."""

    def emit(self, name: str, *arguments: Any) -> None:
        """Call this hook of all objects."""
        for call in self._calls.get(name, ()):
            try:
                call(*arguments)
            except BaseException:
                logger.exception("the hook %r failed", name)

    @contextlib.contextmanager
    def context(self, item: LeasedItemBase) -> Iterator[None]:
        """Run a handler in the contexts of all hooks, the first outermost. An exception of the handler goes on."""
        self.emit("started", item)
        stack = contextlib.ExitStack()
        for around in self._calls.get("around", ()):
            try:
                context = around(item)
                if context is not None:
                    stack.enter_context(context)
            except BaseException:
                logger.exception("the hook 'around' failed")
        try:
            yield
        except BaseException as error:
            _leave(stack, failure_of(error))
            raise
        _leave(stack, None)


def failure_of(error: BaseException) -> BaseException:
    """Return the exception that hooks get: that of the job's function, if a worker of jobs raised this one for it."""
    failure: BaseException | None = getattr(error, "job_failure", None)
    return error if failure is None else failure


def _leave(stack: contextlib.ExitStack, error: BaseException | None) -> None:
    """Leave the contexts of hooks, which see how the handler ended and do not change it."""
    try:
        stack.__exit__(
            None if error is None else type(error), error, None if error is None else error.__traceback__
        )
    except BaseException as failure:
        if failure is not error:
            logger.exception("the hook 'around' failed")
