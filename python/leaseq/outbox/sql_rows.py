"""The rows of an outbox in a database of SQLAlchemy."""

import contextlib
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from leaseq.outbox.rows import Place, Row


class SqlRows:
    """The table `table` in the database of an engine; see `leaseq.outbox.rows.Rows`."""

    errors: tuple[type[Exception], ...] = (SQLAlchemyError,)

    def __init__(self, engine: sa.Engine, table: sa.Table) -> None:
        self.name = f"the database {engine.url.render_as_string(hide_password=True)}"
        self._engine = engine
        self._table = table

    def oldest(self, without: Collection[Place]) -> Place | None:
        """Return the queue of the row with the lowest number, except for these queues."""
        columns = self._table.c
        waiting = sa.select(columns.queue, columns.queue_group).where(columns.error.is_(None))
        for place in without:
            waiting = waiting.where(sa.not_(self._is_in(place)))
        with self._engine.connect() as connection:
            found = connection.execute(waiting.order_by(columns.id).limit(1)).one_or_none()
        return None if found is None else Place(*found)

    def try_now(self, place: Place, limit: int, now: float) -> list[int]:
        """Note the time in the first rows of a queue, and commit. Return the numbers of rows that may be locked then."""
        columns = self._table.c
        first = (
            sa.select(columns.id)
            .where(self._is_in(place), columns.error.is_(None))
            .order_by(columns.id)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        with self._transaction() as connection:
            numbers = list(connection.execute(first).scalars())
            fresh = self._table.update().where(columns.id.in_(numbers), columns.tried.is_(None))
            connection.execute(fresh.values(tried=now))
        return numbers

    @contextlib.contextmanager
    def locked(self, numbers: Collection[int]) -> Iterator["LockedSqlRows"]:
        """Lock those rows of these that are there, were tried, and are not locked."""
        columns = self._table.c
        chosen = (
            sa.select(columns.id, columns.item_id, columns.item, columns.tried)
            .where(columns.id.in_(numbers), columns.error.is_(None), columns.tried.is_not(None))
            .order_by(columns.id)
            .with_for_update(skip_locked=True)
        )
        with self._transaction() as connection:
            found = [Row(*each) for each in connection.execute(chosen)]
            yield LockedSqlRows(connection, self._table, found)

    def _is_in(self, place: Place) -> sa.ColumnElement[bool]:
        return sa.and_(
            self._table.c.queue == place.queue,
            self._table.c.queue_group == place.group,
        )

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sa.Connection]:
        with self._engine.begin() as connection:
            if connection.dialect.name == "sqlite":
                # it has no locks for rows: a write takes that of the whole file, also if there is no such row
                connection.execute(self._table.update().where(self._table.c.id == -1).values(tried=None))
            yield connection


class LockedSqlRows:
    """Rows that were locked on a connection; see `leaseq.outbox.rows.LockedRows`."""

    def __init__(self, connection: sa.Connection, table: sa.Table, rows: Sequence[Row]) -> None:
        self.rows = rows
        self._connection = connection
        self._table = table

    def delete(self, numbers: Collection[int]) -> None:
        """Delete rows that were handed on."""
        if numbers:
            self._connection.execute(self._table.delete().where(self._table.c.id.in_(numbers)))

    def put_back(self, numbers: Collection[int]) -> None:
        """Forget that rows were tried."""
        if numbers:
            self._update(self._table.c.id.in_(numbers), tried=None)

    def refuse(self, number: int, error: str) -> None:
        """Set a row apart that cannot be handed on."""
        self._update(self._table.c.id == number, error=error)

    def _update(self, which: sa.ColumnElement[bool], **values: Any) -> None:
        self._connection.execute(self._table.update().where(which).values(values))
