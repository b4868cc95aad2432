"""Reading what the doctor judges of queues, many of them in few round trips."""

import contextlib
import difflib
import itertools
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, get_args

import redis

from leaseq import commands
from leaseq._sync.registry import queues
from leaseq._sync.survey import Call, read_all
from leaseq.errors import LeaseqError
from leaseq.keys import NamedQueue, QueueKeys, RegisteredQueue
from leaseq.results import ListState, Page, QueueStats

TOGETHER: Final = 500
"""Queues that are read together. The doctor keeps the answers until it has judged these queues."""

MAX_ALIKE: Final = 3
"""Queues that are named for a queue that was never used."""

_CLOCK: Final = struct.Struct("<2xd")
"""The clock in `state` (spec/02-data.md)."""

Client = redis.Redis | redis.RedisCluster


class QueueSight(NamedQueue):
    """A queue as the doctor saw it.

    Attributes:
        heads: the time of the first entry of each list that had one.
        last_deadline: of the lease that ends last, in seconds since 1970; 0 without a lease.
        is_registered: whether the registry has it, known where nothing else shows that it was ever used.
        alike: where nothing shows that this queue was ever used, the queues of the registry with such a name.
    """

    def __init__(self, keys: QueueKeys) -> None:
        super().__init__(keys)
        self.heads: dict[ListState, float] = {}
        self.last_deadline = 0.0
        self.is_registered = False
        self.alike: list[RegisteredQueue] = []
        self._unreadable: LeaseqError | None = None
        self._clock: Any = None
        self._stats: Any = None
        self._head_ids: list[str] = []

    @property
    def clock(self) -> float:
        """The queue's clock, read before its stats: seconds since 1970, 0 without one. Raises the error of reading it."""
        state: bytes | None = _raised(self._clock)
        if state is None or len(state) < _CLOCK.size:
            return 0.0
        clock: float = _CLOCK.unpack_from(state)[0]
        return clock / 1_000_000

    @property
    def was_used(self) -> bool:
        """False where nothing shows that a client ever used it. Raises the error of reading it."""
        return _raised(self._clock) is not None or bool(self.stats.items) or self.is_registered

    @property
    def stats(self) -> QueueStats:
        """The counts. Raises the error of reading them."""
        stats: QueueStats = _raised(self._stats)
        return stats

    def require_readable(self) -> None:
        """Raise the error of what could not be read, if there is any."""
        _raised(self._stats)
        _raised(self._unreadable)

    # one step for all queues after the other: what to ask, and what to do with the answers

    def stats_calls(self) -> list[Call]:
        """Return the calls for the clock and the counts."""
        # first what the queue knows, then the time: the other way round a busy queue would be ahead
        return [("GET", self.keys.key("state")), commands.stats(self.keys)]

    def take_stats(self, answers: Sequence[Any]) -> None:
        """Take their answers."""
        self._clock, self._stats = answers

    def list_calls(self) -> list[Call]:
        """Return the calls for the first entry of each list that has one, and for the lease that ends last."""
        lists = self._lists()
        calls: list[Call] = [commands.list_items(self.keys, state, 0, 1) for state in lists]
        if "leased" in lists:
            calls.append(commands.list_items(self.keys, "leased", 0, 1, backward=True))
        return calls

    def take_lists(self, answers: Sequence[Any]) -> None:
        """Take their answers."""
        lists = self._lists()
        *firsts, last = answers if "leased" in lists else (*answers, None)
        if isinstance(last, Page) and last.items:
            self.last_deadline = last.items[0].time
        for state, page in zip(lists, firsts, strict=True):
            if isinstance(page, LeaseqError):
                self._unreadable = self._unreadable or page
            elif page.items:
                self.heads[state] = page.items[0].time
                self._head_ids += [page.items[0].id] if state != "kept" else []

    def item_calls(self) -> list[Call]:
        """Return the call for what is known of these items."""
        return [commands.inspect(self.keys, self._head_ids)] if self._head_ids else []

    def take_items(self, answers: Sequence[Any]) -> None:
        """Take its answer, if it was made."""
        for answer in answers:
            if isinstance(answer, LeaseqError):
                self._unreadable = self._unreadable or answer

    def _lists(self) -> list[ListState]:
        """Return the lists that have entries; none if that is not known."""
        stats = self._stats
        return [
            state for state in get_args(ListState) if isinstance(stats, QueueStats) and getattr(stats, state)
        ]


def look(client: Client, named: Sequence[QueueKeys]) -> Iterator[QueueSight]:
    """Read queues, and yield what was seen of each, in order. An error is raised when what it is about is asked for."""
    for at in range(0, len(named), TOGETHER):
        sights = [QueueSight(keys) for keys in named[at : at + TOGETHER]]
        _ask(client, sights, QueueSight.stats_calls, QueueSight.take_stats)
        _ask(client, sights, QueueSight.list_calls, QueueSight.take_lists)
        _ask(client, sights, QueueSight.item_calls, QueueSight.take_items)
        _look_for_alike(client, sights)
        yield from sights


def _look_for_alike(client: Client, sights: Sequence[QueueSight]) -> None:
    """Name the queues that may be meant by those that were never used."""
    unused = []
    for sight in sights:
        with contextlib.suppress(LeaseqError):  # its check says that it cannot be read
            unused += [] if sight.was_used else [sight]
    with contextlib.suppress(LeaseqError):  # the user may not read the registry, or something else is there
        registered = sorted(queues(client)) if unused else []
        entries = {(queue.group, queue.name) for queue in registered}
        names = {queue.name for queue in registered}
        for sight in unused:
            sight.is_registered = (sight.group, sight.name) in entries
            if sight.is_registered:
                continue  # of these there can be thousands, and a comparison with all takes 60 ms
            alike = difflib.get_close_matches(sight.name, names, MAX_ALIKE)
            sight.alike = [queue for queue in registered if queue.name in alike][:MAX_ALIKE]


def _ask(
    client: Client,
    sights: Sequence[QueueSight],
    calls: Callable[[QueueSight], list[Call]],
    take: Callable[[QueueSight, Sequence[Any]], None],
) -> None:
    """Make the calls of all queues together, and give each queue its answers."""
    asked = [calls(sight) for sight in sights]
    answers = iter(read_all(client, [call for each in asked for call in each]))
    for sight, each in zip(sights, asked, strict=True):
        take(sight, list(itertools.islice(answers, len(each))))


def _raised(answer: Any) -> Any:
    """Return an answer, or raise it if it is an error."""
    if isinstance(answer, LeaseqError):
        raise answer
    return answer
