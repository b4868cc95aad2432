"""What all parts of a queue share: its server, running commands, closing."""

import contextlib
import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from leaseq import commands, flows
from leaseq._aio import io
from leaseq._aio.heart import Heart
from leaseq._aio.transport import Transport
from leaseq.commands import Command, LeaseReply
from leaseq.embedded import EmbeddedServer, embedded
from leaseq.errors import BadArgumentError, LeaseqError, NoServerError
from leaseq.flows import Flow
from leaseq.keys import NamedQueue, QueueKeys

T = TypeVar("T")
Member = TypeVar("Member")


class QueueBase(NamedQueue):
    """A queue that can be opened and closed."""

    def __init__(self, name: str, server: str | io.Client | None = None, *, group: str | None = None) -> None:
        super().__init__(QueueKeys(name, group))
        self._embedded: EmbeddedServer | None = None
        url = os.environ.get("REDIS_URL") if server is None else server
        if url is None or url == "":
            message = (
                f"no server for queue {name!r}: pass a URL (WorkQueue(name, 'redis://localhost')), pass a redis client,"
                " or set $REDIS_URL; 'embedded:DIR' starts a server of its own"
            )
            raise NoServerError(message)
        owned = isinstance(url, str)
        if isinstance(url, str):
            client: io.Client = self._open(url)
        else:
            client = io.check_client(url)
        self._place = io.address(client)
        self._transport = Transport(client, self._keys, owned=owned)
        self._heart = Heart(self._transport, self._keys)

    def _open(self, url: str) -> io.Client:
        if url.startswith("embedded:"):
            folder = url.removeprefix("embedded:")
            if not folder:
                raise BadArgumentError("embedded: needs a folder, as in 'embedded:my-queue-data'")
            self._embedded = embedded(folder)
            url = self._embedded.url
        try:
            return io.connect(url)
        except (ValueError, TypeError):
            # neither the URL nor the cause, which quotes it: there may be a password in it
            message = (
                "this is not a server URL, which looks like redis://user:password@host:6379/0, rediss://...,"
                " unix://path or embedded:DIR"
            )
            raise BadArgumentError(message) from None

    async def close(self) -> None:
        """Close the queue: waiting calls raise QueueClosedError, and so does every later call. Held items stay held."""
        await self._heart.end()
        await self._transport.close()
        if self._embedded is not None:
            self._embedded.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{type(self).__name__} {self.name!r}>"

    async def _drive(self, flow: Flow[T]) -> T:
        """Do what a flow asks, until it answers."""
        return await self._transport.drive(flow, self._heard)

    def _heard(self, answer: Any) -> None:
        if isinstance(answer, LeaseReply):
            self._publish_later(answer.died.get(0, ()))

    def _publish_later(self, died: Sequence[str]) -> None:
        """In the background: whoever leased does not wait for it, and its items cannot be lost meanwhile."""
        if died:
            with contextlib.suppress(RuntimeError):  # no more threads can be started
                self._transport.background.begin(partial(self._publish, died), finish=True)

    async def _publish(self, ids: Sequence[str]) -> None:
        """Publish the failures of items that died in a call which could not (LQ-CLIENT-8).

        Best effort: whoever waits for such an outcome looks for itself within the wait cap.
        """
        for chunk in flows.chunks(ids):
            with contextlib.suppress(LeaseqError):
                await self._transport.run(commands.outcome(self._keys, chunk))

    async def _in_chunks(
        self, chunks: Iterable[list[Member]], make: Callable[[list[Member]], Command[list[T]]]
    ) -> list[T]:
        """One call for each chunk, one answer for each member. An error has the answers so far."""
        answers: list[T] = []
        chunk: list[Member] = []
        try:
            for chunk in chunks:
                answered = await self._transport.run(make(chunk))
                answers += answered
        except LeaseqError as error:
            error.answers = answers
            error._in_doubt = 0 if error.definite else len(chunk)
            raise
        return answers
