"""Items: what is added, and what every lease has."""

import base64
import hashlib
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from leaseq.errors import BadArgumentError, BadIdError, BadTypeError

Bytes = bytes | bytearray | memoryview | str

MAX_ID_BYTES = 256
"""Bytes of UTF-8 that an id may have (LQ-ITEM-1)."""


class Item:
    """An id and data, to be added to a queue.

    `data` is bytes, bytearray or memoryview; a str is encoded as UTF-8. `id` is 1 to 256 bytes of UTF-8 without NUL and
    defaults to a random UUID; the server checks it when the item is added (LQ-ITEM-1).

    `headers` (at most 16, str to str; names of 1 to 100 letters, digits or `_ . -`) and `content_type` are stored beside
    the data and returned with each lease, for example a trace context; together they have at most 4096 bytes.

    Attributes:
        id: 1 to 256 bytes of UTF-8, without NUL.
        data: the bytes that a worker gets; may be empty.
        headers: empty if it has none.
        content_type: the format of the data, such as "text/plain"; None if it was not given.

    Raises BadTypeError, BadArgumentError, BadIdError.
    """

    __slots__ = ("content_type", "data", "headers", "id")

    def __init__(
        self,
        data: Bytes,
        id: str | bytes | None = None,  # noqa: A002
        *,
        headers: Mapping[str, str] | None = None,
        content_type: str | None = None,
    ) -> None:
        if type(data) is not bytes:
            data = as_bytes(data, "data", "; for other values use Item.from_json_data")
        if type(id) is not str or not id.isascii():
            id = str(uuid.uuid4()) if id is None else _as_text(id)  # noqa: A001 (as it is stored)
        self.data: bytes = data
        self.id: str = id
        self.headers: Mapping[str, str] = {} if headers is None else _as_headers(headers)
        self.content_type: str | None = content_type
        if content_type is not None:
            encoded(content_type, "a content type")

    @classmethod
    def from_json_data(
        cls,
        value: Any,
        id: str | bytes | None = None,  # noqa: A002
        *,
        headers: Mapping[str, str] | None = None,
        content_type: str | None = None,
    ) -> Self:
        """Return an item whose data is `value` as JSON, in UTF-8 and without spaces between its parts.

        Raises BadArgumentError for values that JSON cannot hold, such as NaN. Other errors are those of Item.
        """
        try:
            text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        except (TypeError, ValueError, RecursionError) as error:
            raise BadArgumentError(f"this cannot be written as JSON: {error}") from error
        data = text.encode(errors="backslashreplace")  # half a surrogate pair becomes its escape
        return cls(data, id, headers=headers, content_type=content_type)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """Return an item from `{"data": ..., "id": ..., "headers": ..., "content_type": ...}`. Only data is required.

        Raises BadArgumentError for other keys or without data. Other errors are those of Item.
        """
        given: Any = fields
        if not isinstance(given, Mapping) or "data" not in given or set(given) - _FIELDS:
            raise BadArgumentError(
                "an item is made from a mapping with the key data and, if you like, id, headers, content_type"
            )
        return cls(**fields)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return an item from a JSON object with the members that `from_dict` takes.

        Raises BadArgumentError for text that is not JSON, and the errors of `from_dict`.
        """
        try:
            fields = json.loads(text)
        except (TypeError, ValueError, RecursionError) as error:
            raise BadArgumentError(f"this is not JSON: {error}") from error
        return cls.from_dict(fields)

    def data_json(self) -> Any:
        """Return the data, decoded from JSON. Raises BadArgumentError if it is not JSON."""
        try:
            return json.loads(self.data)
        except (ValueError, RecursionError) as error:
            raise BadArgumentError(f"the data of item {self.id!r} is not JSON: {error}") from error

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id!r}, {len(self.data)} bytes>"


@dataclass(slots=True, eq=False)
class Extension:
    """An extension of a lease that is under way.

    Attributes:
        secs: by how much.
        sent_at: when it was sent, on this process's clock.
        asked: whether the user of the item asked for it, and not the heartbeat.
        overtaken: whether another extension of this lease ended meanwhile, so that it is unknown which the server took last.
    """

    secs: float
    sent_at: float
    asked: bool
    overtaken: bool = False


@dataclass(eq=False)  # without slots: what is False at first is so on the class
class Hold:
    """The hold of this process on an item.

    Attributes:
        deadline: when the lease ends, in seconds since 1970 on the server's clock, as last heard.
        secs: how long it was leased for, or its user has extended it for, and so will be.
        since: when it was asked for at first, on this process's clock.
        held_until: the lease lasts at least until then, on this process's clock (LQ-CLIENT-3).
        lost: whether the server has said that this lease is no longer the current one.
        stopped: whether a worker has told the handler to stop, which a thread learns by `item.lost`; the lease may be held still.
        ending: whether a call that ends the item is under way.
        ended: whether this process has ended it.
        under_way: extensions without a reply yet.
        asked_at: when the extension that set `secs` was sent.
        in_doubt: whether extensions overlapped, so that the lease must be extended again at once (LQ-CLIENT-28).
    """

    deadline: float
    secs: float
    since: float | None
    held_until: float | None
    lost: bool = field(default=False, init=False)
    stopped: bool = field(default=False, init=False)
    ending: bool = field(default=False, init=False)
    ended: bool = field(default=False, init=False)
    under_way: list[Extension] = field(default_factory=list, init=False)
    asked_at: float = field(default=0.0, init=False)
    in_doubt: bool = field(default=False, init=False)

    def is_over(self, now: float) -> bool:
        """Return whether the lease has ended as this process's clock counts it (LQ-CLIENT-3)."""
        return self.lost or (self.held_until is not None and now >= self.held_until)

    def extending(self, secs: float, now: float, *, asked: bool) -> Extension:
        """Note that an extension is sent. It settles what is in doubt, unless another overlaps it too."""
        extension = Extension(secs, now, asked)
        self.under_way.append(extension)
        self.in_doubt = False
        return extension

    def extended(self, extension: Extension, deadline: float | None) -> None:
        """Record the reply to an extension."""
        self.extension_ended(extension)
        if deadline is None:
            self.lost = True
            return
        held_until = extension.sent_at + extension.secs
        if extension.overtaken and self.held_until is not None:  # the server may have taken either last
            deadline, held_until = min(deadline, self.deadline), min(held_until, self.held_until)
        self.deadline, self.held_until = deadline, held_until
        if extension.asked and extension.sent_at >= self.asked_at:
            self.secs, self.asked_at = extension.secs, extension.sent_at

    def extension_ended(self, extension: Extension) -> None:
        """Record that an extension is under way no longer. Others are marked first: of two threads, one sees the other."""
        for other in tuple(self.under_way):
            if other is not extension:
                other.overtaken = True
        self.in_doubt = self.in_doubt or extension.overtaken
        self.under_way.remove(extension)


