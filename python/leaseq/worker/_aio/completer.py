"""The reports of ended items to the server, many items in a call."""

from typing import Any

from leaseq import commands
from leaseq._aio import concurrency
from leaseq._aio.queue import LeasedItem, WorkQueue, end_leases, leased_items
from leaseq.commands import Completion
from leaseq.errors import FormatError, LeaseqError, TooLargeError
from leaseq.flows import REPLY_GRACE
from leaseq.parts import Parts
from leaseq.worker.in_flight import InFlight

OF_ONE = (FormatError, TooLargeError)
"""Errors that one item can be the cause of."""


class Completer:
    """Reports ended items, in the groups of `in_flight`.

    If a call fails, its items go back to `in_flight`, and the error is raised.
    """

    def __init__(self, in_flight: InFlight, lease_secs: float) -> None:
        self._in_flight = in_flight
        self._lease_secs = lease_secs

    async def complete(self) -> None:
        """Complete a group."""
        items = self._in_flight.next_completions()
        await self._complete(items[0].queue, items)

    async def complete_and_lease(self, queue: WorkQueue, count: int) -> list[LeasedItem] | None:
        """Complete a group and lease `count` items, in one call; None if it did not lease."""
        items = self._in_flight.next_completions()
        if any(item.keep for item in items):
            await self._complete(queue, items)
            return None
        command = commands.complete_and_lease(queue.keys, items, count, self._lease_secs)
        try:
            reply = await end_leases(queue, items, command, REPLY_GRACE)
        except OF_ONE:
            await self._complete(queue, items)
            return None
        except BaseException as error:
            self._not_completed(items, error)
            raise
        self._in_flight.completed(items, reply.completed)
        return leased_items(queue, reply, self._lease_secs)

    async def complete_first(self, queue: WorkQueue, items: list[LeasedItem]) -> list[LeasedItem]:
        """Complete items before their handlers run. Return those that this call completed: only these may run."""
        return await self._finish(queue, Parts(items))

    async def release_returned(self) -> None:
        """Give back a group."""
        given = self._in_flight.next_returns()
        first: Any = given[0].item
        queue: WorkQueue = first.queue
        parts = Parts(given)
        for part in parts:
            try:
                command = commands.release_each(queue.keys, part)
                answers = await end_leases(queue, [one.item for one in part], command, REPLY_GRACE)
            except OF_ONE as error:
                if not parts.halve(part):
                    self._in_flight.refused(part[0].item, error)
            except BaseException:
                under_way, remaining = parts.sent_and_remaining()
                self._in_flight.requeue_releases(under_way + remaining)
                raise
            else:
                self._in_flight.returned(part, answers)

    async def _complete(self, queue: WorkQueue, items: list[LeasedItem]) -> None:
        parts = Parts(items)
        try:
            await self._finish(queue, parts)
        except BaseException as error:
            under_way, remaining = parts.sent_and_remaining()
            self._in_flight.requeue_completions(remaining, definite=True, now=concurrency.now())
            self._not_completed(under_way, error)
            raise

    async def _finish(self, queue: WorkQueue, parts: Parts[LeasedItem]) -> list[LeasedItem]:
        won: list[LeasedItem] = []
        for part in parts:
            command = commands.complete(queue.keys, [Completion(item) for item in part])
            try:
                answers = [bool(done) for done in await end_leases(queue, part, command, REPLY_GRACE)]
            except OF_ONE as error:
                if not parts.halve(part):
                    self._in_flight.refused(part[0], error)
            else:
                self._in_flight.completed(part, answers)
                won += [item for item, answer in zip(part, answers, strict=True) if answer]
        return won

    def _not_completed(self, items: list[LeasedItem], error: BaseException) -> None:
        definite = isinstance(error, LeaseqError) and error.definite
        self._in_flight.requeue_completions(items, definite=definite, now=concurrency.now())
