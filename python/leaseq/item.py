"""Items: what is added, and what every lease has."""

import json
import uuid
from collections.abc import Mapping
from typing import Any, Self

from leaseq.errors import BadArgumentError, BadIdError, BadTypeError


class Item:
    """An id and data, to be added to a queue.

    `data` is bytes or anything like it; a str is encoded as UTF-8. `id` is 1 to 256 bytes of UTF-8 without NUL and
    defaults to a random UUID; the server checks it when the item is added (LQ-ITEM-1).
    """

    __slots__ = ("data", "id")

    def __init__(self, data: bytes | bytearray | memoryview | str, id: str | bytes | None = None) -> None:  # noqa: A002
        self.data: bytes = _as_bytes(data)
        self.id: str = str(uuid.uuid4()) if id is None else _as_text(id)

    @classmethod
    def from_json_data(cls, value: Any, id: str | bytes | None = None) -> Self:  # noqa: A002
        """An item whose data is `value` as JSON. Raises BadArgumentError for what JSON cannot hold."""
        try:
            return cls(json.dumps(value, allow_nan=False), id)
        except (TypeError, ValueError, RecursionError) as error:
            message = f"this cannot be written as JSON: {error}"
            raise BadArgumentError(message) from error

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """An item from `{"data": ..., "id": ...}`; the id may be missing. Raises BadArgumentError."""
        given: Any = fields
        if not isinstance(given, Mapping) or "data" not in given or set(given) - {"data", "id"}:
            message = "an item is made from a mapping with the key data and, if you like, id"
            raise BadArgumentError(message)
        return cls(fields["data"], fields.get("id"))

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """An item from the JSON of what `from_dict` takes. Raises BadArgumentError."""
        try:
            fields = json.loads(text)
        except (TypeError, ValueError, RecursionError) as error:
            message = f"this is not JSON: {error}"
            raise BadArgumentError(message) from error
        return cls.from_dict(fields)

    def data_json(self) -> Any:
        """The data read as JSON. Raises BadArgumentError when it is none."""
        try:
            return json.loads(self.data)
        except (ValueError, RecursionError) as error:
            message = f"the data of item {self.id!r} is not JSON: {error}"
            raise BadArgumentError(message) from error

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id!r}, {len(self.data)} bytes>"


class LeasedItemBase(Item):
    """What the leased items of both colours have."""

    __slots__ = ("_deadline", "_ended", "_lease_secs", "_lost", "_since", "attempt", "token")

    def __init__(
        self, item_id: str, data: bytes, token: int, attempt: int, deadline: float, lease_secs: float
    ) -> None:
        self.id = item_id
        self.data = data
        self.token = token
        self.attempt = attempt
        self._deadline = deadline
        self._lease_secs = lease_secs
        self._lost = False
        self._ended = False
        self._since: float | None = None

    @property
    def deadline(self) -> float:
        """When the lease ends: seconds since 1970 on the server's clock, as last heard."""
        return self._deadline

    @property
    def lost(self) -> bool:
        """True once the server has said that this lease is no longer the current one: stop working on the item."""
        return self._lost

    def _heard(self, deadline: float | None) -> None:
        """Take in the answer to an extend."""
        if deadline is None:
            self._lost = True
        else:
            self._deadline = deadline

    def __repr__(self) -> str:
        lost = ", lost" if self._lost else ""
        return f"<{type(self).__name__} {self.id!r}, {len(self.data)} bytes, attempt {self.attempt}{lost}>"


def _as_bytes(data: bytes | bytearray | memoryview | str) -> bytes:
    if isinstance(data, bytes):
        return data
    if isinstance(data, str):
        try:
            return data.encode()
        except UnicodeEncodeError as error:
            message = f"the data is a str that UTF-8 cannot hold: {error}"
            raise BadArgumentError(message) from error
    if isinstance(data, bytearray | memoryview):
        return bytes(data)
    message = (
        f"data must be bytes or str, not {type(data).__name__}; for other values use Item.from_json_data"
    )
    raise BadTypeError(message)


def _as_text(item_id: str | bytes) -> str:
    if isinstance(item_id, str):
        try:
            item_id.encode()
        except UnicodeEncodeError as error:
            message = f"an id is 1..256 bytes of UTF-8 without NUL: {error}"
            raise BadIdError(message) from error
        return item_id
    if isinstance(item_id, bytes):
        try:
            return item_id.decode()
        except UnicodeDecodeError as error:
            message = f"an id is 1..256 bytes of UTF-8 without NUL: {error}"
            raise BadIdError(message) from error
    message = f"an id must be str or bytes, not {type(item_id).__name__}"
    raise BadTypeError(message)
