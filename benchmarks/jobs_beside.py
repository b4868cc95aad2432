"""Measure the job layer of this version beside another one: enqueue one by one, enqueue many, run what is there.

    git worktree add /tmp/before COMMIT
    python benchmarks/jobs_beside.py /tmp/before/python
    python benchmarks/jobs_beside.py --quick /tmp/before/python     does it run? the figures mean nothing

Each version has a separate process, on one server; they take slices in turns, and each pair of slices gives one ratio: below 1, this
version takes less time. The table has the least time of each version and the ratio of both, since other load on the machine makes a
slice slower and never faster, and of the pairs the median, least and greatest ratio. Results of jobs are kept as by default. The other version gets this interpreter and its packages.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

sys.path.insert(0, str(Path(__file__).parent))
from bench_server import BenchServer, ServerNotFoundError, Summary, environment, pin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from leaseq.jobs import App

HERE: Final = Path(__file__).parents[1] / "python"
STEPS: Final = ("enqueue", "enqueue_many", "run", "result")
Slice = dict[str, float]
"""Of each step, us for a job."""


def one_slice(app: App, count: int) -> Slice:
    """Enqueue and run jobs: what each step took for one of them."""
    add = app.function("add")
    took: Slice = {}
    with _timed(took, "enqueue", count // 10):
        handles = [add.enqueue(number, 1) for number in range(count // 10)]
    with _timed(took, "enqueue_many", count):
        handles += app.enqueue_many([add.call(number, 1) for number in range(count)])
    with _timed(took, "run", len(handles)):
        ended = app.run_worker(burst=True, handle_signals=False)
    with _timed(took, "result", count // 10):
        sums = [handle.result(timeout=10) for handle in handles[: count // 10]]
    if ended != len(handles) or sums != [number + 1 for number in range(count // 10)]:
        raise AssertionError(ended, sums)
    return took


@contextlib.contextmanager
def _timed(took: Slice, step: str, count: int) -> Iterator[None]:
    started = time.perf_counter()
    yield
    took[step] = (time.perf_counter() - started) / count * 1e6


def answer_slices(url: str, count: int) -> None:
    """Run a slice for each line that comes, and print what it took. The first line says which version this is."""
    import leaseq
    from leaseq.jobs import App

    print(json.dumps(str(Path(leaseq.__file__).resolve().parents[1])), flush=True)
    with App(url) as app:

        @app.job(name="add")
        async def add(one: int, two: int) -> int:
            return one + two

        for _ in sys.stdin:
            print(json.dumps(one_slice(app, count)), flush=True)


def measure(server: BenchServer, beside: Path, pairs: int, count: int) -> dict[str, dict[str, Any]]:
    """Slices of both versions, in turns. Returns of each step the times and the ratio."""
    folders = {"here": HERE, "beside": beside}
    found: dict[str, list[Slice]] = {name: [] for name in folders}
    with contextlib.ExitStack() as stack:
        processes = {
            name: stack.enter_context(_process(server.url, folder, count)) for name, folder in folders.items()
        }
        for name, process in processes.items():
            if Path(_answer(process)) != folders[name].resolve():
                raise AssertionError(name)
        for number in range(pairs + 1):
            for name in ("here", "beside") if number % 2 else ("beside", "here"):
                server.client.flushall()
                print(file=processes[name].stdin, flush=True)
                found[name].append(_answer(processes[name]))
        for process in processes.values():
            process.communicate()
    here, other = found["here"][1:], found["beside"][1:]  # what is done once is not counted
    return {
        step: {
            "here": Summary.of([each[step] for each in here]).record(),
            "beside": Summary.of([each[step] for each in other]).record(),
            "ratio": Summary.of([a[step] / b[step] for a, b in zip(here, other, strict=True)]).record(),
        }
        for step in STEPS
    }


def _process(url: str, folder: Path, count: int) -> subprocess.Popen[str]:
    argv = [sys.executable, __file__, "--slices-for", url, "--count", str(count), str(folder)]
    environ = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ)


def _answer(process: subprocess.Popen[str]) -> Any:
    if process.stdout is None:
        raise AssertionError(process.args)
    return json.loads(process.stdout.readline())


def table(found: dict[str, dict[str, Any]]) -> list[str]:
    """In Markdown."""
    lines = ["| us for a job, the least | here | beside | ratio | pairs |", "|---|---:|---:|---:|---:|"]
    for step, of in found.items():
        pairs = "{median:.3f} ({min:.3f} to {max:.3f})".format(**of["ratio"])
        here, beside = of["here"]["min"], of["beside"]["min"]
        lines.append(f"| {step} | {here:.1f} | {beside:.1f} | {here / beside:.3f} | {pairs} |")
    return lines


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("beside", type=Path, metavar="FOLDER", help="the folder `python` of a checkout")
    parser.add_argument("--server", default="redis-7.0", metavar="NAME", help="default: %(default)s")
    parser.add_argument("--quick", action="store_true", help="two short pairs")
    parser.add_argument("--json", action="store_true", help="JSON in place of the table")
    parser.add_argument("--slices-for", metavar="URL", help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.slices_for:
        answer_slices(options.slices_for, options.count)
        return 0
    pairs, count = (2, 50) if options.quick else (25, 3000)
    machine = environment(pin())
    try:
        with BenchServer(options.server) as server:
            version, found = server.version(), measure(server, options.beside, pairs, count)
    except ServerNotFoundError as error:
        parser.error(str(error))
    if options.json:
        print(
            json.dumps({"server": version, "environment": machine, "jobs_in_a_slice": count, "steps": found})
        )
    else:
        print("\n".join(table(found)))
        print(f"\n{version} on {machine['cpu_model']}; {pairs} pairs of slices of {count} jobs.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
