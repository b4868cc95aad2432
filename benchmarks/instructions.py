"""Instructions that a call costs the server, counted by valgrind's callgrind: a measure without noise.

    python benchmarks/instructions.py            count, print a table, write results/instructions.json
    python benchmarks/instructions.py --check    count, and compare with the committed file: exits with 1 if a call costs
                                                 over 5 % more than it says

Times vary with the machine and with what else it does; instructions do not. Each figure is the difference of two runs of one
program, divided by the calls that the longer run makes more, so that starting the server, loading scripts and a queue's
first calls do not count. leaseq stands next to the floor (`floor.py`): the fewest commands that could do the same.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import redis
import rich.console
import rich.table

from bench_server import find
from floor import Floor
from leaseq import __version__
from lifecycle import DATA, Leaseq, ids_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leaseq.commands import Argument
    from lifecycle import Subject

RESULTS: Final = Path(__file__).parent / "results" / "instructions.json"
VALGRIND: Final = Path(__file__).parents[1] / "tools" / "valgrind.sh"
SERVER: Final = "valkey-9.1.2"
TOLERANCE: Final = 0.05
"""Two runs on one machine differ by up to 0.02, since the server's hash seeds differ; the rest is for other CPUs."""
WARM, SHORT, LONG = 30, 40, 240
"""Calls before the count, in the shorter and in the longer run."""
LEASE_MS: Final = 3_600_000
START_SECS: Final = 60.0
QUIET: Final = [
    "--save",
    "",
    "--appendonly",
    "no",
    "--hz",
    "1",
    "--dynamic-hz",
    "no",
    "--activerehashing",
    "no",
]
PLAIN_CPU: Final = "glibc.cpu.hwcaps=-AVX2,-AVX,-AVX512F,-AVX512VL,-AVX512BW,-ERMS,-FSRM,-BMI2,-RTM"
"""The C library picks no way that only some CPUs have."""


@dataclass(frozen=True)
class Measure:
    """What is counted: the calls of `step`, by one subject, with so many items each; `life` is one of each step."""

    subject: str
    batch: int
    step: str

    @property
    def name(self) -> str:
        """As in the results."""
        return f"{self.subject} {self.step} {self.batch}"


STEPS: Final = ("add", "lease", "complete")
MEASURES: Final = [
    Measure(who, batch, step) for batch in (1, 100) for who in ("floor", "leaseq") for step in STEPS
]


