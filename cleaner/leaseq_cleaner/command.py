"""The flags of `leaseq-cleaner`, and what they start."""

import asyncio
import contextlib
import json
import os
import signal
from pathlib import Path
from typing import Any

import click

from leaseq import __version__
from leaseq.cli.exit_codes import ExitCode
from leaseq.cli.params import address, duration
from leaseq.log_format import Format
from leaseq.status_server import Status, StatusServer
from leaseq_cleaner import logging_setup
from leaseq_cleaner.choice import LIMIT
from leaseq_cleaner.cleaner import Cleaner
from leaseq_cleaner.failures import log
from leaseq_cleaner.settings import ENVIRONMENT, read_file

LISTEN = "127.0.0.1:9742"

MEANINGS = {
    ExitCode.DONE.value: "done; the service was stopped",
    ExitCode.NO.value: "--dry-run found damage, or --once failed for a queue; the lines say which",
    ExitCode.BAD_INPUT.value: "bad input: a flag, the environment, the file, an address that is taken; nothing was done",
    ExitCode.NO_SERVER.value: "the server is away, or refuses the user or a right",
    ExitCode.BUG.value: "an error in leaseq itself: please report what it printed",
    ExitCode.IO.value: "the output could not be written: not every queue was looked at",
    ExitCode.INTERRUPTED.value: "interrupted a second time, before the calls under way had ended",
    ExitCode.BROKEN_PIPE.value: "the reader of the output has gone: not every queue was looked at",
}
_CODES = "\n".join(f"{code:>4}  {meaning}" for code, meaning in MEANINGS.items())
_EPILOG = f"""Each flag can also be set in the environment (--light-every as {ENVIRONMENT}_LIGHT_EVERY; queues apart by
spaces) and, but for --once and --dry-run, in the file (light-every = "1s", queue = ["orders"]). A flag goes before the
environment, that before the file.

\b
Exit codes:
{_CODES}"""


