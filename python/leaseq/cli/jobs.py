"""`leaseq jobs`: what became of jobs, those that are dead, and schedules."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any

import click

from leaseq.cli import asking, output, text
from leaseq.cli.ends import Code, Group, Refusal
from leaseq.cli.job_layer import app_class
from leaseq.cli.kinds import duration
from leaseq.cli.server import on_server

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from leaseq.cli.server import Server
    from leaseq.jobs import App, JobInfo

_STATES = ("ready", "delayed", "running", "failed", "finished")


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


@click.group(cls=Group, no_args_is_help=False)
def jobs() -> None:
    """Look at jobs, cancel them, put dead ones back; and at schedules.

    \b
    Example:
      leaseq jobs list failed
    """  # noqa: D301 (click's mark for text that is not to be wrapped)


@jobs.command("list")
@click.argument("state", type=click.Choice(_STATES), metavar="|".join(_STATES))
@on_jobs
@click.option("--limit", type=click.IntRange(1, 256), default=100, show_default=True, help="At most so many.")
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Leave out so many at the beginning.")
@output.as_json
def list_(*, app: App, state: Any, limit: int, offset: int, as_json: bool) -> None:
    """List jobs of a queue in one state. `finished` are those whose outcome is kept. Ends with 1 where there are none.

    \b
    Examples:
      leaseq jobs list running
      leaseq jobs list failed --queue mail --json | jq -r .error | sort | uniq -c
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    if not _show(app.jobs(state, offset=offset, limit=limit), as_json=as_json):
        raise Refusal("" if as_json else f"no job is {state}")


@jobs.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@on_jobs
@output.as_json
def status(*, app: App, ids: tuple[str, ...], as_json: bool) -> int:
    """Tell what became of jobs, and what is known of them. Ends with 1 where one is unknown.

    \b
    Example:
      leaseq jobs status order-7 --json | jq .traceback
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    found = app.infos(app.job(job_id, queue=app.queues[0]) for job_id in ids)
    _show(found, as_json=as_json)
    return Code.NO if any(each.status == "unknown" for each in found) else Code.DONE


@jobs.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@on_jobs
@output.as_json
def cancel(*, app: App, ids: tuple[str, ...], as_json: bool) -> int:
    """Cancel jobs, running ones too. Ends with 1 where one has ended or is not there.

    \b
    Example:
      leaseq jobs cancel order-7
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    answers = [app.job(job_id, queue=app.queues[0]).cancel() for job_id in ids]
    return _told(ids, answers, "cancelled", "has ended or is not there:", as_json=as_json)


@jobs.command()
@click.argument("ids", metavar="[ID]...", nargs=-1)
@on_jobs
@click.option("--all", "everything", is_flag=True, help="All that are dead now.")
@click.option("--matching", metavar="TEXT", help="All whose last error contains this text.")
@output.as_json
def replay(*, app: App, ids: tuple[str, ...], everything: bool, matching: str | None, as_json: bool) -> int:
    """Put dead jobs back, their attempts begun anew. Ends with 1 where one was not dead.

    \b
    Examples:
      leaseq jobs replay order-7
      leaseq jobs replay --matching "ConnectionError" --queue mail
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    if bool(ids) + everything + (matching is not None) != 1:
        raise click.UsageError("say which: ID..., --all or --matching TEXT, one of the three")
    if ids:
        return _told(ids, app.queue().revive_items(ids), "replayed", "not dead:", as_json=as_json)
    return output.counted(app.queue().revive_all(matching), "replayed", as_json=as_json)


@jobs.command()
@click.argument("ids", metavar="[ID]...", nargs=-1)
@on_jobs
@click.option("--all", "everything", is_flag=True, help="All that are dead now.")
@click.option("--older-than", type=duration, help="All that have been dead for so long, such as 30d.")
@asking.yes
@output.as_json
def purge(
    *, app: App, ids: tuple[str, ...], everything: bool, older_than: float | None, yes: bool, as_json: bool
) -> int:
    """Drop dead jobs for ever. Ends with 1 where one was not dead.

    \b
    Example:
      leaseq jobs purge --older-than 30d --yes
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    if bool(ids) + everything + (older_than is not None) != 1:
        raise click.UsageError("say which: ID..., --all or --older-than DURATION, one of the three")
    queue = app.queue()
    if ids:
        return _told(ids, queue.purge_items(ids), "purged", "not dead:", as_json=as_json)
    if there := queue.stats().dead:
        which = "all" if everything else f"those dead for {text.duration(older_than or 0)}"
        asking.confirm(f"Drop dead jobs of {queue.name} for ever, {which} of {there}?", yes=yes)
    return output.counted(queue.purge_all(older_than or 0), "purged", as_json=as_json)


