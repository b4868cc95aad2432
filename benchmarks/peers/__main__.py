"""leaseq beside its peers: measures, writes results/peers.json and peers.html, judges the targets.

    make bench-peers                          everything, within 40 minutes once the environments are there
    python -m peers --quick                   a few minutes; does it all run? the figures mean nothing
    python -m peers --only rq                 one library; `rq/latency` one measure of it, `/latency` one measure
    python -m peers --suite jobs              the job layer beside job libraries, results off and on: results/jobs.json
    python -m peers --suite node              leaseq in TypeScript beside BullMQ, items and functions: results/node.json
    python -m peers --suite go                leaseq in Go beside asynq and River, likewise: results/go.json
    python -m peers --suite rust              leaseq in Rust beside apalis, likewise: results/rust.json
    python -m peers tables [--check]          writes the tables of the pages and the HTML reports anew, or compares

Run in the folder benchmarks/. Ends with 0 when all ran and every target was met, 1 when not, 2 on wrong usage.
docs/benchmarks.md explains what is measured and how to read it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import profile_server
from bench_server import Progress, ServerNotFoundError, environment, pin
from peers import chart, environments, noise_probe, plan, report, results
from peers.bench import FAILURES, FULL, QUICK, Bench, start_server
from peers.libraries import BY_NAME
from peers.measures import ab_compare
from peers.postgres import PostgresServer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peers.bench import Step

SERVER = "redis-7.0"
ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", ROOT / "docs" / "benchmarks.md", *(ROOT / "benchmarks").glob("*.md"))
"""They may have generated tables between markers."""
TABLES = {
    "items": report.bytes_table,
    "jobs": report.ratios_table,
    **dict.fromkeys(ab_compare.BY_LANGUAGE, report.pairs_table),
}
PARTS = {
    "bytes": ("items", report.bytes_table),
    "waits": ("items", report.waits_table),
    "pairs": ("items", report.pairs_table),
    "slowest": ("items", report.slowest_table),
    "targets": ("items", report.targets_table),
    "job-ratios": ("jobs", report.ratios_table),
    "job-targets": ("jobs", report.targets_table),
    **{f"{suite}-pairs": (suite, report.pairs_table) for suite in ab_compare.BY_LANGUAGE},
    **{f"{suite}-targets": (suite, report.targets_table) for suite in ab_compare.BY_LANGUAGE},
}
"""Generated tables, by the name in their markers: the suite whose results they show, and the function that makes them."""
CHART = ROOT / "docs" / "pictures" / "jobs-per-second.svg"
NOTHING_YET = ["No results have been committed yet."]


def measure(bench: Bench, steps: Sequence[Step], progress: Progress) -> None:
    """Run all steps. If an adapter fails, the others go on; `bench.failures` collects the failures for the end."""
    for at, step in enumerate(steps, 1):
        left = plan.minutes(steps[at - 1 :])
        progress.log(f"{at}/{len(steps)}, about {left:.0f} min left: {step.title}")
        try:
            found = step.run()
        except FAILURES as error:
            bench.failures.append(f"{step.title}: {error}")
            continue
        if summary := noise_probe.summary(bench.records, found):
            progress.log(f"{at}/{len(steps)}, done: {summary}")
        bench.records += found


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Set up, measure, and put together what was found. Raises NothingToDoError, SetupError."""
    size = QUICK if options.quick else FULL
    only = [plan.Only.parse(text) for text in options.only]
    plan.chosen(only, options.suite)  # a name that is not there is reported before a server is looked for
    cpu = pin()
    with contextlib.ExitStack() as stack:
        progress = stack.enter_context(Progress(stderr=True))
        server = stack.enter_context(start_server(options.server))
        bench = Bench(size, options.server, server)
        steps = plan.steps(bench, only, options.suite)
        print(plan.summary(steps), file=sys.stderr, flush=True)
        taking_part = {BY_NAME[name] for step in steps for name in step.libraries if name in BY_NAME}
        if any(library.on_postgres for library in taking_part):
            bench.postgres = stack.enter_context(PostgresServer())
        environments.make_missing(sorted(taking_part, key=lambda each: each.name), progress.log)
        machine, began = environment(cpu) | environments.toolchains(), time.monotonic()
        measure(bench, steps, progress)
        machine["load_after"] = [round(load, 2) for load in os.getloadavg()]
        seconds = time.monotonic() - began
        return results.collected(bench, machine, seconds=seconds, suite=options.suite)


