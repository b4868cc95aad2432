"""Run steps of the Makefile, time them, and end with a table of what passed and what did not.

    python tools/run_steps.py NAME STEP[+STEP...] [STEP...]

Steps joined by `+` run side by side, two at a time; what one of them printed is shown when it has ended, whole if it failed.
The other steps run alone and print as they go. All steps run even if one fails; the last lines of each that failed are shown
again before the table, with what any left out, for readers who see the end alone. Exits with 1 if one failed. A step that hangs is ended after 45
minutes, so that the table still tells which one it was.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Final

import psutil

SIDE_BY_SIDE: Final = 2
LIMIT_SECONDS: Final = 45 * 60
LAST_LINES: Final = 40
"""Lines of a failed step that are shown again."""
LEFT_OUT: Final = re.compile(
    "^(SKIPPED|XFAIL) |^\N{INFORMATION SOURCE} (skipped|todo|cancelled) [1-9]|^=+ .*[1-9][0-9]* (skipped|xfailed).* =+$"
)
"""Lines of pytest and of Node about tests that did not run. They are shown behind "did not run in", for which `.ci/run` looks."""


@dataclass(frozen=True)
class StepResult:
    """The end of a step, with all that it printed."""

    step: str
    seconds: float
    code: int
    output: str

    @property
    def line(self) -> str:
        """One row of the table."""
        word = "ok" if self.code == 0 else f"FAILED (exit code {self.code}): make {self.step}"
        return f"  {self.step:<20} {self.seconds:6.0f} s  {word}"


def run(step: str, *, shown: bool, limit: float = LIMIT_SECONDS) -> StepResult:
    """Run `make STEP`, and kill what it started if it takes longer than the limit in seconds. Print its lines as they come, or not."""
    start = time.monotonic()
    # its own make: a jobserver of the one above would be for steps that run alone, too
    environment = {name: value for name, value in os.environ.items() if name not in {"MAKEFLAGS", "MFLAGS"}}
    lines = []
    with subprocess.Popen(
        ["make", "--no-print-directory", step],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment,
    ) as made:
        timer = threading.Timer(limit, _kill, [made])
        timer.start()
        for line in made.stdout or ():  # to its end, when all that the step started has closed it
            lines.append(line)
            if shown:
                print(line, end="", flush=True)
        made.wait()
        timer.cancel()
    return StepResult(step, time.monotonic() - start, made.returncode, "".join(lines))


def _kill(made: subprocess.Popen[str]) -> None:
    """Kill a make with what it started."""
    started = psutil.Process(made.pid).children(recursive=True)
    made.kill()  # first: it would print that they were killed, and end with 2
    for each in started:
        with contextlib.suppress(psutil.NoSuchProcess):
            each.kill()


def run_group(steps: list[str]) -> list[StepResult]:
    """Run steps side by side, or a single one so that it prints as it goes."""
    if len(steps) == 1:
        print(f"== {steps[0]}", flush=True)
        return [run(steps[0], shown=True)]
    print(f"== side by side: {', '.join(steps)}", flush=True)
    results = []
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        for ended in as_completed([pool.submit(run, step, shown=False) for step in steps]):
            result = ended.result()
            results.append(result)
            shown = result.output.rstrip() if result.code else f"  {_last_lines(result.output, 1).strip()}"
            print(f"{result.line}\n{shown}", flush=True)
    return results


def _last_lines(output: str, count: int) -> str:
    return "\n".join(output.rstrip().splitlines()[-count:])


def main(arguments: list[str]) -> int:
    """Run all groups in their order."""
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    name, *groups = arguments
    start = time.monotonic()
    results = [result for group in groups for result in run_group(group.split("+"))]
    for result in results:
        if result.code:
            print(f"\n== {result.step} failed; it ended with:\n{_last_lines(result.output, LAST_LINES)}")
        for line in filter(LEFT_OUT.search, result.output.splitlines()):
            print(f"did not run in {result.step}: {line}")
    print(f"\n{name}: {time.monotonic() - start:.0f} s")
    for result in results:
        print(result.line)
    return 1 if any(result.code for result in results) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
