"""The worker processes of the demo: started, killed by their own process id, and gone when the demo is."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from leaseq_demo import worker

_END_SECS = 2.0
_PATH = os.pathsep.join(filter(None, [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")]))


class WorkerProcess:
    """One worker process, a child of this one."""

    def __init__(self, settings: dict[str, Any], log: Path) -> None:
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", worker.__name__],
                env=os.environ | {worker.SETTINGS: json.dumps(settings), "PYTHONPATH": _PATH},
                stdin=subprocess.PIPE,  # never written to: its end tells the worker that this process is gone
                stdout=subprocess.DEVNULL,
                stderr=errors,
                process_group=0,  # Ctrl-C is for this process, which then ends the workers
            )
        self.pid = self._process.pid

    def ended(self) -> bool:
        """Return whether it is gone."""
        return self._process.poll() is not None

    def failed(self) -> bool:
        """Return whether it ended with an error, and was not stopped."""
        return self._process.poll() not in {None, 0}

    def freeze(self) -> bool:
        """Stop it where it is, so that what is seen of it stays true; false when it is gone."""
        if self.ended():
            return False
        self._process.send_signal(signal.SIGSTOP)
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        return os.WIFSTOPPED(status)

    def thaw(self) -> None:
        """Let it go on."""
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it with SIGKILL (kill -9), and wait until it is gone."""
        self._process.kill()
        self._process.wait()

    def request_stop(self) -> None:
        """Tell it to end."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def end(self) -> None:
        """Wait until it is gone; kill it if that takes long."""
        self.thaw()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECS)
        self.kill()


class WorkerProcesses:
    """The workers of one run: one for each of the settings, always."""

    def __init__(self, settings: Sequence[dict[str, Any]], log: Path) -> None:
        self._settings = settings
        self._log = log
        self.workers: list[WorkerProcess] = []
        try:
            for each in settings:
                self.workers.append(WorkerProcess(each, log))
        except BaseException:
            self.end()
            raise

    def replace(self, ended_worker: WorkerProcess) -> None:
        """Start another worker in the place of a worker that is gone."""
        ended_worker.request_stop()
        index = self.workers.index(ended_worker)
        self.workers[index] = WorkerProcess(self._settings[index], self._log)

    def failure(self) -> str | None:
        """Return what a worker wrote that failed; None while none has."""
        if not any(each.failed() for each in self.workers):
            return None
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1] if lines else "it wrote nothing"

    def end(self) -> None:
        """End all workers."""
        for each in self.workers:
            each.request_stop()
        for each in self.workers:
            each.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()
