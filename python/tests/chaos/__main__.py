"""`make chaos`: which items and jobs each kind of fault loses, does twice or leaves stuck.

    make chaos ARGS='--fault "kill the server, always" --seed 7'

Each row starts its servers, a producer of 50 items and 15 jobs a second, a loop that leases by hand, a worker of threads and one of
asyncio, a cleaner, and a `leaseq worker` of two processes, with leases of 5 s. Then it makes the fault several times. The faults of a seed
come in the same order; what the programs do meanwhile differs. Exits with 1 if a row has what should not be.
"""

from __future__ import annotations

import json
import random
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from support import servers

from chaos.faults import FAULTS, Fault

if TYPE_CHECKING:
    from chaos.verdict import Verdict

CALM_SECS: Final = 2.0
COLUMNS: Final = ("items", "jobs", "lost", "jobs lost", "no result", "twice", "stuck", "after", "recovery")


def run(fault: Fault, seed: int, program: str, replicas: int) -> Verdict:
    """Run one row."""
    chance = random.Random(f"{fault.name} {seed}")
    with fault.stage(program, chance, replicas) as stage:
        over = []
        for _ in range(fault.times):
            fault.act(stage)
            over.append(time.time())
            time.sleep(CALM_SECS + chance.uniform(0, 1))
            stage.watch()
        return stage.verdict(over)


def row(name: str, verdict: Verdict) -> str:
    """Return a line of the table."""
    counts = (verdict.items, verdict.jobs, verdict.lost, verdict.lost_jobs)
    cells = (*counts, verdict.no_outcome, verdict.twice, verdict.stuck, verdict.stuck_after)
    return f"{name:26}" + "".join(f"{cell:>10}" for cell in cells) + f"{verdict.recovery:>9.1f}s"


@click.command(help=__doc__)
@click.option("--fault", "names", multiple=True, type=click.Choice([fault.name for fault in FAULTS]))
@click.option("--seed", type=int, help="that of an earlier run")
@click.option(
    "--replicas",
    default=0,
    show_default=True,
    help="that each add, and each completion by hand, waits for; rows whose servers have fewer are left out",
)
@click.option("--server", default=servers.DEFAULT, show_default=True)
@click.option("--output", type=click.Path(path_type=Path), help="a file for the counts as JSON")
def main(names: tuple[str, ...], seed: int | None, replicas: int, server: str, output: Path | None) -> None:
    """Run the rows."""
    chosen = [fault for fault in FAULTS if not names or fault.name in names]
    chosen = [fault for fault in chosen if fault.stage.replicas >= replicas]
    seed = random.SystemRandom().randrange(10**6) if seed is None else seed
    click.echo(f"--seed {seed} --server {server} --replicas {replicas}")
    click.echo(f"{'fault':26}" + "".join(f"{column:>10}" for column in COLUMNS))
    began, bad, found = time.monotonic(), [], {}
    for fault in chosen:
        verdict = run(fault, seed, server, replicas)
        click.echo(row(f"{fault.name} x{fault.times}", verdict))
        found[fault.name] = asdict(verdict)
        bad += [f"{fault.name}: {problem}" for problem in verdict.problems(server_loses=fault.loses)]
        for error in verdict.wrong[:3]:
            click.echo(error, err=True)
    click.echo(f"{len(chosen)} rows, {time.monotonic() - began:.0f} s")
    if output:
        output.write_text(json.dumps({"seed": seed, "server": server, "rows": found}, indent=1) + "\n")
    for each in bad:
        click.echo(each)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
