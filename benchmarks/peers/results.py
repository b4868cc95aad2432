"""The results of a run, as JSON and back: results/peers.json, jobs.json and others."""

from __future__ import annotations

import json
import math
import re
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from peers import environments, targets
from peers.bench import Record
from peers.libraries import LIBRARIES
from peers.measures import ab_compare

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peers.bench import Bench

FOLDER: Final = Path(__file__).parents[1] / "results"
PATHS: Final = {
    "items": FOLDER / "peers.json",
    **{suite: FOLDER / f"{suite}.json" for suite in ("jobs", "node", "go", "rust")},
}
"""Where the results of a whole run of each suite go."""
ENVIRONMENTS: Final = sorted({library.environment for library in LIBRARIES})


def targets_of(suite: str, of: Sequence[Record]) -> list[targets.Target]:
    """The targets of a suite."""
    if suite in ab_compare.BY_LANGUAGE:
        return targets.language_targets(of, ab_compare.BY_LANGUAGE[suite])
    return targets.job_targets(of) if suite == "jobs" else targets.targets(of)


def collected(
    bench: Bench, machine: dict[str, Any], *, seconds: float, suite: str = "items"
) -> dict[str, Any]:
    """Everything of a run: what it ran on, every record, every target."""
    return {
        "measured_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "suite": suite,
        "minutes": round(seconds / 60, 1),
        "quick": bench.size.quick,
        "server": " and ".join(on.version() for on in (bench.server, bench.postgres) if on),
        "environment": machine,
        "size": asdict(bench.size),
        "versions": {library.name: environments.version(library) for library in LIBRARIES},
        "packages": {name or "leaseq": environments.packages(name) for name in ENVIRONMENTS},
        "targets": [_finite(target.json()) for target in targets_of(suite, bench.records)],
        "failures": bench.failures,
        "records": [record.json() for record in bench.records],
    }


def remembered(path: Path) -> dict[str, Any]:
    """Return what stays of the run before, once its file is written anew: both runs are in the table of targets."""
    if not path.exists():
        return {}
    before = json.loads(path.read_text())
    machine = before["environment"]["cpu_model"]
    return {"cpu_model": machine, **{name: before[name] for name in ("measured_at", "server", "targets")}}


def _finite(of: dict[str, Any]) -> dict[str, Any]:
    """JSON has no infinity: what never happened has no number."""
    return {
        name: None if isinstance(value, float) and math.isinf(value) else value for name, value in of.items()
    }


def records(results: dict[str, Any]) -> list[Record]:
    """The records of a run that was written."""
    return [Record(**each) for each in results["records"]]


def compact_json(results: dict[str, Any]) -> str:
    """JSON with a record on each line."""
    text = json.dumps({**results, "records": "RECORDS"}, indent=1)
    lines = ",\n".join(f"  {json.dumps(each)}" for each in results["records"])
    text = re.sub(r"\[\s+([-\d.,\s]+?)\s+\]", lambda match: "[" + re.sub(r"\s+", " ", match[1]) + "]", text)
    return text.replace('"RECORDS"', f"[\n{lines}\n ]") + "\n"


def chosen(of: Sequence[Record], measure: str) -> list[str]:
    """The libraries that have records of a measure, in the order of the list."""
    seen = {record.library for record in of if record.measure == measure}
    return [library.name for library in LIBRARIES if library.name in seen]