def bench_peers(options: argparse.Namespace) -> int:
    """Run, write, judge."""
    found = run(options)
    output: Path | None = options.output or (
        None if options.quick or options.only else results.PATHS[options.suite]
    )
    if output:
        found["previous"] = results.remembered(output)
        output.write_text(results.compact_json(found))
        output.with_suffix(".html").write_text(report.page(found))
    if options.json:
        print(json.dumps(found))
    else:
        print("\n".join([*TABLES[options.suite](found), ""]))
        for name, target, measured, before, met in report.target_rows(found):
            print(f"{met:12}  {name}: {target}, measured {measured}, before {before}")
        for name, usual, least, most, *had in report.speed_rows(found):
            both = f", both ends had {had[0]} of the CPU (at least {had[1]})" if "-" not in had else ""
            print(f"{name}: the machine ran at {usual} of its best ({least} to {most}){both}")
    for failure in found["failures"]:
        print(f"failed: {failure}", file=sys.stderr)
    # a part of a run judges what it measured, the whole has to have measured everything
    whole = not (options.quick or options.only)
    kept = all(target["met"] or (target["met"] is None and not whole) for target in found["targets"])
    return 0 if not found["failures"] and (options.quick or kept) else 1


def write_tables(options: argparse.Namespace) -> int:
    """Write the generated pages and parts of pages anew, or say which are not what they should be."""
    stale = [file for file, wanted in generated() if _text(file) != wanted]
    if not options.check:
        for file, wanted in generated():
            file.write_text(wanted)
    elif stale:
        names = ", ".join(str(file.relative_to(ROOT)) for file in stale)
        print(f"not what `make generate` writes: {names}", file=sys.stderr)
        return 1
    return 0


def generated() -> Iterator[tuple[Path, str]]:
    """Every file that has something generated, and what belongs in it."""
    filled_with = parts()
    for file in PAGES:
        yield file, report.filled(file.read_text(), filled_with)
    for path in results.PATHS.values():
        if found := _read(path):
            yield path.with_suffix(".html"), report.page(found)
    of_items, of_jobs = (_read(results.PATHS[suite]) for suite in ("items", "jobs"))
    if of_items and of_jobs:
        yield CHART, chart.picture(of_jobs, of_items)


def _text(file: Path) -> str:
    return file.read_text() if file.exists() else ""


def parts() -> dict[str, list[str]]:
    """Return what belongs between the markers of each name."""
    measured = {suite: _read(path) for suite, path in results.PATHS.items()}
    of_jobs, of_items = measured["jobs"], measured["items"]
    inside = _read(profile_server.RESULTS)
    generated = {
        name: made(of) if (of := measured[suite]) else NOTHING_YET for name, (suite, made) in PARTS.items()
    }
    return {
        "settings": report.settings(),
        "functions": report.functions_table(of_jobs, of_items) if of_jobs and of_items else NOTHING_YET,
        "breakdown": profile_server.tables(inside) if inside else NOTHING_YET,
        **generated,
    }


def _read(path: Path) -> dict[str, Any] | None:
    return json.loads(path.read_text()) if path.exists() else None


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        prog="peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.set_defaults(run=bench_peers)
    made.add_argument("--suite", choices=tuple(plan.SUITES), default="items", help="default: %(default)s")
    made.add_argument("--quick", action="store_true", help="small counts, nothing under results/, no targets")
    made.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="LIBRARY/MEASURE",
        help="a part; either may be a pattern",
    )
    made.add_argument("--json", action="store_true", help="print the results as JSON in place of the tables")
    made.add_argument("--output", type=Path, metavar="FILE", help="where the JSON and beside it the page go")
    made.add_argument("--server", default=SERVER, metavar="NAME", help="default: %(default)s")
    commands = made.add_subparsers(metavar="COMMAND")
    made_tables = commands.add_parser("tables", help="write the generated tables of pages anew")
    made_tables.add_argument("--check", action="store_true", help="compare only")
    made_tables.set_defaults(run=write_tables)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    commands = parser()
    options = commands.parse_args(arguments)
    try:
        code: int = options.run(options)
    except (
        ServerNotFoundError,
        environments.SetupError,
        plan.NothingToDoError,
        report.MarkerError,
    ) as error:
        commands.error(str(error))
    return code


if __name__ == "__main__":
    sys.exit(main())
