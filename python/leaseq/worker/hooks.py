"""What a worker tells of its work: to metrics, to traces, to whoever looks after it."""

import contextlib
import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from leaseq.item import LeasedItemBase

logger = logging.getLogger("leaseq.worker")


class Hooks:
    """Subclass it and override what you want to know. Calls are short, from any of the worker's threads, and never fail.

    An exception in a hook is logged and changes nothing. `item` is a leased item; `item.queue.name` says of which queue.
    """

    def leased(self, items: Sequence[LeasedItemBase]) -> None:
        """These items were leased, by one call."""

    def started(self, item: LeasedItemBase) -> None:
        """Its handler begins."""

    def around(self, item: LeasedItemBase) -> AbstractContextManager[Any] | None:  # noqa: ARG002
        """A context in which the handler runs, such as a span; it sees the handler's exception. None for none."""
        return None

    def ended(self, item: LeasedItemBase, seconds: float, error: BaseException | None) -> None:
        """Its handler returned, or raised `error`, after so many seconds."""

    def completed(self, item: LeasedItemBase) -> None:
        """It is finished for ever."""

    def released(self, item: LeasedItemBase, delay: float, error: str | None) -> None:
        """It went back, to be leased again after `delay` seconds. `error` is None where its handler did not fail."""

    def dead_lettered(self, item: LeasedItemBase, error: str | None) -> None:
        """It died: by a verdict of the worker, or because its own attempts are used up."""

    def lost(self, item: LeasedItemBase) -> None:
        """It is no longer this worker's: the lease was taken over, the item was removed or finished by another.

        Called while the handler runs, where the worker learns of it then; in asyncio the handler is cancelled.
        """

    def server_away(self, error: BaseException) -> None:
        """Calls fail from now on; the worker goes on trying."""

    def server_back(self, seconds: float) -> None:
        """Calls work again, after so many seconds."""


class SafeHooks:
    """Calls hooks whose failures must not reach the worker. What is not overridden is not called at all."""

    def __init__(self, hooks: Hooks | None) -> None:
        self._hooks = hooks or Hooks()
        self._used = {
            name
            for name in vars(Hooks)
            if not name.startswith("_") and getattr(type(self._hooks), name) is not getattr(Hooks, name)
        }
        self.per_start = bool(self._used & {"started", "around", "ended"})
        """Whether anybody wants to hear of each handler's beginning and end."""

    def tell(self, name: str, *arguments: Any) -> None:
        """Call one hook."""
        if name in self._used:
            try:
                getattr(self._hooks, name)(*arguments)
            except Exception:
                logger.exception("the hook %r failed", name)

    def context(self, item: LeasedItemBase) -> AbstractContextManager[Any]:
        """The context in which to run a handler."""
        self.tell("started", item)
        context: AbstractContextManager[Any] | None = None
        if "around" in self._used:
            try:
                context = self._hooks.around(item)
            except Exception:
                logger.exception("the hook 'around' failed")
        return contextlib.nullcontext() if context is None else context
