"""Results as a JSON file, which the other reports can be made from later, and the badge."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance.cases import Case, Outcome, Verdict
from leaseq_conformance.levels import claim, levels
from leaseq_conformance.rules import CORE
from leaseq_conformance.runner import Result, Run

if TYPE_CHECKING:
    from pathlib import Path

FORMAT: Final = 1


class ResultsError(Exception):
    """A file that holds no results."""


def write_results(run: Run, path: Path) -> None:
    """Write all results; the file ends with `"complete": true`, so that one that was cut short is no run."""
    results = [
        {
            "case": {key: value for key, value in result.case.plain().items() if key != "body"},
            "outcome": result.verdict.outcome.value,
            "known": result.known,
            "message": result.verdict.message,
            "transcript": result.verdict.transcript,
            "difference": result.verdict.difference,
            "seconds": round(result.verdict.seconds, 3),
        }
        for result in run.results
    ]
    about = {"client": run.client, "server": run.server, "capabilities": sorted(run.capabilities)}
    told = {"format": FORMAT, **about, "results": results, "complete": True}
    path.write_text(json.dumps(told, indent=1) + "\n", "utf-8")


def read_results(path: Path) -> Run:
    """The run that `write_results` wrote.

    Raises:
        ResultsError: the file holds none, or was cut short.
    """
    try:
        told: dict[str, Any] = json.loads(path.read_text("utf-8"))
        if told["format"] != FORMAT or told["complete"] is not True:
            raise ResultsError(f"{path} is of another version of the suite")
        run = Run(told["client"], told["server"], frozenset(told["capabilities"]))
        run.results = [_result(entry) for entry in told["results"]]
    except (ValueError, KeyError, TypeError) as error:
        raise ResultsError(f"{path} holds no results, or was cut short: {error!r}") from error
    return run


def _result(entry: dict[str, Any]) -> Result:
    case = entry["case"]
    lists = {key: tuple(case[key]) for key in ("rules", "capabilities", "catches")}
    said = (entry["message"], tuple(entry["transcript"]), entry["difference"], entry["seconds"])
    return Result(
        Case(case["name"], case["title"], **lists), Verdict(Outcome(entry["outcome"]), *said), entry["known"]
    )


def badge(run: Run) -> dict[str, Any]:
    """What https://shields.io/badges/endpoint-badge reads."""
    core = next(level for level in levels(run) if level.name == CORE)
    right = sum(result.right for result in run.results)
    message = f"{claim(run)} {right}/{len(run.results)}"
    return {
        "schemaVersion": 1,
        "label": "leaseq",
        "message": message,
        "color": "brightgreen"
        if core.holds and right == len(run.results)
        else "yellow"
        if core.holds
        else "red",
    }


def write_badge(run: Run, path: Path) -> None:
    """Write the badge."""
    path.write_text(json.dumps(badge(run)) + "\n", "utf-8")
