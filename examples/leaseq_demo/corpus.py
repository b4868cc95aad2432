"""The work of the demo: the words of leaseq's own source text, in small pieces.

The text comes with every installation and is the same for one version, so the demo needs no file from elsewhere.
"""

import re
from collections import Counter
from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable

from leaseq.item import Item

_WORD = re.compile("[a-z]+")
_FEWEST = 8  # words in a piece; the text is repeated where it is too short for that


def count_words(text: str) -> Counter[str]:
    """Return how often each word occurs."""
    return Counter(_WORD.findall(text.lower()))


def read_text() -> str:
    """All of the package's own source text, in a fixed order."""
    return "\n".join(file.read_text(encoding="utf-8") for file in _sources(resources.files("leaseq")))


def _sources(folder: Traversable) -> Iterator[Traversable]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _sources(entry)
        elif entry.name.endswith(".py"):
            yield entry


def copies(text: str, count: int) -> int:
    """Return how many times a text is repeated to give `count` pieces."""
    return -(-count * _FEWEST // len(text.split()))


def cut(text: str, count: int) -> list[Item]:
    """Cut a text into `count` items, between words."""
    words = text.split() * copies(text, count)
    ends = [len(words) * n // count for n in range(count + 1)]
    return [Item(" ".join(words[ends[n] : ends[n + 1]]), id=f"piece-{n:05}") for n in range(count)]
