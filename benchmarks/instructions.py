"""Instructions that a call costs the server, counted by valgrind's callgrind: a measure without noise.

    python benchmarks/instructions.py            count, print a table, write results/instructions.json
    python benchmarks/instructions.py --check    count, and compare with the committed file: exits with 1 if a call of leaseq
                                                 costs over 2 % more than it says

Times vary with the machine and with what else it does; instructions do not. The server writes its counts each time it runs
ECHO, which no script does, so starting it, loading scripts and a queue's first calls do not count. Its hash seed is fixed,
and it does nothing on a timer that a call pays for. leaseq stands next to the floor (`floor.py`): the fewest commands that
could do the same. A life is one `add`, `lease` and `complete`; a fused life is one `add` and `complete_and_lease`. A job is an
`add` with the options that jobs have, beside asynq's enqueue.
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
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import redis
import rich.console
import rich.table

import floor
from bench_server import ServerNotFoundError, find
from leaseq import __version__, _scripts, commands
from leaseq.item import Item
from leaseq.keys import QueueKeys
from lifecycle import DATA, KEYS, Leaseq, ids_of, leased_items

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from leaseq.commands import Argument
    from lifecycle import Subject

RESULTS: Final = Path(__file__).parent / "results" / "instructions.json"
VALGRIND: Final = Path(__file__).parents[1] / "tools" / "valgrind.sh"
SERVER: Final = "valkey-9.1.2"
TOLERANCE: Final = 0.02
"""Two runs on one machine differ by 0.005 at most: the server draws the levels of its skip lists. The rest is for other CPUs,
for which the server may choose other functions. leaseq may cost more there by as much as the floor does."""
WARM, CALLS = 30, 200
"""Calls before the count, and those that are counted."""
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
    "--hash-seed",
    "leaseq",
]
PLAIN_ALLOCATOR: Final = "background_thread:false,dirty_decay_ms:-1,muzzy_decay_ms:-1"
"""Settings of jemalloc with which it returns no memory on a timer: the number of instructions stays the same."""
PLAIN_CPU: Final = "glibc.cpu.hwcaps=-AVX2,-AVX,-AVX512F,-AVX512VL,-AVX512BW,-ERMS,-FSRM,-BMI2,-RTM"
"""Settings of the C library with which it uses no function that only some CPUs support."""


STEPS: Final = ("add", "lease", "complete", "complete_and_lease")
LIVES: Final = {"life": STEPS[:3], "fused life": (STEPS[0], STEPS[3])}
JOB: Final = "job"
JOB_OPTIONS: Final = commands.add_options(max_attempts=4, expires_in=86_400, dead_on_expiry=True)
JOB_KEYS: Final = QueueKeys("jobs")
SUBJECTS: Final = ("floor", "leaseq")
BATCHES: Final = (1, 100)


class ServerUnderValgrind:
    """A server whose instructions are counted from start to end, on a unix socket in a temporary folder."""

    def __init__(self, folder: Path) -> None:
        socket = folder / "socket"
        self._folder, self._dumps = folder, 0
        count = [
            str(VALGRIND),
            "--tool=callgrind",
            f"--callgrind-out-file={folder}/%p",
            "--trace-children=yes",  # what stands in the cache is a launcher
            "--dump-before=echoCommand",
        ]
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
            env={
                **os.environ,
                "GLIBC_TUNABLES": PLAIN_CPU,
                "JE_MALLOC_CONF": PLAIN_ALLOCATOR,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._client = redis.Redis.from_url(f"unix://{socket}", retry=None, socket_timeout=START_SECS)
        self._wait_ready()
        self._connection: Any = self._client.connection_pool.make_connection()

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

    def count(self) -> int:
        """Instructions since it was last called, or since the start."""
        self.call("ECHO", "")
        self._dumps += 1
        dump = self._folder / f"{self._process.pid}.{self._dumps}"
        found = re.search(r"^totals: (\d+)$", dump.read_text(), re.MULTILINE)
        if found is None:
            raise RuntimeError(f"callgrind wrote no total into {dump.name}")
        return int(found[1])

    def end(self) -> None:
        """Stop it."""
        self._client.close()
        self._process.kill()
        self._process.communicate()


class Fused:
    """Completes what it holds and leases as many, in one call."""

    def __init__(self, server: ServerUnderValgrind, subject: str, batch: int) -> None:
        self._server, self._subject, self._batch = server, subject, batch
        self._floor = server.load(floor.COMPLETE_AND_LEASE)
        server.load(_scripts.COMPLETE_AND_LEASE.source)

    def __call__(self, held: Any) -> Any:
        """Return what is held now."""
        if self._subject == "floor":
            reply = self._server.call("EVALSHA", self._floor, "3", *floor.KEYS[:3], str(LEASE_MS), *held)
            if reply[0] != 1:
                raise AssertionError(reply)
            return (reply[1], reply[4])
        command = commands.complete_and_lease(KEYS, held, self._batch, LEASE_MS / 1000)
        return leased_items(command.parse(self._server.call(*command.evalsha())))


def add_jobs(server: ServerUnderValgrind, who: str) -> Callable[[list[str]], None]:
    """Return the function that adds jobs with these ids."""
    if who == "floor":
        script = server.load(floor.ADD_JOB)

        def enqueue(ids: list[str]) -> None:
            keys = (f"asynq:{{default}}:t:{ids[0]}", "asynq:{default}:pending")
            if server.call("EVALSHA", script, "2", *keys, DATA, ids[0], str(time.time_ns())) != 1:
                raise AssertionError(ids)

        return enqueue

    def add(ids: list[str]) -> None:
        command = commands.add(JOB_KEYS, [Item(DATA, item) for item in ids], JOB_OPTIONS)
        if not all(command.parse(server.call(*command.evalsha()))):
            raise AssertionError(ids)

    return add


def per_call(who: str, batch: int) -> dict[str, int]:
    """Instructions of one call of each step; the floor has no fused call for many."""
    with tempfile.TemporaryDirectory(prefix="leaseq-bench-") as folder:
        server = ServerUnderValgrind(Path(folder))
        try:
            subject: Subject = (floor.Floor if who == "floor" else Leaseq)(server, batch)  # type: ignore[arg-type]
            ids = ids_of((2 * (WARM + CALLS) + 1) * batch)
            batches = [ids[at : at + batch] for at in range(0, len(ids), batch)]
            fused = Fused(server, who, batch)
            found = {}

            def counted(step: str, call: Callable[[Any], Any], inputs: Sequence[Any]) -> list[Any]:
                answers = [call(each) for each in inputs[:WARM]]
                server.count()
                none = server.count()
                answers += [call(each) for each in inputs[WARM:]]
                found[step] = round((server.count() - none) / (len(inputs) - WARM))
                return answers

            counted("add", lambda each: subject.add(each, DATA), batches[: WARM + CALLS])
            held = counted("lease", lambda _: subject.lease(LEASE_MS), range(WARM + CALLS))
            counted("complete", subject.complete, held)
            if who == "leaseq" or batch == 1:
                for each in batches[WARM + CALLS :]:
                    subject.add(each, DATA)
                held = [subject.lease(LEASE_MS)]
                counted(STEPS[3], lambda _: held.append(fused(held.pop())), range(WARM + CALLS))
                counted(JOB, add_jobs(server, who), batches[: WARM + CALLS])
        finally:
            server.end()
        return found


def count_all() -> dict[str, int]:
    """All steps and lives, by subject, step and items in a call. Two servers at a time."""
    cases = [(who, batch) for batch in BATCHES for who in SUBJECTS]
    with ThreadPoolExecutor(2) as pool:
        several = list(pool.map(per_call, *zip(*cases, strict=True)))
    counts: dict[str, int] = {}
    for (who, batch), found in zip(cases, several, strict=True):
        counts |= {f"{who} {step} {batch}": count for step, count in found.items()}
        for life, steps in LIVES.items():
            if set(steps) <= found.keys():
                counts[f"{who} {life} {batch}"] = sum(found[step] for step in steps)
    return counts


def table(counts: dict[str, int]) -> rich.table.Table:
    """A row for each step: the floor, leaseq, and how many times the floor leaseq takes."""
    drawn = rich.table.Table("call", "items", "floor", "leaseq", "ratio")
    for batch in BATCHES:
        for step in (*STEPS, JOB, *LIVES):
            least, ours = (counts.get(f"{who} {step} {batch}") for who in SUBJECTS)
            if ours is not None:
                beside = (
                    (f"{least:,}", f"{ours:,}", f"{ours / least:.2f}") if least else ("-", f"{ours:,}", "-")
                )
                drawn.add_row(step, str(batch), *beside)
    return drawn


def risen(counts: dict[str, int], committed: dict[str, int]) -> list[str]:
    """Return what is on one side only, and what of leaseq costs more than committed by over the tolerance: a line each."""
    lines = []
    for name in sorted(counts.keys() | committed.keys()):
        now, before = counts.get(name), committed.get(name)
        if now is None or before is None:
            lines.append(f"{name}: {'not committed' if before is None else 'no longer counted'}")
            continue
        who, step = name.split(" ", 1)
        if who == "leaseq" and now > before * (1 + TOLERANCE) * machine(counts, committed, step):
            lines.append(f"{name}: {now:,} instead of {before:,} ({now / before - 1:+.1%})")
    return lines


def machine(counts: dict[str, int], committed: dict[str, int], step: str) -> float:
    """Return how much more the floor of this step costs here than committed, as a factor of at least 1."""
    floors = counts.get(f"floor {step}"), committed.get(f"floor {step}")
    return max(1.0, floors[0] / floors[1]) if floors[0] and floors[1] else 1.0


def main(arguments: Sequence[str]) -> int:
    """Count, and write or compare."""
    parser = argparse.ArgumentParser(
        prog="instructions.py", description=(__doc__ or "").split("\n", maxsplit=1)[0]
    )
    parser.add_argument(
        "--check", action="store_true", help="compare with the committed counts and write nothing"
    )
    options = parser.parse_args(arguments)
    subprocess.run([str(VALGRIND), "--fetch"], check=True)  # once, before servers start side by side
    try:
        counts = count_all()
    except ServerNotFoundError as error:
        parser.error(str(error))
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
    print(f"no call of leaseq costs over {TOLERANCE:.0%} more than committed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
