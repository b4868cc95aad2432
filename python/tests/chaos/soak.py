"""`make soak`: a mixed load under kills for 20 minutes. Are memory, descriptors and throughput the same at the end?"""

from __future__ import annotations

import os
import random
import signal
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from support import servers

from chaos import faults
from chaos.member import ITEMS
from chaos.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chaos.verdict import Verdict

STEADY: Final = ("produce", "threads", "asyncio", "cleaner")
"""The programs that are never killed."""
MINUTE_SECS: Final = 60.0
MORE_BYTES: Final = 12 << 20
MORE_DESCRIPTORS: Final = 4
LEAST_SHARE: Final = 0.8
"""Of the throughput at the start."""


@dataclass(frozen=True)
class Sample:
    """A look at the campaign after a minute.

    Attributes:
        completed: items that were completed in that minute.
        memory: bytes of each steady program.
        descriptors: those of each steady program.
    """

    completed: int
    memory: tuple[int, ...]
    descriptors: tuple[int, ...]


def trouble(stage: Stage) -> None:
    """Kill something, or do what an operator does."""
    what = stage.chance.choice(("server", "loop", "child", "supervisor", "operator"))
    if what == "server":
        faults.kill_server(stage)
    elif what == "operator":
        faults.interfere(stage)
    elif what == "loop":
        stage.kill_member("loop")
    elif what == "child":
        os.kill(stage.chance.choice(stage.children_of_jobs()), signal.SIGKILL)
    else:
        os.kill(stage.members["jobs"].pid, signal.SIGKILL)
        stage.members["jobs"].wait()
        stage.start("jobs")


def sampled(stage: Stage, before: int) -> tuple[Sample, int]:
    """Return a sample, and how many items are completed now."""
    with stage.queue(ITEMS) as queue:
        completed = queue.stats().completed
    folders = [Path("/proc", str(stage.members[role].pid)) for role in STEADY]
    pages = (int((folder / "statm").read_text().split()[1]) for folder in folders)
    memory = tuple(count * os.sysconf("SC_PAGE_SIZE") for count in pages)
    descriptors = tuple(len(list((folder / "fd").iterdir())) for folder in folders)
    return Sample(completed - before, memory, descriptors), completed


def growth(samples: Sequence[Sample]) -> list[str]:
    """Return what is not flat: the last third beside the second one. In the first all caches are filled."""
    third = len(samples) // 3
    early, late = samples[third : 2 * third], samples[-third:]
    found = []
    for place, role in enumerate(STEADY):
        for name, most in (("memory", MORE_BYTES), ("descriptors", MORE_DESCRIPTORS)):
            first, last = (
                statistics.median(getattr(each, name)[place] for each in part) for part in (early, late)
            )
            if last > first + most:
                found.append(f"{role}: {name} grew from {first:.0f} to {last:.0f}")
    first, last = (statistics.median(each.completed for each in part) for part in (early, late))
    if last < LEAST_SHARE * first:
        found.append(f"throughput fell from {first:.0f} to {last:.0f} items a minute")
    return found


def run(seconds: float, seed: int, program: str) -> tuple[Verdict, list[Sample], int]:
    """Return the verdict, a sample of each minute, and how many troubles there were."""
    chance = random.Random(seed)
    samples, over = [], []
    with Stage(program, chance, 0) as stage:
        until = time.monotonic() + seconds
        next_sample, completed = time.monotonic() + MINUTE_SECS, 0
        while time.monotonic() < until:
            trouble(stage)
            over.append(time.time())
            time.sleep(chance.uniform(5, 15))
            stage.watch()
            if time.monotonic() >= next_sample:
                next_sample += MINUTE_SECS
                sample, completed = sampled(stage, completed)
                samples.append(sample)
                megabytes = [size >> 20 for size in sample.memory]
                click.echo(
                    f"minute {len(samples):2}: {sample.completed:5} items, {megabytes} MiB, {sample.descriptors} fds"
                )
        return stage.verdict(over), samples, len(over)


@click.command(help=__doc__)
@click.option("--seconds", default=1200.0, show_default=True)
@click.option("--seed", type=int, help="that of an earlier run")
@click.option("--server", default=servers.DEFAULT, show_default=True)
def main(seconds: float, seed: int | None, server: str) -> None:
    """Run it."""
    seed = random.SystemRandom().randrange(10**6) if seed is None else seed
    click.echo(f"--seed {seed} --server {server}; MiB and fds of {', '.join(STEADY)}")
    verdict, samples, count = run(seconds, seed, server)
    click.echo(f"{count} troubles: {verdict}")
    bad = [*verdict.problems(server_loses=False), *growth(samples)]
    for each in bad:
        click.echo(each)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
