"""Write `docs/api.md`, the Python API, from the docstrings of the package. Run by `make generate`, checked by `make lint`.

    python tools/api_page.py             write the page
    python tools/api_page.py --check     exit 1 if the page is stale

`tools/api_page.toml` has the names of the page, in its order; `tools/api_page.md.jinja` is how each looks. griffe reads the source.
"""

import builtins
import logging
import re
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import griffe
import jinja2

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "api.md"
PARTS: Final = Path(__file__).with_suffix(".toml")
TEMPLATE: Final = Path(__file__).with_suffix(".md.jinja")

MAX_LINE: Final = 88
"""Characters of a signature that stays on one line."""

CODE_BLOCK: Final = re.compile(r"(?:^ {4}.*\n?|^\n(?= {4}))+", re.MULTILINE)
CODE: Final = re.compile(r"(`[^`]*`)")
RULE: Final = re.compile(r"\bLQ-[A-Z]+-\d+\b")
NAME: Final = re.compile(r"\b[A-Z][a-z]+[A-Z]\w+\b")
"""A name of a class in text that is not marked as code."""


class Api:
    """The public objects of the package, as Markdown."""

    def __init__(self) -> None:
        logging.getLogger("griffe").setLevel(logging.ERROR)
        loader = griffe.GriffeLoader(docstring_parser="google", search_paths=[ROOT / "python"])
        self._package = loader.load("leaseq")
        loader.resolve_aliases()
        self.parts: dict[str, Any] = tomllib.loads(PARTS.read_text("utf-8"))
        self._paths = {
            name.rpartition(".")[2]: name for part in reversed(self.parts["part"]) for name in part["names"]
        }
        """The path of each name of the page."""
        self._places = {self.find(path).path for path in self._paths.values()}
        classes = [thing for path in self._paths.values() if (thing := self.find(path)).is_class]
        self._methods = {f"{cls.name}.{name}" for cls in classes for name in self.methods(cls)}
        self._rules = {
            rule: page.name
            for page in (ROOT / "spec").glob("*.md")
            for rule in re.findall(r"^\*\*(LQ-[A-Z]+-\d+)\*\*", page.read_text("utf-8"), re.MULTILINE)
        }

    def find(self, path: str) -> Any:
        """The object of a path, such as `leaseq.WorkQueue`."""
        name = path.removeprefix("leaseq.")
        found = self._package[name]
        if found.is_module:  # the function of the same name hides it
            found = found[name]
        return found.final_target if found.is_alias else found

    def signature(self, thing: Any, name: str) -> str:
        """The call of a function, or the call that makes an object of a class."""
        words = list(_parameters(thing.parameters))
        after = f" -> {thing.returns}" if thing.is_function and thing.returns else ""
        line = f"{name}({', '.join(words)}){after}"
        if len(line) > MAX_LINE:
            line = f"{name}(\n" + "".join(f"    {word},\n" for word in words) + f"){after}"
        return _public(line)

    def bases(self, cls: Any) -> list[str]:
        """The bases of a class that a user knows: the first that is on the page, and those of Python."""
        known = [base.name for base in cls.mro() if base.path in self._places][:1]
        return [*known, *(str(base) for base in cls.bases if hasattr(builtins, str(base)))]

    def attributes(self, cls: Any) -> list[tuple[str, str, str]]:
        """Name, type and meaning of each attribute and property; those of a base that is on the page are there."""
        found: dict[str, tuple[str, str, str]] = {}
        for owner in self._own(cls):
            sections = owner.docstring.parsed if owner.docstring else []
            described = [one for part in sections if part.kind.value == "attributes" for one in part.value]
            for one in described:
                found.setdefault(one.name, (one.name, _type(owner, one), one.description))
            for name, member in owner.members.items():
                if _is_public(member) and "property" in member.labels and member.docstring:
                    found.setdefault(name, (name, _public(str(member.annotation)), member.docstring.value))
        return [
            (name, kind.replace("|", r"\|"), self.text(text[0].upper() + text[1:], cls.name))
            for name, kind, text in found.values()
            if f"{cls.name}.{name}" not in self.parts["internal"]
        ]

    def methods(self, cls: Any) -> dict[str, Any]:
        """The methods of a class; those of a base that is on the page are there."""
        found: dict[str, Any] = {}
        for owner in self._own(cls):
            for name, member in owner.members.items():
                if _is_public(member) and member.is_function and member.docstring:
                    found.setdefault(name, member)
        return {
            name: method
            for name, method in found.items()
            if f"{cls.name}.{name}" not in self.parts["internal"]
        }

    def groups(self, cls: Any) -> dict[str, list[str]]:
        """The names of the methods of a class, by what they are for."""
        groups: dict[str, list[str]] = self.parts["groups"].get(cls.name, {"Methods": [*self.methods(cls)]})
        grouped = sorted(name for names in groups.values() for name in names)
        if grouped != sorted(self.methods(cls)):
            raise SystemExit(f"{PARTS.name}: groups.{cls.name} lacks a method, or has one too many")
        return groups

    def sections(self, thing: Any) -> Iterator[tuple[str, Any]]:
        """The sections of a docstring."""
        return ((part.kind.value, part.value) for part in thing.docstring.parsed)

    def text(self, text: str, owner: str = "") -> str:
        """Text of a docstring, with links to rules, classes and methods of the owner."""
        fenced = CODE_BLOCK.sub(lambda code: f"\n```py\n{textwrap.dedent(code[0]).strip()}\n```\n", text)
        pieces = re.split(r"(```py\n.*?```\n)", fenced, flags=re.DOTALL)
        return "".join(piece if piece.startswith("```") else self._linked(piece, owner) for piece in pieces)

    def _linked(self, text: str, owner: str) -> str:
        words = CODE.split(text)
        words[::2] = [self._links_of_text(word, owner) for word in words[::2]]
        words[1::2] = [self._link_of_code(word, owner) for word in words[1::2]]
        return "".join(words)

    def _links_of_text(self, text: str, owner: str) -> str:
        text = re.sub(r"[*_<]", r"\\\g<0>", text)
        text = RULE.sub(lambda rule: f"[{rule[0]}](../spec/{self._rules[rule[0]]})", text)
        return NAME.sub(lambda name: self._link_of(name[0], name[0]) if name[0] != owner else name[0], text)

    def _link_of_code(self, code: str, owner: str) -> str:
        name = code.strip("`").removeprefix("leaseq.")
        for heading in (f"{owner}.{name}", name):
            if heading in self._methods:
                return f"[{code}](#{anchor(heading)})"
        return self._link_of(name.partition(".")[0], code)

    def _link_of(self, name: str, shown: str) -> str:
        known = name[:1].isupper() and name in self._paths
        return f"[{shown}](#{anchor(self._paths[name])})" if known else shown

    def _own(self, cls: Any) -> Iterator[Any]:
        """A class and those of its bases that are not on the page."""
        yield cls
        for base in cls.mro():
            if base.path in self._places:
                return
            yield base


