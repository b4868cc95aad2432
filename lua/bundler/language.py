"""A language of a client: its names and types, and how its values are read and written."""

import json
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bundler.signature import Field


class Language:
    """A language as its `values.toml` describes it; `words` are the named sets of words (see `types.toml`)."""

    def __init__(self, values: Path, words: Mapping[str, Mapping[str, str]]) -> None:
        self._table: Mapping[str, Any] = tomllib.loads(values.read_text())
        self._words = words

    @property
    def files(self) -> Mapping[str, str]:
        """The template of each generated file, and its path."""
        found: Mapping[str, str] = self._table["files"]
        return found

    @property
    def unused(self) -> list[str]:
        """The names of functions that the client does not call; they are not written."""
        found: list[str] = self._table["unused"]
        return found

    def visible(self, name: str) -> str:
        """Return the name of a record, in small letters if the package keeps it to itself."""
        return lower_first(name) if name in self._table.get("hidden", []) else name

    def name(self, field: Field) -> str:
        """Return the client's name of an argument or an element of a reply."""
        named: str | None = self._table["names"].get(field.name)
        if named is not None:
            return named
        return CASES[self._table["case"]](field.name)

    def type(self, field: Field) -> str:
        """Return the type of a value; a set of words may have a name, one word is a constant."""
        if not field.words:
            return str(self._value(field)["type"])
        words = [json.dumps(word) for word in field.words]
        if len(words) == 1:
            return words[0]
        named = self._words["|".join(field.words)]
        return str(self._value(field)["type"]).format(name=named["name"], words=", ".join(words))

    def argument(self, field: Field) -> str:
        """Return the type of an argument: it may take more than a reply gives."""
        return str(self._value(field).get("argument") or self.type(field))

    def parameter(self, field: Field) -> str:
        """Return the parameter of a function that takes a value."""
        return f"{self.name(field)}: {self.argument(field)}"

    def read(self, field: Field, source: str) -> str:
        """Return the expression that reads a value of a reply."""
        return str(self._value(field)["read"]).format(
            value=source, type=self.type(field) if field.words else ""
        )

    def write(self, field: Field, value: str | None = None) -> str:
        """Return the expression that writes an argument, by default the parameter of its name."""
        name = self.name(field)
        return str(self._value(field)["write"]).format(value=value or name, name=name)

    def unit(self, field: Field) -> str:
        """Return the unit of a value, for people; empty for those without one."""
        return str(self._table["values"].get(field.type, {}).get("unit", ""))

    def _value(self, field: Field) -> Mapping[str, str]:
        value: Mapping[str, str] = self._table["values"][field.type]
        return value


def camel(name: str) -> str:
    """Return a name in snake case in camel case."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def pascal(name: str) -> str:
    """Return a name in snake case as the name of a type."""
    return "".join(word.capitalize() for word in name.split("_"))


def lower_first(name: str) -> str:
    """Return the name of a type as that of a function."""
    return name[0].lower() + name[1:]


CASES: Mapping[str, Callable[[str], str]] = {"camel": camel, "pascal": pascal, "snake": str}
"""The ways to write a name in snake case."""
