"""A shop that writes its orders and their jobs in one transaction, and a relay beside it."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any, Self

import sqlalchemy as sa
from support.job_app import JobAppFlavour, until

from leaseq.jobs import App
from leaseq.outbox import Relay
from leaseq.outbox.sqlalchemy import Outbox, rows

if TYPE_CHECKING:
    from collections.abc import Iterator


def _do_not_sync(connection: Any, _record: object) -> None:
    """Let SQLite wait for no disk: the machine does not crash in a test."""
    connection.execute("PRAGMA synchronous = OFF")


class Shop:
    """An App, an outbox and its database. A context manager.

    Attributes:
        ran: the numbers of the orders whose job `confirm` ran, in order.
    """

    def __init__(self, url: str, database: str) -> None:
        self.url = url
        self.database = database
        self.app = App(url)
        self.engine = sa.create_engine(database)
        if self.engine.dialect.name == "sqlite":
            sa.event.listen(self.engine, "connect", _do_not_sync)
        self.metadata = sa.MetaData()
        self.orders = sa.Table("orders", self.metadata, sa.Column("number", sa.Integer, primary_key=True))
        self.outbox = Outbox(self.app, self.metadata)
        self.metadata.create_all(self.engine)
        self.ran: list[int] = []

        @self.app.job(name="confirm")
        def confirm(number: int) -> int:
            self.ran.append(number)
            return number

        self.confirm = confirm

    def order(self, number: int, **options: Any) -> str:
        """Write an order and its job, and commit. Return the job's id."""
        with self.engine.begin() as connection:
            connection.execute(self.orders.insert().values(number=number))
            return self.outbox.add(connection, self.confirm.with_options(**options).call(number))

    def fail_to_order(self, number: int) -> None:
        """Write an order and its job, and roll back."""
        with self.engine.connect() as connection:
            connection.execute(self.orders.insert().values(number=number))
            self.outbox.add(connection, self.confirm.call(number))
            connection.rollback()

    def waiting(self) -> list[Any]:
        """The rows of the outbox, in order."""
        with self.engine.connect() as connection:
            return list(connection.execute(sa.select(self.outbox.table).order_by(self.outbox.table.c.id)))

    def relay(self, **options: Any) -> Relay:
        return Relay(self.url, rows(self.engine), **{"poll": 0.01, **options})

    def relay_once(self) -> int:
        """Hand on what is there, with a new relay. Return the number of items."""
        with self.relay() as relay:
            return relay.run_once()

    @contextlib.contextmanager
    def relaying(self, **options: Any) -> Iterator[Relay]:
        """A relay in a thread until the block ends."""
        with self.relay(**options) as relay:
            thread = threading.Thread(target=relay.run)
            thread.start()
            try:
                yield relay
            finally:
                relay.stop()
                thread.join()

    def until_handed_on(self) -> None:
        until(lambda: not self.waiting())

    def work(self) -> list[int]:
        """Run the jobs that are ready. Return the numbers of all orders whose job ran so far."""
        with JobAppFlavour(self.app, asynchronous=True) as flavour:
            flavour.burst()
        return self.ran

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.app.close()
        self.engine.dispose()
