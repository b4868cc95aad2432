"""Small wrong edits of a Lua source, made by rules and not by hand: mechanical mutants.

A source is cut into tokens, each rule offers edits of one token or one line. An edit is named by the line that it changes,
what that becomes, and which of the lines that read so it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKEN: Final = re.compile(
    r"""(?P<comment>--[^\n]*)
    |(?P<string>'(?:[^'\\]|\\.)*')
    |(?P<number>\d+)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<operator>\.\.\.|\.\.|==|~=|<=|>=|[-+*/%^\#<>=(){}\[\];:,.])
    |(?P<space>\s+)""",
    re.VERBOSE,
)
COMPARISONS: Final = {"==": "~=", "~=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">"}
NAMES: Final = {"and": "or", "or": "and", "true": "false", "false": "true", "min": "max", "max": "min"}
WORDS_BEFORE: Final = {"return", "and", "or", "not", "then", "else", "if", "elseif", "in"}
"""Behind these a minus is a sign."""
CALL: Final = re.compile(
    r"^(?:call|change|error|increment_counter|repair|raise_clock|pcall|check_records|reclaim"
    r"|expire|drop_unleasable|decode_extra|write_completions|finish_lease|finish_add|save_queue)\(.*\)$"
)
ASSIGNMENT: Final = re.compile(r"^[\w.\[\]# +'*-]+ = [^{]*$")
CONDITION: Final = re.compile(r"^(if|elseif|while) (.*) (then|do)$")
LOOP: Final = re.compile(r"^( *)((?:for|while) .* do)$", re.MULTILINE)
TURNS: Final = 300_000
"""Turns of loops that no right call comes near: data of 256 entries, and scores of tables of 16."""


@dataclass(frozen=True)
class Token:
    """A piece of a source and where it stands."""

    kind: str
    text: str
    start: int


@dataclass(frozen=True)
class LuaEdit:
    """A wrong edit: the text from `start` to `end` becomes `new`."""

    start: int
    end: int
    new: str
    line: str
    becomes: str
    nth: int

    def apply(self, source: str) -> str:
        """The source with the edit."""
        return source[: self.start] + self.new + source[self.end :]


def tokens(source: str) -> list[Token]:
    """The tokens of a source without its spaces and comments.

    Raises:
        ValueError: a character that this knows nothing of.
    """
    found, at = [], 0
    while at < len(source):
        match = TOKEN.match(source, at)
        if not match:
            raise ValueError(f"no token of Lua: {source[at : at + 20]!r}")
        kind = str(match.lastgroup)
        if kind not in {"space", "comment"}:
            found.append(Token(kind, match.group(), at))
        at = match.end()
    return found


@cache
def edits(source: str) -> tuple[LuaEdit, ...]:
    """Every edit of a source, in its order."""
    raw = [*_of_tokens(tokens(source)), *_of_lines(source)]
    return tuple(_named(source, *each) for each in sorted(set(raw)))


def _named(source: str, start: int, end: int, new: str) -> LuaEdit:
    first = source.rfind("\n", 0, start) + 1
    last = (source + "\n").find("\n", start)
    line = source[first:last]
    becomes = line[: start - first] + new + line[end - first :]
    nth = [each.strip() for each in source[:first].splitlines()].count(line.strip()) + 1
    return LuaEdit(start, end, new, line.strip(), becomes.strip(), nth)


def _of_tokens(found: list[Token]) -> Iterator[tuple[int, int, str]]:
    for at, token in enumerate(found):
        before = found[at - 1].text if at else ""
        end = token.start + len(token.text)
        for new in _instead(token, before, found[at + 1].text if at + 1 < len(found) else ""):
            yield token.start, end, new
        if [each.text for each in found[at : at + 4] if each.kind != "number"] == ["KEYS", "[", "]"]:
            number = found[at + 2]
            for other in (int(number.text) - 1, int(number.text) + 1):
                if other > 0:
                    yield number.start, number.start + len(number.text), str(other)


def _instead(token: Token, before: str, after: str) -> Iterator[str]:
    text = token.text
    if token.kind == "operator":
        if text in COMPARISONS:
            yield COMPARISONS[text]
        signed = before in WORDS_BEFORE or (before and before in "(,={[<>~==<=>=%*/+-^")
        if text in "+-" and not signed:
            yield "-" if text == "+" else "+"
    elif token.kind == "name" and text in NAMES and (text not in {"min", "max"} or before == "."):
        yield NAMES[text]
    elif token.kind == "name" and text == "not":
        yield ""
    elif token.kind == "number":
        yield str(int(text) + 1)
        if int(text) > 0:
            yield str(int(text) - 1)
    elif (token.kind == "string" and after != ")") or (token.kind == "string" and before != "("):
        yield from _other_string(text, before)


def _other_string(text: str, before: str) -> Iterator[str]:
    inner = text[1:-1]
    if not inner:
        return  # the empty id stands for no item, so that a command does nothing
    if inner.startswith("LEASEQ_"):
        yield f"'X{inner}'"
    elif re.fullmatch(r"\d+", inner):
        yield f"'{int(inner) + 1}'"
    elif before in {"==", "~=", "{", ",", "return", "="} and " " not in inner and "%" not in inner:
        yield f"'{inner}~'"


def _of_lines(source: str) -> Iterator[tuple[int, int, str]]:
    start = 0
    for line in source.splitlines(keepends=True):
        text = line.strip()
        first, last = start + len(line) - len(line.lstrip()), start + len(line.rstrip())
        if CALL.match(text) or (
            ASSIGNMENT.match(text) and not text.startswith("local ") and text.count("(") == text.count(")")
        ):
            yield first, last, ""
        if condition := CONDITION.match(text):
            word, what, then = condition.groups()
            yield first, last, f"{word} not ({what}) {then}"
        start += len(line)


def bounded(source: str) -> str:
    """The source with a limit to the turns of its loops: an edit may make one endless."""
    guard = rf"\1\2 turns = turns + 1 if turns > {TURNS} then error('LEASEQ_ENDLESS', 0) end"
    return "local turns = 0\n" + LOOP.sub(guard, source)
