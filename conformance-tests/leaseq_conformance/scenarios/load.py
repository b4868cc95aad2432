"""Reads scenario files. What the schema does not know and what asserts nothing is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance.case_loader import LISTS, read, texts
from leaseq_conformance.scenarios.values import names_in, names_saved

if TYPE_CHECKING:
    from collections.abc import Iterator

    from leaseq_conformance.cases import Case

SUITE: Final = "scenarios"
SCENARIO_PARTS: Final = ("name", "title", *LISTS)
ASSERTS: Final = frozenset(
    {
        "ok",
        "error",
        "cancelled",
        "race",
        "keys",
        "eventually",
        "unchanged",
        "sent",
        "not_before",
        "registered",
        "announced",
        "unannounced",
    }
)
"""Fields that assert something of the client. A step without any of them cannot fail."""
NAMED_ACTORS: Final = (
    "kill",
    "stop",
    "refuse",
    "accept",
    "cut",
    "close",
    "answered",
    "blocked",
    "of",
    "sent",
)
USED_NAMES: Final = (
    {"await": "start", "waiting": "start", "cancel": "start"}
    | dict.fromkeys(("reached", "let_go", "drop", "kill_at"), "stop")
    | {"unchanged": "remember", "accept": "refuse", "since": "mark"}
)
"""Steps that use a name, and the step that gives it with `as`."""


def load_all() -> list[Case]:
    """The scenarios that the package carries."""
    return [case for text, name in texts(SUITE) for case in load(text, name)]


def load(text: str, source: str) -> list[Case]:
    """The scenarios of one file.

    Raises:
        CaseFileError: one of them is not right.
    """
    return read(SUITE, text, source, _problems, _body, _deepest)


def _body(scenario: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in scenario.items() if key not in SCENARIO_PARTS}


def _deepest(error: Any) -> str:
    """Return why a step that fits no kind does not fit the closest kind."""
    kinds = error.context or []
    wanted = [part for part in kinds if part.validator != "required" and len(part.relative_schema_path) > 1]
    close = [
        part
        for part in wanted
        if "required" not in {other.validator for other in kinds if _kind(other) == _kind(part)}
    ]
    chosen = min(close, key=lambda part: len(str(part.message)), default=error)
    return str(chosen.message)


def _kind(error: Any) -> Any:
    return error.relative_schema_path[0]


def _problems(scenario: dict[str, Any]) -> Iterator[str]:
    steps: list[dict[str, Any]] = scenario["steps"]
    if not any(ASSERTS & step.keys() for step in steps):
        yield "it asserts nothing"
    yield from _unknown_names(scenario)
    given: dict[str, set[str]] = {"start": set(), "stop": set(), "save": set()}
    given |= {kind: set() for kind in ("remember", "refuse", "mark")}
    for step in steps:
        given["save"] |= set(names_saved(step)) | ({step["time"]} if "time" in step else set())
        for name in set(names_in(step)) - given["save"]:
            yield f"nothing saved ${name} before"
        for key in USED_NAMES.keys() & step.keys():
            if step[key] not in given[USED_NAMES[key]]:
                yield f"{key}: nothing is named {step[key]}"
        if "as" in step:
            given["start" if "start" in step else "stop"].add(step["as"])
        for kind in ("remember", "refuse", "mark"):
            if kind in step:
                given[kind].add(step[kind])
        if "stop" in step and step.get("do", "hold") == "hold" and "as" not in step:
            yield "a command that is held needs a name"


def _unknown_names(scenario: dict[str, Any]) -> Iterator[str]:
    actors, queues = set(scenario["actors"]), set(scenario.get("queues", {"q": "q"}))
    used: set[str] = set()
    for step in scenario["steps"]:
        used |= {step[key] for key in NAMED_ACTORS if key in step} | set(_callers(step))
        for queue in _queues(step) - queues:
            yield f"there is no queue {queue}"
    for name in sorted(used - actors):
        yield f"there is no actor {name}"
    for name in sorted(actors - used):
        yield f"the actor {name} does nothing"


def _callers(step: dict[str, Any]) -> Iterator[str]:
    for part in [step, *step.get("race", [])]:
        for key in ("call", "start"):
            if key in part:
                yield part[key].partition(".")[0]


def _queues(step: dict[str, Any]) -> set[str]:
    parts = [step, *step.get("race", [])]
    named = {part[key] for part in parts for key in ("queue", "registered") if key in part}
    for part in parts:
        named |= set(part.get("args", {}).get("queues", []))
    return named
