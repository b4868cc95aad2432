"""`leaseq exec`."""

import asyncio
import contextlib
import logging
import shutil
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

import leaseq.aio
from leaseq.cli import output, stdio
from leaseq.cli.exit_codes import ExitCode
from leaseq.cli.params import grace_option, lease_option, listen_option, positive_duration
from leaseq.cli.server import Server, in_group, on_server
from leaseq.cli.stderr_writer import END_SECS, StderrWriter
from leaseq.cli.subprocess_handler import BAD_DATA, SubprocessHandler
from leaseq.formatting import duration as in_words
from leaseq.formatting import plain
from leaseq.item import LeasedItemBase
from leaseq.log_lines import STDERR, LogLines
from leaseq.orphans import adopts_orphans, reap_orphans
from leaseq.worker import Hooks
from leaseq.worker.aio import Worker

if TYPE_CHECKING:
    from leaseq.cli.exec_status import ExecStatus

REAP_SECS = 1.0
"""Seconds between two looks for orphans that have ended."""


class ResultPrinter(Hooks):
    """Tells how each item ended: in words on stderr, or in JSON on stdout.

    Attributes:
        failed: how many items were not completed.
        stop: called when JSON cannot be written.
        failure: why it could not be.
    """

    stop: Callable[[], None]

    def __init__(self, stderr: StderrWriter, *, as_json: bool, quiet: bool, at_most_once: bool) -> None:
        self._stderr = stderr
        self._as_json = as_json
        self._quiet = quiet
        self._at_most_once = at_most_once
        self._seconds: dict[LeasedItemBase, float] = {}
        self.failed = 0
        self.stop = lambda: None
        self.failure: OSError | None = None

    def ended(self, item: LeasedItemBase, seconds: float, error: BaseException | None) -> None:
        """The command has ended; what becomes of the item is printed next, unless it is known already."""
        if self._at_most_once:
            self._seconds[item] = seconds
            self._report(item, "failed" if error else "completed", None if error is None else str(error))
        elif not item.lost:
            self._seconds[item] = seconds

    def completed(self, item: LeasedItemBase) -> None:
        """Print that an item is completed; with at_most_once before the command runs."""
        if not self._at_most_once:
            self._report(item, "completed", None)

    def released(self, item: LeasedItemBase, delay: float, error: str | None) -> None:
        """Print that an item went back."""
        self._report(item, "released", error, delay)

    def dead_lettered(self, item: LeasedItemBase, error: str | None) -> None:
        """Print that an item died."""
        self._report(item, "dead", error)

    def lost(self, item: LeasedItemBase) -> None:
        """Print that an item is no longer this worker's."""
        self._report(item, "lost", None)

    def _report(self, item: LeasedItemBase, state: str, error: str | None, delay: float = 0) -> None:
        seconds = self._seconds.pop(item, 0.0)
        self.failed += state in {"dead", "failed", "lost"} or error is not None
        if self._as_json:
            fields = {"id": item.id, "state": state, "attempt": item.attempt, "seconds": seconds}
            self._write(fields | {"delay": delay, "error": error})
        elif not self._quiet:
            again = f", again in {in_words(delay)}" if delay else ""
            reason = f": {error}" if error else ""
            took = f" after {in_words(seconds)}" if seconds else ""
            line = f"{state} {item.id}{took}, attempt {item.attempt}{again}{reason}"
            self._stderr.send(f"{plain(line)}\n".encode(errors="backslashreplace"))

    def _write(self, record: dict[str, Any]) -> None:
        """Write JSON. If the output is closed, no more work is started."""
        try:
            output.record(record)
        except OSError as error:
            if self.failure is None:  # a second stop would end the commands that run
                self.stop()
            self.failure = error


