"""The command: `python -m leaseq_demo`."""

import json
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import click
import redis
from rich.console import Console

import leaseq
from leaseq.embedded import embedded
from leaseq_demo import view
from leaseq_demo.result import FEWEST_KILLS, Result
from leaseq_demo.run import Options, Run

_DEFAULT = Options()

NO_SERVER = 3
"""The exit code where the server is away or refuses, or the demo cannot go on."""


@click.command("leaseq_demo")
@click.option("--items", default=_DEFAULT.items, show_default=True, type=click.IntRange(100, 1_000_000))
@click.option("--workers", default=_DEFAULT.workers, show_default=True, type=click.IntRange(1, 100))
@click.option(
    "--kills",
    default=_DEFAULT.kills,
    show_default=True,
    type=click.IntRange(FEWEST_KILLS, 1000),
    help="The number of workers that are killed while they hold an item.",
)
@click.option(
    "--lease-secs",
    default=_DEFAULT.lease_secs,
    show_default=True,
    type=click.FloatRange(0.2, 3600),
    help="How long a lease lasts: an item of a killed worker comes back after that.",
)
@click.option("--seed", default=_DEFAULT.seed, show_default=True, help="Decides who is killed and when.")
@click.option("--url", "-u", help="A Redis or Valkey server; else one is started in a temporary folder.")
@click.option(
    "--dir",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder of the server that is started; it is kept.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON; progress goes to stderr.")
def demo(
    *,
    url: str | None,
    folder: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Watch workers die and their work survive.

    Worker processes count the words of a text, piece by piece. Some are killed with SIGKILL while they hold a piece;
    its lease ends, another worker takes it, and the sum is right. Ends with 1 if all was not as promised.

    \b
    Examples:
      make demo
      python -m leaseq_demo --workers 8 --kills 20 --json
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    if url is not None and folder is not None:
        raise click.UsageError("--url and --dir exclude each other")
    _check(url)
    options = Options(**given)
    console = Console(stderr=as_json, highlight=False)
    try:
        with _ended_by_signals():
            result = _run(url, folder, options, console)
    except KeyboardInterrupt:
        console.print("Interrupted. The workers and the server are stopped.")
        sys.exit(130)
    except (leaseq.LeaseqError, redis.RedisError) as error:
        click.echo(f"demo: {error}", err=True)
        sys.exit(NO_SERVER)
    if as_json:
        click.echo(json.dumps(result.as_dict(), indent=2))
    else:
        view.report(console, result)
    sys.exit(result.exit_code())


def _check(url: str | None) -> None:
    try:
        if url is not None:
            redis.Redis.from_url(url).close()
    except ValueError:
        # without the cause, which may quote a password
        raise click.BadParameter(
            "this is no URL of a server, such as redis://localhost", param_hint="--url"
        ) from None


def _run(url: str | None, folder: Path | None, options: Options, console: Console) -> Result:
    console.print(view.title(options))
    console.print()
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="leaseq-demo-")))
        if url is None:
            url = stack.enter_context(embedded(folder or scratch / "server")).url
        show = stack.enter_context(view.view(console))
        return Run(url, scratch, options).go(show)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Make SIGTERM and SIGHUP end the demo as tidily as Ctrl-C does."""

    def end(number: int, _frame: FrameType | None) -> None:
        sys.exit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


if __name__ == "__main__":
    demo()
