"""Queues: whether they can be read, are near a limit, and whether a worker or cleaner looks after them."""

from typing import Final

from leaseq.doctor.clock import STEP_SECS
from leaseq.doctor.finding import Verdict, advice, ok, problem
from leaseq.doctor.sight import QueueSight
from leaseq.errors import FormatError, WrongKeyTypeError

NEARLY_FULL: Final = 0.9
"""The part of max_items from which on producers are about to be refused."""

OVERDUE_SECS: Final = 10.0
"""Waiting workers and a cleaner reclaim within seconds."""

WAITING_SECS: Final = 10.0
"""A worker that waits leases an item at once."""


LONG_LEASE_SECS: Final = 86400.0
"""A worker that needs longer extends its lease: a dead worker holds the item until the end."""


def used(queue: QueueSight) -> Verdict:
    """Return whether the queue was ever used: a misspelt name is another queue."""
    if queue.was_used:
        return ok("it is in use")
    found = "this queue was never used"
    if not queue.alike:
        return advice(found, "nothing, if it is new; `leaseq queues` lists those that are used")
    named = ", ".join(f"{each.name} --group {each.group}" for each in queue.alike)
    return problem(f"{found}; the registry has {named}", "name the queue that is meant, with its group")


def format_(queue: QueueSight) -> Verdict:
    """Return whether this version can read the queue, and nothing else has written to its keys."""
    try:
        queue.require_readable()
    except FormatError as error:
        return problem(
            str(error),
            "update leaseq where a newer version wrote it; else look at what else writes to its keys, and run deep_clean",
        )
    except WrongKeyTypeError as error:
        return problem(str(error), "find what else uses these keys, and delete what it wrote there")
    return ok("can be read")


def clock_steps(queue: QueueSight) -> Verdict:
    """The queue remembers the latest time the server ever told it: a server's clock that is behind it was set back."""
    back = queue.clock - queue.stats.now
    if back > STEP_SECS:
        return problem(
            f"the server's clock was set back by {back:.1f} s since the queue was last used: leases and delays last"
            " longer by that much",
            "let NTP keep the clock without steps; order and tokens are safe, expire what is held too long",
        )
    return ok("the server's clock has not gone back")


def limits(queue: QueueSight) -> Verdict:
    """A queue that holds as many items as it may refuses producers."""
    stats = queue.stats
    held_count = stats.items - stats.dead
    if not stats.max_items:
        return ok(f"{held_count} items, no limit")
    found = f"{held_count} of {stats.max_items} items"
    if held_count >= NEARLY_FULL * stats.max_items:
        return problem(
            f"{found}: producers are refused when it is full",
            "start more workers, or raise max_items with configure",
        )
    return ok(found)


def overdue(queue: QueueSight) -> Verdict:
    """Leases that ended and items that are due wait for a worker or a cleaner to see to them."""
    stats = queue.stats
    if not stats.overdue and not stats.due:
        return ok("nothing is overdue")
    heads = [queue.heads.get("leased", stats.now)] if stats.overdue else []
    heads += [queue.heads.get("delayed", stats.now)] if stats.due else []
    # a worker or cleaner may have handled them by now: then the first is not late
    overdue_secs = max(0.0, stats.now - min(heads))
    counts = [f"{stats.overdue} leases are over"] if stats.overdue else []
    counts += [f"{stats.due} delayed items are due"] if stats.due else []
    found = f"{' and '.join(counts)}, for up to {overdue_secs:.0f} s"
    if overdue_secs <= OVERDUE_SECS:
        return ok(found)
    if stats.paused:
        return advice(
            f"{found}; the queue is paused", "nothing, if the pause is wanted: they are seen to afterwards"
        )
    return problem(
        f"{found}: no worker leases from this queue and no cleaner cleans it",
        "start workers, or leaseq-cleaner",
    )


def leases(queue: QueueSight) -> Verdict:
    """A lease that is far too long holds the item of a worker that died."""
    left = queue.last_deadline - queue.stats.now
    if left <= LONG_LEASE_SECS:
        return ok("no lease ends in more than a day")
    return advice(
        f"a lease ends in {left / 86400:.1f} days only: if its worker died, the item stays until then",
        f"lease for less, and extend while the handler runs, as workers do; `leaseq list {queue.name} leased"
        f" --group {queue.group}` names the items",
    )


def waiting(queue: QueueSight) -> Verdict:
    """Items that are ready while nothing is leased."""
    stats = queue.stats
    if not stats.ready or stats.leased or stats.paused or stats.waited <= WAITING_SECS:
        return ok("no item waits for a first worker")
    return advice(
        f"{stats.ready} items are ready, the next has waited {stats.waited:.0f} s, and nothing is leased",
        "start workers; `leaseq workers` lists those that live",
    )


def places(queue: QueueSight) -> Verdict:
    """Each item is in one state. An item that a crash or another program left in no state is never leased."""
    stats = queue.stats
    if not stats.unplaced:
        return ok("each item has its state")
    found = f"{stats.items} items, and {stats.items - stats.unplaced} places in the lists of states"
    return problem(
        f"{found}: some are in no state or in several",
        f"leaseq clean {queue.name} --group {queue.group} --deep",
    )


def dead(queue: QueueSight) -> Verdict:
    """Dead letters wait for a person."""
    count = queue.stats.dead
    if not count:
        return ok("no dead letters")
    return advice(
        f"{count} dead letters", f"leaseq dead list {queue.name} --group {queue.group}; revive or purge them"
    )


def paused(queue: QueueSight) -> Verdict:
    """A forgotten pause stops all workers."""
    if queue.stats.paused:
        return advice("paused: nothing is leased", "resume() when the reason for the pause is gone")
    return ok("not paused")
