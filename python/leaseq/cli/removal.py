"""`leaseq promote`, `remove`, `expire`, `drain`: changing items and leases from outside."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import click

from leaseq import ItemInfo, WorkQueue
from leaseq._sync.pages import remove_listed
from leaseq.cli import audit, confirmation, output
from leaseq.cli.audit import audited
from leaseq.cli.exit_codes import ExitCode
from leaseq.cli.patterns import on_queues
from leaseq.cli.server import on_queue, stats_of
from leaseq.item import lease_ref
from leaseq.results import STATES


@click.command(short_help="Make delayed items of QUEUE ready now.")
@on_queue
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@output.as_json
@audited
def promote(*, queue: WorkQueue, ids: tuple[str, ...], as_json: bool) -> int:
    """Make delayed items of QUEUE ready now, with the attempts that they had. Exits with 1 if an item was not delayed.

    \b
    Examples:
      leaseq promote orders order-1
      leaseq list orders delayed --all --json | jq -r .id | xargs leaseq promote orders
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    return output.answers(ids, queue.promote_items(ids), "promoted", "not delayed:", as_json=as_json)


@click.command(short_help="Remove items of QUEUE in any state.")
@on_queue
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@output.as_json
@audited
def remove(*, queue: WorkQueue, ids: tuple[str, ...], as_json: bool) -> int:
    """Remove items of QUEUE in any state. A worker that holds a removed item finds out at its next call.

    Exits with 1 if an item does not exist.

    \b
    Examples:
      leaseq remove orders order-1
      leaseq list orders delayed --all --json | jq -r .id | xargs leaseq remove orders
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    states = queue.remove_items(ids)
    audit.changed(sum(state != "absent" for state in states))
    for item_id, state in zip(ids, states, strict=True):
        if as_json:
            output.record({"id": item_id, "state": state})
        else:
            output.line(f"absent {item_id}" if state == "absent" else f"removed {item_id}, which was {state}")
    return ExitCode.NO if "absent" in states else ExitCode.DONE


@click.command(short_help="End current leases of QUEUE now.")
@on_queues
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All leases that are current now.")
@click.option(
    "--uncounted", is_flag=True, help="The attempt does not count; the item gets back its old place."
)
@click.option(
    "--error", default="the lease was ended by leaseq expire", help="Kept as the item's last error."
)
@output.as_json
@audited
def expire(
    *, queue: WorkQueue, ids: tuple[str, ...], everything: bool, uncounted: bool, error: str, as_json: bool
) -> int:
    """End current leases of QUEUE now: the items can be leased again, and their holders find out at their next call.

    A holder that has done the work can still complete the item, until another worker does. Exactly the lease that was
    seen is ended, never a later one. Exits with 1 if an ID is not leased, or nothing is.

    \b
    Examples:
      leaseq expire orders order-1
      leaseq expire orders --all --uncounted
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    if bool(ids) == everything:
        raise click.UsageError("say which: ID... or --all")

    def end(infos: Iterable[ItemInfo]) -> list[str]:
        return _release(queue, infos, error=error, uncounted=uncounted)

    now = stats_of(queue).now
    if everything:
        count = _remove_matching(queue, "leased", lambda info: info.token <= now * 1e6, end)
        return output.counted(count, "expired", as_json=as_json)
    infos = queue.inspect_items(ids)
    ended = set(end([info for info in infos if info.state == "leased"]))
    return output.answers(
        ids, [item_id in ended for item_id in ids], "expired", "not leased:", as_json=as_json
    )


def _release(queue: WorkQueue, infos: Iterable[ItemInfo], **options: Any) -> list[str]:
    """Release the leased ones of these items, as if their holders did it; return the ids that were still leased."""
    leases = [lease_ref(info.id, info.token) for info in infos]
    answers = queue.release_items(leases, **options)
    return [item.id for item, answer in zip(leases, answers, strict=True) if answer != "lost"]


@click.command()
@on_queues
@click.option(
    "--state", "states", type=click.Choice(STATES), multiple=True, help="Only these. [default: all four]"
)
@confirmation.yes
@output.as_json
@audited
def drain(*, queue: WorkQueue, states: tuple[str, ...], yes: bool, as_json: bool) -> int:
    """Remove all items of QUEUE permanently, after asking. Limits and counters stay.

    Items that are added during it stay too. To keep a copy, `leaseq export` first.

    \b
    Examples:
      leaseq drain orders
      leaseq drain orders --state delayed --state dead --yes
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    stats = stats_of(queue)
    chosen = states or STATES
    counts = {state: getattr(stats, state) for state in chosen}
    if what := ", ".join(f"{count} {state}" for state, count in counts.items() if count):
        confirmation.confirm(f"Remove {what} from {queue.name} permanently?", yes=yes)

    def remove_all(infos: Iterable[ItemInfo]) -> list[str]:
        return [state for state in queue.remove_items([info.id for info in infos]) if state != "absent"]

    count = sum(
        _remove_matching(queue, state, lambda info: info.created <= stats.now, remove_all) for state in chosen
    )
    return output.counted(count, "removed", as_json=as_json)


def _remove_matching(
    queue: WorkQueue,
    state: Any,
    fits: Callable[[ItemInfo], bool],
    take: Callable[[Iterable[ItemInfo]], list[str]],
) -> int:
    """Remove matching items from a state; return how many. `take` returns a text for each that it removed."""

    def take_ids(ids: list[str]) -> int:
        return len(take(info for info in queue.inspect_items(ids) if info.state == state and fits(info)))

    return remove_listed(partial(queue.list_items, state), take_ids)
