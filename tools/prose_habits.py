"""Habits of writing that a reader has to decipher: in pages, and in docstrings, comments and messages. Run by `make lint`.

    python tools/prose_habits.py

Lists each place with what to write instead. A place that is right as it is stands in `prose_accepted.txt`, beside this file: a page and
the words around the habit. An entry there that no longer fits is an error too.
"""

import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
ACCEPTED: Final = Path(__file__).with_name("prose_accepted.txt")

SUFFIXES: Final = (".md", ".py", ".lua", ".ts")
"""In pages, code is not looked at. In code, comments and strings with several words are."""

LEFT_OUT: Final = (
    *("_sync", "codecs.py", "script_errors.py", "_scripts.py", "core.md"),  # generated
    *("codecs.generated.ts", "script-errors.generated.ts", "scripts.generated.ts"),
    "CALL_COSTS.md",  # a log
    "prose_habits.py",
)
"""Names of files and folders that are not looked at."""

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
    r"^```.*?^```$|<!-- peers: begin.*?<!-- peers: end[^\n]*|`[^`\n]*`|\]\([^)\n]*\)",
    re.DOTALL | re.MULTILINE,
)
FSTRING_PART: Final = getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)
STRING: Final = r""" "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' """
NO_WORDS: Final = re.compile(r"`[^`\n]*`|\{[^{}\n]*\}|\n[ \t]*(?:\*(?!/)|#|//|--)?")
"""Code and values in a text, and a line break with the mark of a comment behind it."""
TEXTS: Final = {
    ".lua": re.compile(rf"--\[\[.*?\]\] | --[^\n]* | {STRING}", re.VERBOSE | re.DOTALL),
    ".ts": re.compile(
        rf"//[^\n]* | /\*.*?\*/ | {STRING} | `(?:[^`\\]|\\.)*` | (?<=[=(,:!&|?{{;\[] )(?P<pattern>/(?:[^/\\\n]|\\.)+/)",
        re.VERBOSE | re.DOTALL,
    ),
}
"""Comments and strings of a language; in TypeScript regular expressions too, so that their quotes start no string."""


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
    """Return the files to look at."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    paths = [Path(name) for name in sorted(set(names))]
    return [
        ROOT / path
        for path in paths
        if path.suffix in SUFFIXES and not {*path.parts} & {*LEFT_OUT} and (ROOT / path).exists()
    ]


def texts(suffix: str, text: str) -> Iterator[tuple[int, str]]:
    """Yield the comments and strings of a file of code, each with its place."""
    if suffix != ".py":
        yield from (
            (hit.start() + 1, hit[0][1:]) for hit in TEXTS[suffix].finditer(text) if hit.lastgroup is None
        )
        return
    starts = [0, *accumulate(len(line) for line in text.splitlines(keepends=True))]
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING, FSTRING_PART):
            yield starts[token.start[0] - 1] + token.start[1], token.string


def prose_of(page: Path, text: str) -> str:
    """Return the text with everything replaced that is not prose, so that places stay. A line break becomes a space."""
    if page.suffix == ".md":
        return CODE.sub(lambda code: re.sub(r"[^\n]", "~", code[0]), text).replace("\n", " ")
    prose = ["~"] * len(text)
    for start, words in texts(page.suffix, text):
        if " " in words:
            prose[start : start + len(words)] = NO_WORDS.sub(_blank, words)
    return "".join(prose)


def _blank(hit: re.Match[str]) -> str:
    return (" " if hit[0][0] == "\n" else "~") * len(hit[0])


def places(page: Path) -> Iterator[Place]:
    """Yield the habits in a page, in order."""
    text = page.read_text(encoding="utf-8")
    prose = prose_of(page, text)
    for pattern, instead in HABITS.items():
        spaced = pattern if "(?<" in pattern else pattern.replace(" ", " +")
        for hit in re.finditer(spaced, prose, re.IGNORECASE if "Who " not in pattern else 0):
            around = " ".join(text[max(0, hit.start() - 30) : hit.end() + 30].split())
            yield Place(
                str(page.relative_to(ROOT)), text.count("\n", 0, hit.start()) + 1, hit[0], around, instead
            )


def main() -> int:
    """Print what is found; return 1 if there is anything."""
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
