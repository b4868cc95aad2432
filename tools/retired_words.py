"""Names in the code that are not the field's words: each has a better one. Run by `make lint`.

    python tools/retired_words.py

Looks at the names of files, and at what the code calls things; comments and texts may use any word.
"""

import io
import keyword
import re
import sys
import tokenize
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]

RETIRED: Final = {
    "bell": "wake event",
    "crew": "pool",
    "desk": "in flight, execution",
    "ear": "channel",
    "hear": "on, apply, record",
    "heard": "on, extended, record",
    "heart": "heartbeater",
    "leash": "guard",
    "mother": "forkserver",
    "mouth": "send",
    "odd": "abnormal",
    "outage": "server health",
    "party": "group",
    "patience": "timeout",
    "ring": "set, wake",
    "rings": "wakes",
    "say": "send, append",
    "says": "expected, message",
    "taught": "loaded",
    "tell": "emit, report",
    "teller": "completer",
    "tender": "heartbeater",
    "tending": "maintenance, cleaning",
}
"""A word, and what to say in its place."""

RETIRED_IN_PYTHON: Final = RETIRED | {
    "colours": "sync, async",
    "lane": "sequence, connection",
    "said": "message, expected, fields",
    "storm": "random traffic",
    "struck": "killed",
    "told": "answer, reply, result, reported",
    "untold": "value",
}
"""More words that Python does not say."""

RETIRED_IN_TYPESCRIPT: Final = RETIRED | {
    "aim": "target",
    "aims": "targets",
    "announcer": "presence reporter",
    "apart": "dedicated",
    "begun": "started, checked",
    "behind": "trailing",
    "doing": "status",
    "keepers": "dead with outcome",
    "lane": "connection",
    "lanes": "pool",
    "longest": "max",
    "look": "check",
    "looks": "checks",
    "most": "max",
    "places": "slot table",
    "said": "report",
    "told": "result, reply",
    "word": "argument",
    "words": "arguments",
}
"""More words that the TypeScript client does not say."""

LUA_TOKEN: Final = re.compile(
    r"""
    --\[\[.*?\]\] | --[^\n]*                          # comments
    | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*'        # texts
    | (?P<name>[A-Za-z_]\w*)
    """,
    re.VERBOSE | re.DOTALL,
)

TYPESCRIPT_TOKEN: Final = re.compile(
    r"""
    //[^\n]* | /\*.*?\*/                               # comments
    | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*'        # texts
    | `(?:[^`\\]|\\.)*`                                # templates, with what is in their braces
    | (?<=[=(,:!&|?{};\[] )/(?:[^/\\\n]|\\.)+/[a-z]*   # patterns
    | (?P<name>[A-Za-z_$][\w$]*)
    """,
    re.VERBOSE | re.DOTALL,
)


def without(retired: Mapping[str, str], *words: str) -> Mapping[str, str]:
    """The list for a folder in which some of the words are the field's."""
    return {word: instead for word, instead in retired.items() if word not in words}


def words(name: str) -> set[str]:
    """The words of a name in snake case or camel case."""
    return {each.lower() for each in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def python_names(text: str) -> Iterator[tuple[int, str]]:
    """The names in a file of Python, each with its line."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME and not keyword.iskeyword(token.string):
            yield token.start[0], token.string


def names_in_tests(text: str) -> Iterator[tuple[int, str]]:
    """Return the words in a file of tests, but for the names of tests, which are sentences."""
    return ((line, name) for line, name in python_names(text) if not name.startswith("test_"))


def matched_names(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, str]]:
    """The names that a pattern finds in a file, each with its line."""
    for token in pattern.finditer(text):
        if token["name"]:
            yield text.count("\n", 0, token.start()) + 1, token["name"]


class Folder(NamedTuple):
    """A folder to check: how to find the names in its files, and which words they may not have."""

    path: str
    pattern: str
    names: Callable[[str], Iterator[tuple[int, str]]]
    retired: Mapping[str, str]


FOLDERS: Final = (
    Folder("python/leaseq", "*.py", python_names, RETIRED_IN_PYTHON),
    *(
        Folder(folder, "*.py", names_in_tests, RETIRED_IN_PYTHON)
        for folder in ("cleaner/leaseq_cleaner", "benchmarks", "examples", "lua")
    ),
    Folder("python/conformance_adapter", "*.py", python_names, RETIRED_IN_PYTHON),
    *(
        Folder(folder, "*.py", names_in_tests, without(RETIRED_IN_PYTHON, "patience"))
        for folder in ("python/tests", "conformance-tests/tests")
    ),
    *(
        # a case has so much `patience`, as its option is called
        Folder(
            f"conformance-tests/{folder}",
            "*.py",
            python_names,
            without(RETIRED_IN_PYTHON, "colours", "patience"),
        )
        for folder in ("leaseq_conformance", "selftest")
    ),
    Folder("lua", "*.lua", partial(matched_names, LUA_TOKEN), RETIRED_IN_PYTHON),
    *(
        Folder(
            f"typescript/{folder}", "*.ts", partial(matched_names, TYPESCRIPT_TOKEN), RETIRED_IN_TYPESCRIPT
        )
        for folder in ("src", "test", "adapter", "examples")
    ),
)


def retired_in(path: Path, folder: Folder) -> Iterator[str]:
    """Yield the findings in a file, a line each; line 0 is the file's name."""
    for line, name in ((0, path.stem), *folder.names(path.read_text(encoding="utf-8"))):
        for word in sorted(words(name) & folder.retired.keys()):
            yield f"{path.relative_to(ROOT)}:{line}: {name}: in place of {word!r} say {folder.retired[word]}"


def main() -> int:
    """Name what is found; 1 if there is something."""
    found = {
        line: None
        for folder in FOLDERS
        for path in sorted((ROOT / folder.path).rglob(folder.pattern))
        for line in retired_in(path, folder)
    }
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
