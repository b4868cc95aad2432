"""The library of the scripts, `lib/*.lua`, and how a script comes to what it calls.

A file of `lib/` has functions, each `local function NAME(PARAMETERS)` to `end` at the left margin, with a comment above it that
says what it takes and gives. A function sees its parameters, other functions of `lib/`, `call` (redis.call), the libraries of
Lua, and the constants of `lib/constants.lua`; a name that is none of these is refused. A script gets the functions that it
calls, and those that they call, and no other.

A call of a function under `--#inline` is replaced by its body, so a hot path pays for no call. Such a call is a statement on one
line, `NAME(a, b)`, `local x, y = NAME(a, b)` or `x, y = NAME(a, b)`; a function that only returns an expression may be called
anywhere. What cannot be replaced in this way is refused.

Functions stand before the script's first line. A script whose hot path needs none of them says `--#functions` behind that
path: the functions that are only used from there to the end of the block stand there, and the hot path does not pay for making them.
A block inside of that block may say it again.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from bundler.lua_source import (
    MARKER,
    assigned,
    declared,
    is_balanced,
    renamed,
    split_arguments,
    tokens,
    variables,
    without_comments,
    without_declaration,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

HEAD: Final = re.compile(r"local function (\w+)\(([\w, ]*)\)")
CALL: Final = re.compile(
    r"(?P<indent> *)(?:(?P<local>local )?(?P<targets>[\w.]+(?:, [\w.]+)*) = )?(?P<name>\w+)\((?P<given>.*)\)"
)
CONSTANT: Final = re.compile(r"local ([A-Z][A-Z0-9_]+) = (\d+|'(?:[^'\\]|\\.)*')")
BUILT_IN: Final = {"call", "redis", "string", "table", "math", "struct"} | {
    *("error", "pcall", "tonumber", "type", "unpack", "ipairs", "pairs", "next")
}


class LinkError(ValueError):
    """A function of the library that is malformed, or a call that cannot be replaced by its body."""


@dataclass(frozen=True)
class Function:
    """A function of the library; its body has no comments."""

    name: str
    parameters: tuple[str, ...]
    body: tuple[str, ...]
    inline: bool
    where: str


def _marked_blocks(lines: Sequence[str]) -> list[tuple[int, int]]:
    """Return where each mark stands that is in no other's block, and where its block ends."""
    found: list[tuple[int, int]] = []
    for start, line in enumerate(lines):
        if line.strip() == MARKER and (not found or start >= found[-1][1]):
            indent = line.removesuffix(MARKER)
            ends = (at for at in range(start, len(lines)) if lines[at] and not lines[at].startswith(indent))
            found.append((start, next(ends, len(lines))))
    return found


