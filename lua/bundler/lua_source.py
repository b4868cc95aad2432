"""Lines of Lua as the bundler reads them: their tokens, and the variables that they name, declare and assign to.

It knows the Lua that the scripts are written in: one statement on a line, strings in single quotes, tables with commas.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

TOKEN: Final = re.compile(
    r"(?P<string>'(?:[^'\\]|\\.)*')|(?P<name>[A-Za-z_]\w*)|(?P<number>\d[\w.]*)|(?P<space>\s+)|(?P<operator>\.\.\.|\.\.|[=~<>]=|.)"
)
KEYWORDS: Final = re.compile(
    "and|break|do|else|elseif|end|false|for|function|if|in|local|nil|not|or|repeat|return|then|true|until|while"
)
MARKER: Final = "--#functions"
"""Where the functions of a script stand that its hot path does not need."""


@dataclass(frozen=True)
class Token:
    """A piece of a line; `before` and `after` are the texts of its neighbours."""

    kind: str
    text: str
    before: str
    after: str
    in_table: bool

    @property
    def is_variable(self) -> bool:
        """True if it names a variable: not a field, a key of a table or a keyword."""
        if self.kind != "name" or KEYWORDS.fullmatch(self.text) or self.before in {".", ":"}:
            return False
        return not (self.in_table and self.before in {"{", ","} and self.after == "=")


@cache
def tokens(line: str) -> tuple[Token, ...]:
    """Cut a line; what stands in braces on other lines is taken for a statement, so a table's keys end with a comma."""
    pieces = [(str(match.lastgroup), match.group()) for match in TOKEN.finditer(line)]
    solid = [at for at, (kind, _) in enumerate(pieces) if kind != "space"]
    place = {at: number for number, at in enumerate(solid)}
    # a line that ends with a comma and assigns is a row of a table
    depth = 1 if line.rstrip().endswith(",") and not line.lstrip().startswith(("local ", "{")) else 0
    found = []
    for at, (kind, text) in enumerate(pieces):
        number = place.get(at, -1)
        before = pieces[solid[number - 1]][1] if number > 0 else "," if depth else ""
        after = pieces[solid[number + 1]][1] if 0 <= number < len(solid) - 1 else ""
        found.append(Token(kind, text, before, after, depth > 0))
        depth += (text == "{") - (text == "}")
    return tuple(found)


def variables(lines: Iterable[str]) -> set[str]:
    """The variables that lines name."""
    return {
        token.text for line in lines if line.strip() != MARKER for token in tokens(line) if token.is_variable
    }


def renamed(line: str, names: Mapping[str, str]) -> str:
    """The line with other names of variables."""
    return "".join(
        names.get(token.text, token.text) if token.is_variable else token.text for token in tokens(line)
    )


def declared(lines: Iterable[str]) -> set[str]:
    """The variables that lines declare: locals, those of loops, functions and their parameters."""
    found: set[str] = set()
    for line in lines:
        for names in re.findall(r"\blocal ([\w, ]+?)(?= =|$)", line) + re.findall(
            r"\bfor ([\w, ]+?) (?:=|in) ", line
        ):
            if not names.startswith("function "):
                found |= set(names.split(", "))
        for name, parameters in re.findall(r"\bfunction ?(\w*)\(([\w, .]*)\)", line):
            found |= {name, *parameters.split(", ")} - {"", "..."}
    return found


def assigned(lines: Iterable[str]) -> set[str]:
    """The variables that lines assign to, not counting what declares them."""
    found: set[str] = set()
    for line in lines:
        if match := re.match(r"\s*([\w.\[\]]+(?:, [\w.\[\]]+)*) = ", line):
            found |= {target for target in match[1].split(", ") if re.fullmatch(r"\w+", target)}
    return found


def split_arguments(text: str) -> list[str]:
    """The arguments of a call, cut at the commas that are in no brackets."""
    parts, depth = [""], 0
    for token in tokens(text):
        depth += (token.text in {"(", "{", "["}) - (token.text in {")", "}", "]"})
        if token.text == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += token.text
    return [part.strip() for part in parts] if text.strip() else []


def is_balanced(text: str) -> bool:
    """Return whether every bracket that the text closes was opened in it."""
    depth = 0
    for token in tokens(text):
        depth += (token.text == "(") - (token.text == ")")
        if depth < 0:
            return False
    return depth == 0


def without_declaration(line: str, names: set[str]) -> list[str]:
    """A line that declares locals, for which some of them are declared already."""
    match = re.fullmatch(r"local ([\w, ]+?)( = .*)?", line)
    if not match or not names & set(match[1].split(", ")):
        return [line]
    left = ", ".join(name for name in match[1].split(", ") if name not in names)
    lines = [f"local {left}"] if left else []
    return [*lines, match[1] + match[2]] if match[2] else lines


def without_comments(text: str) -> list[str]:
    """The lines of a source that say something to Lua, and its markers."""
    return [
        line
        for line in text.splitlines()
        if line.strip() and (not line.lstrip().startswith("--") or line.strip() == MARKER)
    ]