@click.command("exec", short_help="Run a command for each item of QUEUE, its data on stdin.")
@click.argument("queue")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@on_server
@in_group
@click.option(
    "--jobs",
    "-j",
    "concurrency",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    help="How many at a time.",
)
@lease_option("How long a lease is; it is extended while the command runs.")
@click.option(
    "--max-attempts",
    type=click.IntRange(0),
    default=25,
    show_default=True,
    help="Failures after which an item becomes a dead letter; 0: only the limit of the item or queue counts.",
)
@click.option(
    "--dead-on",
    type=click.IntRange(1, 255),
    multiple=True,
    default=(BAD_DATA,),
    show_default=True,
    help="Exit codes after which an item becomes a dead letter at once.",
)
@click.option("--time-limit", type=positive_duration, help="How long the command may take for an item.")
@grace_option("commands")
@click.option(
    "--result",
    "with_result",
    is_flag=True,
    help="Keep what the command prints as the item's result, if the item was added with --keep.",
)
@click.option(
    "--at-most-once",
    is_flag=True,
    help="Complete the item before the command runs: it never runs twice, and a failure is not tried again.",
)
@click.option("--burst", is_flag=True, help="Exit when nothing is ready; with 1 if an item failed.")
@listen_option("exec")
@click.option("--quiet", "-q", is_flag=True, help="Do not print on stderr how each item ended.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print on stdout how each item ended, in JSON lines; the command's output goes to stderr.",
)
def exec_(
    *,
    queue: str,
    group: str | None,
    server: Server,
    command: tuple[str, ...],
    dead_on: tuple[int, ...],
    with_result: bool,
    quiet: bool,
    as_json: bool,
    listen: str | None,
    **options: Any,
) -> int:
    """Run COMMAND for each item of QUEUE, its data on stdin, and extend its lease while it runs.

    The exit code decides. 0: the item is completed. 65, or a code of --dead-on: it becomes a dead letter, for a
    person to look at. 75: it is given back, and the attempt does not count. Any other code, or death by a signal: it
    is tried again after a growing pause, until --max-attempts. The last line on stderr is kept as the item's last
    error.

    The command finds LEASEQ_ID, LEASEQ_ATTEMPT, LEASEQ_TOKEN, LEASEQ_QUEUE, LEASEQ_GROUP, LEASEQ_CONTENT_TYPE and
    LEASEQ_HEADERS (JSON) in its environment, and REDIS_URL only if it has no password. If its lease is lost, the
    item is removed or --time-limit is over, it gets SIGTERM, and half a second later SIGKILL. After SIGTERM or
    Ctrl-C, running commands may finish within --grace; a second signal ends them at once. Then this exits with 0.

    \b
    Examples:
      leaseq exec sounds --jobs 4 -- sh -c 'ffmpeg -i - "out/$LEASEQ_ID.ogg"'
      leaseq exec orders --burst -- ./handle-order --strict
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    program = shutil.which(command[0])
    if program is None:
        raise click.BadParameter(f"{command[0]!r} is no program that can be run", param_hint="COMMAND")
    if options["at_most_once"] and with_result:
        raise click.UsageError("--at-most-once completes before there is a --result")
    opened = leaseq.aio.WorkQueue(queue, server.named(), group=group)
    logs = LogLines(STDERR, "leaseq exec")
    logs.setFormatter(logging.Formatter("leaseq exec: %(message)s"))
    logs.addFilter(lambda record: not hasattr(record, "item"))  # Told prints how items ended
    logging.getLogger("leaseq.worker").addHandler(logs)
    stderr = StderrWriter()
    printer = ResultPrinter(stderr, as_json=as_json, quiet=quiet, at_most_once=options["at_most_once"])
    children = SubprocessHandler(command, dead_on, with_result, as_json, stderr)
    status = None if listen is None else _status(opened, listen)
    try:
        with contextlib.nullcontext() if status is None else status.server:
            asyncio.run(_work(opened, children, printer, status, options))
    finally:
        logging.getLogger("leaseq.worker").removeHandler(logs)
        if stderr.unwritten and not stderr.is_stalled:
            _to_stderr(f"leaseq exec: {stderr.unwritten} bytes of the commands' stderr could not be written")
    if printer.failure is not None:
        raise printer.failure
    return ExitCode.NO if options["burst"] and printer.failed else ExitCode.DONE


def _status(queue: leaseq.aio.WorkQueue, address: str) -> "ExecStatus":
    with stdio.needing("cleaner", "leaseq exec: --listen needs", "prometheus_client"):
        from leaseq.cli.exec_status import ExecStatus
    return ExecStatus(queue, address)


def _to_stderr(line: str) -> None:
    """Write a line to stderr, if it can be written."""
    with contextlib.suppress(OSError):
        click.echo(line, err=True)


async def _reap(children: SubprocessHandler) -> None:
    """Wait for what commands leave running, where it becomes a child of this process."""
    while adopts_orphans():
        await asyncio.sleep(REAP_SECS)
        if not children.starting:  # a process whose id is not known yet may be there
            reap_orphans(children.running)


async def _work(
    queue: leaseq.aio.WorkQueue,
    children: SubprocessHandler,
    printer: ResultPrinter,
    status: "ExecStatus | None",
    options: dict[str, Any],
) -> None:
    async with queue:
        # a server that is away or refuses is reported now; later the worker keeps trying
        await queue.light_clean()
        worker = Worker(
            queue, children, hooks=[printer] if status is None else [printer, status.meter], **options
        )
        printer.stop = worker.stop
        tasks = [asyncio.create_task(_reap(children))]
        if status is not None:
            tasks.append(asyncio.create_task(status.watch(worker)))
        try:
            await worker.run()
        finally:
            for task in tasks:
                task.cancel()
            await children.stderr.write(b"", END_SECS)  # what was sent before it is written
