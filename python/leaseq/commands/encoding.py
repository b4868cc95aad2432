"""Calls of scripts as Redis commands, and the encoding of their arguments."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar, cast

import hiredis
from redis.exceptions import InvalidResponse

from leaseq._scripts import Script
from leaseq.durability import Confirmed, Durability, checked
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
"""Pack a command. Give it no number: hiredis calls repr of it, which runs signal handlers, and crashes if one raises."""


def argument(word: Argument | int) -> Argument:
    """Return a word as text if it is a number, for a command that redis-py packs: it uses hiredis too (see `pack`)."""
    return str(word) if isinstance(word, int) else word


UNREADABLE = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError)
"""The errors that `Command.parse` raises for a reply of another shape."""


class Command(NamedTuple, Generic[T]):
    """One call of a script."""

    script: Script
    keys: tuple[str, ...]
    arguments: tuple[Argument, ...]
    parse: Callable[[Any], T]
    undo: Callable[[Any], "Sequence[Command[Any]]"] | None = None
    """For a call that leases: given its reply, the calls that give the items back if the caller cannot get that reply."""
    packed: bytes | None = None
    """The bytes of `evalsha`, if they are there already."""
    registers: bool = False
    """True if the queue is to be registered after it: it adds or leases (LQ-REGISTRY-2)."""
    durable: Durability | None = None
    """The wait of the server behind it; then it returns a `Confirmed`."""

    def unreadable(self, error: Exception) -> Exception:
        """Return the error for a reply that `parse` could not read: InvalidResponse of redis-py."""
        return InvalidResponse(
            f"the reply to {self.script.name} is not of this protocol ({type(error).__name__}: {error})"
        )

    def evalsha(self) -> tuple[Argument, ...]:
        """Return the Redis command that calls the script by its digest."""
        return ("EVALSHA", self.script.sha1, str(len(self.keys)), *self.keys, *self.arguments)

    def eval(self) -> tuple[Argument, ...]:
        """Return the Redis command that sends the script's text, for a server that does not know it."""
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


def durably(call: Command[T], durable: Durability) -> Command[Confirmed[T]]:
    """Return the call with a wait behind it. Raises BadTypeError."""
    waiting: Any = call._replace(durable=checked(durable))
    return cast("Command[Confirmed[T]]", waiting)


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
    """Return a duration in ms; `what` names it in errors. Raises BadTypeError, BadArgumentError."""
    return round(seconds(duration, what) * 1000)


def milliseconds_kept(duration: Duration, what: str) -> int:
    """Return a duration in ms, where 0 has a special meaning. Raises BadArgumentError if one above 0 would become 0."""
    count = milliseconds(duration, what)
    if count == 0 and seconds(duration, what) != 0:
        raise BadArgumentError(f"{what} is shorter than a millisecond")
    return count


def milliseconds_since_1970(time: Time, what: str) -> int:
    """Return a time in ms since 1970. Raises BadTypeError, BadArgumentError."""
    return round(since_1970(time, what) * 1000)


def whole(number: int, what: str) -> int:
    """Return a whole number as a plain int. Raises BadTypeError, and BadArgumentError for more than 16 digits."""
    if type(number) is int and -(10**16) < number < 10**16:
        return number
    if isinstance(number, bool) or not isinstance(number, int):
        raise BadTypeError(f"{what} must be an int, not {type(number).__name__}")
    if abs(number) >= 10**16:
        raise BadArgumentError(f"{what} has more than 16 digits")
    return int(number)  # a subclass of int, such as an IntEnum: its str() may be no number


def held(item: LeasedItemBase) -> tuple[str, int]:
    """Return the id and token of a leased item. Raises BadTypeError."""
    if not isinstance(item, LeasedItemBase):
        raise BadTypeError(f"this takes an item that lease gave, not {type(item).__name__}")
    return item.id, item.token


def counted(options: Sequence[Argument]) -> tuple[Argument, ...]:
    """Return the number of options, as text, and the options: each is a name and a value."""
    return (str(len(options) // 2), *options)


def checked_id(item_id: str) -> str:
    """Return the id, or raise BadTypeError or BadIdError if it cannot be one."""
    if not isinstance(item_id, str):
        raise BadTypeError(f"an id must be str, not {type(item_id).__name__}")
    return item_id if item_id.isascii() else Item(b"", item_id).id


def answers(reply: Any) -> list[Any]:
    """Return the replies of the entries as a list. A call of one entry replies without a list (LQ-CALL-4)."""
    return reply if isinstance(reply, list) else [reply]


def pairs(flat: Sequence[Any]) -> Iterable[tuple[Any, Any]]:
    """Return the pairs of a flat list of names and values."""
    return zip(flat[::2], flat[1::2], strict=True)
