"""Adds of many tasks go along in few calls.

Written by hand for asyncio and for threads, which share no calls.
"""

import asyncio
import contextlib
import copy
import weakref
from collections import deque
from dataclasses import dataclass, field
from functools import partial

from leaseq import commands
from leaseq._aio import concurrency
from leaseq._aio.executor import Executor
from leaseq._scripts import MAX_ENTRIES
from leaseq.commands import Command
from leaseq.errors import BadArgumentError, BadIdError, ReplyLostError, TooLargeError, UnavailableError

AT_ONCE = 4
"""Calls that are under way at a time, in each event loop."""

MAX_BYTES = 4 * 1024 * 1024
"""The most data in one call, unless one item alone has more."""


OF_AN_ITEM = (BadArgumentError, BadIdError, TooLargeError)
"""Refusals that one of several items may have caused: the server did nothing then (LQ-CALL-5)."""

DATA = ("1", "id", "data").index("data")
"""The place of an item's data in the arguments of its add."""


@dataclass(slots=True, eq=False)
class Entry:
    """An add that goes along in a call of several."""

    command: Command[int]
    answer: "asyncio.Future[int]"
    until: float
    """When it is too late to send it, on `concurrency.now`."""

    def give(self, answer: int) -> None:
        """Answer, unless the caller is gone."""
        if not self.answer.done():
            self.answer.set_result(answer)

    def fail(self, error: Exception) -> None:
        """The same with an error. Each caller gets a separate one: what it raises collects its way."""
        if not self.answer.done():
            mine = copy.copy(error)
            mine.__cause__ = error.__cause__
            self.answer.set_exception(mine)


@dataclass(slots=True, eq=False)
class Line:
    """The adds of one event loop: how many calls are under way, and what waits."""

    calls: int = 0
    waiting: deque[Entry] = field(default_factory=deque)

    def take(self) -> list[Entry]:
        """Take what one call takes. A caller that is gone has taken its item back."""
        group: list[Entry] = []
        size, now = 0, concurrency.now()
        while self.waiting and len(group) < MAX_ENTRIES:
            entry = self.waiting[0]
            if entry.until < now:
                entry.fail(
                    UnavailableError(
                        "the server has not answered earlier calls in time: this one was not sent"
                    )
                )
            if not entry.answer.done():
                size += len(entry.command.arguments[DATA])
                if group and size > MAX_BYTES:
                    break
                group.append(entry)
            self.waiting.popleft()
        return group


class Gatherer:
    """Runs adds of one item. While `AT_ONCE` calls are under way, further adds wait, and go along in the next call.

    A single caller does not wait. An error reaches the caller whose item caused it (LQ-CALL-5); nothing is sent twice (LQ-CLIENT-1).
    """

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._lines: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Line] = weakref.WeakKeyDictionary()

    async def run(self, command: Command[int]) -> int:
        """Run an add of one item and return its answer. Raises `leaseq.errors`."""
        loop = asyncio.get_running_loop()
        line = self._lines.get(loop) or self._new_line(loop)
        if line.calls >= AT_ONCE:
            until = concurrency.now() + self._executor.route.call_secs
            return await self._wait(line, Entry(command, loop.create_future(), until))
        line.calls += 1
        try:
            return await self._executor.run(command)
        finally:
            self._proceed(line)

    async def _wait(self, line: Line, entry: Entry) -> int:
        """Wait for a call that this add goes along in; closing the queue waits for it too."""
        life, caller = self._executor.life, concurrency.caller()
        calls = life.calls
        calls.append(caller)
        try:
            life.raise_if_closed("is closed")
            line.waiting.append(entry)
            return await entry.answer
        finally:
            calls.remove(caller)

    def _new_line(self, loop: asyncio.AbstractEventLoop) -> Line:
        """Start the line of an event loop, and drop those of loops that were closed (LQ-CLIENT-18)."""
        for each in list(self._lines):
            if each.is_closed():
                self._lines.pop(each, None)
        line = self._lines[loop] = Line()
        return line

    def _proceed(self, line: Line) -> None:
        """Make the next call: another has ended."""
        with contextlib.suppress(RuntimeError):  # the loop is closed, with all that wait
            if self._lines.get(asyncio.get_running_loop()) is line and (group := line.take()):
                self._executor.background.begin(partial(self._send, line, group), finish=True)
                return
        line.calls -= 1

    async def _send(self, line: Line, group: list[Entry]) -> None:
        try:
            await self._run_together(group)
            await asyncio.sleep(0)  # callers that go on at once with the next item go along
        except BaseException:
            for entry in group:
                entry.fail(ReplyLostError("the call was stopped before its reply came"))
            raise
        finally:
            self._proceed(line)

    async def _run_together(self, group: list[Entry]) -> None:
        """Make one call. If it is refused for an item, each half goes alone, until the error reaches that. Other errors reach all."""
        executor = self._executor
        open_still = Executor(executor.client, executor.key, executor.queues)  # closing waits for the callers
        try:
            answers = await open_still.run(commands.add_together([entry.command for entry in group]))
        except Exception as error:  # noqa: BLE001 (raised by the callers)
            if len(group) > 1 and isinstance(error, OF_AN_ITEM):
                half = len(group) // 2
                await self._run_together(group[:half])
                await self._run_together(group[half:])
                return
            for entry in group:
                entry.fail(error)
        else:
            for entry, answer in zip(group, answers, strict=True):
                entry.give(answer)


def gather_adds(executor: Executor) -> Gatherer:
    """Return what runs the adds of one item for all tasks."""
    return Gatherer(executor)
