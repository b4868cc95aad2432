"""What a queue runs its calls with."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

from leaseq._aio import io
from leaseq._aio.calls import NOT_CONNECTED, Calls, pack
from leaseq._aio.life import Life
from leaseq._aio.waiting import Waiting
from leaseq.commands import Command, LeaseReply
from leaseq.flows import REPLY_GRACE, Flow, Leave, Wait
from leaseq.keys import QueueKeys

T = TypeVar("T")


class Transport(Calls):
    """Runs the commands of one queue, until it is closed."""

    life: Life

    def __init__(self, client: io.Client, keys: QueueKeys, *, life: Life | None = None) -> None:
        super().__init__(client, keys.key("state"))
        self.client = client
        self.life = Life(keys.name) if life is None else life
        # what it does for a queue that is closed it does all the same
        self._waiting = Waiting(Calls(client, self.key), self.life)

    @property
    def background(self) -> io.Background:
        """Work that outlives the call that began it; closing waits for it."""
        return self.life.background

    async def take(self, command: Command[T]) -> T:
        """Run a command that may take something. What nobody gets, for an interruption, goes back at once."""
        if command.undo is None:
            return await self.run(command)
        asked, answer = io.now(), None
        with self.life:
            try:
                connection = await self.route.acquire(self.key, None)
            except NOT_CONNECTED as error:
                connection = await self._acquire_after(error)
            try:
                await connection.send_packed(command.packed or pack(command.evalsha()))
                answer = command.parse(await connection.read(REPLY_GRACE))
            except BaseException as error:  # noqa: BLE001 (raised there)
                answer = await self._waiting.take_after(error, connection, command, answer)
            else:
                self.route.release(connection)
            if isinstance(answer, LeaseReply):
                answer.asked = asked
            return self._unless_closed(command, answer) if self.life.closed else answer

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
