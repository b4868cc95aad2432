"""Read the stored form of items (spec/02-data.md, 2.3 and 2.4).

No operation returns data and headers without a lease, or an item's limit of attempts apart from the queue's.

For exports only: it reads keys directly and writes nothing.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from leaseq._sync.queue import WorkQueue
from leaseq.errors import FormatError
from leaseq.item import decoded

_RECORD: Final = struct.Struct("<BBIdd")
_TAIL: Final = struct.Struct("<bH6sd")
_LENGTH: Final = struct.Struct("<H")
_UNLIMITED: Final = 65535
_HAS_EXTRA: Final = 2
_DEAD_ON_EXPIRY: Final = 4
_HEADER: Final = "header:"


@dataclass(frozen=True, slots=True)
class Stored:
    """An item's data and options; `max_attempts` is None if the queue's limit applies, 0 for no limit.

    `expires` is in seconds since 1970, 0 for an item that does not expire, or no longer since it was leased. Such an item
    has no `dead_on_expiry`, whatever it was added with.
    """

    data: bytes
    max_attempts: int | None
    expires: float
    dead_on_expiry: bool
    content_type: str | None
    headers: dict[str, str]


def read(queue: WorkQueue, ids: Sequence[str]) -> list[Stored | None]:
    """Return what is stored of items, in order; None for an item that is not there. Raises FormatError, and errors of the server."""
    if not ids:
        return []
    names = [item_id.encode() for item_id in ids]
    data = _hmget(queue, "items", names)
    meta = _hmget(queue, "meta", [*names, *(b"\0" + name for name in names)])
    records, extras = meta[: len(names)], meta[len(names) :]
    return [
        None if content is None else _stored(item_id, content, record, extra)
        for item_id, content, record, extra in zip(ids, data, records, extras, strict=True)
    ]


def _hmget(queue: WorkQueue, part: str, fields: Sequence[bytes]) -> list[bytes | None]:
    found: list[bytes | None] = queue.executor.execute("HMGET", queue.keys.key(part), *fields)
    return found


def _stored(item_id: str, data: bytes, record: bytes | None, extra: bytes | None) -> Stored:
    options = 0
    max_attempts = 0
    expires = 0.0
    texts: dict[str, str] = {}
    if record is not None:
        try:
            version, options, *_ = _RECORD.unpack_from(record)
            if options:
                _, max_attempts, _, expires = _TAIL.unpack_from(record, _RECORD.size)
            if extra is not None and options & _HAS_EXTRA:
                texts = _texts(extra)
        except (struct.error, ValueError):
            version = 0
        if version != 1:
            raise FormatError(
                f"the record of item {item_id!r} cannot be read: update leaseq where a newer version wrote it, else run"
                " deep_clean"
            )
    return Stored(
        data,
        None if max_attempts == 0 else 0 if max_attempts == _UNLIMITED else max_attempts,
        expires / 1_000_000,
        # the first lease ends the expiry, and leaves this option in the record
        bool(options & _DEAD_ON_EXPIRY) and expires > 0,
        texts.get("content_type"),
        {name.removeprefix(_HEADER): text for name, text in texts.items() if name.startswith(_HEADER)},
    )


def _texts(extra: bytes) -> dict[str, str]:
    """Return the names and values of an extra, without its first part, the last error. Raises ValueError, struct.error."""
    parts: list[bytes] = []
    at = 0
    while at < len(extra):
        (length,) = _LENGTH.unpack_from(extra, at)
        at += _LENGTH.size + length
        if at > len(extra):
            raise ValueError("cut short")
        parts.append(extra[at - length : at])
    return {decoded(name): decoded(text) for name, text in zip(parts[1::2], parts[2::2], strict=True)}
