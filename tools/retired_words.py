"""Names in the code that are not the field's words: each has a better one. Run by `make lint`.

    python tools/retired_words.py

Looks at the names of files, and at what the code calls things; comments and texts may use any word.
"""

import io
import keyword
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
FOLDERS: Final = ("python/leaseq", "cleaner/leaseq_cleaner")

RETIRED: Final = {
    "bell": "wake event",
    "crew": "pool",
    "desk": "in flight, execution",
    "ear": "channel",
    "hear": "on, apply, record",
    "heard": "on, extended, record",
    "heart": "heartbeater",
    "mother": "forkserver",
    "mouth": "send",
    "odd": "abnormal",
    "outage": "server health",
    "party": "group",
    "ring": "set, wake",
    "rings": "wakes",
    "say": "send, append",
    "teller": "completer",
    "tender": "heartbeater",
    "tending": "maintenance, cleaning",
}
"""A word, and what to say in its place."""


def words(name: str) -> set[str]:
    """The words of a name in snake case or camel case."""
    return {each.lower() for each in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def names(path: Path) -> Iterator[tuple[int, str]]:
    """The names in a file of Python, each with its line; line 0 has the file's own."""
    yield 0, path.stem
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type == tokenize.NAME and not keyword.iskeyword(token.string):
            yield token.start[0], token.string


def main() -> int:
    """Name what is found; 1 if there is something."""
    found = 0
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for line, name in names(path):
                for word in sorted(words(name) & RETIRED.keys()):
                    found += 1
                    print(
                        f"{path.relative_to(ROOT)}:{line}: {name}: in place of {word!r} say {RETIRED[word]}"
                    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