@jobs.group(cls=Group, no_args_is_help=False)
def cron() -> None:
    """Look at schedules, pause and resume them, trigger their jobs.

    \b
    Example:
      leaseq jobs cron list
    """  # noqa: D301 (click's mark for text that is not to be wrapped)


@cron.command("list")
@on_jobs
@output.as_json
def cron_list(*, app: App, as_json: bool) -> None:
    """List the schedules of a queue, as workers have entered them. Ends with 1 where there are none.

    \b
    Example:
      leaseq jobs cron list --queue mail
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    found = app.schedules.infos()
    now = app.queue().stats().now
    if as_json:
        for each in found:
            output.record(dataclasses.asdict(each))
    elif found:
        rows = [
            (
                each.name,
                each.rule,
                each.missed,
                text.when(each.last - now) if each.last else "never",
                "PAUSED" if each.paused else text.when(each.next - now) if each.next else "never",
                each.function,
            )
            for each in found
        ]
        output.show(output.table(("schedule", "rule", "missed", "last", "next", "function"), rows))
    if not found:
        raise Refusal("" if as_json else "no worker has entered a schedule for this queue")


@cron.command()
@click.argument("name")
@on_jobs
@output.as_json
def pause(*, app: App, name: str, as_json: bool) -> None:
    """Let the slots of a schedule pass without jobs.

    \b
    Example:
      leaseq jobs cron pause nightly
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    app.schedules.pause(name)
    if as_json:
        output.record({"name": name, "paused": True})
    else:
        output.line(f"paused {name}")


@cron.command()
@click.argument("name")
@on_jobs
@output.as_json
def resume(*, app: App, name: str, as_json: bool) -> None:
    """Let a schedule go on with its next slot.

    \b
    Example:
      leaseq jobs cron resume nightly
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    app.schedules.resume(name)
    if as_json:
        output.record({"name": name, "paused": False})
    else:
        output.line(f"resumed {name}")


@cron.command()
@click.argument("name")
@on_jobs
@output.as_json
def trigger(*, app: App, name: str, as_json: bool) -> None:
    """Enqueue the job of a schedule now; its slots stay as they are.

    \b
    Example:
      leaseq jobs cron trigger nightly
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    handle = app.schedules.trigger(name)
    if as_json:
        output.record({"id": handle.id, "queue": handle.queue})
    else:
        output.line(f"enqueued {handle.id}")


def _show(found: Sequence[JobInfo], *, as_json: bool) -> bool:
    if as_json:
        for each in found:
            output.record(_plain(each))
    elif found:
        rows = [(each.id, each.status, each.attempt, each.description, each.error) for each in found]
        output.show(output.table(("id", "status", "attempt", "call", "last error"), rows, right=("attempt",)))
    return bool(found)


def _plain(info: JobInfo) -> Any:
    """As JSON has it: arguments that it does not have are written as text."""
    import msgspec

    return msgspec.to_builtins(
        {each.name: getattr(info, each.name) for each in dataclasses.fields(info)},
        str_keys=True,
        enc_hook=repr,
    )


def _told(ids: Sequence[str], answers: Sequence[bool], what: str, otherwise: str, *, as_json: bool) -> int:
    for job_id, answer in zip(ids, answers, strict=True):
        if as_json:
            output.record({"id": job_id, what: answer})
        else:
            output.line(f"{what if answer else otherwise} {job_id}")
    return Code.DONE if all(answers) else Code.NO
