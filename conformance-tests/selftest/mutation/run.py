"""Run every mechanical mutant of every script against the script's vectors: `python -m selftest.mutation.run`.

A mutant is killed by the first vector whose reply or keyspace is another. A script that takes another way on an older
server is judged there too, and survives only where it survives on both. Most that survive mean the same as the script. Of
each script a share has to be killed; `--survivors` prints the rest.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import redis

from leaseq_conformance.manifest import SCRIPTS
from leaseq_conformance.redis_server import SpawnedServer
from leaseq_conformance.vectors import case_file
from leaseq_conformance.vectors.compare import in_order
from leaseq_conformance.vectors.executor import VectorExecutor, refused
from selftest.mutation.operators import LuaEdit, bounded, edits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from leaseq_conformance.vectors.vector import Vector

THRESHOLD: Final = 83
"""Percent of the mutants of each script that have to be killed."""
SERVERS: Final = 2
SOURCES: Final = {name: script.source for name, script in SCRIPTS.items()}
OLDER: Final = {"deep_clean": "redis-6.2.14"}
"""Scripts that take another way on an older server, and such a one: its HSCAN knows no NOVALUES."""
CHUNK: Final = 120
"""Edits that one process takes at a time."""
STEPS: Final = (8, 32, 128)
"""Sizes of the batches of vectors sent to a mutant, until one kills it. The last size holds for all further batches."""
PLACE: Final = "0123456789" * 4
"""Stands for the digest of a mutant in what is packed once for all."""


@dataclass
class Score:
    """The result of a run: for each script the number of mutants that were killed, and the survivors."""

    killed: Counter[str] = field(default_factory=Counter)
    survivors: list[tuple[str, LuaEdit]] = field(default_factory=list)

    def share(self, script: str) -> float:
        """Return how many of a hundred mutants of a script were killed."""
        lived = sum(each == script for each, _ in self.survivors)
        return 100 * self.killed[script] / ((self.killed[script] + lived) or 1)

    @property
    def below(self) -> list[str]:
        """Scripts with fewer killed mutants than required."""
        ran = {*self.killed, *(script for script, _ in self.survivors)}
        return sorted(script for script in ran if self.share(script) < THRESHOLD)

    @property
    def good(self) -> bool:
        """True if enough mutants of every script were killed."""
        return not self.below


class Killer:
    """Kills mutants of one script on one server."""

    def __init__(self, client: redis.Redis, script: str) -> None:
        self.client, self.script = client, script
        self.bench = VectorExecutor(client)
        self.vectors = case_file.load(script)
        # the calls of several keyspaces in turn, so that the first few differ much
        self.order = sorted(range(len(self.vectors)), key=lambda n: (n * 7919) % len(self.vectors))
        self.expected: dict[int, Any] = {}
        self._packed = [self._pack(vector) for vector in self.vectors]
        for at in self.order:
            self.expected[at] = next(self._answers([at], self.bench.load(script, bounded(SOURCES[script]))))[
                1
            ]

    def close(self) -> None:
        """Give the connection back."""
        self.bench.close()

    def _pack(self, vector: Vector) -> tuple[bytes, int, int]:
        """A vector's commands, how many they are, and which is the call."""
        commands = self.bench.commands(vector, PLACE, twice=False, as_digest=True)
        call = next(at for at, command in enumerate(commands) if command[1:2] == [PLACE])
        return b"".join(self.bench.link.pack_commands(commands)), len(commands), call

    def _answers(self, chosen: Sequence[int], digest: str) -> Iterator[tuple[int, Any]]:
        """Yield what the call of each of these vectors answers and leaves."""
        sent = b"".join(self._packed[at][0] for at in chosen).replace(PLACE.encode(), digest.encode())
        self.bench.link.send_packed_command([sent])
        for at in chosen:
            _, count, call = self._packed[at]
            answers = [self.bench.answer() for _ in range(count)]
            yield at, (self._in_order(at, refused(answers[call])), answers[-1])

    def _in_order(self, at: int, reply: Any) -> Any:
        vector = self.vectors[at]
        entries = (
            int(vector.argv[2]) if self.script == "complete_and_lease" and isinstance(reply, list) else 0
        )
        try:
            return in_order(self.script, reply, entries)
        except (IndexError, TypeError):
            return reply

    def kills(self, source: str) -> bool | None:
        """Return whether a vector tells the mutant from the script; None where it is no Lua."""
        try:
            digest = self.bench.load(self.script, bounded(source))
        except redis.ResponseError:
            return None
        start = step = 0
        while start < len(self.order):
            chosen = self.order[start : start + STEPS[min(step, len(STEPS) - 1)]]
            start, step = start + len(chosen), step + 1
            different = [at for at, seen in self._answers(chosen, digest) if seen != self.expected[at]]
            if different:
                self.order.remove(different[0])
                self.order.insert(0, different[0])
                return True
        return False


