"""A full pipe, for what a program must do although its output is stuck."""

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def full_pipe() -> Iterator[int]:
    """Open a pipe that is full. Yields the descriptor to write to."""
    read, write = os.pipe()
    try:
        os.set_blocking(write, False)
        with contextlib.suppress(BlockingIOError):
            while os.write(write, bytes(4096)):
                pass
        os.set_blocking(write, True)
        yield write
    finally:
        os.close(read)
        os.close(write)
