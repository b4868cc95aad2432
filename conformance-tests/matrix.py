"""Runs the conformance suite for several adapters on several servers, two at a time, and says what came of it.

    python conformance-tests/matrix.py --servers redis-6.2.14,valkey-9.1.2 --adapters python,asyncio,typescript

Prints a line for each run, the whole output of those that did not end well, and last `conformance: N of M right`. Exits
with 0 where every run did. Nothing is run twice.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from leaseq.embedded import find_program
from leaseq_conformance.reports.plain import ResultsError, read_results

ROOT: Final = Path(__file__).resolve().parents[1]
SERVERS: Final = Path(os.environ.get("LEASEQ_SERVERS_DIR") or ROOT / ".servers")
ADAPTERS: Final = {
    "python": (sys.executable, "-m", "leaseq_conformance.adapters.python_sync"),
    "asyncio": (sys.executable, "-m", "leaseq_conformance.adapters.python_aio"),
    "typescript": (str(ROOT / "tools/node.sh"), "node", str(ROOT / "typescript/dist/adapter/main.js")),
}
AT_A_TIME: Final = 2


@dataclass
class Cell:
    """One run and what came of it."""

    adapter: str
    server: str
    case: str | None
    code: int = 0
    right: int = 0
    cases: int = 0
    """Those of what the client claims."""
    unclaimed: int = 0
    output: str = ""
    seconds: float = 0.0

    @property
    def line(self) -> str:
        """What to print."""
        word = "right" if self.code == 0 else f"NOT RIGHT (exit code {self.code})"
        others = f" ({self.unclaimed} of what it does not claim)" if self.unclaimed else ""
        counted = f"{self.right} of {self.cases} cases{others}"
        return f"{self.adapter} on {self.server}: {counted}, {self.seconds:.0f} s: {word}"


def main() -> int:
    """Run all, print, and say how it went."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--servers", required=True, help="names of server programs, separated by commas")
    parser.add_argument("--adapters", default=",".join(ADAPTERS), help=f"of {', '.join(ADAPTERS)}")
    parser.add_argument("--case", help="only cases whose names fit, such as 'wire/*'")
    asked = parser.parse_args()
    servers, adapters = asked.servers.split(","), asked.adapters.split(",")
    cells = [Cell(adapter, server, asked.case) for server in servers for adapter in adapters]
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        for cell in pool.map(run, cells):
            print(cell.line, flush=True)
            if cell.code:
                print(cell.output, flush=True)
    right, cases = sum(cell.right for cell in cells), sum(cell.cases for cell in cells)
    print(f"conformance: {right} of {cases} right")
    return 1 if any(cell.code for cell in cells) or right != cases or not cases else 0


def run(cell: Cell) -> Cell:
    """Run one cell."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.json"
        command = [sys.executable, "-c", "from leaseq_conformance.cli import main; main()", "run"]
        command += ["--server-program", str(program(cell.server)), "--results", str(results)]
        command += ["--case", cell.case] if cell.case else []
        done = subprocess.run(
            [*command, "--", *ADAPTERS[cell.adapter]], capture_output=True, text=True, check=False, cwd=ROOT
        )
        cell.code, cell.output = done.returncode, done.stdout + done.stderr
        try:
            found = read_results(results)
        except (OSError, ResultsError) as error:
            cell.code, cell.output = cell.code or 1, f"{cell.output}\n{error}"
        else:
            claimed = [each for each in found.results if set(each.case.capabilities) <= found.capabilities]
            cell.right, cell.cases = sum(result.right for result in claimed), len(claimed)
            cell.unclaimed = len(found.results) - len(claimed)
    cell.seconds = time.monotonic() - begun
    return cell


def program(server: str) -> Path:
    """The program of a server by its name: fetched by `make servers-core`, else the one that leaseq embeds."""
    fetched = SERVERS / "bin" / server
    if fetched.exists():
        return fetched
    embedded = find_program()
    told = subprocess.run([embedded, "--version"], capture_output=True, text=True, check=True).stdout
    product, _, version = server.partition("-")
    if embedded.name != f"{product}-server" or f"v={version}" not in told:
        raise SystemExit(f"{server} is not in {SERVERS}: run `make servers-core`")
    return embedded


if __name__ == "__main__":
    sys.exit(main())
