"""The outbox in a database of SQLAlchemy: jobs are written in your transaction. Needs the extra `sqlalchemy`."""

import inspect
from typing import TYPE_CHECKING, Any, Final, Unpack

try:
    import sqlalchemy as sa
except ModuleNotFoundError as error:
    from leaseq import extras

    raise extras.missing("sqlalchemy", "leaseq.outbox.sqlalchemy", error) from error

from leaseq.commands.completions import AddOptions
from leaseq.errors import BadTypeError
from leaseq.item import Item
from leaseq.jobs.call import Call
from leaseq.outbox import record
from leaseq.outbox.rows import Rows
from leaseq.outbox.sql_rows import SqlRows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
    from sqlalchemy.orm import Session, scoped_session

    from leaseq.jobs.aio import App as AsyncApp
    from leaseq.jobs.app import App

    Connection = sa.Connection | Session | scoped_session[Any]
    AnyAsyncConnection = AsyncConnection | AsyncSession | async_scoped_session[Any]

__all__ = ["AsyncOutbox", "Outbox", "rows", "table"]

TABLE: Final = "leaseq_outbox"


def table(metadata: sa.MetaData, name: str = TABLE) -> sa.Table:
    """Return the table of an outbox, which is added to `metadata` if it is not there: so your migrations can create it."""
    known = metadata.tables.get(f"{metadata.schema}.{name}" if metadata.schema else name)
    if known is not None:
        return known
    return sa.Table(
        name,
        metadata,
        # SQLite numbers rows of this type only
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True),
        sa.Column("item_id", sa.String(256), nullable=False),
        sa.Column("queue", sa.String(100), nullable=False),
        sa.Column("queue_group", sa.String(100), nullable=False),
        sa.Column("item", sa.Text(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("tried", sa.Double()),
        sa.Column("error", sa.Text()),
        sqlite_autoincrement=True,  # no number is used twice
    )


class Outbox:
    """A table of your database for jobs, which a relay enqueues once their transaction is committed.

        outbox = Outbox(app, Base.metadata)

        with Session(engine) as session:
            session.add(order)
            outbox.add(session, confirm.call(order.number))
            session.commit()

    `app` is the App of the jobs; None is enough for plain items. `metadata` is that of your tables, by default a separate one,
    and `name` that of the table.

    Attributes:
        table: the table. Create it with your migrations, with `metadata.create_all`, or with
            `outbox.table.create(engine, checkfirst=True)`.
    """

    def __init__(
        self, app: "App | AsyncApp | None" = None, metadata: sa.MetaData | None = None, *, name: str = TABLE
    ) -> None:
        self.table = table(sa.MetaData() if metadata is None else metadata, name)
        self._app = app

    @property
    def aio(self) -> "AsyncOutbox":
        """The same for asyncio: `await outbox.aio.add(session, fn.call(1))`."""
        return AsyncOutbox(self)

    def add(self, connection: "Connection", call: Call[Any]) -> str:
        """Write a job to the outbox, in the transaction of a session or connection. Return its id.

        The job is enqueued once the transaction is committed, by a relay. A delay counts from now, and so does the time to
        expire. For a chain, pass `app.chain(...).then(...).call()`. The signal "enqueued" is not sent.

        Raises BadTypeError, BadIdError, BadArgumentError, SerializationError and errors of SQLAlchemy.
        """
        return _write(connection, *self.statement(call))

    def add_item(
        self,
        connection: "Connection",
        item: Item,
        queue: str,
        group: str | None = None,
        **options: Unpack[AddOptions],
    ) -> str:
        """Write a plain item for a queue to the outbox, with options as `WorkQueue.add_item` has them. Return its id.

        `group` is that of the queue, by default its name. Raises BadTypeError, BadIdError, BadNameError, BadArgumentError
        and errors of SQLAlchemy.
        """
        return _write(connection, *self.item_statement(item, queue, group, options))

    def statement(self, call: Call[Any]) -> tuple[sa.Insert, str]:
        """Return the statement that writes a job, and the job's id."""
        return self._insert(record.of_call(call, record.settings_of(self._app)))

    def item_statement(
        self, item: Item, queue: str, group: str | None, options: AddOptions
    ) -> tuple[sa.Insert, str]:
        """Return the statement that writes an item, and its id."""
        return self._insert(record.of_item(item, queue, group, record.options_of(options)))

    def _insert(self, columns: record.Columns) -> tuple[sa.Insert, str]:
        values: Mapping[str, Any] = columns
        return sa.insert(self.table).values(values), columns["item_id"]


class AsyncOutbox:
    """An outbox for asyncio: await its methods. Made by `outbox.aio`."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox

    async def add(self, connection: "AnyAsyncConnection", call: Call[Any]) -> str:
        """Write a job to the outbox; see `Outbox.add`."""
        statement, job_id = self._outbox.statement(call)
        await connection.execute(statement)
        return job_id

    async def add_item(
        self,
        connection: "AnyAsyncConnection",
        item: Item,
        queue: str,
        group: str | None = None,
        **options: Unpack[AddOptions],
    ) -> str:
        """Write a plain item to the outbox; see `Outbox.add_item`."""
        statement, item_id = self._outbox.item_statement(item, queue, group, options)
        await connection.execute(statement)
        return item_id


def rows(engine: sa.Engine, name: str = TABLE) -> Rows:
    """Return the rows of an outbox, for a `Relay`. `engine` is one for threads."""
    return SqlRows(engine, table(sa.MetaData(), name))


def _write(connection: "Connection", statement: sa.Insert, item_id: str) -> str:
    done: object = connection.execute(statement)
    if inspect.iscoroutine(done):
        done.close()
        raise BadTypeError(
            f"{type(connection).__name__} is for asyncio: write await outbox.aio.add(session, ...)"
        )
    return item_id
