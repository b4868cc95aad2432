"""Conversion of values: from messages to arguments of the Python clients, and from their answers to messages."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import leaseq.aio
from conformance_adapter.messages import Json, b64, unb64
from leaseq import AddOptions, Item, ItemInfo, LeasedItem, LeaseqError, Outcome, QueueStats
from leaseq.worker.registry import WorkerInfo

_TIMES: Final = {"now", "waited"}


def text(value: Json) -> str:
    """Bytes of a message as the clients take those of a header: what is no UTF-8 passes unharmed."""
    return unb64(value).decode("utf-8", "surrogateescape")


def untext(value: str) -> Json:
    """Return the message's form of a text that `text` decoded."""
    return b64(value.encode("utf-8", "surrogateescape"))


def item_id(value: Json) -> str | bytes:
    """An id to add: bytes, or the text that a message has."""
    return cast("str", value["$text"]) if "$text" in value else unb64(value)


def secs(value: str | float) -> float:
    """Milliseconds of a message, as the clients take them."""
    return (value if isinstance(value, float) else int(value)) / 1000


def micros(value: float) -> str:
    """Seconds of the clients, in microseconds."""
    return str(round(value * 1_000_000))


def millis(value: float) -> int:
    """Seconds of the clients, in milliseconds."""
    return round(value * 1000)


def item(given: Json) -> Item:
    """An item to add."""
    return Item(
        unb64(given["data"]),
        item_id(given["id"]),
        headers={name: text(value) for name, value in given.get("headers", {}).items()},
        content_type=text(given["content_type"]) if "content_type" in given else None,
    )


_OPTIONS: Final[Mapping[str, tuple[str, Callable[[Any], Any]]]] = {
    "delay_ms": ("delay", secs),
    "not_before_ms": ("not_before", secs),
    "priority": ("priority", int),
    "max_attempts": ("max_attempts", int),
    "expires_in_ms": ("expires_in", secs),
    "expires_to": ("dead_on_expiry", lambda to: to == "dead"),
    "keep_ms": ("keep", secs),
}


def options(given: Json) -> AddOptions:
    """Options of add_item."""
    named = ((_OPTIONS[name], value) for name, value in given.items())
    return cast("AddOptions", {name: convert(value) for (name, convert), value in named})


def waiting(args: Json) -> dict[str, Any]:
    """`timeout`, where there is one."""
    if "wait_ms" not in args:
        return {}
    return {"timeout": None if args["wait_ms"] is None else secs(args["wait_ms"])}


def added(answer: int | None, none: str | None = None) -> str | None:
    """Of an add or a follow-up; `none` stands for None, which means no room or not added by this call."""
    return none if answer is None else "added" if answer else "exists"


def lease(held: LeasedItem | leaseq.aio.LeasedItem) -> Json:
    """A leased item."""
    return {
        "id": b64(held.id.encode()),
        "data": b64(held.data),
        "token": str(held.token),
        "attempt": held.attempt,
        "deadline": micros(held.deadline),
        "keep_ms": millis(held.keep),
        "content_type": None if held.content_type is None else untext(held.content_type),
        "headers": {name: untext(value) for name, value in held.headers.items()},
    }


def outcome(kept: Outcome) -> Json:
    """Return the message's form of an outcome."""
    return {
        "id": b64(kept.id.encode()),
        "state": kept.state,
        "created": micros(kept.created),
        "ended": micros(kept.ended),
        "attempt": kept.attempt,
        "keep_ms": millis(kept.keep),
        "content": b64(kept.content),
    }


def inspection(info: ItemInfo) -> Json:
    """Return the message's form of the information about an item."""
    return {
        "id": b64(info.id.encode()),
        "state": info.state,
        "time": micros(info.time),
        "attempt": info.attempt,
        "token": str(info.token),
        "created": micros(info.created),
        "size": info.size,
        "priority": info.priority,
        "max_attempts": info.max_attempts,
        "keep_ms": millis(info.keep),
        "expires": micros(info.expires),
        "error": info.error,
    }


def live_worker(seen: WorkerInfo) -> Json:
    """A worker and what it holds."""
    return {
        "worker": seen.id,
        **{
            name: getattr(seen, name)
            for name in ("host", "pid", "client", "stopping", "quiet", "concurrency")
        },
        "started": micros(seen.started),
        "completed": seen.completed,
        "queues": [f"{group}:{name}" for group, name in seen.queues],
        "held": seen.held,
        "items": [
            {
                "queue": f"{one.group}:{one.queue}",
                "id": b64(one.id.encode("utf-8", "surrogateescape")),
                "attempt": one.attempt,
                "ms": millis(one.seconds),
            }
            for one in seen.items
        ],
    }


def stats(counts: QueueStats) -> Json:
    """Counts."""
    return {
        name: micros(value) if name in _TIMES else value for name, value in dataclasses.asdict(counts).items()
    }


def error(raised: LeaseqError, shape: Callable[[Any], Any]) -> Json:
    """An error, with what was answered before it."""
    return {
        "code": raised.code,
        "definite": raised.definite,
        "message": str(raised),
        "answers": shape(raised.answers) if raised.answers else [],
        "in_doubt": raised.in_doubt,
    }


def patient(url: str) -> str:
    """The URL with 12 s for each reply, not redis-py's 5: what the suite holds up for a while is no lost reply."""
    return f"{url}{'&' if '?' in url else '?'}socket_timeout=12"
