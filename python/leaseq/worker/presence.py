"""The announcement of a worker on the server, and wishes for it (LQ-WORKER-1 to LQ-WORKER-7). No input or output."""

import json
import os
import re
import socket
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeGuard

from leaseq import __version__
from leaseq.errors import BadArgumentError, BadTypeError

CLIENT = f"leaseq-python {__version__}"
INDEX = "leaseq:workers"
"""ZSET: the ids of workers, each with the time at which it may be forgotten."""

TTL_SECS = 30
"""Seconds that an announcement lives; a killed worker is listed that long."""

REPORT_INTERVAL_SECS = 10
"""Seconds between two announcements of a worker."""

INDEX_TTL_SECS = 600
"""Seconds that an id stays in the index."""

INDEX_REFRESH_SECS = 60
"""Seconds after which a worker enters its id in the index again, with its next announcement."""

MAX_ITEMS = 100
"""The most items that are announced with their ids; of more, only the number."""

MAX_NUMBER = 2**53 - 1
"""The largest number of an announcement: the integers up to here are the same in every language."""

WISH_TTL_SECS = 86_400
"""Seconds that a wish lives."""

Wish = Literal["quiet", "stop"]

_ID = re.compile(r"[A-Za-z0-9_.:-]{1,200}", re.ASCII)


@dataclass(frozen=True, slots=True)
class HeldItem:
    """An item that a live worker holds.

    Attributes:
        queue: the name of its queue.
        group: the group of its queue.
        id: the id of the item.
        attempt: the number of this attempt, 1 for the first.
        seconds: seconds since it was leased, if it is still held.
    """

    queue: str
    group: str
    id: str
    attempt: int
    seconds: float


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """A worker that announced itself within the last 30 seconds, as it was then.

    Attributes:
        id: the worker's name: its host, its process id and a random part.
        host: the name of its machine.
        pid: its process id.
        client: name and version of its client library.
        started: when it was first announced: seconds since 1970, by the server's clock.
        stopping: true if it leases no more items.
        concurrency: the number of items that it works on at a time; 0 while it starts.
        completed: the number of items that it has completed.
        held: the number of items that it holds.
        queues: the queues that it leases from: pairs of group and name.
        items: the items that it holds, 100 at most.
        quiet: true while it leases nothing because a program wishes so.
    """

    id: str
    host: str
    pid: int
    client: str
    started: float
    stopping: bool
    concurrency: int
    completed: int
    held: int
    queues: tuple[tuple[str, str], ...]
    items: tuple[HeldItem, ...]
    quiet: bool = False

    @property
    def state(self) -> str:
        """The state of the worker: "starting", "idle", "busy", "quiet" or "stopping"."""
        if self.stopping:
            return "stopping"
        if self.quiet:
            return "quiet"
        if not self.concurrency:
            return "starting"
        return "busy" if self.held else "idle"


def new_id() -> str:
    """Return a name for a worker: its host, its process id and a random part."""
    host = re.sub(r"[^A-Za-z0-9_.-]", "-", socket.gethostname())[:100] or "host"
    return f"{host}:{os.getpid()}:{uuid.uuid4().hex[:8]}"


def index_page(reply: Sequence[Any]) -> list[tuple[bytes, str]]:
    """Return ids with their scores from a reply of the index: RESP3 has pairs, RESP2 has one behind the other."""
    pairs = reply if isinstance(reply[0], list) else zip(reply[::2], reply[1::2], strict=True)
    return [(worker_id, repr(float(score))) for worker_id, score in pairs]


def key(worker_id: str) -> str:
    """Return the key of the announcement of a worker."""
    return f"leaseq:worker:{worker_id}"


def wish_key(worker_id: str) -> str:
    """Return the key of what a program wishes a worker to do."""
    return f"leaseq:worker:{worker_id}/wish"


def checked_id(worker_id: str) -> str:
    """Return the name of a worker. Raises BadTypeError, BadArgumentError."""
    if not isinstance(worker_id, str):
        raise BadTypeError(f"the id of a worker must be a str, not {type(worker_id).__name__}")
    if not _ID.fullmatch(worker_id):
        raise BadArgumentError(f"{worker_id!r:.220} is no id of a worker: `leaseq workers` lists them")
    return worker_id


def encode(
    *,
    started: float,
    reported: float,
    stopping: bool,
    quiet: bool,
    concurrency: int,
    completed: int,
    queues: Sequence[tuple[str, str]],
    held: Sequence[Any],
    now: float,
) -> str:
    """Return the announcement of a worker, as JSON.

    `started` and `reported` are seconds since 1970 by the server's clock. `held` are leased items, `now` is on the clock
    of their leases.
    """
    items = [
        {
            "queue": f"{item.queue.group}:{item.queue.name}",
            "id": item.id,
            "attempt": item.attempt,
            "ms": max(0, round((now - (item.hold.since or now)) * 1000)),
        }
        for item in held[:MAX_ITEMS]
    ]
    return json.dumps(
        {
            "version": 1,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "client": CLIENT,
            "started": round(started * 1000),
            "reported": round(reported * 1000),
            "stopping": stopping,
            "quiet": quiet,
            "concurrency": concurrency,
            "completed": completed,
            "queues": [f"{group}:{name}" for group, name in queues],
            "held": len(held),
            "items": items,
        }
    )


def decode(worker_id: bytes, text: bytes | None, now: float) -> WorkerInfo | None:
    """Parse an announcement; None if there is none, or it is invalid. `now` is the server's time."""
    name = worker_id.decode(errors="replace")
    if text is None or not _ID.fullmatch(name):
        return None
    try:
        fields = json.loads(text)
        reported = fields.get("reported")  # workers of earlier clients do not say it
        age = max(0.0, now - reported / 1000) if _is_number(reported) else 0.0
        return WorkerInfo(
            name,
            _text(fields["host"]),
            _number(fields["pid"]),
            _text(fields["client"]),
            _number(fields["started"]) / 1000,
            fields["stopping"] is True,
            _number(fields["concurrency"]),
            _number(fields["completed"]),
            _number(fields["held"]),
            tuple(_queue(entry) for entry in fields["queues"]),
            tuple(_item(item, age) for item in fields["items"]),
            fields.get("quiet") is True,
        )
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return None


def _text(member: object) -> str:
    if not isinstance(member, str):
        raise TypeError
    return member


def _is_number(member: object) -> TypeGuard[int | float]:
    """Return whether this is an integer from 0 to MAX_NUMBER, with or without a point. JSON also has true, and reads 1e999 as infinite."""
    if isinstance(member, bool) or not isinstance(member, int | float):
        return False
    return 0 <= member <= MAX_NUMBER and member == int(member)


def _number(member: object) -> int:
    if not _is_number(member):
        raise TypeError
    return int(member)


def _queue(entry: str) -> tuple[str, str]:
    group, _, name = entry.partition(":")
    return group, name


def _item(fields: dict[str, Any], age: float) -> HeldItem:
    group, name = _queue(fields["queue"])
    attempt, ms = _number(fields["attempt"]), _number(fields["ms"])
    return HeldItem(name, group, _text(fields["id"]), attempt, ms / 1000 + age)