class LeasedItemBase(Item):
    """The base of sync and async leased items.

    Attributes:
        token: the number of this lease, greater than that of every earlier lease of the queue: a fencing token.
        attempt: the number of leases since the item was added or revived, including this one; 1 for the first.
        keep: seconds for which its outcome is kept after its end; 0: it is not kept.
        hold: how this process holds it, for the code that extends and ends leases; read `deadline` and `lost`.
    """

    __slots__ = ("_result", "attempt", "hold", "keep", "token")

    def __init__(
        self,
        item_id: str,
        data: bytes,
        token: int,
        attempt: int,
        deadline: float,
        lease_secs: float,
        since: float | None = None,
    ) -> None:
        self.id = item_id
        self.data = data
        self.headers = {}
        self.content_type = None
        self.token = token
        self.attempt = attempt
        self.keep: float = 0.0
        self.hold = Hold(deadline, lease_secs, since, None if since is None else since + lease_secs)
        self._result: bytes | None = None

    @property
    def deadline(self) -> float:
        """The end of the lease, in seconds since 1970 on the server's clock, as of the last reply."""
        return self.hold.deadline

    @property
    def lost(self) -> bool:
        """True once the lease is no longer the current one, or its worker gives the item back: stop working on it."""
        return self.hold.lost or self.hold.stopped

    @property
    def result(self) -> bytes | None:
        """The result for `complete`, unless that call has another: set it to bytes or str (as UTF-8).

        The server keeps it only if the item was added with `keep`, or the call that completes it has `keep`. Setting it
        raises BadTypeError, BadArgumentError.
        """
        return self._result

    @result.setter
    def result(self, value: Bytes | None) -> None:
        self._result = value if value is None or type(value) is bytes else as_bytes(value, "a result")

    def derived_id(self, step: str | int) -> str:
        """Return an id for a follow-up of this item.

        The id is the same whenever the item runs again, so the follow-up is added once: `id/step`, or, if that is longer
        than 256 bytes, the SHA-256 of the id in hexadecimal, `/` and `step`. Raises BadTypeError.
        """
        return derived_id(self.id, step)

    def stop(self) -> None:
        """The lease is lost: end the block that works on it, where that can be done."""

    def __repr__(self) -> str:
        lost = ", lost" if self.lost else ""
        return f"<{type(self).__name__} {self.id!r}, {len(self.data)} bytes, attempt {self.attempt}{lost}>"


