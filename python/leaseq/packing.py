"""Commands as the bytes that are sent."""

from typing import Any

from leaseq.commands import Argument

try:
    from hiredis import pack_command
except ImportError:
    pack_command = None  # type: ignore[assignment]


def pack(connection: Any, command: tuple[Argument, ...]) -> list[bytes]:
    """The bytes of a command: by hiredis where it is installed, else as the connection packs it; text as UTF-8.

    redis-py has hiredis pack for threads alone, and looks at each argument in Python before: three times the work, and
    in asyncio six times.
    """
    if pack_command is None:
        # not in the encoding of the connection, which hiredis does not ask for either
        as_bytes = (part.encode() if isinstance(part, str) else part for part in command)
        packed: list[bytes] = connection.pack_command(*as_bytes)
        return packed
    return [pack_command(command)]  # type: ignore[arg-type]  # declared for one argument alone
