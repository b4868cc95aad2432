# Generated from _aio/base.py by python/unasync.py: do not edit.
"""What all parts of a queue share: its server, running commands, closing."""

import contextlib
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from leaseq import commands, flows
from leaseq._sync import io
from leaseq._sync.heart import Heart
from leaseq._sync.opening import OpenedServer
from leaseq._sync.registry import Registration
from leaseq._sync.transport import Transport
from leaseq.commands import Command, LeaseReply
from leaseq.errors import LeaseqError, QueueClosedError
from leaseq.flows import Flow
from leaseq.keys import NamedQueue, QueueKeys
from leaseq.results import Outcome

T = TypeVar("T")
Member = TypeVar("Member")


class QueueBase(NamedQueue):
    """A queue that can be opened and closed."""

    def __init__(self, name: str, server: str | io.Client | None = None, *, group: str | None = None) -> None:
        super().__init__(QueueKeys(name, group))
        opened = OpenedServer(server, f"queue {name!r}", "WorkQueue(name, 'redis://localhost')")
        self._server = opened
        self._place = opened.route.place
        self._transport = Transport(opened.client, self._keys)
        self._registration = Registration(opened.client, self._keys)
        self._heart = Heart(self._transport, self._keys)

    def close(self) -> None:
        """Close the queue: waiting calls raise QueueClosedError, and so does every later call. Held items stay held."""
        self._heart.end()
        if self._transport.close():
            self._server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{type(self).__name__} {self.name!r}>"

    def _drive(self, flow: Flow[T]) -> T:
        """Do what a flow asks, until it answers."""
        return self._transport.drive(flow, self._heard)

    def _enter(self, leased: LeaseReply | None = None) -> None:
        """Keep this queue in the registry, after a call that added or leased (LQ-REGISTRY-2).

        `leased` are items that nobody has yet: interrupted, they go back.
        """
        if (leased is not None and not leased.items) or io.now() < self._registration.due:
            return
        try:
            with contextlib.suppress(QueueClosedError), self._transport.life:
                self._registration.enter()
        except BaseException:
            if leased is not None:
                self._transport.run_later(commands.give_back(self._keys, leased))
            raise

    def _heard(self, answer: Any) -> None:
        if isinstance(answer, LeaseReply):
            self._publish_later(answer.died.get(0, ()))

    def _publish_later(self, died: Sequence[str]) -> None:
        """In the background: whoever leased does not wait for it, nor does a close that comes meanwhile prevent it."""
        if died:
            with contextlib.suppress(RuntimeError):  # no more threads can be started
                self._transport.run_later(self._publications(died))

    def _publish(self, died: Sequence[str]) -> None:
        for command in self._publications(died):
            with contextlib.suppress(LeaseqError):
                self._transport.run(command)

    def _publications(self, died: Sequence[str]) -> list[Command[list[Outcome]]]:
        """The calls that publish the failures of items that died in a call which could not (LQ-CLIENT-8).

        Best effort: whoever waits for such an outcome looks for itself within the wait cap.
        """
        return [commands.outcome(self._keys, chunk) for chunk in flows.chunks(died)]

    def _in_chunks(
        self, chunks: Iterable[list[Member]], make: Callable[[list[Member]], Command[list[T]]]
    ) -> list[T]:
        """One call for each chunk, one answer for each member. An error has the answers so far."""
        answers: list[T] = []
        chunk: list[Member] = []
        try:
            for chunk in chunks:
                answered = self._transport.run(make(chunk))
                answers += answered
        except LeaseqError as error:
            error.answers = answers
            error._in_doubt = len(chunk)
            raise
        return answers
