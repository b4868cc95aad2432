"""The command of an example that moves to leaseq: `python -m NAME [before|after]`."""

import argparse
import importlib
import os
import subprocess
import sys
from typing import Final

from example_run.programs import stop_on_signals, temporary_server

SIDES: Final = ("before", "after")


def run(name: str) -> None:
    """Run before.py or after.py on a server that is started for it; without an argument run both and compare what they print."""
    parser = argparse.ArgumentParser(prog=f"python -m {name}")
    parser.add_argument("side", nargs="?", choices=SIDES, help="run one of the two; default: both, compared")
    side = parser.parse_args().side
    stop_on_signals()
    if side is None:
        _compare(name)
    else:
        _run_side(name, side)


def _run_side(name: str, side: str) -> None:
    with temporary_server() as folder:
        os.chdir(folder)  # for files that programs write, such as those of `celery beat`
        importlib.import_module(f"{name}.{side}").main()


def _compare(name: str) -> None:
    """Raises SystemExit if the two print different lines, or if one of them fails."""
    printed = [_printed(name, side) for side in SIDES]
    if printed[0] != printed[1]:
        raise SystemExit(f"{name}: the answers differ")
    print("The answers are the same.")


def _printed(name: str, side: str) -> list[str]:
    """Print the lines of one side as they come, and return them."""
    print(f"{name}/{side}.py", flush=True)
    lines = []
    command = [sys.executable, "-u", "-m", name, side]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None  # noqa: S101 # a pipe was asked for
        for line in process.stdout:
            print("  " + line, end="", flush=True)
            lines.append(line)
    if process.returncode:
        raise SystemExit(f"{name}/{side}.py ended with {process.returncode}")
    return lines
