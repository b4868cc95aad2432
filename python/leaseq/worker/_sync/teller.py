# Generated from _aio/teller.py by python/unasync.py: do not edit.
"""Tells the server what has ended, many items in a call."""

from functools import partial
from typing import Any

from leaseq import commands
from leaseq._sync import io
from leaseq._sync.queue import LeasedItem, WorkQueue, ending, leased_items
from leaseq.commands import GivenBack
from leaseq.errors import FormatError, LeaseqError, TooLargeError
from leaseq.flows import REPLY_GRACE
from leaseq.worker.desk import Desk

OF_ONE = (FormatError, TooLargeError)
"""Errors that one item can be the cause of."""


class Teller:
    """Makes the calls that the desk asks for. Where one fails, the desk has the items again, and the error is raised."""

    def __init__(self, desk: Desk, lease_secs: float) -> None:
        self._desk = desk
        self._lease_secs = lease_secs

    def complete(self) -> None:
        """Complete a group."""
        items = self._desk.next_completions()
        self._complete(items[0].queue, items)

    def complete_and_lease(self, queue: WorkQueue, count: int) -> list[LeasedItem] | None:
        """Complete a group and lease so many, in one call; None where it did not lease."""
        items = self._desk.next_completions()
        if any(item.keep for item in items):
            self._complete(queue, items)
            return None
        command = commands.complete_and_lease(queue.keys, items, count, self._lease_secs)
        try:
            reply = ending(queue, items, partial(queue.transport.take, command))
        except LeaseqError as error:
            self._failed(queue, items, error)
            return None
        except BaseException:
            self._desk.not_completed(items, definite=False, now=io.now())
            raise
        self._desk.completed(items, reply.completed)
        queue.transport.publish_later(reply.died.get(0, ()))
        queue.transport.enter(reply)
        return leased_items(queue, reply, self._lease_secs)

    def complete_first(self, queue: WorkQueue, items: list[LeasedItem]) -> list[LeasedItem]:
        """Complete items before their handlers run; answers those that may run: this call was the one."""
        command = commands.complete(queue.keys, items)
        try:
            answers = ending(queue, items, partial(queue.transport.run, command, REPLY_GRACE))
        except OF_ONE as error:
            if len(items) == 1:
                self._desk.refused(items[0], error)
                return []
            half = len(items) // 2
            first = self.complete_first(queue, items[:half])
            return first + self.complete_first(queue, items[half:])
        self._desk.completed(items, answers)
        return [item for item, answer in zip(items, answers, strict=True) if answer]

    def give_back(self) -> None:
        """Give back a group."""
        given = self._desk.next_returns()
        first: Any = given[0].item
        self._give_back(first.queue, given)

    def _complete(self, queue: WorkQueue, items: list[LeasedItem]) -> None:
        command = commands.complete(queue.keys, items)
        try:
            answers = ending(queue, items, partial(queue.transport.run, command, REPLY_GRACE))
        except LeaseqError as error:
            self._failed(queue, items, error)
        except BaseException:
            self._desk.not_completed(items, definite=False, now=io.now())
            raise
        else:
            self._desk.completed(items, answers)

    def _failed(self, queue: WorkQueue, items: list[LeasedItem], error: LeaseqError) -> None:
        """One item can make the server refuse all: halve until it is alone."""
        if not isinstance(error, OF_ONE):
            self._desk.not_completed(items, definite=error.definite, now=io.now())
            raise error
        if len(items) == 1:
            self._desk.refused(items[0], error)
            return
        half = len(items) // 2
        try:
            self._complete(queue, items[:half])
        except LeaseqError:
            self._desk.not_completed(items[half:], definite=True, now=io.now())
            raise
        self._complete(queue, items[half:])

    def _give_back(self, queue: WorkQueue, given: list[GivenBack]) -> None:
        command = commands.release_each(queue.keys, given)
        try:
            call = partial(queue.transport.run, command, REPLY_GRACE)
            answers = ending(queue, [one.item for one in given], call)
        except LeaseqError as error:
            if not isinstance(error, OF_ONE):
                self._desk.not_returned(given)
                raise
            if len(given) == 1:
                self._desk.refused(given[0].item, error)
                return
        else:
            self._desk.returned(given, answers)
            return
        half = len(given) // 2
        try:
            self._give_back(queue, given[:half])
        except LeaseqError:
            self._desk.not_returned(given[half:])
            raise
        self._give_back(queue, given[half:])
