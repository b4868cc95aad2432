"""Where the server's microseconds and bytes go: each hot call in layers, a waiting item in parts.

    python benchmarks/breakdown.py             some twenty seconds; writes results/breakdown.json
    python benchmarks/breakdown.py --quick     does it run? the figures mean nothing, nothing is written
    python benchmarks/breakdown.py --json      JSON in place of the tables

The layers of a call, in the server's CPU time: the round trip (PING), entering a script that has as many keys and
arguments and does nothing, the data commands that leaseq's script runs, made with the same arguments from a script with
nothing else, and the rest: checks, packing, the reply. layers.py and weights.py say how. `make generate` puts the tables
into docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any, Final

from bench_server import BenchServer, ServerNotFoundError, environment, free_port, pin
from layers import Caller, Subject, cases, measure
from progress import Progress
from weights import weights

RESULTS: Final = Path(__file__).parent / "results" / "breakdown.json"
SIZES: Final = {"full": (400, 20, 25, 3_000), "quick": (20, 2, 2, 1_500)}
"""Calls of one item and of a hundred in a slice, rounds, items that are weighed."""


def run(name: str, *, quick: bool) -> dict[str, Any]:
    """All calls and both memories. Raises ServerNotFoundError."""
    singles, batches, rounds, items = SIZES["quick" if quick else "full"]
    progress = Progress(sys.stderr)
    machine = environment(pin())
    try:
        with BenchServer(name, free_port()) as server:
            caller = Caller(server)
            try:
                subjects = [Subject(case, caller) for case in cases(singles, batches)]
                found = measure(subjects, rounds, progress.tell)
            finally:
                caller.close()
            version, memory = server.version(), weights(server, items)
            memory["allocator"] = server.allocator()
            progress.tell("memory weighed")
    finally:
        progress.end()
    return {
        "measured_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "quick": quick,
        "server": version,
        "environment": machine,
        "rounds": rounds,
        "calls": found,
        "memory": memory,
    }


def tables(found: dict[str, Any]) -> list[str]:
    """All tables in Markdown."""
    lines = [
        "| server us for one call | round trip | entering, keys + arguments | data commands | the rest | all |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, of in found["calls"].items():
        entering = f"{of['entering_us']:.1f} ({of['keys']:.0f} + {of['arguments']:.0f})"
        data = f"{of['data_us']:.1f} ({of['commands']:.0f})"
        lines.append(
            f"| {name} | {of['round_trip_us']:.1f} | {entering} | {data} | {of['rest_us']:.1f} | {of['all_us']:.1f} |"
        )
    lines += ["", "| inside the script, us by `INFO commandstats` | |", "| --- | --- |"]
    for name, of in found["calls"].items():
        inside = ", ".join(f"{command} {usec:.1f}" for command, usec in of["usec"].items() if usec >= 0.05)
        lines.append(f"| {name} | {inside} |")
    lines += ["", "| bytes of a waiting item | leaseq | redis-work-queue |", "| --- | ---: | ---: |"]
    own, other = (found["memory"][name] for name in ("leaseq", "redis-work-queue"))
    lines += [f"| {part} | {value or 0:g} | |" for part, value in own["parts"].items()]
    lines += [f"| {part} | | {value or 0:g} |" for part, value in other["parts"].items()]
    lines.append(f"| all | {own['all']:g} | {other['all']:g} |")
    machine = found["environment"]
    where = f"{machine['cpu_model']}, {found['server']} with {found['memory']['allocator']}"
    how = f"lower quartile of {found['rounds']} rounds; {found['memory']['items']:,} items of 100 bytes with ids of 15"
    lines += ["", f"Measured {found['measured_at']} on {where}, {how}."]
    return lines


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--server", default="redis-7.0", metavar="NAME", help="default: %(default)s")
    parser.add_argument("--quick", action="store_true", help="small counts, nothing under results/")
    parser.add_argument("--json", action="store_true", help="JSON in place of the tables")
    parser.add_argument("--output", type=Path, metavar="FILE", help=f"default: results/{RESULTS.name}")
    options = parser.parse_args()
    try:
        found = run(options.server, quick=options.quick)
    except ServerNotFoundError as error:
        parser.error(str(error))
    if output := options.output or (None if options.quick else RESULTS):
        output.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found) if options.json else "\n".join(tables(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
