"""Clients that tell their callers the wrong thing about a failure, or do the wrong thing after one."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from leaseq import errors
from leaseq._sync import adding, base, calls, finishing, io
from leaseq_conformance.mutants.registry import everywhere, mutant, patch

if TYPE_CHECKING:
    from collections.abc import Sequence

    import redis

    from leaseq.commands import Command


@mutant("LQ-ERROR-2", "wire/error-codes")
def codes_unknown() -> None:
    """Makes one kind of error of all that the server answers, and leaves the code in the text."""
    own = errors.from_server

    def from_server(error: redis.ResponseError) -> errors.LeaseqError:
        named = own(error)
        if named.code is None:
            return named
        return errors.ServerError(str(error))

    everywhere(own, from_server)


@mutant("LQ-ERROR-4", "wire/lost-reply")
def lost_reply_definite() -> None:
    """Says of a call whose reply was lost that it has not taken effect."""
    patch(errors.ReplyLostError, "definite", True)


@mutant("LQ-ERROR-5", "wire/complete-absent")
def absent_is_an_error() -> None:
    """Raises an error where a completion is answered 0."""
    own = finishing.Finishing.complete_items

    def complete_items(self: finishing.Finishing, items: Any, **options: Any) -> list[bool]:
        answers = own(self, items, **options)
        if not all(answers):
            raise errors.BadArgumentError("the item is gone")
        return answers

    patch(finishing.Finishing, "complete_items", complete_items)


@mutant("LQ-CLIENT-1", "history/faults")
def lost_reply_repeated() -> None:
    """Sends a call again when the connection breaks, as its Redis library does unless it is told otherwise."""
    own = calls.Calls.talk

    def talk(self: calls.Calls, conversation: Any, held: Any) -> Any:
        try:
            return own(self, conversation, held)
        except errors.ReplyLostError:
            return own(self, conversation, held)

    patch(calls.Calls, "talk", talk)


@mutant("LQ-CLIENT-2", "wire/split-second-call-lost")
def answers_forgotten() -> None:
    """When one of several calls of a split list fails, its error comes without the answers of those before."""
    own = base.QueueBase._in_chunks

    def in_chunks(self: base.QueueBase, chunks: Any, make: Any) -> list[Any]:
        try:
            return own(self, chunks, make)
        except errors.LeaseqError as error:
            error.answers = []
            raise

    patch(base.QueueBase, "_in_chunks", in_chunks)
    add_items = adding.Adding.add_items

    def add(self: adding.Adding, *items: Any, **options: Any) -> list[bool]:
        try:
            return add_items(self, *items, **options)
        except errors.LeaseqError as error:
            error.answers = []
            raise

    patch(adding.Adding, "add_items", add)


@mutant("LQ-CLIENT-8", "wire/died-is-published")
def died_not_published() -> None:
    """Does not ask for the outcomes of items that a lease found dead."""

    def publish(_self: base.QueueBase, _ids: Sequence[str]) -> None:
        return None

    patch(base.QueueBase, "_publish", publish)


@mutant("LQ-CLIENT-3", "scenarios/lease-counted-from-the-call")
def counted_from_the_reply() -> None:
    """Counts a lease down for its user from the moment in which it reads the reply, however long that was under way."""
    from leaseq.item import LeasedItemBase
    from leaseq_conformance.adapters import python_sync

    own = LeasedItemBase.__init__
    over: dict[int, float] = {}

    def init(self: LeasedItemBase, *lease: Any) -> None:
        own(self, *lease)
        over[self.token] = time.monotonic() + self._lease_secs

    patch(LeasedItemBase, "__init__", init)
    patch(python_sync, "told_held", lambda item: {"held": time.monotonic() < over[item.token]})


@mutant("LQ-CLIENT-4", "scenarios/heartbeat-lost-is-told")
def loss_not_told() -> None:
    """Extends in the background, and tells nobody when an extension is answered 0."""
    from leaseq.item import LeasedItemBase

    own = LeasedItemBase._heard
    patch(LeasedItemBase, "_heard", lambda self, deadline: None if deadline is None else own(self, deadline))


@mutant("LQ-SAFE-3", "wire/error-holds-no-data")
def data_in_errors() -> None:
    """Puts the call that failed into the message of its error, data and all."""
    own = calls.Calls.run

    def run(self: calls.Calls, command: Command[Any], patience: float | None = None) -> Any:
        try:
            return own(self, command, patience)
        except errors.LeaseqError as error:
            error.args = (f"{error}: {command.arguments!r}",)
            raise

    patch(calls.Calls, "run", run)


@mutant("LQ-CLUSTER-3", "wire/tryagain")
def tryagain_indefinite() -> None:
    """Takes a redirection and TRYAGAIN for failures after which the call may have taken effect."""
    own = errors.from_server

    def from_server(error: redis.ResponseError) -> errors.LeaseqError:
        named = own(error)
        # redis-py takes the first word of a redirection's text away
        if type(error).__name__ in {"MovedError", "AskError", "TryAgainError", "ClusterDownError"}:
            named.definite = False
        return named

    everywhere(own, from_server)


@mutant("LQ-FAIL-5", "scenarios/server-restart")
def connection_never_replaced() -> None:
    """Keeps to its first connection: once that is broken, every call fails."""
    own, cut = io.OneServer.borrow, io.Wire.cut
    broken: set[str] = set()

    def borrow(self: io.OneServer, key: str, redirection: Any) -> io.Wire:
        if broken:
            raise OSError("the connection is closed")
        return own(self, key, redirection)

    def cutting(self: io.Wire) -> None:
        broken.add("the first")
        cut(self)

    patch(io.Wire, "cut", cutting)
    patch(io.OneServer, "borrow", borrow)