@click.command(
    context_settings={
        "auto_envvar_prefix": ENVIRONMENT,
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
    },
    epilog=_EPILOG,
)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    is_eager=True,
    callback=read_file,
    metavar="FILE",
    help="A TOML file with settings.",
)
@click.option(
    "--url",
    "-u",
    metavar="URL",
    help="The server: redis://HOST, rediss://, unix://, embedded:DIR, redis+sentinel://HOST,HOST/SERVICE,"
    " redis+cluster://HOST. With ?password_file=FILE the password stays out of it.  [default: $REDIS_URL]",
)
@click.option(
    "--queue",
    "-q",
    "queue",
    multiple=True,
    metavar="QUEUE",
    default=["*"],
    show_default="all of the registry",
    help="NAME or GROUP/NAME, or such a pattern with * ? []; may be given several times.",
)
@click.option(
    "--light-every",
    type=duration,
    default="1s",
    show_default=True,
    metavar="DURATION",
    help="The pause after a light clean that had something to do. Otherwise the next one"
    " comes when something is due, at most 4 s later.",
)
@click.option(
    "--deep-every",
    type=duration,
    default="6h",
    show_default=True,
    metavar="DURATION",
    help="Between two deep cleans of a queue, a tenth more or less; 0 is never.",
)
@click.option(
    "--deep-rate",
    type=click.FloatRange(0.01, 10_000),
    metavar="PAGES",
    help="Pages of 256 entries a second that deep cleans look through.  [default: 10; with --once or --dry-run 100]",
)
@click.option(
    "--dead-for",
    type=duration,
    metavar="DURATION",
    help="Delete dead letters this long after their death, such as 30d.  [default: they stay]",
)
@click.option(
    "--dead-most",
    type=click.IntRange(1),
    metavar="COUNT",
    help="Of each queue, keep the dead letters that died last, this many, and delete the others.  [default: all stay]",
)
@click.option(
    "--listen",
    default=LISTEN,
    show_default=True,
    callback=address,
    metavar="HOST:PORT",
    help="Where /metrics, /healthz and /readyz are served, or off.",
)
@click.option(
    "--metrics-limit",
    type=click.IntRange(0, 100_000),
    default=LIMIT,
    show_default=True,
    metavar="COUNT",
    help="Queues that /metrics shows singly, at most: the most urgent and the largest. The others are in sums. A queue"
    " takes 41 lines, 3 to 12 kB.",
)
@click.option(
    "--metrics-queue",
    "metrics_queue",
    multiple=True,
    metavar="QUEUE",
    help="Queues that /metrics always shows singly, in addition to these; as --queue, may be given several times.",
)
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info", show_default=True
)
@click.option(
    "--once", is_flag=True, help="Clean every queue once, light and deep, print what was done, and end."
)
@click.option("--dry-run", is_flag=True, help="Print what a deep clean would repair, write nothing, and end.")
@click.version_option(__version__, message="leaseq-cleaner %(version)s")
def program(
    *,
    config: Path | None,
    url: str | None,
    queue: tuple[str, ...],
    light_every: float,
    deep_every: float,
    deep_rate: float | None,
    dead_for: float | None,
    dead_most: int | None,
    listen: str | None,
    metrics_limit: int,
    metrics_queue: tuple[str, ...],
    log_format: Format,
    log_level: str,
    once: bool,
    dry_run: bool,
) -> int:
    """Keep the queues of a server clean, until SIGTERM or Ctrl-C.

    Expired leases are requeued, due items promoted, items and outcomes ended whose time is over; now and then each queue
    is looked through for damage, which is repaired. Any number of cleaners may run at once.
    """
    del config  # read by now
    logging_setup.set_up(log_format, log_level)
    if not url and not os.environ.get("REDIS_URL"):
        raise click.UsageError(
            f"no server: say --url redis://HOST, or set {ENVIRONMENT}_URL or REDIS_URL, or url in the file"
        )
    if light_every < 0.05:
        raise click.UsageError("--light-every is at least 50ms")
    if dead_for is not None and dead_for <= 0:
        raise click.UsageError("--dead-for is more than 0; without it dead letters stay")

    def make() -> Cleaner:
        return Cleaner(
            url or None,
            queues=queue,
            light_secs=light_every,
            deep_secs=deep_every,
            deep_rate=deep_rate,
            dead_secs=dead_for,
            dead_most=dead_most,
            metrics_limit=metrics_limit,
            metrics_queues=metrics_queue,
        )

    if once or dry_run:
        return asyncio.run(_once(make(), dry_run=dry_run, as_json=log_format == "json"))
    return asyncio.run(_serve(make(), listen))


async def _once(cleaner: Cleaner, *, dry_run: bool, as_json: bool) -> int:
    code = ExitCode.DONE
    _stop_on_signals(cleaner)
    async with contextlib.aclosing(cleaner.once(dry_run=dry_run)) as reports:
        async for report in reports:
            click.echo(json.dumps(report.record()) if as_json else report.line())
            if report.error is not None or (dry_run and report.deep.total):
                code = ExitCode.NO
    return code


async def _serve(cleaner: Cleaner, listen: str | None) -> int:
    _stop_on_signals(cleaner)
    with contextlib.ExitStack() as stack:
        web = None if listen is None else stack.enter_context(StatusServer(_status(cleaner), listen))

        def report() -> None:
            if web is not None:
                log.info("serving %s: /metrics, /healthz, /readyz", web.url)

        await cleaner.run(report)
    log.info("stopped")
    return ExitCode.DONE


def _status(cleaner: Cleaner) -> Status:
    return Status(
        cleaner.metrics.registry,
        unhealthy=lambda: "" if cleaner.alive else "the event loop hangs",
        unready=lambda: cleaner.unready,
    )


def _stop_on_signals(cleaner: Cleaner) -> None:
    """The first signal lets the calls under way end; a second one does not."""
    loop = asyncio.get_running_loop()
    task: Any = asyncio.current_task()
    asked: list[int] = []

    def stop(number: int) -> None:
        if asked:
            task.cancel()
            return
        asked.append(number)
        log.info("stopping, on %s", signal.Signals(number).name)
        cleaner.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, number)
