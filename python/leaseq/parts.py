"""Calls that the server refuses whole because of one of their members."""

from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Parts(Generic[T]):
    """A batch for one call, or for several: a refused part is halved, until the refused member is alone.

    for part in (parts := Parts(batch)):
        try:
            call(part)
        except TooLargeError:
            if not parts.halve(part):
                ...  # it is this one
    """

    def __init__(self, batch: list[T]) -> None:
        self._remaining = [batch]
        self._sent: list[T] = []

    def __iter__(self) -> Iterator[list[T]]:
        while self._remaining:
            self._sent = self._remaining.pop()
            yield self._sent

    def halve(self, part: list[T]) -> bool:
        """Let the halves of a part come next; false for a single member, which has none."""
        half = len(part) // 2
        if half:
            self._remaining += part[half:], part[:half]
        return half > 0

    def sent_and_remaining(self) -> tuple[list[T], list[T]]:
        """The part that was under way, and what was still to come, in order."""
        return self._sent, [member for part in reversed(self._remaining) for member in part]
