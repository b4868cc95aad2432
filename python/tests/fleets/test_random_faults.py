"""Random faults for each flavour: connections cut and swallowed, servers frozen, restarted and failed over, programs killed.

    FAULT_SECONDS=60 LEASEQ_SEED=7 pytest python/tests/fleets/test_random_faults.py --tier=nightly -k sentinel

runs one flavour for a minute. The faults of a seed come in the same order; what the programs do meanwhile differs.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import pytest
from support import programs, servers
from support.fault_scene import ANYTIME, QUEUES, Member, Nodes, OneServer, Scene, Sentinels, TlsServer

import leaseq

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FAULT_SECONDS: Final = float(os.environ.get("FAULT_SECONDS") or 300)
"""The seconds for which each flavour has faults."""
FEW_ITEMS: Final = 40
"""As many as one of the queues holds: producers wait for room."""
PAUSE_SECS: Final = 3.0
"""The longest time between two faults."""
LOOK_SECS: Final = 0.5
CALM_SECS: Final = 8.0
"""The seconds for which all is well at the start and at the end: more than an interrupted call is waited for."""
MORE_BYTES: Final = 12 << 20
"""Memory that a program may have in addition in the last calm, beside the middle of its life."""
MORE_DESCRIPTORS: Final = 4
"""The same of descriptors, beside the first third of its life: how many calls meet, and take a connection each, is chance."""
MOST_DESCRIPTORS: Final = 80
"""Eight callers may wait for three queues each, and interrupted calls keep connections for a while."""
BOTH: Final = ("threads", "asyncio")
FLAVOURS: Final[dict[str, Callable[[str, random.Random, Path], Scene]]] = {
    "threads": lambda name, chance, _: OneServer(name, ("threads",), chance),
    "asyncio": lambda name, chance, _: OneServer(name, ("asyncio",), chance),
    "uvloop": lambda name, chance, _: OneServer(name, ("uvloop",), chance),
    "tls": lambda _, chance, folder: TlsServer(BOTH, chance, folder),
    "sentinel": lambda name, chance, _: Sentinels(name, BOTH, chance),
    "cluster": lambda name, chance, _: Nodes(name, BOTH, chance),
}


class Program:
    """A process of one member, and what it takes of the machine."""

    def __init__(self, member: Member, errors: Path) -> None:
        self.member = member
        self._errors = errors
        with errors.open("wb") as file:
            self.process = subprocess.Popen(
                programs.command("faulted_client", json.dumps(asdict(member))),
                stdout=subprocess.DEVNULL,
                stderr=file,
                env=programs.environment(),
            )
        self.memory: list[int] = []
        self.descriptors: list[int] = []

    def look(self) -> None:
        """Take its memory and its descriptors down."""
        proc = Path("/proc", str(self.process.pid))
        with contextlib.suppress(OSError, IndexError):
            pages = int((proc / "statm").read_text().split()[1])
            self.descriptors.append(len(list((proc / "fd").iterdir())))
            self.memory.append(pages * os.sysconf("SC_PAGE_SIZE"))

    def lines(self) -> list[tuple[str, Any]]:
        """The lines of its journal: a word, and what it is about."""
        path = Path(self.member.journal)
        lines = path.read_text().splitlines() if path.exists() else []
        return [(line.partition(" ")[0], json.loads(line.partition(" ")[2])) for line in lines]

    def has_started(self) -> bool:
        """Return whether it has connected, or ended."""
        return ("started", self.member.role) in self.lines() or self.process.poll() is not None

    def wait(self) -> None:
        """Wait for its end. Raises AssertionError with where each of its threads is."""
        try:
            self.process.wait(ANYTIME)
        except subprocess.TimeoutExpired:
            size = self._errors.stat().st_size
            self.process.send_signal(signal.SIGUSR1)
            servers.wait_until(lambda: self._errors.stat().st_size > size)
            time.sleep(1)  # for the other threads
            stacks = self._errors.read_text(errors="replace")[size:]
            raise AssertionError(f"{self.member.role} ({self.member.kind}) does not end:\n{stacks}") from None

    def problems(self) -> Iterator[str]:
        """Yield each fault of its calls, of its memory and descriptors, and of its end."""
        name = f"{self.member.role} ({self.member.kind})"
        yield from (f"{name}: {word}: {what}" for word, what in self.lines() if word in {"wrong", "late"})
        if self.process.returncode not in {0, -signal.SIGKILL}:
            yield f"{name} ended with {self.process.returncode}"
        errors = self._errors.read_text(errors="replace")
        if "Traceback" in errors or "Warning" in errors:
            yield f"{name} printed {errors[-3000:]}"
        if self.memory:
            calm = round(CALM_SECS / LOOK_SECS)
            before, after = self.memory[len(self.memory) // 3 :][:calm], self.memory[-calm:]
            if statistics.median(after) - statistics.median(before) > MORE_BYTES:
                yield f"{name}: memory grew, MiB: {[size >> 20 for size in self.memory[::calm]]}"
            early = max(calm, len(self.descriptors) // 3)
            first, last = max(self.descriptors[:early]), max(self.descriptors[-calm // 2 :])
            if last > first + MORE_DESCRIPTORS or max(self.descriptors) > MOST_DESCRIPTORS:
                yield f"{name}: too many descriptors: {self.descriptors}"


class Play:
    """Programs that use a scene: those that are never killed, and two that are killed and replaced."""

    def __init__(self, scene: Scene, folder: Path, chance: random.Random) -> None:
        self._scene = scene
        self._folder = folder
        self._chance = chance
        self._over = threading.Event()
        self.programs: list[Program] = []
        first, last = scene.kinds[0], scene.kinds[-1]
        self.steady = [
            self._start(kind, role)
            for kind, role in ((first, "producer"), (last, "worker"), (last, "cleaner"))
        ]
        self.killed = [self._start(kind, role) for kind, role in ((last, "producer"), (first, "worker"))]
        self.kills = 0

    def _start(self, kind: str, role: str) -> Program:
        number = len(self.programs)
        journal = str(self._folder / f"{number}.journal")
        member = Member(kind=kind, role=role, journal=journal, **self._scene.orders())
        self.programs.append(Program(member, self._folder / f"{number}.err"))
        return self.programs[-1]

    def wait_started(self) -> None:
        """Wait until each has connected."""
        for program in (*self.steady, *self.killed):
            servers.wait_until(program.has_started)

    def _watch(self) -> None:
        while not self._over.wait(LOOK_SECS):
            for program in self.steady:
                program.look()

    def kill(self) -> None:
        """Kill one of those that may be killed, and start another."""
        place = self._chance.randrange(len(self.killed))
        old = self.killed[place]
        old.process.kill()
        old.process.wait()
        self.killed[place] = self._start(old.member.kind, old.member.role)
        self.kills += 1

    def trouble(self, seconds: float) -> Counter[str]:
        """Make faults for `seconds`; returns how many of each."""
        made: Counter[str] = Counter()
        self.wait_started()
        watching = threading.Thread(target=self._watch)
        watching.start()
        time.sleep(CALM_SECS)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if self._chance.random() < 0.2:
                self.kill()
            name, fault = self._chance.choice(self._scene.faults)
            fault()
            made[name] += 1
            time.sleep(self._chance.uniform(0, PAUSE_SECS))
        self._scene.clear()
        self.wait_started()
        time.sleep(CALM_SECS)
        self._over.set()
        watching.join()
        return made

    def end(self, role: str) -> None:
        """Let the programs of a role end as they are meant to."""
        running = [each for each in self.programs if each.member.role == role and each.process.poll() is None]
        for program in running:
            program.process.send_signal(signal.SIGTERM)
        for program in running:
            program.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for program in self.programs:
            program.process.kill()
            program.process.wait()


@pytest.mark.promise("G1", "G2", "G7", "G18")
@pytest.mark.nightly
@pytest.mark.timeout(FAULT_SECONDS + 900)
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_nothing_is_lost_late_left_over_or_unnamed(startable_name: str, tmp_path: Path, flavour: str) -> None:
    """LQ-ITEM-3, LQ-COMPLETE-2, LQ-ERROR-4, LQ-CLIENT-10, LQ-CLIENT-22."""
    seed = int(os.environ.get("LEASEQ_SEED") or random.SystemRandom().randrange(10**6))
    sys.stderr.write(f"{flavour}: LEASEQ_SEED={seed} FAULT_SECONDS={FAULT_SECONDS:.0f}\n")
    chance = random.Random(seed)
    with FLAVOURS[flavour](startable_name, chance, tmp_path) as scene, Play(scene, tmp_path, chance) as play:
        client = scene.client()
        queues = [leaseq.WorkQueue(name, client) for name in QUEUES]
        queues[0].configure(max_items=FEW_ITEMS)
        made = play.trouble(FAULT_SECONDS)
        play.end("producer")
        servers.wait_until(lambda: all(queue.stats().items == 0 for queue in queues), ANYTIME)
        stats = [queue.stats() for queue in queues]
        repairs = [queue.deep_clean().repairs for queue in queues]
        for role in ("worker", "cleaner"):
            play.end(role)
        for queue in queues:
            queue.close()
    words: dict[str, Counter[Any]] = {}
    for program in play.programs:
        for word, what in program.lines():
            words.setdefault(word, Counter())[what] += 1
    added, completed = (sum(getattr(each, name) for each in stats) for name in ("added", "completed"))
    sys.stderr.write(
        f"{added} items, {dict(made)}, {play.kills} kills, calls: {list(words.get('calls', ()))}\n"
    )
    assert [problem for program in play.programs for problem in program.problems()] == []
    assert [(each.dead, each.dropped, each.expired) for each in stats] == [(0, 0, 0)] * len(QUEUES)
    assert repairs == [{}] * len(QUEUES)
    assert added == completed
    assert len(words["added"]) <= added <= len(words["adding"])
    assert words["added"].keys() - words["handled"].keys() == set(), "added, and no worker had it"
    assert [name for name, count in words["true"].items() if count > 1] == []
