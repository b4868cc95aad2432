"""Django: connections of the database as around a request."""

from types import TracebackType

from asgiref.sync import sync_to_async
from django.db import close_old_connections

from leaseq.jobs.aio import App as AsyncApp
from leaseq.jobs.app import App
from leaseq.jobs.context import Context

__all__ = ["install"]


def install(app: App | AsyncApp) -> None:
    """Close Django's database connections that are broken or older than `CONN_MAX_AGE`, before and after each job of an App."""
    app.middleware(_Connections)


class _Connections:
    """Django keeps a connection for each thread; that of an `async def` is in the thread of `sync_to_async`."""

    def __init__(self, _context: Context) -> None:
        pass

    def __enter__(self) -> None:
        close_old_connections()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        close_old_connections()

    async def __aenter__(self) -> None:
        await sync_to_async(close_old_connections)()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await sync_to_async(close_old_connections)()
