"""A relay that kills itself at a step: `python -m programs.outbox_relay DATABASE STEP`, the server in $REDIS_URL.

STEP is one of `STEPS`, or "" for a relay that hands on what is there and ends.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from typing import TYPE_CHECKING, Final

import sqlalchemy as sa
from support.job_app import extend_program_timeouts

from leaseq.jobs.store._sync.store import Store
from leaseq.outbox import Relay
from leaseq.outbox.sql_rows import LockedSqlRows, SqlRows
from leaseq.outbox.sqlalchemy import table

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from leaseq.commands.additions import Options
    from leaseq.durability import Durability
    from leaseq.item import Item
    from leaseq.outbox.rows import Place

STEPS: Final = (
    "before the read",
    "after the read",
    "after the note",
    "locked",
    "before the add",
    "after the add",
    "after the delete",
    "after the commit",
)

STEP: Final = sys.argv[2] if __name__ == "__main__" else ""


def reach(step: str) -> None:
    """Die here if it is the step."""
    if step == STEP:
        os.kill(os.getpid(), signal.SIGKILL)


class KilledLockedRows(LockedSqlRows):
    """Dies within the transaction."""

    def delete(self, numbers: Collection[int]) -> None:
        """Delete rows."""
        super().delete(numbers)
        if numbers:
            reach("after the delete")


class KilledRows(SqlRows):
    """Dies around the transactions."""

    def oldest(self, without: Collection[Place]) -> Place | None:
        """Look at the table."""
        reach("before the read")
        found = super().oldest(without)
        reach("after the read")
        return found

    def try_now(self, place: Place, limit: int, now: float) -> list[int]:
        """Note the time."""
        numbers = super().try_now(place, limit, now)
        reach("after the note")
        return numbers

    @contextlib.contextmanager
    def locked(self, numbers: Collection[int]) -> Iterator[LockedSqlRows]:
        """Lock rows."""
        with super().locked(numbers) as locked:
            reach("locked")
            yield KilledLockedRows(locked._connection, locked._table, locked.rows)
        reach("after the commit")


class KilledStore(Store):
    """Dies around the call that adds."""

    def add(
        self, name: str, entries: Sequence[tuple[Item, Options]], durable: Durability | None = None
    ) -> list[bool]:
        """Add items."""
        reach("before the add")
        answers = super().add(name, entries, durable)
        reach("after the add")
        return answers


class KilledRelay(Relay):
    """A relay with these parts."""

    def _open(self, group: str) -> Store:
        store = self._stores[group] = KilledStore(self._opened.client, group)
        return store


def main() -> None:
    """Hand on what is there."""
    extend_program_timeouts()
    engine = sa.create_engine(sys.argv[1])
    with KilledRelay(None, KilledRows(engine, table(sa.MetaData()))) as relay:
        relay.run_once()
    engine.dispose()


if __name__ == "__main__":
    main()
