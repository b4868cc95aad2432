"""What a queue runs its calls with."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

from leaseq._aio import io
from leaseq._aio.calls import Calls
from leaseq._aio.life import Life
from leaseq._aio.waiting import Waiting
from leaseq.commands import Command, LeaseReply
from leaseq.flows import Flow, Leave, Wait
from leaseq.keys import QueueKeys

T = TypeVar("T")


class Transport:
    """Runs the commands of one queue, until it is closed."""

    def __init__(self, client: io.Client, keys: QueueKeys, *, life: Life | None = None) -> None:
        self.client = client
        self.life = Life(keys.name) if life is None else life
        self._calls = Calls(client, keys.key("state"))
        self._waiting = Waiting(self._calls, self.life)

    @property
    def background(self) -> io.Background:
        """Work that outlives the call that began it; closing waits for it."""
        return self.life.background

    async def run(self, command: Command[T], patience: float | None = None) -> T:
        """Run a command; its reply may take `patience` seconds, or what the client grants. Raises `leaseq.errors`."""
        with self.life:
            return await self._calls.run(command, patience)

    async def take(self, command: Command[T]) -> T:
        """Run a command that may take something. What nobody gets, for an interruption, goes back at once."""
        if command.undo is None:
            return await self.run(command)
        with self.life:
            return self._unless_closed(command, await self._waiting.take(command))

    async def perform(self, request: Command[T] | Wait[T] | Leave) -> T | None:
        """Do what a flow asks."""
        if isinstance(request, Leave):
            if not self.life.closed:
                await self._waiting.leave(request.settles)
            return None
        if isinstance(request, Command):
            return await self.take(request)
        with self.life:
            return self._unless_closed(request.then, await self._waiting.wait(request))

    async def drive(self, flow: Flow[T], heard: Callable[[T], None]) -> T:
        """Do what a flow asks until it answers; `heard` is called with each answer on the way."""
        answer: T | None = None
        while True:
            try:
                request = flow.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            answer = await self.perform(request)
            if answer is not None:
                heard(answer)

    def run_later(self, due: Sequence[Command[Any]]) -> None:
        """Run what is due for an answer that nobody gets. A program that ends waits for that."""
        self._waiting.run_later(due)

    def _unless_closed(self, command: Command[T], answer: T) -> T:
        """The answer. What was leased for a queue that is closed by now goes back: nobody could complete it there."""
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