class Library:
    """The functions and constants of a folder."""

    def __init__(self, folder: Path) -> None:
        self._constants = self._read_constants(folder / "constants.lua")
        self._functions: dict[str, Function] = {}
        for path in sorted(folder.glob("*.lua")):
            if path.name != "constants.lua":
                for function in self._read(path):
                    if function.name in self._functions:
                        raise LinkError(f"{function.where}: another file has a function of this name")
                    self._functions[function.name] = function
        self._expanded: dict[str, list[str]] = {}
        for function in self._functions.values():
            self._check_names(function)

    def link(self, lines: Iterable[str], known: Iterable[str] = ("KEYS", "ARGV")) -> list[str]:
        """The lines of a script behind the functions that it calls, calls under `--#inline` replaced.

        Raises:
            LinkError: a name is none of the script's, of the library's, of Lua's or `known`, or a call cannot be replaced.
        """
        lines = list(lines)
        if (
            unknown := variables(lines)
            - declared(lines)
            - self._functions.keys()
            - BUILT_IN
            - self._constants.keys()
            - {*known}
        ):
            raise LinkError(f"nothing has this name: {sorted(unknown)}")
        script = self._expand([self._with_constants(line) for line in lines], ())
        if taken := declared(script) & {*self._functions, "call"}:
            raise LinkError(f"a function of the library has the name of a local: {sorted(taken)}")
        return self._scope(script, (), "")

    def _scope(self, lines: list[str], known: tuple[str, ...], indent: str) -> list[str]:
        """Return lines behind the functions that they call, and those of a block with a mark behind that mark."""
        blocks = _marked_blocks(lines)
        within = {number for start, end in blocks for number in range(start, end)}
        own = [line for number, line in enumerate(lines) if number not in within]
        names = [name for name in self._called(own) if name not in known]
        found, at = self._definitions(names, indent), 0
        for start, end in blocks:
            found += lines[at:start]
            found += self._scope(lines[start + 1 : end], (*known, *names), lines[start].removesuffix(MARKER))
            at = end
        return found + lines[at:]

    def _read_constants(self, path: Path) -> dict[str, str]:
        found = {}
        for line in without_comments(path.read_text()):
            match = CONSTANT.fullmatch(line)
            if not match:
                raise LinkError(f"{path.name}: not a constant: {line}")
            found[match[1]] = match[2]
        return found

    def _read(self, path: Path) -> list[Function]:
        found: list[Function] = []
        comment, inline, head = False, False, None
        body: list[str] = []
        for line in path.read_text().splitlines():
            if head is None and line == "--#inline":
                inline = True
            elif head is None and line.startswith("--"):
                comment = True
            elif head is None and (head := HEAD.fullmatch(line)):
                if not comment:
                    raise LinkError(f"{path.name}: a comment over {head[1]} says what it takes and gives")
            elif head and line == "end":
                parameters = tuple(filter(None, head[2].split(", ")))
                where = f"{path.name}: {head[1]}"
                lines = tuple(self._with_constants(each) for each in without_comments("\n".join(body)))
                found.append(Function(head[1], parameters, lines, inline, where))
                comment, inline, head, body = False, False, None, []
            elif head:
                body.append(line.removeprefix("  "))
            elif line.strip():
                raise LinkError(f"{path.name}: only functions and comments stand here: {line}")
        if head:
            raise LinkError(f"{path.name}: {head[1]} has no end")
        return found

    def _with_constants(self, line: str) -> str:
        names = {}
        for name in variables([line]):
            if re.fullmatch(r"[A-Z][A-Z0-9_]+", name) and name not in {"KEYS", "ARGV"}:
                if name not in self._constants:
                    raise LinkError(f"constants.lua has no {name}")
                names[name] = self._constants[name]
        return renamed(line, names)

    def _check_names(self, function: Function) -> None:
        known = {*function.parameters, *declared(function.body), *self._functions, *BUILT_IN}
        if unknown := variables(function.body) - known:
            raise LinkError(f"{function.where} uses what is no parameter of it: {sorted(unknown)}")
        if set(function.parameters) & declared(function.body):
            raise LinkError(f"{function.where} declares a local of the name of a parameter")

    def _called(self, lines: Iterable[str], within: tuple[str, ...] = ()) -> list[str]:
        """The functions that stay functions which lines call, each behind those that it calls."""
        found: list[str] = []
        for name in sorted(variables(lines) & self._functions.keys()):
            if name in within:
                raise LinkError(f"{name} calls itself")
            inner = self._called(self._body(name, ()), (*within, name))
            found += [each for each in [*inner, name] if each not in found]
        return found

    def _definitions(self, names: Iterable[str], indent: str) -> list[str]:
        lines = []
        for name in names:
            head = f"local function {name}({', '.join(self._functions[name].parameters)})"
            lines += [
                indent + each for each in (head, *("  " + line for line in self._body(name, ())), "end")
            ]
        return lines

    def _body(self, name: str, within: tuple[str, ...]) -> list[str]:
        if name in within:
            raise LinkError(f"{name} calls itself")
        if name not in self._expanded:
            self._expanded[name] = self._expand(self._functions[name].body, (*within, name))
        return self._expanded[name]

    def _expand(self, lines: Iterable[str], within: tuple[str, ...]) -> list[str]:
        found = []
        for line in lines:
            call = CALL.fullmatch(line)
            function = self._functions.get(call["name"]) if call and is_balanced(call["given"]) else None
            if call and function and function.inline:
                rest = self._with_expressions(call["given"], within)
                found += self._replaced(call, function, self._body(function.name, within), rest)
            else:
                rest = self._with_expressions(line, within)
                found.append(rest)
            called = [self._functions[name] for name in sorted(variables([rest]) & self._functions.keys())]
            if stuck := [each.name for each in called if each.inline]:
                raise LinkError(f"a call of {stuck[0]} is not a statement on one line: {line.strip()}")
        return found

    def _with_expressions(self, line: str, within: tuple[str, ...]) -> str:
        """The line with calls of functions that only return an expression replaced by that."""
        pieces = tokens(line)
        for at, token in enumerate(pieces):
            function = self._functions.get(token.text) if token.is_variable else None
            if not (function and function.inline and token.after == "("):
                continue
            body = self._body(function.name, within)
            expression = body[0].removeprefix("return ")
            if len(body) > 1 or len(split_arguments(expression)) != 1 or expression == body[0]:
                continue
            depths = list(accumulate((each.text == "(") - (each.text == ")") for each in pieces[at + 1 :]))
            end = at + 2 + depths.index(0)
            given = split_arguments("".join(each.text for each in pieces[at + 2 : end - 1]))
            where = f"{function.where}, called in {line.strip()!r},"
            if len(given) != len(function.parameters):
                raise LinkError(f"{where} takes {len(function.parameters)} arguments")
            named = Counter(each.text for each in tokens(expression) if each.is_variable)
            values = {}
            for name, value in zip(function.parameters, given, strict=True):
                is_name = re.fullmatch(r"[\w.]+", value)
                if named[name] > 1 and not is_name:
                    raise LinkError(f"{where} needs {name} more than once: give it a name first")
                values[name] = value if is_name else f"({value})"
            before, after = ("".join(each.text for each in part) for part in (pieces[:at], pieces[end:]))
            return self._with_expressions(f"{before}({renamed(expression, values)}){after}", within)
        return line

    @staticmethod
    def _hoisted(statements: list[str], pairs: Iterable[tuple[str, str]], given: set[str]) -> set[str]:
        """Results that are locals of the same names as what they go to: they need no second variable."""
        once = Counter(
            name
            for line in statements
            if (match := re.match(r"local ([\w, ]+?)(?: =|$)", line))
            for name in match[1].split(", ")
        )
        inner = declared(line for line in statements if line.startswith(" "))
        same = {to for to, result in pairs if to == result}
        return {name for name in same if once[name] == 1 and name not in given | inner}

    def _replaced(
        self, call: re.Match[str], function: Function, body: list[str], arguments: str
    ) -> list[str]:
        given, targets = (
            split_arguments(arguments),
            call["targets"].split(", ") if call["targets"] else [],
        )
        *statements, last = body
        results = split_arguments(last.removeprefix("return ")) if last.startswith("return ") else []
        if not results:
            statements = body
        where = f"{function.where}, called as {call.group().strip()!r},"
        if any(re.search(r"\breturn\b", line) for line in statements):
            raise LinkError(f"{where} returns before its end")
        if len(given) != len(function.parameters) or len(targets) != len(results):
            raise LinkError(
                f"{where} takes {len(function.parameters)} arguments and gives {len(results)} results"
            )
        outer = variables([*given, *targets])
        if call["local"] and variables(given) & set(targets):
            raise LinkError(f"{where}: a local hides an argument of the same name")
        values = dict(zip(function.parameters, given, strict=True))
        hoisted = self._hoisted(statements, zip(targets, results, strict=True), variables(given))
        bound = {
            name
            for name, value in values.items()
            if name in assigned(statements) or not re.fullmatch(r"\w+|'(?:[^'\\]|\\.)*'", value)
        }
        # its own locals must not hide what it was called with
        names = {
            name: f"{name}_" if name in outer else name for name in (declared(statements) | bound) - hoisted
        }
        if clash := set(names.values()) & (outer | {*self._functions, *BUILT_IN}):
            raise LinkError(f"{where} has locals that would hide others: {sorted(clash)}")
        inner = [f"local {names[name]} = {values[name]}" for name in function.parameters if name in bound]
        names |= {name: value for name, value in values.items() if name not in bound}
        inner += [renamed(each, names) for line in statements for each in without_declaration(line, hoisted)]
        pairs = [(to, renamed(value, names)) for to, value in zip(targets, results, strict=True) if to != "_"]
        if any(
            to == "_" and not re.fullmatch(r"\w+", value) for to, value in zip(targets, results, strict=True)
        ):
            raise LinkError(f"{where} has a result that is no variable, which cannot be left out")
        to = ", ".join(pair[0] for pair in pairs)
        differ = [pair for pair in pairs if pair[0] not in hoisted]
        left, right = (", ".join(pair[side] for pair in differ) for side in (0, 1))
        indent, local = call["indent"], "local " if call["local"] else ""
        block = [*inner, f"{left} = {right}"] if differ else inner
        nested = any(line.startswith("local ") for line in inner)
        if not inner and differ:
            return [f"{indent}{local}{left} = {right}"]
        lines = ["do", *("  " + line for line in block), "end"] if nested else block
        if local and pairs:
            lines.insert(0, f"local {to}")
        return [indent + line for line in lines]
