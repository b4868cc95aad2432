"""Databases of the outbox: SQLite in quick tests, PostgreSQL in slow ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.outbox_shop import Shop
from support.postgres import PostgresServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def _postgres_servers() -> Iterator[list[PostgresServer]]:
    """The shared PostgreSQL, once a test needs it."""
    started: list[PostgresServer] = []
    yield started
    for server in started:
        server.close()


@pytest.fixture
def postgres(_postgres_servers: list[PostgresServer]) -> PostgresServer:
    """A PostgreSQL that all tests of this process share."""
    if not _postgres_servers:
        _postgres_servers.append(PostgresServer())
    return _postgres_servers[0]


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database, for SQLAlchemy."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'shop.sqlite3'}"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.new_database()


@pytest.fixture
def shop(url: str, database: str) -> Iterator[Shop]:
    """A shop with an empty outbox, on the emptied shared server."""
    with Shop(url, database) as made:
        yield made