def anchor(heading: str) -> str:
    """The name of a heading in links."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def escaped(heading: str) -> str:
    """A heading as Markdown."""
    return heading.replace("__", r"\_\_")


def _public(text: str) -> str:
    """Types by the names that a user knows."""
    return text.replace("LeasedItemBase", "LeasedItem").replace("concurrency.", "")


def _is_public(member: Any) -> bool:
    return not member.is_alias and (not member.name.startswith("_") or member.name == "__call__")


def _parameters(parameters: Any) -> Iterator[str]:
    """The parameters of a function as they are written, without `self`."""
    kind = ""
    for parameter in parameters:
        if parameter.name in {"self", "cls"}:
            continue
        last, kind = kind, parameter.kind.value
        if last == "positional-only" != kind:
            yield "/"
        if kind == "keyword-only" and last not in {kind, "variadic positional"}:
            yield "*"
        stars = {"variadic positional": "*", "variadic keyword": "**"}.get(kind, "")
        note = f": {parameter.annotation}" if parameter.annotation else ""
        value = "" if parameter.default is None or stars else f"{' = ' if note else '='}{parameter.default}"
        yield f"{stars}{parameter.name}{note}{value}"


def _type(owner: Any, attribute: Any) -> str:
    """The type of an attribute: as it is written, else that of the argument of its name."""
    if attribute.annotation is None and attribute.name in {one.name for one in owner.parameters}:
        return _public(str(owner.parameters[attribute.name].annotation or ""))
    return _public(str(attribute.annotation or ""))


def content() -> str:
    """The page as it should be."""
    api = Api()
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)  # noqa: S701 (Markdown)
    page = environment.from_string(TEMPLATE.read_text("utf-8")).render(
        api=api, parts=api.parts["part"], made=api.parts["made"], anchor=anchor, escaped=escaped
    )
    return re.sub(r"\n{3,}", "\n\n", page).strip() + "\n"


def main() -> int:
    """Run the command line."""
    if sys.argv[1:] == ["--check"]:
        if PAGE.read_text("utf-8") != content():
            sys.stderr.write("stale: docs/api.md; run make generate\n")
            return 1
        return 0
    PAGE.write_text(content(), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
