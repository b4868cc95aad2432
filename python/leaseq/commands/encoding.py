"""Commands, and the wire form of what they carry."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar, cast

import hiredis
from redis.exceptions import InvalidResponse

from leaseq._scripts import Script
from leaseq.durations import Duration, Time, seconds, since_1970
from leaseq.errors import BadArgumentError, BadTypeError
from leaseq.item import Item, LeasedItemBase
from leaseq.keys import QueueKeys

_OTHER_PARTS = len(("EVALSHA", "digest", "keys", "1", "id", "token", "0"))
"""Parts of a call on one item, without its keys."""

Argument = bytes | str
"""A part of a command. No numbers: see `pack`."""
T = TypeVar("T")
U = TypeVar("U")


pack: Callable[[tuple[Argument, ...]], bytes] = cast("Any", hiredis.pack_command)
"""The bytes of a command. Of a number hiredis calls repr, which runs signal handlers, and it crashes if one of them raises."""


def argument(word: Argument | int) -> Argument:
    """A part of a command that redis-py packs, which calls hiredis too."""
    return str(word) if isinstance(word, int) else word


UNREADABLE = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError)
"""Errors of a parser that receives a reply of another shape."""


class Command(NamedTuple, Generic[T]):
    """One call of a script."""

    script: Script
    keys: tuple[str, ...]
    arguments: tuple[Argument, ...]
    parse: Callable[[Any], T]
    undo: Callable[[Any], "Sequence[Command[Any]]"] | None = None
    """For a call that takes something: given its answer, the calls that are due if the caller cannot get that answer."""
    packed: bytes | None = None
    """The bytes of `evalsha`, if they are there already."""
    registers: bool = False
    """True if the queue is to be registered after it: it adds or leases (LQ-REGISTRY-2)."""

    def unreadable(self, error: Exception) -> Exception:
        """Return the error for a reply that `parse` could not read: InvalidResponse of redis-py."""
        return InvalidResponse(
            f"the reply to {self.script.name} is not of this protocol ({type(error).__name__}: {error})"
        )

    def evalsha(self) -> tuple[Argument, ...]:
        """The call by digest, as a Redis command."""
        return ("EVALSHA", self.script.sha1, str(len(self.keys)), *self.keys, *self.arguments)

    def eval(self) -> tuple[Argument, ...]:
        """The call with the script's text, for a server that does not know it."""
        return ("EVAL", self.script.source, str(len(self.keys)), *self.keys, *self.arguments)


def command(
    script: Script,
    keys: QueueKeys,
    arguments: Iterable[Argument],
    parse: Callable[[Any], T],
    more_keys: Iterable[str] = (),
    undo: Callable[[Any], Sequence[Command[Any]]] | None = None,
    *,
    registers: bool = False,
) -> Command[T]:
    """Return a call on one queue; `more_keys` come behind the keys that the script always takes."""
    vector = keys.vectors.get(script.name) or keys.vector(script)
    return Command(script, (*vector, *more_keys), tuple(arguments), parse, undo, None, registers)


def for_one(
    script: Script, keys: QueueKeys, item: LeasedItemBase, parse: Callable[[Any], T]
) -> Command[T] | None:
    """Return a call on one leased item without options; None if its id or token is not plain.

    Most of the call is the same each time, so its bytes are put together here: that takes 1.5 us less than to pack them.
    """
    item_id, token = item.id, item.token
    if type(item_id) is not str or not item_id.isascii() or type(token) is not int or not 0 < token < 10**16:
        return None
    vector, start = keys.known.get(script.name) or keys.start(script)
    text = str(token)
    parts = (len(vector) + _OTHER_PARTS, start, len(item_id), item_id.encode(), len(text), token)
    packed = b"*%d\r\n%b$1\r\n1\r\n$%d\r\n%b\r\n$%d\r\n%d\r\n$1\r\n0\r\n" % parts
    return Command(script, vector, ("1", item_id, text, "0"), parse, None, packed)


def milliseconds(duration: Duration, what: str) -> int:
    """A duration in the unit of the wire. Raises BadTypeError, BadArgumentError."""
    return round(seconds(duration, what) * 1000)


def milliseconds_kept(duration: Duration, what: str) -> int:
    """A duration for which 0 has a special meaning: a duration above 0 must not become 0. Raises BadTypeError, BadArgumentError."""
    count = milliseconds(duration, what)
    if count == 0 and seconds(duration, what) != 0:
        raise BadArgumentError(f"{what} is shorter than a millisecond")
    return count


def milliseconds_since_1970(time: Time, what: str) -> int:
    """A time in the unit of the wire. Raises BadTypeError, BadArgumentError."""
    return round(since_1970(time, what) * 1000)


def whole(number: int, what: str) -> int:
    """A whole number. Raises BadTypeError."""
    if type(number) is int and -(10**16) < number < 10**16:
        return number
    if isinstance(number, bool) or not isinstance(number, int):
        raise BadTypeError(f"{what} must be an int, not {type(number).__name__}")
    if abs(number) >= 10**16:
        raise BadArgumentError(f"{what} has more than 16 digits")
    return int(number)  # what is derived from int may be written in another way, but is equal in a cache


def held(item: LeasedItemBase) -> tuple[str, int]:
    """Id and token of a leased item. Raises BadTypeError."""
    if not isinstance(item, LeasedItemBase):
        raise BadTypeError(f"this takes an item that lease gave, not {type(item).__name__}")
    return item.id, item.token


def counted(options: Sequence[Argument]) -> tuple[Argument, ...]:
    """Return how many options there are, and they. As text, since most have none: a number takes three times as long to pack."""
    return (str(len(options) // 2), *options)


def checked_id(item_id: str) -> str:
    """An id that is given as such. Raises BadTypeError, BadIdError."""
    if not isinstance(item_id, str):
        raise BadTypeError(f"an id must be str, not {type(item_id).__name__}")
    return item_id if item_id.isascii() else Item(b"", item_id).id


def result_key(keys: QueueKeys, item_id: str) -> str:
    """The key of an item's outcome."""
    return keys.result + item_id


def answers(reply: Any) -> list[Any]:
    """One entry answers bare, several with a list (LQ-CALL-4)."""
    return reply if isinstance(reply, list) else [reply]


def pairs(flat: Sequence[Any]) -> Iterable[tuple[Any, Any]]:
    """Name and value, name and value."""
    return zip(flat[::2], flat[1::2], strict=True)