def programs(script: str) -> list[str | None]:
    """Return the servers that a script is judged on: the server that leaseq embeds, and an older one.

    Raises:
        SystemExit: the older one is not there.
    """
    if script not in OLDER:
        return [None]
    program = Path(os.environ.get("LEASEQ_SERVERS_DIR", ".servers"), "bin", OLDER[script])
    if not program.exists():
        raise SystemExit(
            f"{script} is judged on {OLDER[script]} too: {program} is not there, run `make servers`"
        )
    return [None, str(program)]


@contextmanager
def killer_on(program: str | None, script: str) -> Iterator[Killer]:
    """A killer with a separate server. A context manager."""
    with SpawnedServer(program) as server, server.client() as client:
        client.config_set("appendonly", "no")
        with closing(Killer(client, script)) as killer:
            yield killer


def judged(killers: Sequence[Killer], source: str) -> bool | None:
    """Return whether one of them kills a mutant, each asked only where those before it did not; None where it is no Lua."""
    return next((judgement for each in killers if (judgement := each.kills(source)) is not False), False)


def work(script: str, start: int) -> list[tuple[LuaEdit, bool]]:
    """Return what came of a chunk of the edits of a script; those that are no Lua are left out."""
    killed = []
    with ExitStack() as stack:
        killers = [stack.enter_context(killer_on(program, script)) for program in programs(script)]
        for edit in edits(SOURCES[script])[start : start + CHUNK]:
            judgement = judged(killers, edit.apply(SOURCES[script]))
            if judgement is not None:
                killed.append((edit, judgement))
    return killed


def judge(results: Iterable[tuple[str, LuaEdit, bool]]) -> Score:
    """The score of mutants that ran."""
    score = Score()
    for script, edit, killed in results:
        if killed:
            score.killed[script] += 1
        else:
            score.survivors.append((script, edit))
    return score


def run(scripts: Sequence[str], report: Any = print) -> Score:
    """Run the mutants of these scripts."""
    chunks = [(script, start) for script in scripts for start in range(0, len(edits(SOURCES[script])), CHUNK)]
    total = sum(len(edits(SOURCES[script])) for script in scripts)
    results: list[tuple[str, LuaEdit, bool]] = []
    done, begun = 0, time.monotonic()
    with ProcessPoolExecutor(SERVERS) as pool:
        pending = {pool.submit(work, *chunk): chunk for chunk in chunks}
        for future in as_completed(pending):
            script, start = pending[future]
            results += [(script, edit, killed) for edit, killed in future.result()]
            done += min(CHUNK, len(edits(SOURCES[script])) - start)
            lived = sum(not killed for _, _, killed in results)
            report(f"{done}/{total} edits, {lived} survive, {time.monotonic() - begun:.0f} s ({script})")
    return judge(results)


def main() -> None:
    """Run and print the score; exit 1 where fewer are killed than have to be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scripts", nargs="*", help="scripts to take, all without any")
    parser.add_argument("--survivors", action="store_true", help="print every mutant that survives")
    options = parser.parse_args()
    scripts = options.scripts or sorted(SOURCES)
    for script in scripts:
        programs(script)  # a missing server is reported at once, and not after an hour
    score = run(scripts)
    if options.survivors:
        for script, edit in score.survivors:
            print(f"{script}: {edit.line} ==> {edit.becomes}  (nth {edit.nth})")
    for script in scripts:
        print(f"{script:20} {score.killed[script]:5} killed, {score.share(script):5.1f} %")
    total = sum(score.killed.values())
    print(
        f"{total} of {total + len(score.survivors)} mechanical mutants killed; {THRESHOLD} % of each script have to be"
    )
    if not score.good:
        sys.exit(1)


if __name__ == "__main__":
    main()
