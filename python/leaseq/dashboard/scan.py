"""Bounded searches through items: for the function of jobs, and for a text in dead letters."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from leaseq import QueueStats, WorkQueue, commands
from leaseq._sync.survey import read_all
from leaseq.dashboard.purge_plans import QUEUE
from leaseq.dashboard.reader import QueueRecord
from leaseq.dashboard.source import Source
from leaseq.dashboard.visible_text import first_line
from leaseq.errors import FormatError, LeaseqError
from leaseq.jobs.cron.schedule_state import SUFFIX
from leaseq.jobs.envelope import format_of
from leaseq.jobs.serializer import CODECS, UNREADABLE
from leaseq.keys import QueueKeys, RegisteredQueue
from leaseq.results import ItemInfo, ListState
from leaseq.transfer import records

MAX_ITEMS: Final = 2048
"""Items that one search looks at."""

MAX_QUEUES: Final = 100
"""Queues that one search looks into."""

MAX_DATA_BYTES: Final = 65536
"""Longer data are not looked at."""

MAX_READ_BYTES: Final = 8 << 20
"""Bytes of data that one search reads."""

MAX_FOUND: Final = 200
"""Items that are listed."""

PAGE_SIZE: Final = 128

_STATES: Final[tuple[ListState, ...]] = ("leased", "dead", "ready", "delayed")
"""The states of jobs, those first that people look for."""


class _Job(msgspec.Struct):
    function: str


@dataclass(frozen=True, slots=True)
class Match:
    """An item that was found.

    Attributes:
        queue: its queue.
        id: its id.
        state: its state.
        why: the function, or the first line of the error.
    """

    queue: RegisteredQueue
    id: str
    state: str
    why: str


@dataclass(slots=True)
class Scan:
    """A search, and how far it looked.

    Attributes:
        found: the items, 200 at most.
        looked: how many items were looked at.
        total: how many items there are to look at, as they were counted last.
        queues: how many queues have such items.
        searched: how many of the queues were looked into.
        skipped: how many items have data that are too long to be looked at.
        failed: how many of the queues could not be read.
    """

    found: list[Match] = field(default_factory=list)
    looked: int = 0
    total: int = 0
    queues: int = 0
    searched: int = 0
    skipped: int = 0
    failed: int = 0
    _bytes: int = 0

    @property
    def is_over(self) -> bool:
        """True if the search may look no further."""
        return self.looked >= MAX_ITEMS or self._bytes >= MAX_READ_BYTES or len(self.found) >= MAX_FOUND

    def add_data(self, infos: Sequence[ItemInfo], queue: WorkQueue) -> Iterator[tuple[ItemInfo, bytes]]:
        """Read the data of items; those too long, or gone, are left out."""
        short = [info for info in infos if info.size <= MAX_DATA_BYTES]
        self.skipped += len(infos) - len(short)
        self._bytes += sum(info.size for info in short)
        try:
            stored = records.read(queue, [info.id for info in short])
        except FormatError:
            self.skipped += len(short)
            return
        yield from ((info, each.data) for info, each in zip(short, stored, strict=True) if each is not None)


def jobs(source: Source, queues: Sequence[QueueRecord], function: str) -> Scan:
    """Look for jobs that wait, run or failed, whose function's name has this text, in any case."""
    wanted = function.lower()

    def look(scan: Scan, queue: WorkQueue, infos: Sequence[ItemInfo]) -> Iterator[tuple[ItemInfo, str]]:
        for info, data in scan.add_data(infos, queue):
            name = _function(data)
            if wanted in name.lower():
                yield info, name

    others = [each for each in queues if not each.queue.name.endswith(SUFFIX)]
    return _scan(source, others, _STATES, look)


def dead_letters(source: Source, queues: Sequence[QueueRecord], text: str, *, in_data: bool) -> Scan:
    """Look for dead letters whose id or error has this text, in any case; with `in_data` also their data."""
    wanted = text.lower()
    coded = wanted.encode(errors="replace")

    def look(scan: Scan, queue: WorkQueue, infos: Sequence[ItemInfo]) -> Iterator[tuple[ItemInfo, str]]:
        rest = []
        for info in infos:
            if wanted in info.id.lower() or wanted in info.error.lower():
                yield info, first_line(info.error)
            else:
                rest.append(info)
        if in_data:
            for info, data in scan.add_data(rest, queue):
                if coded in data.lower():
                    yield info, first_line(info.error)

    return _scan(source, queues, ("dead",), look)


def _scan(
    source: Source,
    queues: Sequence[QueueRecord],
    states: Sequence[ListState],
    look: Callable[[Scan, WorkQueue, Sequence[ItemInfo]], Iterator[tuple[ItemInfo, str]]],
) -> Scan:
    """Look into the queues that have items in these states, the last ones first. Queues that cannot be read are counted."""
    scan = Scan()
    all_counts = [
        (queue, _counts(stats, states)) for queue, stats in _stats(source, queues) if queue != QUEUE
    ]
    chosen = [(queue, counts) for queue, counts in all_counts if counts]
    scan.queues = len(chosen)
    scan.total = sum(count for _, counts in chosen for count in counts.values())
    for queue, counts in chosen[:MAX_QUEUES]:
        if scan.is_over:
            break
        scan.searched += 1
        try:
            with source.queue(queue) as opened:
                for infos in _pages(scan, opened, list(counts)):
                    scan.found += [
                        Match(queue, info.id, info.state, why) for info, why in look(scan, opened, infos)
                    ]
        except LeaseqError:
            scan.failed += 1
    del scan.found[MAX_FOUND:]
    return scan


def _pages(scan: Scan, queue: WorkQueue, states: Sequence[ListState]) -> Iterator[list[ItemInfo]]:
    for state in states:
        offset = 0
        while not scan.is_over:
            limit = min(PAGE_SIZE, MAX_ITEMS - scan.looked)
            entries = queue.list_items(state, offset=offset, limit=limit, backward=True).items
            if not entries:
                break
            offset += len(entries)
            scan.looked += len(entries)
            yield [info for info in queue.inspect_items([each.id for each in entries]) if info.state == state]


def _stats(
    source: Source, queues: Sequence[QueueRecord]
) -> list[tuple[RegisteredQueue, QueueStats | LeaseqError | None]]:
    """Return the counts of queues: as they are now, or as they were read last if there are too many queues."""
    if len(queues) > MAX_QUEUES:
        return [(each.queue, each.stats) for each in queues]
    calls = [commands.stats(QueueKeys(*each.queue)) for each in queues]
    return list(zip([each.queue for each in queues], read_all(source.client, calls), strict=True))


def _counts(stats: QueueStats | LeaseqError | None, states: Sequence[ListState]) -> dict[ListState, int]:
    """Return how many items a queue has in each of these states; states without items are left out."""
    if not isinstance(stats, QueueStats):
        return {}
    counts = {state: int(getattr(stats, state)) for state in states}
    return {state: count for state, count in counts.items() if count}


def _function(data: bytes) -> str:
    """Return the name of the function of a job, in either format (LQ-JOB-17); "" if the data are no job."""
    try:
        job: _Job = CODECS[format_of(data)].decode(data, type=_Job)
    except UNREADABLE:
        return ""
    return job.function
