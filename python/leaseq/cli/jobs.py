"""`leaseq jobs`: what became of jobs, those that are dead, and schedules."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any

import click

from leaseq import formatting
from leaseq.cli import confirmation, dead, output
from leaseq.cli.audit import audited
from leaseq.cli.exit_codes import CommandError, ErrorHandlingGroup, ExitCode
from leaseq.cli.job_layer import app_class
from leaseq.cli.params import duration
from leaseq.cli.server import on_server

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from leaseq.cli.server import Server
    from leaseq.jobs import App, JobInfo

_STATES = ("ready", "delayed", "running", "failed", "succeeded")


def on_jobs(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options --url, --group and --queue; it gets `app`, open, whose own queue that is."""

    @on_server
    @click.option(
        "--group", "-g", default="jobs", show_default=True, metavar="GROUP", help="The group of the App."
    )
    @click.option(
        "--queue", "-q", default="default", show_default=True, metavar="QUEUE", help="The queue of the jobs."
    )
    @functools.wraps(function)
    def with_app(*args: Any, server: Server, group: str, queue: str, **options: Any) -> Any:
        with app_class()(server.named(), group=group, queue=queue) as app:
            return function(*args, app=app, **options)

    return with_app


@click.group(cls=ErrorHandlingGroup)
def jobs() -> None:
    """Show jobs, cancel and revive them; control schedules.

    \b
    Example:
      leaseq jobs list failed
    """  # noqa: D301 (click's mark for text that is not to be wrapped)


@jobs.command("list")
@click.argument("state", type=click.Choice(_STATES), required=False, metavar=f"[{'|'.join(_STATES)}]")
@on_jobs
@click.option(
    "--limit",
    type=click.IntRange(1, 256),
    default=100,
    show_default=True,
    help="At most this many of each state.",
)
@click.option(
    "--offset", type=click.IntRange(min=0), default=0, help="Skip this many at the start of a state."
)
@output.as_json
def list_(*, app: App, state: Any, limit: int, offset: int, as_json: bool) -> None:
    """List jobs of a queue, all or those in one state. Exits with 1 if there are none.

    `delayed` and `ready` have those that wait for another attempt, `succeeded` those whose result is kept.

    \b
    Examples:
      leaseq jobs list
      leaseq jobs list running
      leaseq jobs list failed --queue mail --json | jq -r .error | sort | uniq -c
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    if offset and state is None:
        raise click.UsageError("--offset is for one state")
    states: tuple[Any, ...] = (state,) if state else _STATES
    found = [info for each in states for info in app.jobs(each, offset=offset, limit=limit)]
    _show(found, f"no job is {state}" if state else "there is no job", as_json=as_json)


@jobs.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@on_jobs
@output.as_json
def status(*, app: App, ids: tuple[str, ...], as_json: bool) -> int:
    """Show the status of jobs, with the traceback of the last failure. Exits with 1 if a job is unknown.

    `--json` shows all that is known: arguments, times, worker, progress, result.

    \b
    Examples:
      leaseq jobs status order-7
      leaseq jobs status order-7 --json | jq .traceback
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    found = app.inspect_jobs(app.handle(job_id, app.queues[0]) for job_id in ids)
    _show(found, "", as_json=as_json)
    for info in found if not as_json else ():
        _show_traceback(info)
    return ExitCode.NO if any(each.status == "unknown" for each in found) else ExitCode.DONE


@jobs.command()
@click.argument("job_id", metavar="ID")
@on_jobs
@click.option(
    "--timeout", type=duration, help="End with 1 if the job has not ended by then. [default: no limit]"
)
@output.as_json
def watch(*, app: App, job_id: str, timeout: float | None, as_json: bool) -> int:
    """Print a line whenever the status or progress of a job changes, until it has ended. Exits with 1 unless it succeeded.

    \b
    Examples:
      leaseq jobs watch order-7
      leaseq jobs watch order-7 --timeout 10m --json | jq -r .progress
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    status = ""
    try:
        for info in app.handle(job_id, app.queues[0]).watch(timeout):
            status = info.status
            if as_json:
                output.record(_plain(info))
            else:
                output.line(" ".join(filter(None, (info.id, status, info.progress_text, info.error))))
    except TimeoutError as error:
        raise CommandError(str(error)) from error
    return ExitCode.DONE if status == "succeeded" else ExitCode.NO


@jobs.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@on_jobs
@output.as_json
@audited
def cancel(*, app: App, ids: tuple[str, ...], as_json: bool) -> int:
    """Cancel jobs, running ones too. Exits with 1 if a job has ended or does not exist.

    \b
    Example:
      leaseq jobs cancel order-7
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    answers = [app.handle(job_id, queue=app.queues[0]).cancel() for job_id in ids]
    return output.answers(ids, answers, "cancelled", "has ended or is not there:", as_json=as_json)


