"""Journals of the programs of a campaign: lines that outlive a kill."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ENDED: Final = "ended"
"""A handler ran to its end."""
TRUE: Final = "true"
"""The server said that this call completed the item."""
ADDED: Final = "added"
"""The server said that it has the item, as well as was asked for."""
ENQUEUED: Final = "enqueued"
"""The same of a job."""
WRONG: Final = "wrong"
"""An error without a name of leaseq."""


class Line(NamedTuple):
    """A line of a journal.

    Attributes:
        time: seconds since 1970.
        word: one of the words above.
        about: an id, or the text of an error.
    """

    time: float
    word: str
    about: str


class Journal:
    """A file that several threads append to; each line is one call of the system."""

    def __init__(self, path: str | Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def write(self, word: str, about: str) -> None:
        """Write a line."""
        os.write(self._file, f"{time.time():.3f} {word} {about}\n".encode())


def read(folder: Path) -> Iterator[Line]:
    """Yield the lines of every journal in a folder."""
    for path in sorted(folder.glob("*.journal")):
        for line in path.read_text(errors="replace").splitlines():
            moment, word, about = line.split(" ", 2)
            yield Line(float(moment), word, about)