def lease_ref(item_id: str, token: int) -> LeasedItemBase:
    """Return a lease that another process holds, by its token. Whether an outcome is kept, its record says, if the call asks."""
    item = LeasedItemBase(item_id, b"", token, 0, 0, 0)
    item.keep = 1
    return item


_FIELDS = {"data", "id", "headers", "content_type"}


def derived_id(item_id: str, step: str | int) -> str:
    """The id of a follow-up of the item of that id. Raises BadTypeError."""
    if isinstance(step, bool) or not isinstance(step, str | int):
        raise BadTypeError(f"a step is a str or an int, not {type(step).__name__}")
    derived = f"{item_id}/{step}"
    if len(derived.encode("utf-8", "surrogatepass")) <= MAX_ID_BYTES:
        return derived
    return f"{hashlib.sha256(item_id.encode()).hexdigest()}/{step}"


def as_bytes(data: Bytes, what: str, hint: str = "") -> bytes:
    """Data as bytes. Raises BadTypeError, BadArgumentError."""
    if isinstance(data, bytes):
        return data
    if isinstance(data, str):
        try:
            return data.encode()
        except UnicodeEncodeError as error:
            raise BadArgumentError(f"{what} is a str that UTF-8 cannot hold: {error}") from error
    if isinstance(data, bytearray | memoryview):
        return bytes(data)
    raise BadTypeError(f"{what} must be bytes or str, not {type(data).__name__}{hint}")


def encoded(text: str, what: str) -> bytes:
    """Text of a header as it is sent: bytes of another client that are no UTF-8 pass through a str unharmed.

    Raises BadTypeError, BadArgumentError.
    """
    if not isinstance(text, str):
        raise BadTypeError(f"{what} must be a str, not {type(text).__name__}")
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise BadArgumentError(f"{what} is a str that UTF-8 cannot hold: {error}") from error


def decoded(text: bytes) -> str:
    """Return what `encoded` encodes."""
    return text.decode("utf-8", "surrogateescape")


def data_fields(data: bytes) -> dict[str, str]:
    """Data for JSON: as `data` where it is UTF-8, else in base64 as `data_base64`."""
    try:
        return {"data": data.decode()}
    except UnicodeDecodeError:
        return {"data_base64": base64.b64encode(data).decode()}


def from_base64(text: Any) -> bytes:
    """Data that JSON has as `data_base64`. Raises BadArgumentError."""
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, TypeError) as error:
        raise BadArgumentError("data_base64 is not base64") from error


def _as_headers(headers: Mapping[str, str]) -> dict[str, str]:
    if not isinstance(headers, Mapping):
        raise BadTypeError(f"headers must be a mapping of str to str, not {type(headers).__name__}")
    for name, value in headers.items():
        encoded(name, "the name of a header")
        encoded(value, f"the header {name}")
    return dict(headers)


def _as_text(item_id: str | bytes) -> str:
    if not isinstance(item_id, str | bytes):
        raise BadTypeError(f"an id must be str or bytes, not {type(item_id).__name__}")
    try:
        if isinstance(item_id, bytes):
            return item_id.decode()
        item_id.encode()
    except UnicodeError as error:
        raise BadIdError(f"an id is 1..256 bytes of UTF-8 without NUL: {error}") from error
    return item_id
