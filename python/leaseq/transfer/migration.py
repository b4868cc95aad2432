"""Move a queue of redis-work-queue to leaseq. No item is lost if this is killed.

Each id is claimed (moved to a separate list, in one step), added to the queue of leaseq, and only then deleted. Ids that are
in the list of claimed ids at the start were left by an earlier run.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from operator import itemgetter

from leaseq._sync.queue import WorkQueue
from leaseq.errors import BadIdError, LeaseqError, QueueFullError, TooLargeError
from leaseq.flows import chunks
from leaseq.item import Item
from leaseq.parts import Parts
from leaseq.transfer.redis_work_queue import Counts, OriginalQueue

MAX_REASONS = 20
"""The most items that are named of those that stay behind."""


class StillLeasedError(LeaseqError):
    """Workers of the original hold items: taking those over would run them twice. Nothing was changed."""


@dataclass(slots=True)
class Migration:
    """The result of a migration, in counts of ids.

    `added` are in the queue now, `exist` were there already (an id that is added twice is one item). `without_data` are
    what completed items leave behind in the original, `refused` are items that leaseq does not take: both stay in the
    list PREFIX:leaseq-import, and `why` says the reason for the first of them.
    """

    added: int = 0
    exist: int = 0
    without_data: int = 0
    refused: int = 0
    why: list[str] = field(default_factory=list)

    @property
    def left(self) -> int:
        """The number of ids that stay in the list of claimed ones."""
        return self.without_data + self.refused


def check_leases(counts: Counts) -> None:
    """Check that no worker of the original holds items. Raises StillLeasedError."""
    if counts.leased:
        raise StillLeasedError(
            f"workers of the original hold {counts.leased} items, for up to {counts.longest:.0f} s: stop those workers, wait"
            " until their leases are over and run this again, or move the waiting items with --waiting-only"
        )


def migrate(
    original: OriginalQueue,
    queue: WorkQueue,
    *,
    waiting_only: bool = False,
    on_progress: Callable[[Migration], None] | None = None,
) -> Migration:
    """Move all items over: those that wait, and those whose workers' leases are over.

    With `waiting_only` it leaves alone what workers of the original took, so that they may go on. Otherwise raises
    StillLeasedError where they hold leases. An interrupted run is repeated and goes on where it was. `on_progress` is called
    after each page. Raises ImportRunningError if another import of this queue runs, QueueFullError and those of the server.
    """
    with original.locked():
        if not waiting_only:
            check_leases(original.counts())
        done = Migration()
        while True:
            # first what a run before this one had claimed
            ids = original.claimed(done.left)
            if not ids:
                if not original.claim(waiting_only=waiting_only):
                    return done
                continue
            for page in chunks(zip(ids, original.sizes(ids), strict=True), itemgetter(1)):
                original.renew_lock()
                _move(original, queue, [item_id for item_id, _ in page], done)
            if on_progress is not None:
                on_progress(done)


def _move(original: OriginalQueue, queue: WorkQueue, ids: list[bytes], done: Migration) -> None:
    items: dict[bytes, Item] = {}
    for item_id, data in zip(ids, original.data(ids), strict=True):
        if data is None:
            _add_reason(done, item_id, "has no data: it was completed, or stood in the queue twice")
            done.without_data += 1
        elif item_id not in items:
            try:
                items[item_id] = Item(data, item_id)
            except LeaseqError as error:
                _refuse(done, item_id, error)
    parts = Parts(list(items.items()))
    for part in parts:
        try:
            _add(original, queue, dict(part), done)
        except (BadIdError, TooLargeError) as error:
            if not parts.halve(part):
                _refuse(done, part[0][0], error)


def _add(original: OriginalQueue, queue: WorkQueue, items: dict[bytes, Item], done: Migration) -> None:
    """Add, then delete from the original what was added or exists; also if the queue is full, before that is raised."""
    full: QueueFullError | None = None
    try:
        answers: list[bool | None] = list(queue.add_items(items.values()))
    except QueueFullError as error:
        full, answers = error, error.answers
    processed = [item_id for item_id, answer in zip(items, answers, strict=False) if answer is not None]
    original.forget(processed)
    done.added += sum(answer is True for answer in answers)
    done.exist += sum(answer is False for answer in answers)
    if full is not None:
        raise full


def _refuse(done: Migration, item_id: bytes, error: LeaseqError) -> None:
    _add_reason(done, item_id, str(error))
    done.refused += 1


def _add_reason(done: Migration, item_id: bytes, why: str) -> None:
    if len(done.why) < MAX_REASONS:
        done.why.append(f"{item_id.decode(errors='backslashreplace')!r} {why}")
