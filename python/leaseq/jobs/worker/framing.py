"""Messages between the processes of a worker: bytes, with their length before them."""

import struct
from collections.abc import Iterator
from typing import Final

_LENGTH: Final = struct.Struct(">I")


def frame(content: bytes) -> bytes:
    """The message as it is sent."""
    return _LENGTH.pack(len(content)) + content


def iter_frames(buffer: bytearray) -> Iterator[bytes]:
    """Take the messages out of a buffer that are there whole, one by one."""
    while len(buffer) >= _LENGTH.size:
        (length,) = _LENGTH.unpack_from(buffer)
        end = _LENGTH.size + length
        if len(buffer) < end:
            return
        content = bytes(buffer[_LENGTH.size : end])
        del buffer[:end]
        yield content
