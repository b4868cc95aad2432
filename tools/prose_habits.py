"""Habits of writing that a reader has to decipher: in pages, and in the docstrings, comments and messages of the packages. Run by `make lint`.

    python tools/prose_habits.py

Lists each place with what to write instead. A place that is right as it is stands in `prose_accepted.txt`, beside this file: a page and
the words around the habit. An entry there that no longer fits is an error too.
"""

import io
import re
import sys
import tokenize
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
ACCEPTED: Final = Path(__file__).with_name("prose_accepted.txt")

PAGES: Final = (
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "benchmarks/*.md",
    "conformance-tests/*.md",
    "docs/*.md",
    "spec/*.md",
    "typescript/README.md",
)
"""Code and generated tables in them are not looked at."""

MODULES: Final = ("python/leaseq/**/*.py", "cleaner/leaseq_cleaner/**/*.py")
"""In modules, comments and strings with several words are looked at. Generated modules are not."""

GENERATED: Final = ("_sync", "codecs.py", "script_errors.py", "_scripts.py")

NOT_YET: Final = (
    "benchmarks/CALL_COSTS.md",  # a log
)
"""Pages that are being rewritten. Take a page out of here when it is done."""

HABITS: Final = {
    r"\bwhoever\b|\bwhosoever\b": "if you, a worker that",
    r"(?:^|(?<=[.:;] ))Who (?!am|is|are|was|were|can|may)": "if you, a program that",
    r"\b(?:is|are|was|were|be|been) told\b": "returns, raises, receives, reports",
    r"\bhears?\b": "receives, finds out",
    r"\bthe answer is\b": "it returns",
    r"\banswers? (?:true|false|with|how)\b": "returns",
    r"\bfor ever\b": "permanently, without limit",
    r"\bby (?:itself|himself|themselves|yourself)\b": "automatically",
    r"\bso (?:many|often)\b|\bso long\b(?! as)": "the parameter's name, the number",
    r"\bnobody\b": "what happens instead",
    r"\bno \w+ any more\b|\bany more\b": "no longer, or what happens instead",
    r"\bof (?:its|one's|their|his|our|your|my) own\b": "separate, custom",
    r"\baside\b": "except for, and a sentence for it",
    r"\bbesides\b": "also, in addition",
    r"\bof which\b": "a second sentence",
    r"\bone that\b": "the noun",
    r"\b(?:begin|begins|begun|began)\b": "start",
    r"\bthose who\b|\banybody\b|\bsomebody\b": "the noun: a program, a producer, a person",
    r"\bwhere (?:nobody|one|none|there is no)\b": "if",
    r"\bbear(?:s|ing)? (?:that|it)\b": "handle",
}
"""A pattern, and what to write."""

CODE: Final = re.compile(
    r"^```.*?^```$|<!-- peers: begin.*?<!-- peers: end[^\n]*|`[^`\n]*`", re.DOTALL | re.MULTILINE
)


class Place(NamedTuple):
    """A habit in a page."""

    page: str
    line: int
    words: str
    around: str
    instead: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.words!r} in “{self.around}”: write {self.instead}"


def pages() -> list[Path]:
    """The pages to look at."""
    left_out = {path for pattern in NOT_YET for path in ROOT.glob(pattern)}
    modules = {path for pattern in MODULES for path in ROOT.glob(pattern) if not {*path.parts} & {*GENERATED}}
    return sorted({path for pattern in PAGES for path in ROOT.glob(pattern)} - left_out | modules)


def prose_of(page: Path, text: str) -> str:
    """The same text with everything that is not prose replaced, so that places stay. A line break becomes a space."""
    if page.suffix != ".py":
        return CODE.sub(lambda code: re.sub(r"[^\n]", "~", code[0]), text).replace("\n", " ")
    starts = [0, *accumulate(len(line) for line in text.splitlines(keepends=True))]
    prose = ["~"] * len(text)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING) and " " in token.string:
            start = starts[token.start[0] - 1] + token.start[1]
            words = re.sub(r"`[^`\n]*`", lambda code: "~" * len(code[0]), token.string)
            prose[start : start + len(words)] = words.replace("\n", " ")
    return "".join(prose)


def places(page: Path) -> Iterator[Place]:
    """The habits in a page, in order. A line break counts as a space."""
    text = page.read_text(encoding="utf-8")
    prose = prose_of(page, text)
    for pattern, instead in HABITS.items():
        for hit in re.finditer(pattern, prose, re.IGNORECASE if "Who " not in pattern else 0):
            around = " ".join(text[max(0, hit.start() - 30) : hit.end() + 30].split())
            yield Place(
                str(page.relative_to(ROOT)), text.count("\n", 0, hit.start()) + 1, hit[0], around, instead
            )


def main() -> int:
    """Name what is found; 1 if there is something."""
    accepted = [
        tuple(line.split(": ", 1))
        for line in ACCEPTED.read_text(encoding="utf-8").splitlines()
        if line.strip() and not line.startswith("#")
    ]
    used: set[tuple[str, ...]] = set()
    found = []
    for page in pages():
        for place in places(page):
            fits = [entry for entry in accepted if entry[0] == place.page and entry[1] in place.around]
            used.update(fits)
            if not fits:
                found.append(place)
    for place in sorted(found):
        print(place)
    stale = [entry for entry in accepted if entry not in used]
    for entry in stale:
        print(f"{ACCEPTED.name}: no longer in the page: {': '.join(entry)}")
    return 1 if found or stale else 0


if __name__ == "__main__":
    sys.exit(main())
