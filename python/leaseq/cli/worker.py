"""`leaseq worker`: runs the jobs of an App."""

import importlib
import logging
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import redis

from leaseq._version import __version__
from leaseq.cli import stdio
from leaseq.cli.exit_codes import CommandError, ExitCode
from leaseq.cli.job_layer import app_class
from leaseq.cli.params import grace_option, lease_option, listen_option
from leaseq.cli.server import existed
from leaseq.doctor.node import address
from leaseq.log_format import Format, formatter
from leaseq.log_lines import STDERR, LogLines

if TYPE_CHECKING:
    from leaseq.jobs import App

log = logging.getLogger("leaseq.cli.worker")


@click.command()
@click.argument("app", metavar="MODULE:APP")
@click.option(
    "--queue",
    "-q",
    "queues",
    multiple=True,
    help="Lease jobs from this queue; repeat it for more, the first one goes first.",
)
@click.option(
    "--processes", "-p", type=click.IntRange(1, 1000), help="How many.  [default: one for each CPU]"
)
@click.option(
    "--concurrency",
    "-c",
    type=click.IntRange(1, 10_000),
    default=8,
    show_default=True,
    help="Jobs that each process runs at a time.",
)
@click.option("--burst", is_flag=True, help="Exit when nothing is ready; with 1 if nothing ever was.")
@lease_option("How long a lease is; it is extended while the job runs.")
@grace_option("jobs")
@click.option("--max-jobs", type=click.IntRange(1), help="Replace a process after this many jobs.")
@click.option(
    "--max-memory",
    type=click.FloatRange(0, min_open=True),
    help="Replace a process that has used this many MiB.",
)
@click.option(
    "--reload",
    "reloads",
    is_flag=True,
    help="Start again when a Python file of the program changes, while you develop. Needs the extra `reload`.",
)
@listen_option("worker")
@click.option("--verbose", "-v", is_flag=True, help="Log what the worker does on stderr, not only failures.")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Form of the log's lines; json is one object a line.",
)
def worker(*, app: str, verbose: bool, log_format: Format, reloads: bool, **options: Any) -> int:
    """Run the jobs of an App, in several processes.

    The log goes to stderr. Its first line names the server, the queues, the functions and the schedules. A line about a
    job has its function, id and attempt.

    APP is a leaseq.jobs.App, or one of leaseq.jobs.aio, in MODULE, which is looked for in this folder too. A process that dies is replaced, and the
    jobs that it held are leased again at once. After SIGTERM or Ctrl-C, running jobs may finish within --grace; a
    second signal releases them, uncounted. Then this exits with 0. Needs the extra `jobs`.

    With --reload, this watches the Python files of this folder and of MODULE. When one changes, running jobs finish within
    --grace, and the worker starts again. If it cannot start, it says why and waits for the next change.

    \b
    Examples:
      leaseq worker shop.tasks:app
      leaseq worker shop.tasks:app -q urgent -q default --processes 4
      leaseq worker shop.tasks:app --burst && echo "there was work"
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    handler = LogLines(STDERR, "leaseq worker")
    handler.setFormatter(formatter(log_format))
    logging.basicConfig(handlers=[handler], level=logging.INFO if verbose else logging.WARNING)
    for shown in (log, logging.getLogger("leaseq.worker.progress")):
        shown.setLevel(logging.INFO)
    if reloads:
        return _reload(app, burst=options["burst"])
    loaded = _load(app)
    from leaseq.jobs.errors import WorkerFailedError

    if options["listen"] is not None:
        with stdio.needing("cleaner", "leaseq worker: --listen needs", "prometheus_client"):
            import prometheus_client  # noqa: F401 (the server needs it)
    _introduce(loaded, options)
    given = {name: value for name, value in options.items() if value is not None}
    try:
        ended = loaded.run_worker(**given)
    except WorkerFailedError as error:
        raise CommandError(str(error)) from error
    return ExitCode.NO if options["burst"] and not ended else ExitCode.DONE


def _reload(target: str, *, burst: bool) -> int:
    """Run the same command without --reload, again after each change. Raises click.ClickException."""
    if burst:
        raise click.UsageError(
            "--burst ends when nothing is ready, and --reload goes on: leave one of them out"
        )
    with stdio.needing("reload", "leaseq worker: --reload needs", "watchfiles"):
        from leaseq.cli.reload import Reloader, folders_of
    return Reloader(
        folders_of(_names(target)[0]), [word for word in sys.argv[1:] if word != "--reload"]
    ).run()


def _introduce(app: "App", options: dict[str, Any]) -> None:
    """Log what this worker is. A server that is away or refuses is reported now; later the worker keeps trying."""
    names = options["queues"] or app.queues
    fresh = [name for name in names if not existed(app.queue(name).stats()) and name not in app.queues]
    schedules = [each.name for each in app.program.schedules]
    processes = options["processes"]
    log.info(
        "leaseq %s on %s: queues %s; functions %s; schedules %s; %s, %d jobs at a time in each",
        __version__,
        _where(app.queue(names[0]).executor.client),
        ", ".join(names),
        ", ".join(sorted(app.functions)) or "none",
        ", ".join(schedules) or "none",
        "a process for each CPU" if processes is None else f"processes: {processes}",
        options["concurrency"],
    )
    if not app.functions:
        log.warning(
            "this App has no functions, so it can run no job: import the modules that declare them in the module of the App"
        )
    for name in fresh:
        log.warning(
            "queue %s is new: nothing was ever added to it in group %s. Queues of this App: %s",
            name,
            app.group,
            ", ".join(app.queues),
        )


def _where(client: Any) -> str:
    """The server's address, without user and password."""
    if isinstance(client, redis.Redis):
        return address(client)
    return f"the cluster of {client.get_default_node().name}"


def _names(target: str) -> tuple[str, str]:
    """The names of the module and of the App. Raises click.BadParameter."""
    module_name, _, name = target.partition(":")
    if not module_name or not name:
        raise click.BadParameter(f"{target!r} does not look like shop.tasks:app", param_hint="MODULE:APP")
    if module_name.endswith(".py") or "/" in module_name:
        name_of_module = module_name.removesuffix(".py").removeprefix("./").replace("/", ".")
        raise click.BadParameter(
            f"{module_name} is a file; name the module: {name_of_module}:{name}", param_hint="MODULE:APP"
        )
    return module_name, name


def _load(target: str) -> "App":
    """The App. Raises click.BadParameter, CommandError."""
    module_name, name = _names(target)
    app_type = app_class()
    sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise _broken(module_name, error) from error  # the module is there, and lacks something itself
        raise click.BadParameter(f"there is no module {error.name}", param_hint="MODULE:APP") from error
    except Exception as error:
        raise _broken(module_name, error) from error
    found = getattr(module, name, None)
    from leaseq.jobs import aio

    if isinstance(found, aio.App):
        return app_type.of_program(found.program)
    if not isinstance(found, app_type):
        raise click.BadParameter(f"{name} of {module_name} is no leaseq.jobs.App", param_hint="MODULE:APP")
    return found


def _broken(module: str, error: Exception) -> click.BadParameter:
    """A module that cannot be imported: its author wants to see where."""
    traceback.print_exception(error)
    message = f"{module} cannot be imported: {type(error).__name__}: {error}"
    return click.BadParameter(message, param_hint="MODULE:APP")