class ServerUnderValgrind:
    """A server whose instructions are counted from start to end, on a unix socket of its own folder."""

    def __init__(self, folder: Path) -> None:
        socket = folder / "socket"
        self._counts = folder / "callgrind.out"
        count = [str(VALGRIND), "--tool=callgrind", f"--callgrind-out-file={self._counts}"]
        self._process = subprocess.Popen(
            [
                *count,
                str(find(SERVER)),
                "--port",
                "0",
                "--unixsocket",
                str(socket),
                "--dir",
                str(folder),
                *QUIET,
            ],
            env={**os.environ, "GLIBC_TUNABLES": PLAIN_CPU},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._client = redis.Redis.from_url(f"unix://{socket}", retry=None, socket_timeout=START_SECS)
        self._wait_ready()
        self._connection: Any = self._client.connection_pool.get_connection()

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + START_SECS
        while self._process.poll() is None and time.monotonic() < deadline:
            try:
                self._client.ping()
            except redis.ConnectionError:
                time.sleep(0.02)
            else:
                return
        self._process.kill()
        raise RuntimeError(f"{SERVER} did not start under valgrind:\n{self._process.communicate()[1]}")

    def call(self, *command: Argument) -> Any:
        """Send one command and read its reply; an error reply is raised."""
        self._connection.send_command(*command)
        return self._connection.read_response()

    def load(self, source: str) -> str:
        """Make a script known; answers its digest."""
        return str(self._client.script_load(source))

    def end(self) -> int:
        """Shut it down: all instructions that it took."""
        self._client.shutdown(nosave=True)
        self._client.close()
        _, said = self._process.communicate(timeout=START_SECS)
        collected = re.search(r"Collected : (\d+)", said)
        if collected is None:
            raise RuntimeError(f"callgrind told no count:\n{said}")
        return int(collected[1])


def instructions(measure: Measure, calls: int) -> int:
    """All instructions of a server that ran `calls` calls of one step, after a warm-up, and what these calls need before."""
    with tempfile.TemporaryDirectory(prefix="leaseq-bench-") as folder:
        server = ServerUnderValgrind(Path(folder))
        subject: Subject = (Floor if measure.subject == "floor" else Leaseq)(server, measure.batch)  # type: ignore[arg-type]
        ids = ids_of((WARM + LONG) * measure.batch)
        batches = [ids[at : at + measure.batch] for at in range(0, len(ids), measure.batch)]
        most = WARM + LONG
        # what comes before the step is done for the longest run in each: only the step itself differs
        added = calls + WARM if measure.step == "add" else most
        leased = 0 if measure.step == "add" else calls + WARM if measure.step == "lease" else most
        completed = calls + WARM if measure.step == "complete" else 0
        for batch in batches[:added]:
            subject.add(batch, DATA)
        held = [subject.lease(LEASE_MS) for _ in range(leased)]
        for each in held[:completed]:
            subject.complete(each)
        return server.end()


def per_call(measure: Measure) -> int:
    """Instructions of one call."""
    short, long = (instructions(measure, calls) for calls in (SHORT, LONG))
    return round((long - short) / (LONG - SHORT))


def count_all() -> dict[str, int]:
    """All measures, two at a time; progress goes to the standard error."""
    with ThreadPoolExecutor(2) as pool:
        pending = {measure: pool.submit(per_call, measure) for measure in MEASURES}
        counts = {}
        for measure, future in pending.items():
            counts[measure.name] = future.result()
            print(f"{measure.name}: {counts[measure.name]:,}", file=sys.stderr, flush=True)
    for batch in (1, 100):
        for who in ("floor", "leaseq"):
            life = sum(counts[Measure(who, batch, step).name] for step in STEPS)
            counts[Measure(who, batch, "life").name] = life
    return counts


def table(counts: dict[str, int]) -> rich.table.Table:
    """A row for each step: the floor, leaseq, and how many times the floor leaseq takes."""
    drawn = rich.table.Table("call", "items", "floor", "leaseq", "ratio")
    for batch in (1, 100):
        for step in (*STEPS, "life"):
            floor, ours = (counts[Measure(who, batch, step).name] for who in ("floor", "leaseq"))
            drawn.add_row(step, str(batch), f"{floor:,}", f"{ours:,}", f"{ours / floor:.2f}")
    return drawn


def risen(counts: dict[str, int], committed: dict[str, int]) -> list[str]:
    """What costs more than committed by over the tolerance, or is on one side only: a line each."""
    lines = []
    for name in sorted(counts.keys() | committed.keys()):
        now, before = counts.get(name), committed.get(name)
        if now is None or before is None:
            lines.append(f"{name}: {'not committed' if before is None else 'no longer counted'}")
        elif now > before * (1 + TOLERANCE):
            lines.append(f"{name}: {now:,} instead of {before:,} ({now / before - 1:+.1%})")
    return lines


def main(arguments: Sequence[str]) -> int:
    """Count, and write or compare."""
    parser = argparse.ArgumentParser(
        prog="instructions.py", description=(__doc__ or "").split("\n", maxsplit=1)[0]
    )
    parser.add_argument(
        "--check", action="store_true", help="compare with the committed counts and write nothing"
    )
    options = parser.parse_args(arguments)
    counts = count_all()
    rich.console.Console().print(table(counts))
    if not options.check:
        record = {"leaseq": __version__, "server": SERVER, "instructions": counts}
        RESULTS.write_text(json.dumps(record, indent=2) + "\n")
        return 0
    changed = risen(counts, json.loads(RESULTS.read_text())["instructions"])
    if changed:
        print("\n".join(changed))
        print(
            "If this is meant, run `python benchmarks/instructions.py`, commit the file, and say why in the message."
        )
        return 1
    print(f"no call costs over {TOLERANCE:.0%} more than committed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
