"""`leaseq lease`, `complete`, `release`, `extend`: an item's life in a shell script."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Final

import click

from leaseq import LeasedItem, WorkQueue
from leaseq.cli import output
from leaseq.cli.exit_codes import CommandError
from leaseq.cli.params import duration, lease_option
from leaseq.cli.server import on_queue
from leaseq.item import data_fields, lease_ref

Function = Callable[..., Any]

_STDOUT: Final = 1

_for = lease_option("How long the lease lasts from now: 0.001s to 30d.")


@click.command(short_help="Lease items of QUEUE; print token and id of each.")
@on_queue
@_for
@click.option(
    "--count", type=click.IntRange(1, 256), default=1, show_default=True, help="At most this many items."
)
@click.option(
    "--wait", type=duration, help="Wait this long for an item; 0: without limit. [default: do not wait]"
)
@click.option(
    "--data",
    "data_file",
    type=click.File("ab", lazy=False),
    help="Write the data of the item here; needs --count 1.",
)
@output.as_json
def lease(
    *,
    queue: WorkQueue,
    lease_secs: float,
    count: int,
    wait: float | None,
    data_file: IO[bytes] | None,
    as_json: bool,
) -> None:
    """Lease items of QUEUE; print token and id of each, or all of it in JSON.

    Only `leaseq extend` extends the lease. Exits with 1 if there is nothing to lease.

    \b
    Examples:
      leaseq lease orders --for 5m --data order.bin | {
        read -r token id && ./handle order.bin && leaseq complete orders "$id" "$token"
      }
      leaseq lease orders --json | jq -r .data
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    if data_file is not None and count != 1:
        raise click.UsageError("--data is for one item: leave --count out")
    items = queue.lease_items(count, lease_secs, block=wait is not None, timeout=wait or 0)
    if not items:
        raise CommandError("" if as_json else "nothing to lease")
    try:
        if data_file is not None:
            _replace(data_file, items[0].data)
        for item in items:
            _show(item, as_json=as_json)
    except BaseException:
        queue.release_items(items, uncounted=True)  # these leases were not printed
        raise


def _replace(file: IO[bytes], data: bytes) -> None:
    """Write a file anew. It was opened before the lease, which must not be given in vain, and kept what it held till now."""
    if Path(file.name).is_file() and not os.path.sameopenfile(file.fileno(), _STDOUT):  # no pipe, no device
        file.truncate(0)
    file.write(data)
    file.flush()


def _show(item: LeasedItem, *, as_json: bool) -> None:
    if not as_json:
        output.line(f"{item.token} {item.id}")
        return
    record = {"id": item.id, "token": item.token, "attempt": item.attempt, "deadline": item.deadline}
    more = {"headers": dict(item.headers), "content_type": item.content_type, "keep": item.keep}
    output.record(record | more | data_fields(item.data))


def _on_lease(function: Function) -> Function:
    """Give a command the arguments QUEUE ID TOKEN."""
    function = click.argument("token", type=click.IntRange(min=1))(function)
    return on_queue(click.argument("item_id", metavar="ID")(function))


@click.command(short_help="Finish a leased item of QUEUE.")
@_on_lease
@click.option("--result", help="The result, kept if the item was added with --keep, or with --keep here.")
@click.option("--result-file", type=click.File("rb"), help="The result from a file; - is stdin.")
@click.option(
    "--keep", type=duration, help="Keep the outcome for this time instead of the item's own; 0: not at all."
)
@click.option("--only-current", is_flag=True, help="Only while this lease is the current one.")
@output.as_json
def complete(
    *,
    queue: WorkQueue,
    item_id: str,
    token: int,
    result: str | None,
    result_file: IO[bytes] | None,
    keep: float | None,
    only_current: bool,
    as_json: bool,
) -> None:
    """Finish the item ID of QUEUE, with the TOKEN that its lease gave.

    Exactly one call for an item succeeds: the first, even after the lease has ended. All others exit with 1.

    \b
    Example:
      leaseq complete orders order-1 1795227027266854
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    if result is not None and result_file is not None:
        raise click.UsageError("--result and --result-file exclude each other")
    content = result_file.read() if result_file else result and os.fsencode(result)
    done = queue.complete(lease_ref(item_id, token), result=content, keep=keep, only_current=only_current)
    output.answer(
        {"id": item_id, "completed": done},
        f"completed {item_id}",
        no=""
        if done
        else f"{item_id} was not completed by this call: it was completed or removed before, or never had this token",
        as_json=as_json,
    )


@click.command(short_help="Give a leased item of QUEUE back.")
@_on_lease
@click.option("--delay", type=duration, default=0.0, help="Lease it no earlier than this time from now.")
@click.option("--error", help="The reason, kept as the item's last error.")
@click.option("--uncounted", is_flag=True, help="The attempt does not count: the work was not started.")
@click.option("--dead", is_flag=True, help="Make it a dead letter, however many attempts it has left.")
@output.as_json
def release(
    *,
    queue: WorkQueue,
    item_id: str,
    token: int,
    dead: bool,
    delay: float,
    error: str | None,
    uncounted: bool,
    as_json: bool,
) -> None:
    """Give the item ID of QUEUE back, with the TOKEN that its lease gave.

    Prints its new state: ready, delayed, or dead if its attempts are used up. Exits with 1 if the lease is lost.

    \b
    Examples:
      leaseq release orders order-1 1795227027266854 --delay 5m --error "bank is away"
      leaseq release orders order-1 1795227027266854 --dead --error "no such customer"
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    item = lease_ref(item_id, token)
    if dead:
        if delay or uncounted:
            raise click.UsageError("--dead excludes --delay and --uncounted")
        state = "dead" if queue.dead_letter(item, error=error) else "lost"
    else:
        state = queue.release(item, delay=delay, error=error, uncounted=uncounted)
    lost = f"the lease of {item_id} is lost: nothing was changed" if state == "lost" else ""
    output.answer({"id": item_id, "state": state}, f"{state} {item_id}", no=lost, as_json=as_json)


@click.command(short_help="Move the deadline of a leased item of QUEUE: a heartbeat.")
@_on_lease
@_for
@output.as_json
def extend(*, queue: WorkQueue, item_id: str, token: int, lease_secs: float, as_json: bool) -> None:
    """Move the deadline of the item ID of QUEUE, with the TOKEN that its lease gave: a heartbeat.

    Exits with 1 if the lease is lost: stop working on the item.

    \b
    Example:
      leaseq extend orders order-1 1795227027266854 --for 5m
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    item = lease_ref(item_id, token)
    extended = queue.extend(item, lease_secs)
    output.answer(
        {"id": item_id, "extended": extended, "deadline": item.deadline if extended else None},
        f"extended {item_id}",
        no="" if extended else f"the lease of {item_id} is lost: stop working on it",
        as_json=as_json,
    )
