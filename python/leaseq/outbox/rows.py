"""The rows of an outbox, as a relay sees them in any database."""

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol


class Place(NamedTuple):
    """The queue of a row, and its group."""

    queue: str
    group: str

    def __str__(self) -> str:
        return f"queue {self.queue} of group {self.group}"


class Row(NamedTuple):
    """A row that waits.

    Attributes:
        number: the key of the row; later rows have greater ones.
        item_id: the id of its item.
        item: the item, as `record` reads it.
        tried: the server's time before a relay tried for the first time to hand it on, in seconds since 1970.
    """

    number: int
    item_id: str
    item: str
    tried: float


class LockedRows(Protocol):
    """Rows that only this relay has, in one transaction. Changes count once it is committed.

    Attributes:
        rows: in order of their numbers.
    """

    rows: Sequence[Row]

    def delete(self, numbers: Collection[int]) -> None:
        """Delete rows that were handed on."""

    def put_back(self, numbers: Collection[int]) -> None:
        """Forget that rows were tried: the queue has none of them."""

    def refuse(self, number: int, error: str) -> None:
        """Set a row apart that cannot be handed on."""


class Rows(Protocol):
    """The table of an outbox. Rows that were refused are not looked at.

    Attributes:
        name: of the database, for the log; without a password.
        errors: the exceptions of the database.
    """

    name: str
    errors: tuple[type[Exception], ...]

    def oldest(self, without: Collection[Place]) -> Place | None:
        """Return the queue of the row with the lowest number, except for these queues. None: there is no row."""

    def try_now(self, place: Place, limit: int, now: float) -> list[int]:
        """Note the server's time in the first rows of a queue that have none, and commit. Leave out rows that others have locked.

        Return the numbers of the first rows, up to `limit`, also of those that had a time.
        """

    def locked(self, numbers: Collection[int]) -> AbstractContextManager[LockedRows]:
        """Lock those rows of these that are there, were tried, and are not locked. Commit at the end; roll back after an exception."""
