"""Adding items to a queue."""

from collections.abc import Iterable
from typing import Any, TypeVar

from leaseq import commands, flows
from leaseq._aio import io
from leaseq._aio.base import QueueBase
from leaseq.commands import Command
from leaseq.commands.adding import Options
from leaseq.errors import LeaseqError, QueueFullError
from leaseq.item import Item

T = TypeVar("T")


class Adding(QueueBase):
    """The part of a queue that takes items in."""

    async def add_item(
        self,
        item: Item,
        *,
        delay: float = 0,
        not_before: float | None = None,
        priority: int = 0,
        max_attempts: int | None = None,
        expires_in: float | None = None,
        dead_on_expiry: bool = False,
        keep: float | None = None,
        pipe: Any = None,
    ) -> bool:
        """Add an item: true if it was added, false if its id exists, which changes nothing (LQ-ADD-1).

        It becomes leasable at once, or after `delay` seconds, or at `not_before` (seconds since 1970, compared with
        the server's clock). `priority` is -7..7, higher first. After `max_attempts` leases it dies instead of being
        requeued; 0 is never, None what `configure` says. An item that nobody has leased `expires_in` seconds from now
        is dropped, or with `dead_on_expiry` dies. With `keep` its outcome (a result, or the error that it died of) is
        kept for so many seconds: see `outcome`. It may have an outcome of an earlier item of its id: that is forgotten.

        Raises QueueFullError when the queue holds as many items as `configure` allows; `add_item_when_room` waits.
        Raises TooLargeError for too much data or too long headers. Not safe to repeat after ReplyLostError: the item
        may have been completed in between.

        With `pipe`, a pipeline of the caller's, the call is only queued there (also inside MULTI) and the answer is
        false; the pipeline's own answer is the time of creation, or 0 if the id existed, or -1 if the queue was full.
        The pipeline's own retries (redis-py's default) may send the add twice, and an item that was completed in
        between runs again: use a client with Retry(NoBackoff(), 0), or make sure that an item may run twice.
        """
        options = commands.add_options(
            delay=delay,
            not_before=not_before,
            priority=priority,
            max_attempts=max_attempts,
            expires_in=expires_in,
            dead_on_expiry=dead_on_expiry,
            keep=keep,
        )
        command = commands.add_one(self._keys, item, options)
        if pipe is not None:
            io.check_pipe(pipe).execute_command(*command.eval())
            return False
        answer = await self._transport.run(command)
        if io.now() >= self._registration.due:
            await self._enter()
        if answer is None:
            raise self._full([None])
        return answer

    async def add_items(
        self,
        items: Iterable[Item],
        *,
        delay: float = 0,
        not_before: float | None = None,
        priority: int = 0,
        max_attempts: int | None = None,
        expires_in: float | None = None,
        dead_on_expiry: bool = False,
        keep: float | None = None,
        pipe: Any = None,
    ) -> list[bool]:
        """Add many items; answers for each, in order. Up to 256 go in one call; see `add_item`.

        When a call fails, what the calls before it answered is in the error's `answers`. QueueFullError comes after the
        first call in which there was no room for some; its `answers` have that call too, with None for no room. What
        `add_item` says about the retries of `pipe` holds here too.
        """
        options = commands.add_options(
            delay=delay,
            not_before=not_before,
            priority=priority,
            max_attempts=max_attempts,
            expires_in=expires_in,
            dead_on_expiry=dead_on_expiry,
            keep=keep,
        )
        chunks = flows.chunks(flows.many(items, "items"), flows.data_size)
        if pipe is not None:
            # all are checked before the first is queued
            for command in [commands.add(self._keys, chunk, options) for chunk in chunks]:
                io.check_pipe(pipe).execute_command(*command.eval())
            return []
        return await self._add_all(chunks, options)

    async def add_item_when_room(
        self,
        item: Item,
        *,
        timeout: float | None = None,
        delay: float = 0,
        not_before: float | None = None,
        priority: int = 0,
        max_attempts: int | None = None,
        expires_in: float | None = None,
        dead_on_expiry: bool = False,
        keep: float | None = None,
    ) -> bool:
        """Add an item, and where the queue is full wait for room without polling.

        It waits up to `timeout` seconds, with None for as long as it takes. True if it was added, false if its id exists,
        which needs no room. Raises QueueFullError when the time is up.
        Otherwise as `add_item`.
        """
        options = commands.add_options(
            delay=delay,
            not_before=not_before,
            priority=priority,
            max_attempts=max_attempts,
            expires_in=expires_in,
            dead_on_expiry=dead_on_expiry,
            keep=keep,
        )
        return (await self._add_when_room([item], options, flows.give_up(timeout, io.now)))[0]

    async def add_items_when_room(
        self,
        items: Iterable[Item],
        *,
        timeout: float | None = None,
        delay: float = 0,
        not_before: float | None = None,
        priority: int = 0,
        max_attempts: int | None = None,
        expires_in: float | None = None,
        dead_on_expiry: bool = False,
        keep: float | None = None,
    ) -> list[bool]:
        """Add many items, as `add_items`, and wait for room as `add_item_when_room`.

        `timeout` is for all of them together. Each goes in once, as soon as there is room for it (LQ-ROOM-2). When the
        time is up, `answers` of the QueueFullError say of those looked at which are in, with None for no room.
        """
        options = commands.add_options(
            delay=delay,
            not_before=not_before,
            priority=priority,
            max_attempts=max_attempts,
            expires_in=expires_in,
            dead_on_expiry=dead_on_expiry,
            keep=keep,
        )
        over = flows.give_up(timeout, io.now)
        return await self._add_all(flows.chunks(flows.many(items, "items"), flows.data_size), options, over)

    async def _add_all(
        self, chunks: Iterable[list[Item]], options: Options, over: float | None = None
    ) -> list[bool]:
        """One call after the other; without `over`, none waits for room."""
        answers: list[bool] = []
        chunk: list[Item] = []
        try:
            for chunk in chunks:
                if over is None:
                    answers += self._all_in(await self._run_add(commands.add(self._keys, chunk, options)))
                else:
                    answers += await self._add_when_room(chunk, options, over)
        except LeaseqError as error:
            error.answers = [*answers, *error.answers]
            error._in_doubt = len(chunk)
            raise
        return answers

    async def _add_when_room(self, items: list[Item], options: Options, over: float) -> list[bool]:
        flow = flows.add_when_room(self._keys, items, options, over=over, clock=io.now)
        answers = await self._drive(flow)
        await self._enter()
        return self._all_in(answers)

    async def _run_add(self, command: Command[T]) -> T:
        answers = await self._transport.run(command)
        await self._enter()
        return answers

    def _all_in(self, answers: list[bool | None]) -> list[bool]:
        """The answers, if there was room for all. Raises QueueFullError."""
        added = [answer for answer in answers if answer is not None]
        if len(added) == len(answers):
            return added
        raise self._full(answers)

    def _full(self, answers: list[bool | None]) -> QueueFullError:
        message = (
            f"queue {self.name!r} is full: it holds as many items as configure(max_items=...) allows; add later, or wait"
            " with add_item_when_room"
        )
        full = QueueFullError(message)
        full.answers = answers
        return full
