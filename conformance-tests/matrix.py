"""Runs the conformance suite for several adapters on several servers, and prints one line for each pair.

    python conformance-tests/matrix.py --servers redis-6.2.14,valkey-9.1.2 --adapters python,asyncio,typescript

`scripts` in place of an adapter runs the vectors, which need no client. The output of a run that did not end well is printed
whole. The last line is `conformance: N of M passed`. Exits with 0 if every run did. Nothing is run twice.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from leaseq_conformance.reports.json_report import ResultsError, read_results

ROOT: Final = Path(__file__).resolve().parents[1]
SCRIPTS: Final = "scripts"
ADAPTERS: Final = {
    "python": (sys.executable, "-m", "conformance_adapter.sync_client"),
    "asyncio": (sys.executable, "-m", "conformance_adapter.asyncio_client"),
    "fork": (sys.executable, "-m", "conformance_adapter.sync_client", "fork"),
    "go": (str(ROOT / "go/bin/adapter"),),
    "rust": (str(ROOT / "rust/target/debug/leaseq-adapter"),),
    "typescript": (str(ROOT / "tools/node.sh"), "node", str(ROOT / "typescript/dist/adapter/main.js")),
}
AT_A_TIME: Final = 4
"""Runs at a time, or jobs of one run. Two CPUs serve them: most cases wait for most of their time."""


@dataclass
class Cell:
    """One run: what it runs on, and its result."""

    adapter: str
    server: str
    case: str | None
    jobs: int
    code: int = 0
    passed: int = 0
    cases: int = 0
    """The number of cases that need only capabilities that the client claims."""
    unclaimed: int = 0
    output: str = ""
    seconds: float = 0.0

    @property
    def line(self) -> str:
        """A line about the run, for a person."""
        status = "ok" if self.code == 0 else f"FAILED (exit code {self.code})"
        others = f" ({self.unclaimed} need capabilities that it does not claim)" if self.unclaimed else ""
        return f"{self.adapter} on {self.server}: {self.passed} of {self.cases} cases passed{others}, {self.seconds:.0f} s: {status}"


def main() -> int:
    """Run all, print, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--servers", required=True, help="names of server programs, separated by commas")
    parser.add_argument(
        "--adapters",
        default=",".join(ADAPTERS),
        help=f"of {', '.join([*ADAPTERS, SCRIPTS])}, separated by commas",
    )
    parser.add_argument("--case", help="only cases with such names, for example 'wire/*'")
    options = parser.parse_args()
    pairs = [
        (adapter, server) for server in options.servers.split(",") for adapter in options.adapters.split(",")
    ]
    jobs = max(1, AT_A_TIME // len(pairs))
    cells = [Cell(adapter, server, options.case, jobs) for adapter, server in pairs]
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        for cell in pool.map(run, cells):
            print(cell.line, flush=True)
            if cell.code:
                print(cell.output, flush=True)
    passed, cases = sum(cell.passed for cell in cells), sum(cell.cases for cell in cells)
    print(f"conformance: {passed} of {cases} passed")
    return 1 if any(cell.code for cell in cells) or passed != cases or not cases else 0


def run(cell: Cell) -> Cell:
    """Run one cell and return it with its result."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.json"
        command = ["vectors"] if cell.adapter == SCRIPTS else ["run"]
        command += ["--server-program", cell.server, "--results", str(results)]
        command += ["--jobs", str(cell.jobs), *(["--case", cell.case] if cell.case else [])]
        command += [] if cell.adapter == SCRIPTS else ["--", *ADAPTERS[cell.adapter]]
        done = subprocess.run(
            [sys.executable, "-c", "from leaseq_conformance.cli import main; main()", *command],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
        )
        cell.code, cell.output = done.returncode, done.stdout + done.stderr
        try:
            found = read_results(results)
        except (OSError, ResultsError) as error:
            cell.code, cell.output = cell.code or 1, f"{cell.output}\n{error}"
        else:
            cell.passed, cell.cases = sum(result.passed for result in found.claimed), len(found.claimed)
            cell.unclaimed = len(found.results) - len(found.claimed)
    cell.seconds = time.monotonic() - begun
    return cell


if __name__ == "__main__":
    sys.exit(main())
