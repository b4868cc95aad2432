"""Adding many items: in few calls, in order, with an account of what was added when it ends early."""

import itertools
from collections.abc import Callable, Iterable
from typing import Any

from leaseq import WorkQueue
from leaseq._scripts import MAX_ENTRIES
from leaseq.cli.add_input import Entry
from leaseq.cli.exit_codes import CommandError, code_of, message_for
from leaseq.errors import BadArgumentError, BadIdError, LeaseqError, QueueFullError, TooLargeError
from leaseq.parts import Parts

OnAdded = Callable[[Entry, bool], None]


class Adder:
    """Adds entries to a queue. `on_added` gets for each entry whether it was added or its id exists.

    With `wait`, waits for room if the queue is full.
    """

    def __init__(self, queue: WorkQueue, on_added: OnAdded, options: dict[str, Any], *, wait: bool) -> None:
        self._queue = queue
        self._on_added = on_added
        self._options = options
        self._wait = wait
        self.added = 0
        self.existed = 0

    def add(self, entries: Iterable[Entry]) -> None:
        """Add them. Raises CommandError, which says what was added before."""
        for options, alike in itertools.groupby(entries, lambda entry: self._options | entry.options):
            run = iter(alike)
            while batch := list(itertools.islice(run, MAX_ENTRIES)):
                self._add_batch(batch, options)

    def _add_batch(self, batch: list[Entry], options: dict[str, Any]) -> None:
        """One call, more where the queue is full, or where the server takes offence at one of the entries."""
        parts = Parts(batch)
        for part in parts:
            try:
                answers: list[Any] = self._queue.add_items([entry.item for entry in part], **options)
            except (BadArgumentError, BadIdError, TooLargeError) as error:
                remaining = self._report(part, error.answers)
                if not parts.halve(remaining):
                    raise self.refusal(error, remaining[0].position) from error
            except QueueFullError as full:
                first, *rest = self._report(part, full.answers)
                if not self._wait:
                    text = (
                        f"queue {self._queue.name} is full: it holds as many items as `leaseq configure --max-items` allows;"
                        " add later, or with --wait"
                    )
                    raise self.refusal(QueueFullError(text), first.position) from full
                try:
                    added = self._queue.add_item_when_room(first.item, **options)
                except LeaseqError as error:
                    raise self.refusal(error, first.position) from error
                self._report([first], [added])
                if rest:
                    self._add_batch(rest, options)
            except LeaseqError as error:
                remaining = self._report(part, error.answers)
                raise self.refusal(error, remaining[0].position) from error
            else:
                self._report(part, answers)

    def _report(self, batch: list[Entry], answers: list[bool | None]) -> list[Entry]:
        """Report the answers; return the entries that have none."""
        remaining = []
        for entry, answer in itertools.zip_longest(batch, answers[: len(batch)]):
            if answer is None:
                remaining.append(entry)
                continue
            self.added += answer
            self.existed += not answer
            self._on_added(entry, answer)
        return remaining

    def refusal(self, error: LeaseqError, position: str) -> CommandError:
        """Return what to end with: the error, where it was met, and how many were added before it."""
        message = message_for(error)
        return CommandError(
            f"{position}: {message} ({self.added} added before)" if position else message, code_of(error)
        )
