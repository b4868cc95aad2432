"""Adding items."""

import operator
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

from leaseq import _scripts
from leaseq.commands import codecs
from leaseq.commands.encoding import Argument, Command, answers, command, counted
from leaseq.errors import BadTypeError, QueueFullError
from leaseq.item import Item, encoded
from leaseq.keys import QueueKeys, bulk

Options = tuple[Argument, ...]
"""Name and value, name and value."""

_OTHER_PARTS = len(("EVALSHA", "digest", "keys", *_scripts.ADD.keys, "1", "id", "data"))
"""Parts of a call that adds one item, without its options."""


def add_one(keys: QueueKeys, item: Item, options: Options = ()) -> Command[int]:
    """Add an item; returns when it was created, 0 if its id exists, a number below 0 if there is no room.

    Most of the call is the same each time: the keys and the options. So its bytes are put together here, which
    takes 1.6 us of 24 less than to pack them.
    """
    if not isinstance(item, Item):
        raise _no_item(item)
    # what is derived from these types may tell other bytes, or another length
    plain = type(item.id) is str and type(item.data) is bytes
    if not plain or item.headers or item.content_type is not None:
        return command(_scripts.ADD, keys, ("1", *entry(item, options)), operator.index, registers=True)
    vector, start = keys.known.get("add") or keys.start(_scripts.ADD)
    more, end = _end(options)
    item_id, data = item.id.encode(), item.data
    parts = (len(more) + _OTHER_PARTS, start, len(item_id), item_id, len(data), data, end)
    packed = b"*%d\r\n%b$1\r\n1\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n%b" % parts
    return Command(
        _scripts.ADD, vector, ("1", item.id, data, *more), operator.index, None, packed, True
    )  # by name it takes 0.2 us more


@lru_cache(maxsize=128)  # of a queue, a job or a stage, which are few
def _end(options: Options) -> tuple[tuple[str, ...], bytes]:
    """The options of an entry as arguments, and as they are sent."""
    arguments = (str(len(options) // 2), *map(str, options))
    return arguments, bulk(*arguments)


def add(keys: QueueKeys, items: Sequence[Item], options: Options = ()) -> Command[list[bool | None]]:
    """Add items, all with the same options; returns for each whether it was added, None if there is no room."""
    arguments: list[Argument] = [str(len(items))]
    more = counted(options)
    for item in items:
        if not isinstance(item, Item):
            raise _no_item(item)
        if item.headers or item.content_type is not None:
            arguments += entry(item, options)
        else:
            arguments += (item.id, item.data, *more)
    return command(_scripts.ADD, keys, arguments, _all_added, registers=True)


def add_each(keys: QueueKeys, items: Sequence[tuple[Item, Options]]) -> Command[list[bool | None]]:
    """Add items, each with its options; returns the same as `add`."""
    entries = []
    for item, options in items:
        if not isinstance(item, Item):
            raise _no_item(item)
        entries.append(entry(item, options))
    return command(_scripts.ADD, keys, codecs.add_arguments(entries), _all_added, registers=True)


def add_together(adds: Sequence[Command[int]]) -> Command[list[int]]:
    """Join calls of `add_one` on one queue; returns what each returns."""
    arguments = [argument for each in adds for argument in each.arguments[1:]]
    first = adds[0]
    return Command(
        first.script,
        first.keys,
        (str(len(adds)), *arguments),
        partial(_each_created, len(adds)),
        registers=True,
    )


def entry(item: Item, options: Options) -> tuple[Argument, ...]:
    """An item with its options and what it brings along. Raises BadTypeError, BadArgumentError."""
    own: Options = ()
    if item.headers or item.content_type is not None:
        own = codecs.add_options(
            content_type=None if item.content_type is None else encoded(item.content_type, "a content type"),
            headers=[
                (encoded(name, "the name of a header"), encoded(value, "a header"))
                for name, value in item.headers.items()
            ],
        )
    return codecs.add_entry(item.id, item.data, (*options, *own))


def all_in(queue: str, answers: Sequence[bool | None]) -> list[bool]:
    """The answers, if there was room for all. Raises QueueFullError."""
    added = [answer for answer in answers if answer is not None]
    if len(added) < len(answers):
        raise queue_full(queue, answers)
    return added


def queue_full(queue: str, answers: Sequence[bool | None]) -> QueueFullError:
    """Return what to raise where there was no room."""
    message = (
        f"queue {queue!r} is full: it holds as many items as configure(max_items=...) allows; add later, or wait with"
        " add_item_when_room"
    )
    full = QueueFullError(message)
    full.answers = list(answers)
    return full


def _no_item(item: object) -> BadTypeError:
    message = f"add takes Item, not {type(item).__name__}: wrap the data, as in Item(b'data')"
    return BadTypeError(message)


def _each_created(count: int, reply: Any) -> list[int]:
    created = [operator.index(each) for each in answers(reply)]
    if len(created) != count:
        raise ValueError(f"{len(created)} answers for {count} items")
    return created


def _all_added(reply: Any) -> list[bool | None]:
    return [None if created < 0 else created > 0 for created in codecs.add_reply(reply)]
