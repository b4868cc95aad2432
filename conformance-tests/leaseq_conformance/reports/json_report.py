"""Results as JSON, from which the other reports can be made later, and the badge."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance import __version__
from leaseq_conformance.cases import Case
from leaseq_conformance.conformance_levels import claim, levels
from leaseq_conformance.rules import CORE
from leaseq_conformance.runner import Result, Run
from leaseq_conformance.verdict import Outcome, Verdict

if TYPE_CHECKING:
    from pathlib import Path

FORMAT: Final = 2


class ResultsError(Exception):
    """A file that holds no results."""


def results_of(run: Run) -> dict[str, Any]:
    """All results as JSON data; it ends with `"complete": true`, so that a file that was cut short is noticed."""
    results = [
        {
            "case": {key: value for key, value in result.case.plain().items() if key != "body"},
            "outcome": result.verdict.outcome.value,
            "known": result.known,
            "message": result.verdict.message,
            "transcript": result.verdict.transcript,
            "difference": result.verdict.difference,
            "stderr": result.verdict.stderr,
            "seconds": round(result.verdict.seconds, 3),
        }
        for result in run.results
    ]
    return {
        "format": FORMAT,
        "suite": __version__,
        "client": run.client,
        "server": run.server,
        "capabilities": sorted(run.capabilities),
        "filtered": run.filtered,
        "claim": claim(run),
        "levels": [level.plain() for level in levels(run)],
        "all_cases": dict(run.all_cases),
        "results": results,
        "complete": True,
    }


def write_results(run: Run, path: Path) -> None:
    """Write all results."""
    path.write_text(json.dumps(results_of(run), indent=1) + "\n", "utf-8")


def read_results(path: Path) -> Run:
    """Return the run that `write_results` wrote.

    Raises:
        ResultsError: the file holds no results, was cut short, or is of another version of the suite.
    """
    try:
        stored: dict[str, Any] = json.loads(path.read_text("utf-8"))
        if stored["format"] != FORMAT or stored["complete"] is not True:
            raise ResultsError(
                f"{path} is in format {stored['format']}, and this suite reads format {FORMAT}"
            )
        run = Run(stored["client"], stored["server"], frozenset(stored["capabilities"]))
        run.filtered = stored["filtered"]
        run.all_cases = {name: tuple(needed) for name, needed in stored["all_cases"].items()}
        run.results = [_result(entry) for entry in stored["results"]]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ResultsError(f"{path} holds no results, or was cut short: {error!r}") from error
    return run


def _result(entry: dict[str, Any]) -> Result:
    case = entry["case"]
    lists = {key: tuple(case[key]) for key in ("rules", "capabilities")}
    verdict = Verdict(
        Outcome(entry["outcome"]),
        entry["message"],
        tuple(entry["transcript"]),
        entry["difference"],
        tuple(entry["stderr"]),
        entry["seconds"],
    )
    return Result(Case(case["name"], case["title"], **lists), verdict, entry["known"])


def badge(run: Run) -> dict[str, Any]:
    """The JSON that https://shields.io/badges/endpoint-badge reads."""
    core = next(level for level in levels(run) if level.name == CORE)
    passed, claimed = sum(result.passed for result in run.claimed), len(run.claimed)
    colour = "red"
    if core.holds:
        colour = "brightgreen" if passed == claimed else "yellow"
    return {
        "schemaVersion": 1,
        "label": "leaseq",
        "message": f"{claim(run)} {passed}/{claimed}",
        "color": colour,
    }


def write_badge(run: Run, path: Path) -> None:
    """Write the badge."""
    path.write_text(json.dumps(badge(run)) + "\n", "utf-8")