@jobs.command()
@on_jobs
@dead.which_to_revive
@output.as_json
@audited
def revive(*, app: App, **chosen: Any) -> int:
    """Put dead jobs back, with 0 attempts. Exits with 1 if a job was not dead.

    \b
    Examples:
      leaseq jobs revive order-7
      leaseq jobs revive --matching "ConnectionError" --queue mail
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    return dead.revive_chosen(app.queue(), "revived", **chosen)


@jobs.command()
@on_jobs
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@output.as_json
@audited
def promote(*, app: App, ids: tuple[str, ...], as_json: bool) -> int:
    """Let delayed jobs run now, before their time or their next attempt. Exits with 1 if a job was not delayed.

    \b
    Example:
      leaseq jobs promote order-7
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    return output.answers(ids, app.queue().promote_items(ids), "promoted", "not delayed:", as_json=as_json)


@jobs.command()
@on_jobs
@dead.which_to_purge
@confirmation.yes
@output.as_json
@audited
def purge(*, app: App, **chosen: Any) -> int:
    """Delete dead jobs permanently. Exits with 1 if a job was not dead.

    \b
    Example:
      leaseq jobs purge --older-than 30d --yes
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    return dead.purge_chosen(app.queue(), "jobs", **chosen)


@jobs.group(cls=ErrorHandlingGroup)
def cron() -> None:
    """Show schedules, pause and resume them, trigger their jobs.

    \b
    Example:
      leaseq jobs cron list
    """  # noqa: D301 (click's mark for text that is not to be wrapped)


@cron.command("list")
@on_jobs
@output.as_json
def cron_list(*, app: App, as_json: bool) -> None:
    """List the schedules of a queue that workers have registered. Exits with 1 if there are none.

    \b
    Example:
      leaseq jobs cron list --queue mail
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    found = app.schedules.inspect()
    now = app.queue().stats().now
    output.print_list(
        found,
        lambda each: (
            each.name,
            each.rule,
            each.missed,
            formatting.when(each.last - now) if each.last else "never",
            "PAUSED" if each.paused else formatting.when(each.next - now) if each.next else "never",
            each.function,
        ),
        ("schedule", "rule", "missed", "last", "next", "function"),
        nothing="no worker has entered a schedule for this queue",
        as_json=as_json,
    )


@cron.command()
@click.argument("name")
@on_jobs
@output.as_json
@audited
def pause(*, app: App, name: str, as_json: bool) -> None:
    """Pause a schedule: its slots pass without jobs.

    \b
    Example:
      leaseq jobs cron pause nightly
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    app.schedules.pause(name)
    output.answer({"name": name, "paused": True}, f"paused {name}", as_json=as_json)


@cron.command()
@click.argument("name")
@on_jobs
@output.as_json
@audited
def resume(*, app: App, name: str, as_json: bool) -> None:
    """Resume a schedule with its next slot.

    \b
    Example:
      leaseq jobs cron resume nightly
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    app.schedules.resume(name)
    output.answer({"name": name, "paused": False}, f"resumed {name}", as_json=as_json)


@cron.command()
@click.argument("name")
@on_jobs
@output.as_json
@audited
def trigger(*, app: App, name: str, as_json: bool) -> None:
    """Enqueue the job of a schedule now; its slots stay as they are. Its result is kept as the schedule says, or for a day.

    \b
    Example:
      leaseq jobs cron trigger nightly
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    handle = app.schedules.trigger(name)
    output.answer({"id": handle.id, "queue": handle.queue}, f"enqueued {handle.id}", as_json=as_json)


def _show(found: Sequence[JobInfo], nothing: str, *, as_json: bool) -> None:
    output.print_list(
        found,
        lambda each: (each.id, each.status, each.attempt, each.description, each.error),
        ("id", "status", "attempt", "call", "last error"),
        right_aligned=("attempt",),
        as_dict=_plain,
        nothing=nothing,
        as_json=as_json,
    )


def _show_traceback(info: JobInfo) -> None:
    """Print the traceback of the last failure of a job, if there is one, under the id of the job."""
    if info.traceback:
        for text in ("", f"{info.id}:", *info.traceback.rstrip().splitlines()):
            output.line(text)


def _plain(info: JobInfo) -> Any:
    """As JSON has it: arguments that it does not have are written as text."""
    import msgspec

    return msgspec.to_builtins(
        {each.name: getattr(info, each.name) for each in dataclasses.fields(info)},
        str_keys=True,
        enc_hook=repr,
    )
