"""Reads the vectors of a script: `cases/vectors/SCRIPT.yaml`, and `cases/vectors/queues.yaml` for the queues they start from.

A case is a name, the rules it is about, the queue that is given and what is changed of it (`but`), the call, and what it
answers and changes (`then`), the second time too where that is other (`again`). Without `again` the second call answers the
same and changes nothing. `refused: CODE` says instead that both calls get an error and change nothing.
"""

from __future__ import annotations

import functools
import json
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

import yaml

from leaseq_conformance.case_loader import CaseFileError
from leaseq_conformance.schemas import Schema
from leaseq_conformance.vectors.calls import call
from leaseq_conformance.vectors.notation import (
    NotationError,
    keys_from_yaml,
    reply_from_yaml,
    untext,
    untime,
)
from leaseq_conformance.vectors.vector import NOW, Refused, Vector

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from leaseq_conformance.vectors.vector import Dump, Reply

SCHEMA: Final = 1
FOLDER: Final = resources.files("leaseq_conformance") / "cases" / "vectors"
QUEUES: Final = "queues"
WIDTH: Final = 118
ORDER: Final = (
    *("name", "rules", "given", "but", "now", "server", "call", "keys"),
    *("damage", "refused", "by_hand", "then", "again"),
)
LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # which it is depends on the machine
    """Writes each text on one line."""


def _text(dumper: Any, value: str) -> Any:
    style = '"' if any(each < " " for each in value) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def scripts() -> list[str]:
    """The scripts that there are vectors of."""
    names = (each.name.removesuffix(".yaml") for each in FOLDER.iterdir() if each.name.endswith(".yaml"))
    return sorted(name for name in names if name != QUEUES)


@functools.cache
def read(name: str) -> Any:
    """A file as it is written.

    Raises:
        CaseFileError: it is no YAML, or not as the schema says.
    """
    source = f"{name}.yaml"
    try:
        found = yaml.load((FOLDER / source).read_text("utf-8"), LOADER)  # noqa: S506  # it is the safe one
    except yaml.YAMLError as error:
        raise CaseFileError(f"{source}: {error}") from error
    wrong = _schema().error(found)
    if wrong is not None:
        place = "/".join(map(str, wrong.absolute_path))
        raise CaseFileError(f"{source}: at {place or 'the top'}: {wrong.message[:300]}")
    return found


@functools.cache
def _schema() -> Schema:
    schema = resources.files("leaseq_conformance.vectors") / "schema.json"
    return Schema(json.loads(schema.read_text("utf-8")))


@functools.cache
def queues() -> dict[str, Dump]:
    """The queues that vectors start from, by their names."""
    found: dict[str, Dump] = {}
    for name, written in read(QUEUES)["queues"].items():
        base = found[written["like"]] if "like" in written else {}
        found[name] = keys_from_yaml(base, written["keys"])
    return found


def given(case: Mapping[str, Any], named: Mapping[str, Dump]) -> Dump:
    """The keys that a case starts from, without its damage."""
    if case["given"] not in named:
        raise NotationError(f"there is no queue {case['given']}")
    return keys_from_yaml(named[case["given"]], case.get("but", {}))


def now(case: Mapping[str, Any]) -> int:
    """The server's time."""
    return untime(case["now"]) if "now" in case else NOW


def vector(script: str, case: Mapping[str, Any], named: Mapping[str, Dump]) -> Vector:
    """A case as it is run."""
    made = call(script, case["call"])
    before = keys_from_yaml(given(case, named), case.get("damage", {}))
    if "refused" in case:
        reply: Reply | Refused = Refused(case["refused"])
        again = reply
        then = then_again = before
    else:
        written = case["then"]
        reply = reply_from_yaml(written["reply"])
        then = keys_from_yaml(before, written.get("keys", {}))
        written = case.get("again", {"reply": written["reply"]})
        again = reply_from_yaml(written["reply"])
        then_again = keys_from_yaml(then, written.get("keys", {}))
    keys = [untext(each).decode("latin-1") for each in case["keys"]] if "keys" in case else None
    return Vector(
        name=case["name"],
        script=script,
        rules=tuple(case["rules"]),
        now=now(case),
        given=before,
        argv=made.argv,
        reply=reply,
        then=then,
        again=again,
        then_again=then_again,
        more=made.more,
        keys=keys,
        server=case.get("server", ""),
        base=case["given"],
    )


@functools.cache
def load(script: str) -> tuple[Vector, ...]:
    """The vectors of a script.

    Raises:
        CaseFileError: one of them is not right.
    """
    found = read(script)
    made = []
    for case in found["cases"]:
        try:
            made.append(vector(script, case, queues()))
        except NotationError as error:
            raise CaseFileError(f"{script}.yaml: {case['name']}: {error}") from error
    return tuple(made)


def load_all() -> Iterator[Vector]:
    """All vectors."""
    for script in scripts():
        yield from load(script)


# -- writing


def render(script: str, cases: list[dict[str, Any]]) -> str:
    """The file of a script."""
    lines = [f"schema: {SCHEMA}", f"script: {script}", "cases:"]
    for case in cases:
        unknown = case.keys() - set(ORDER)
        assert not unknown, unknown
        lines += [_line("- " if name == "name" else "  ", name, case[name]) for name in ORDER if name in case]
    return "\n".join([*lines, ""])


def _flow(value: Any) -> str:
    written = yaml.dump(
        [value], Dumper=_Dumper, default_flow_style=True, allow_unicode=True, sort_keys=False, width=10**9
    )
    return str(written).removesuffix("\n")[1:-1]


def _line(indent: str, name: str, value: Any) -> str:
    """A field on a line, or on several where it is long."""
    field = f"{indent}{_flow(name)}: "
    written = f"{field}{_flow(value)}"
    if len(written) <= WIDTH or not isinstance(value, dict | list):
        return written
    deeper = " " * (len(indent) + 2)
    if isinstance(value, dict):
        return "\n".join([field.rstrip(), *(_line(deeper, str(each), part) for each, part in value.items())])
    return field + _wrapped(value, len(field), deeper)


def _wrapped(value: list[Any], at: int, indent: str) -> str:
    """A long list in flow style, broken between its elements."""
    text, column = "[", at + 1
    for number, each in enumerate(value):
        part = _flow(each) + ("," if number < len(value) - 1 else "]")
        if number and column + len(part) > WIDTH:
            text, column = f"{text.rstrip()}\n{indent}", len(indent)
        text, column = f"{text}{part} ", column + len(part) + 1
    return text.rstrip()
