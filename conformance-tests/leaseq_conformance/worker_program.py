"""The job worker programs of a run, on the fault proxy. They are kept from case to case, because starting one takes time."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance.server_process import ServerError, ServerProcess
from leaseq_conformance.verdict import BrokenError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from leaseq_conformance.fault_proxy import FaultProxy, Listener

NAME: Final = "worker"
"""Name of the listener of all of them."""
GROUP: Final = "jobs"
QUEUES: Final = ("work", "other")
CONCURRENCY: Final = 4
LEASE_MS: Final = 6000
ZONE: Final = "Pacific/Chatham"
"""Where they and adapters believe to be, 12:45 or 13:45 hours ahead of UTC: a time that is taken as local is far off."""
PRINTED_CHARS: Final = 4000


class WorkerPrograms:
    """The programs that run now: all of one kind, which is whether they know the schedules."""

    def __init__(self, proxy: FaultProxy, command: Callable[[], Sequence[str]]) -> None:
        """`command` returns what starts one, as `hello` names it; without any it is empty."""
        self._proxy = proxy
        self._command = command
        self._listener: Listener | None = None
        self._running: list[_WorkerProgram] = []
        self._with_schedules = False

    def need(self, *, schedules: bool, count: int, fresh: bool) -> None:
        """Run `count` programs. Raises BrokenError if a program cannot be started or has ended."""
        if fresh or schedules != self._with_schedules or len(self._running) != count:
            self.end()
        for program in self._running:
            program.check()
        self._with_schedules = schedules
        while len(self._running) < count:
            command = self._command()
            if not command:
                raise BrokenError("the client claims job_worker, and its hello names no job_worker")
            self._running.append(_WorkerProgram(command, self._config(schedules=schedules)))

    def check(self) -> None:
        """Raise BrokenError if one of them has ended too early."""
        for program in self._running:
            program.check()

    def printed(self) -> list[str]:
        """Return the last lines that they printed."""
        return [line for program in self._running for line in program.printed()]

    def end(self) -> None:
        """End all of them."""
        while self._running:
            self._running.pop().end()

    def _config(self, *, schedules: bool) -> dict[str, Any]:
        self._listener = self._listener or self._proxy.listener(NAME)
        return {
            "url": self._listener.url,
            "group": GROUP,
            "queues": list(QUEUES),
            "concurrency": CONCURRENCY,
            "lease_ms": LEASE_MS,
            "schedules": schedules,
        }


class _WorkerProgram:
    """One process, which ends with the suite."""

    def __init__(self, command: Sequence[str], config: dict[str, Any]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="leaseq-worker-")
        words = ["/usr/bin/env", f"TZ={ZONE}", *command, json.dumps(config)]
        try:
            self._process = ServerProcess(words, Path(self._folder.name))
        except ServerError as error:
            self._folder.cleanup()
            raise BrokenError(f"the job worker program: {error}") from error

    def check(self) -> None:
        """Raise BrokenError if it has ended."""
        if self._process.running():
            return
        error = BrokenError("the job worker program ended too early")
        error.stderr = tuple(self.printed())
        raise error

    def printed(self) -> list[str]:
        """Return the last lines that it printed."""
        output = Path(self._folder.name) / "output"
        return output.read_text(errors="replace")[-PRINTED_CHARS:].splitlines()

    def end(self) -> None:
        """End it with SIGTERM."""
        self._process.stop()
        self._folder.cleanup()
