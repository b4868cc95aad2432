"""Runs the commands and flows of one queue: `WorkQueue`, `WorkQueues` and the worker send everything through it.

`calls` sends a command and reads its reply, `blocking` does so for calls that wait. This adds what a queue
needs: closing, items that arrived too late, the registry, and work in the background.
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

from leaseq import commands
from leaseq._aio import concurrency
from leaseq._aio.blocking import BlockingCalls
from leaseq._aio.calls import NOT_CONNECTED, Calls
from leaseq._aio.lifecycle import Lifecycle
from leaseq._aio.registry import Registration
from leaseq.commands import Command, LeaseReply, pack
from leaseq.errors import LeaseqError, QueueClosedError
from leaseq.flows import Flow, Leave, Wait
from leaseq.keys import QueueKeys

T = TypeVar("T")


class Transport(Calls):
    """Runs the commands of one queue until it is closed, and the commands that must follow them.

    Attributes:
        client: the redis-py client that says where the server is.
        keys: those of the queue; of several queues, of the first.
        registration: keeps the queue in the registry.
        life: whether the queue is open.
    """

    life: Lifecycle

    def __init__(self, client: concurrency.Client, keys: QueueKeys, *, life: Lifecycle | None = None) -> None:
        super().__init__(client, keys.key("state"))
        self.client = client
        self.keys = keys
        self.registration = Registration(client, keys)
        self.life = Lifecycle(keys.name) if life is None else life
        # its calls are not refused on a closed queue: what is under way there still has to be settled
        self._waiting = BlockingCalls(Calls(client, self.key), self.life)

    @property
    def background(self) -> concurrency.Background:
        """Work that outlives the call that started it; closing waits for it."""
        return self.life.background

    async def take(self, command: Command[T]) -> T:
        """Run a command that may lease items. If the caller is interrupted, items that it did not get are released."""
        if command.undo is None:
            return await self.run(command)
        sent_at, answer = concurrency.now(), None
        with self.life:
            try:
                connection = await self.route.acquire(self.key, None)
            except NOT_CONNECTED as error:
                connection = await self._acquire_after(error)
            try:
                await connection.send_packed(command.packed or pack(command.evalsha()))
                answer = command.parse(await connection.read())
            except BaseException as error:  # noqa: BLE001 (raised there)
                answer = await self._waiting.take_after(error, connection, command, answer)
            else:
                self.route.release(connection)
            if isinstance(answer, LeaseReply):
                answer.sent_at = sent_at
            return self._unless_closed(command, answer) if self.life.closed else answer

    async def perform(self, request: Command[T] | Wait[T] | Leave) -> T | None:
        """Run one request of a flow; answers None for a Leave."""
        if isinstance(request, Leave):
            if not self.life.closed:
                await self._waiting.settle(request.settles)
            return None
        if isinstance(request, Command):
            return await self.take(request)
        with self.life:
            return self._unless_closed(request.then, await self._waiting.wait(request))

    async def drive(self, flow: Flow[T], on_answer: Callable[[T], None]) -> T:
        """Run a flow to its result; `on_answer` is called with each answer on the way."""
        answer: T | None = None
        while True:
            try:
                request = flow.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            answer = await self.perform(request)
            if answer is not None:
                on_answer(answer)

    def run_later(self, due: Sequence[Command[Any]]) -> None:
        """Run commands in the background, for an answer that arrived too late. A program that exits waits for them."""
        self._waiting.run_later(due)

    async def enter(self, leased: LeaseReply | None = None) -> None:
        """Keep the queue in the registry, after a call that added or leased (LQ-REGISTRY-2).

        `leased` are items that are not returned yet: after an interruption they are released.
        """
        if (leased is not None and not leased.items) or concurrency.now() < self.registration.due:
            return
        try:
            with contextlib.suppress(QueueClosedError), self.life:
                await self.registration.enter()
        except BaseException:
            if leased is not None:
                self.run_later(commands.release_uncounted(self.keys, leased))
            raise

    async def publish(self, died: Sequence[str]) -> None:
        """Publish the failures of items that died in a call which could not (LQ-CLIENT-8).

        Best effort: a caller that waits for such an outcome reads it again within the wait cap.
        """
        for command in commands.publications(self.keys, died):
            with contextlib.suppress(LeaseqError):
                await self.run(command)

    def publish_later(self, died: Sequence[str]) -> None:
        """`publish` in the background: the lease does not wait for it, and closing the queue does not prevent it."""
        if died:
            with contextlib.suppress(RuntimeError):  # no more threads can be started
                self.run_later(commands.publications(self.keys, died))

    def _unless_closed(self, command: Command[T], answer: T) -> T:
        """Return the answer. If the queue was closed meanwhile, release the items in it: they could not be completed."""
        if not self.life.closed or command.undo is None:
            return answer
        self.run_later(command.undo(answer))
        given: Any = answer
        if not isinstance(given, LeaseReply) or not given.completed:
            self.life.raise_if_closed()
        rest: Any = replace(given, items=[], extras={}, died={})
        return cast("T", rest)

    async def close(self) -> bool:
        """End all waits and let other calls finish; false if this has been done before."""
        return await self.life.end()
