"""`leaseq outbox`: hands on the jobs that were written to a table of a database."""

import logging
from typing import TYPE_CHECKING

import click

from leaseq._version import __version__
from leaseq.cli import stdio
from leaseq.cli.exit_codes import CommandError, ErrorHandlingGroup, ExitCode
from leaseq.cli.params import positive_duration
from leaseq.cli.server import Server, on_server
from leaseq.log_format import Format, formatter
from leaseq.log_lines import STDERR, LogLines

if TYPE_CHECKING:
    import sqlalchemy

log = logging.getLogger("leaseq.outbox")


@click.group(cls=ErrorHandlingGroup)
def outbox() -> None:
    """Hand on jobs that programs wrote to a table of their database.

    \b
    Example:
      leaseq outbox relay --database postgresql+psycopg://shop@localhost/shop
    """  # noqa: D301 (click's mark for text that is not to be wrapped)


@outbox.command()
@on_server
@click.option(
    "--database",
    "-d",
    envvar="LEASEQ_OUTBOX_DATABASE",
    show_envvar=True,
    required=True,
    metavar="URL",
    help="The database, as SQLAlchemy names it, with a driver for threads.",
)
@click.option("--table", default="leaseq_outbox", show_default=True, help="The table of the outbox.")
@click.option(
    "--poll",
    type=positive_duration,
    default="1s",
    show_default=True,
    help="The longest pause between two looks at an empty table.",
)
@click.option("--once", is_flag=True, help="Hand on what is there, and exit; with 1 if rows are left.")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Form of the log's lines; json is one object a line.",
)
def relay(*, server: Server, database: str, table: str, poll: float, once: bool, log_format: Format) -> int:
    """Add the jobs of committed transactions to their queues, until it is stopped.

    A row is deleted once the queue has its job. If the database or the server is away, it tries again with growing pauses,
    and logs that once. Rows that no queue takes get an error in their column `error`, and a line in the log. After SIGTERM
    or Ctrl-C it finishes the rows at hand and exits with 0; a second signal ends it at once, which loses nothing. Several
    relays may work on one table. Needs the extra `sqlalchemy` and a driver of the database.

    \b
    Examples:
      leaseq outbox relay --database postgresql+psycopg://shop@localhost/shop
      leaseq outbox relay --database sqlite:///shop.sqlite3 --once
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    with stdio.needing("sqlalchemy", "leaseq outbox relay: it needs", "sqlalchemy", "cronsim", "msgspec"):
        import sqlalchemy

        from leaseq.outbox import Relay
        from leaseq.outbox.sqlalchemy import rows

    handler = LogLines(STDERR, "leaseq outbox relay")
    handler.setFormatter(formatter(log_format))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    log.setLevel(logging.INFO)
    engine = _engine(database)
    try:
        with Relay(server.named(), rows(engine, table), poll=poll) as opened:
            log.info("leaseq %s hands on from table %s of %r", __version__, table, engine.url)
            if not once:
                opened.run()
                return ExitCode.DONE
            opened.run_once()
            return ExitCode.NO if opened.refused or opened.left() else ExitCode.DONE
    except sqlalchemy.exc.SQLAlchemyError as error:
        raise CommandError(f"the database: {str(error).splitlines()[0]}", ExitCode.NO_SERVER) from error
    finally:
        engine.dispose()


def _engine(database: str) -> "sqlalchemy.Engine":
    """Return the engine of a URL. Raises click.BadParameter, which does not quote the URL: it may have a password."""
    import sqlalchemy

    try:
        url = sqlalchemy.make_url(database)
    except sqlalchemy.exc.ArgumentError as error:
        raise click.BadParameter(
            "this is not the URL of a database, which looks like postgresql+psycopg://user@host/name or sqlite:///FILE",
            param_hint="--database",
        ) from error
    try:
        if url.get_dialect().is_async:
            raise click.BadParameter(
                f"{url.drivername} is for asyncio; name a driver for threads, such as postgresql+psycopg or sqlite",
                param_hint="--database",
            )
        return sqlalchemy.create_engine(url, pool_pre_ping=True)
    except (sqlalchemy.exc.NoSuchModuleError, ModuleNotFoundError) as error:
        raise click.BadParameter(f"{error}", param_hint="--database") from error
