"""The processes of a measurement: each adapter in a fresh one, guarded."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from peers import environments
from peers.adapters.common import COUNT, DELAYS, TIME, Orders
from peers.process_guard import in_session, kill_session

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from peers.libraries import Library

BENCHMARKS: Final = Path(__file__).parents[1]
GUARD: Final = Path(__file__).with_name("process_guard.py")
ANSWER_SECS: Final = 120.0
READY_SECS: Final = 60.0
POLL_SECS: Final = 0.02
TICKS: Final = os.sysconf("SC_CLK_TCK")


class AdapterError(Exception):
    """An adapter did not do its orders. The message has the end of its standard error."""


class Process:
    """One command in a separate session, which ends with this process. A context manager."""

    def __init__(self, argv: Sequence[str], environment: dict[str, str] | None = None) -> None:
        guard_fd, self._hold = os.pipe()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed in close)
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(GUARD), str(guard_fd), *argv],
            cwd=BENCHMARKS,
            env=os.environ | (environment or {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            pass_fds=[guard_fd],
            start_new_session=True,
        )
        os.close(guard_fd)

    @property
    def session(self) -> int:
        """Number of the session that all its processes belong to."""
        return self.process.pid

    def cpu_secs(self) -> float:
        """CPU time of all its processes so far."""
        ticks = 0
        for pid in in_session(self.session):
            with contextlib.suppress(OSError):
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                ticks += int(fields[11]) + int(fields[12])
        return ticks / TICKS

    def members(self) -> list[int]:
        """All its processes but the guard."""
        return [pid for pid in in_session(self.session) if pid != self.session]

    def signal(self, number: int) -> None:
        """Send a signal to all its processes but the guard."""
        for pid in self.members():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def check(self) -> None:
        """Raise AdapterError where it has ended."""
        if self.process.poll() is not None:
            raise self.failure(f"ended with {self.process.returncode}")

    def failure(self, what: str) -> AdapterError:
        """An error that says what went wrong, and what the adapter said of it."""
        self._errors.seek(0)
        stderr = self._errors.read()[-2000:].decode(errors="replace").strip()
        return AdapterError(f"{what}; it said: {stderr}" if stderr else what)

    def kill(self) -> None:
        """Kill -9 all its processes, and see them gone."""
        kill_session(self.session)
        self.process.wait()

    def close(self) -> None:
        """Kill it, and give back what it used."""
        self.kill()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        self._errors.close()
        if self._hold >= 0:
            os.close(self._hold)
            self._hold = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Adapter(Process):
    """One adapter of a library."""

    def __init__(self, library: Library, orders: Orders) -> None:
        self.library = library
        environment = {
            "LEASEQ_BENCH": json.dumps(asdict(orders)),
            "LEASEQ_BENCH_MODULES": environments.modules(library),
            "PYTHONPATH": str(BENCHMARKS),
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONWARNINGS": "ignore",
        }
        super().__init__(environments.command(library), environment)

    def failure(self, what: str) -> AdapterError:
        """An error that names the library too."""
        return AdapterError(f"{self.library.name}: {super().failure(what)}")


class Producer(Adapter):
    """Enqueues as told."""

    def __init__(self, library: Library, orders: Orders) -> None:
        super().__init__(library, orders)
        self._rest = b""
        try:
            self.has_bulk = bool(self._answer()["bulk"])
        except BaseException:
            self.close()
            raise

    def _answer(self) -> dict[str, Any]:
        stdout = self.process.stdout
        if stdout is None:
            raise AssertionError
        deadline = time.monotonic() + ANSWER_SECS
        while b"\n" not in self._rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([stdout], [], [], left)[0]:
                raise self.failure(f"no answer in {ANSWER_SECS:.0f} s")
            if not (chunk := os.read(stdout.fileno(), 1 << 16)):
                raise self.failure("ended without an answer")
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def enqueue(
        self, how: str, count: int, *, first: int = 0, size: int = 100, gap_ms: tuple[float, float] = (0, 0)
    ) -> dict[str, Any]:
        """Enqueue `count` items, the first with that number: "one" by one, in "bulk", "paced", or by a "crowd".

        A crowd is 100 callers at once with single calls; adapters in Python have none. Raises AdapterError.

        Answers `seconds`, `cpu`: those of them that the process computed, for paced ones `sent`: when each was sent, in
        ns of the monotonic clock, and `delays`, and for single ones whose results are kept `ids`: what the library finds each by.
        """
        return self._order(how=how, count=count, first=first, size=size, gap_ms=gap_ms)

    def check_results(self, ids: Sequence[Any], *, size: int) -> None:
        """See that the result of each item, numbered from 0, is its data. Raises AdapterError."""
        self._order(how="results", count=len(ids), first=0, size=size, ids=ids)

    def _order(self, **order: Any) -> dict[str, Any]:
        stdin = self.process.stdin
        if stdin is None:
            raise AssertionError
        stdin.write(json.dumps(order).encode() + b"\n")
        stdin.flush()
        return self._answer()


class Worker(Adapter):
    """Works until it is closed."""

    def wait_idle(self) -> None:
        """Wait until it has started: until it rests for a while. Raises AdapterError."""
        deadline = time.monotonic() + READY_SECS
        # an interpreter needs this much before it can do anything; what is compiled is there once it runs
        least = 0.0 if self.library.language in environments.PROGRAMS else 0.05
        rested, last = 0, -1.0
        while rested < 3:
            if time.monotonic() > deadline:
                raise self.failure("did not come to rest")
            time.sleep(0.15)
            self.check()
            now = self.cpu_secs()
            # what polls never rests wholly; 0.3 s of CPU time is what the quickest to start need
            rested = rested + 1 if now >= least and self.members() and now - last <= 0.02 else 0
            last = now


class Traces:
    """The traces that handlers of some workers leave, in a temporary folder. A context manager."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="leaseq-bench-")
        self.path = Path(self._folder.name)

    def count(self) -> tuple[int, int, int]:
        """Return how many items were handled; when the first and the last was, in ns."""
        seen = [COUNT.unpack(file.read_bytes()) for file in self.path.glob("*.count") if file.stat().st_size]
        seen = [each for each in seen if each[0]]
        if not seen:
            return 0, 0, 0
        counts, firsts, lasts = zip(*seen, strict=True)
        return sum(counts), min(firsts), max(lasts)

    def check_tally(self, wanted: int) -> None:
        """See that each number below that was handled once, and no other. Raises AdapterError."""
        tallies = [file.read_bytes() for file in self.path.glob("*.tally")]
        handled_counts = [sum(of) for of in zip(*tallies, strict=True)]
        wrong = [number for number, times in enumerate(handled_counts) if times != int(number < wanted)]
        if wrong or not handled_counts:
            named = ", ".join(f"{number}: {handled_counts[number]}" for number in wrong[:10])
            raise AdapterError(
                f"of {wanted} items these were not handled once ({len(wrong)}): {named or 'all'}"
            )

    def times(self) -> list[tuple[int, int]]:
        """Number and time of each item that was handled."""
        return [
            (number, at)
            for file in self.path.glob("*.times")
            for number, at in TIME.iter_unpack(file.read_bytes())
        ]

    def delays(self) -> dict[int, tuple[int, int]]:
        """Return what had held up the worker at each item: waiting for a CPU and collecting garbage, in ns since it started."""
        return {
            number: (cpu, collected)
            for file in self.path.glob("*.delays")
            for number, cpu, collected in DELAYS.iter_unpack(file.read_bytes())
        }

    def holder(self) -> int | None:
        """The process whose handler holds its item; None while there is none."""
        guard_fd = self.path / "held"
        return int(guard_fd.read_text()) if guard_fd.exists() else None

    def wait_count(
        self, wanted: int, workers: Sequence[Process], seconds: float = ANSWER_SECS, *, exactly: bool = True
    ) -> tuple[int, int]:
        """Wait until `count` items were handled. Return the times of the first and the last. Raises AdapterError."""
        deadline = time.monotonic() + seconds
        while (seen := self.count())[0] < wanted:
            for worker in workers:
                worker.check()
            if time.monotonic() > deadline:
                raise workers[0].failure(f"{seen[0]} of {wanted} items were handled in {seconds:.0f} s")
            time.sleep(POLL_SECS)
        if exactly and seen[0] > wanted:
            raise workers[0].failure(f"{seen[0]} items were handled where there were {wanted}")
        return seen[1], seen[2]

    def close(self) -> None:
        """Delete them."""
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
