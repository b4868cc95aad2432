"""The search for an id in all queues: two calls for each queue, sent together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from leaseq import commands
from leaseq._sync.survey import Call, read_all
from leaseq.dashboard.source import Source
from leaseq.errors import BadIdError, LeaseqError
from leaseq.keys import QueueKeys, RegisteredQueue

MAX_QUEUES: Final = 10_000
"""Queues that one search looks at."""


@dataclass(frozen=True, slots=True)
class Found:
    """An item that was found.

    Attributes:
        queue: its queue.
        state: its state, or "outcome kept" if only its outcome is there.
    """

    queue: RegisteredQueue
    state: str


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of a search.

    Attributes:
        found: the items of that id.
        searched: how many queues were looked at.
        known: how many queues there are.
        failed: how many of the queues could not be read.
    """

    found: Sequence[Found]
    searched: int
    known: int
    failed: int


def find(source: Source, queues: Sequence[RegisteredQueue], item_id: str) -> SearchResult:
    """Look for an id in queues, up to 10,000 of them. Raises the errors of leaseq."""
    chosen = queues[:MAX_QUEUES]
    if not item_id or "\0" in item_id:
        raise BadIdError("an id is 1..256 bytes of UTF-8 without NUL")
    calls: list[Call] = []
    for queue in chosen:
        keys = QueueKeys(*queue)
        calls += [commands.inspect(keys, [item_id]), ("ZSCORE", keys.key("kept"), item_id)]
    answers = read_all(source.client, calls)
    states = [_state(*pair) for pair in zip(answers[::2], answers[1::2], strict=True)]
    found = [Found(queue, state) for queue, state in zip(chosen, states, strict=True) if state]
    return SearchResult(found, len(chosen), len(queues), states.count(None))


def _state(inspected: Any, kept: Any) -> str | None:
    """Return the state in one queue; "" if it is not there, None if the queue could not be read."""
    if isinstance(inspected, BadIdError):
        raise inspected
    if isinstance(inspected, LeaseqError):
        return None
    state: str = inspected[0].state
    if state != "absent":
        return state
    return "outcome kept" if isinstance(kept, bytes | float | str) else ""
