"""Import: the lines of an export are added to a queue."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from leaseq import commands, flows
from leaseq._sync.queue import WorkQueue
from leaseq.errors import LeaseqError, QueueFullError
from leaseq.transfer import line_format


@dataclass(slots=True)
class Imported:
    """The result of an import. All but `complete` are counts of items.

    `added` and `exist` are the answers of the queue; `dead` and `expired` were left out. Of those that were added,
    `restarted` had been leased before (attempts start again, tokens are of the new queue), `errors` had a last error,
    which is not imported, and `held` were leased: they are due when that lease ends. `complete` says whether
    the export had its end.
    """

    added: int = 0
    exist: int = 0
    dead: int = 0
    expired: int = 0
    restarted: int = 0
    errors: int = 0
    held: int = 0
    complete: bool = False


def import_lines(
    queue: WorkQueue,
    texts: Iterable[str | bytes],
    *,
    revive_dead: bool = False,
    on_progress: Callable[[Imported], None] | None = None,
) -> Imported:
    """Add the items of an export; answers what became of them.

    Ids that exist are left as they are, so an import that was cut is run again. Dead items are left out, or with
    `revive_dead` come in ready. `on_progress` is called after each call to the server, with the counts so far.

    Raises BadArgumentError and others, which say the line; QueueFullError. What was added before stays.
    """
    done = Imported()
    found = _entries(queue, texts, done, revive_dead=revive_dead)
    for chunk in flows.chunks(found, lambda entry: len(entry.item.data)):
        if in_time := _in_time(queue, chunk, done):
            _add(queue, in_time, done)
        if on_progress is not None:
            on_progress(done)
    return done


def _entries(
    queue: WorkQueue, texts: Iterable[str | bytes], done: Imported, *, revive_dead: bool
) -> Iterator[line_format.Entry]:
    """Yield the entries to add, line by line; count the others."""
    headed = False
    now = queue.stats().now
    for number, text in enumerate(texts, 1):
        if not text.strip():
            continue
        try:
            line = line_format.parse(text)
            if not headed:
                line_format.check_header(line)
                headed = True
            elif "end" in line:
                done.complete = True
            elif line.get("state") == "dead" and not revive_dead:
                done.dead += 1
            elif (entry := line_format.entry(_without_dead_option(line), number, now)) is None:
                done.expired += 1
            else:
                yield entry
        except LeaseqError as error:
            raise line_format.at(number, error) from error
    if not headed:
        line_format.check_header({})


def _without_dead_option(line: line_format.Line) -> line_format.Line:
    """Return the line of an item; without `dead_on_expiry` if the item does not expire.

    Files of earlier versions have that of items that had been leased, and the queue would refuse them.
    """
    if line.get("expires") or "dead_on_expiry" not in line:
        return line
    return {name: line[name] for name in line if name != "dead_on_expiry"}


def _in_time(queue: WorkQueue, chunk: list[line_format.Entry], done: Imported) -> list[line_format.Entry]:
    """Return the entries that have not expired, with the time that is left now, since lines can come slowly. Count the others."""
    if not any(entry.expires for entry in chunk):
        return chunk
    now = queue.stats().now
    left = [counted for entry in chunk if (counted := entry.counted_from(now)) is not None]
    done.expired += len(chunk) - len(left)
    return left


def _add(queue: WorkQueue, chunk: list[line_format.Entry], done: Imported) -> None:
    command = commands.add_each(queue.keys, [(entry.item, entry.options) for entry in chunk])
    try:
        answers = queue.executor.run(command)
    except LeaseqError as error:
        # the server checks a call as a whole and does not always name the item
        numbers = f"{chunk[0].number} to {chunk[-1].number}" if len(chunk) > 1 else str(chunk[0].number)
        named: Any = type(error)(f"lines {numbers}: {error}; those before were imported")
        named.definite = error.definite
        raise named from error
    for entry, answer in zip(chunk, answers, strict=True):
        if answer:
            done.added += 1
            done.restarted += entry.restarted
            done.errors += entry.error
            done.held += entry.lease
        elif answer is not None:
            done.exist += 1
    if None in answers:
        raise QueueFullError(
            f"queue {queue.name!r} is full: it holds as many items as configure(max_items=...) allows. {done.added} items"
            f" were added and {done.exist} exist; run the import again when there is room"
        )
