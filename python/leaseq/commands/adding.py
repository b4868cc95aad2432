"""Adding items."""

from collections.abc import Sequence

from leaseq import _scripts
from leaseq.commands.wire import Argument, Command, answers, command, milliseconds, milliseconds_kept, whole
from leaseq.errors import BadTypeError
from leaseq.item import Item, encoded
from leaseq.keys import QueueKeys

Options = tuple[str | int, ...]
"""Name and value, name and value."""


def add_options(
    *,
    delay: float = 0,
    not_before: float | None = None,
    priority: int = 0,
    max_attempts: int | None = None,
    expires_in: float | None = None,
    dead_on_expiry: bool = False,
    keep: float | None = None,
) -> Options:
    """Name and value of each option that differs from its default. Raises BadTypeError, BadArgumentError."""
    options: list[str | int] = []
    if delay != 0:
        options += ["delay", milliseconds(delay, "delay")]
    if not_before is not None:
        options += ["not_before", milliseconds(not_before, "not_before")]
    if priority != 0:
        options += ["priority", whole(priority, "priority")]
    if max_attempts is not None:
        options += ["max_attempts", whole(max_attempts, "max_attempts")]
    if expires_in is not None:
        options += ["expires_in", milliseconds(expires_in, "expires_in")]
    if dead_on_expiry:
        options += ["expires_to", "dead"]
    if keep is not None and keep != 0:
        options += ["keep", milliseconds_kept(keep, "keep")]
    return tuple(options)


def add(keys: QueueKeys, items: Sequence[Item], options: Options = ()) -> Command[list[bool | None]]:
    """Add items, all with the same options; answers for each whether it was added, None where there is no room."""
    return add_each(keys, [(item, options) for item in items])


def add_each(keys: QueueKeys, items: Sequence[tuple[Item, Options]]) -> Command[list[bool | None]]:
    """Add items, each with options of its own; answers as `add`."""
    arguments: list[Argument] = [len(items)]
    for item, options in items:
        if not isinstance(item, Item):
            message = f"add takes Item, not {type(item).__name__}: wrap the data, as in Item(b'data')"
            raise BadTypeError(message)
        arguments += entry(item, options)
    return command(_scripts.ADD, keys, arguments, lambda reply: [_added(answer) for answer in answers(reply)])


def entry(item: Item, options: Options) -> list[Argument]:
    """An item with its options and what it brings along. Raises BadTypeError, BadArgumentError."""
    if not item.headers and item.content_type is None:
        return [item.id, item.data, len(options) // 2, *options]
    own: list[Argument] = []
    if item.content_type is not None:
        own += ["content_type", encoded(item.content_type, "a content type")]
    for name, value in item.headers.items():
        own += [b"header:" + encoded(name, "the name of a header"), encoded(value, "a header")]
    return [item.id, item.data, (len(options) + len(own)) // 2, *options, *own]


def _added(created: int) -> bool | None:
    return None if created < 0 else created > 0
