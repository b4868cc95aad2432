"""The rows of an outbox in a database of Django."""

import contextlib
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from django.db import Error, close_old_connections, connections, router, transaction

from leaseq.outbox.django.models import OutboxRow
from leaseq.outbox.rows import Place, Row


class DjangoRows:
    """The table of the outbox in one database; see `leaseq.outbox.rows.Rows`."""

    errors: tuple[type[Exception], ...] = (Error,)

    def __init__(self, using: str | None) -> None:
        self._using: str = using or router.db_for_write(OutboxRow)
        self.name = f"the database {self._using!r}"

    def oldest(self, without: Collection[Place]) -> Place | None:
        """Return the queue of the row with the lowest number, except for these queues."""
        close_old_connections()  # a broken one too
        waiting = self._waiting()
        for place in without:
            waiting = waiting.exclude(queue=place.queue, queue_group=place.group)
        found = waiting.values_list("queue", "queue_group").first()
        return None if found is None else Place(*found)

    def try_now(self, place: Place, limit: int, now: float) -> list[int]:
        """Note the time in the first rows of a queue, and commit. Return the numbers of rows that may be locked then."""
        with self._transaction():
            first = self._lock(self._waiting().filter(queue=place.queue, queue_group=place.group))
            numbers: list[int] = list(first.values_list("id", flat=True)[:limit])
            self._all().filter(id__in=numbers, tried=None).update(tried=now)
        return numbers

    @contextlib.contextmanager
    def locked(self, numbers: Collection[int]) -> Iterator["LockedDjangoRows"]:
        """Lock those rows of these that are there, were tried, and are not locked."""
        with self._transaction():
            chosen = self._lock(self._waiting().filter(id__in=numbers, tried__isnull=False))
            found = [Row(*each) for each in chosen.values_list("id", "item_id", "item", "tried")]
            yield LockedDjangoRows(self._all(), found)

    def _all(self) -> Any:
        return OutboxRow.objects.using(self._using)

    def _waiting(self) -> Any:
        return self._all().filter(error=None).order_by("id")

    def _lock(self, chosen: Any) -> Any:
        if connections[self._using].features.has_select_for_update_skip_locked:
            return chosen.select_for_update(skip_locked=True)
        return chosen

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        with transaction.atomic(using=self._using, durable=True):
            if connections[self._using].vendor == "sqlite":
                # it has no locks for rows: a write takes that of the whole file, also if there is no such row
                self._all().filter(id=-1).update(tried=None)
            yield


class LockedDjangoRows:
    """Rows that were locked in a transaction; see `leaseq.outbox.rows.LockedRows`."""

    def __init__(self, table: Any, rows: Sequence[Row]) -> None:
        self.rows = rows
        self._table = table

    def delete(self, numbers: Collection[int]) -> None:
        """Delete rows that were handed on."""
        self._table.filter(id__in=numbers).delete()

    def put_back(self, numbers: Collection[int]) -> None:
        """Forget that rows were tried."""
        self._table.filter(id__in=numbers).update(tried=None)

    def refuse(self, number: int, error: str) -> None:
        """Set a row apart that cannot be handed on."""
        self._table.filter(id=number).update(error=error)
