"""`leaseq worker --reload`: a parent that runs the worker as a child, and starts it again when a file changes."""

import contextlib
import importlib.util
import logging
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final

import watchfiles

from leaseq import signals
from leaseq.cli.exit_codes import CommandError

log = logging.getLogger("leaseq.cli.worker")

LOOK_SECS: Final = 0.25
"""Seconds between two looks at whether to end: a signal may wake another thread."""

MAX_NAMES: Final = 3
"""Changed files that are named in the log."""

PROGRAM: Final = "from leaseq.cli import main; main()"


def folders_of(module: str) -> list[Path]:
    """Return the folders and files to watch: this folder, and what the module is in if that is elsewhere."""
    here = Path.cwd()
    sys.path.insert(0, str(here))
    found = None
    with contextlib.suppress(ImportError, ValueError):  # the child says so
        found = importlib.util.find_spec(module.partition(".")[0])
    places = [] if found is None else [*(found.submodule_search_locations or [found.origin or ""])]
    others = [Path(place) for place in places if place and Path(place).exists()]
    return [here, *(other for other in others if not other.is_relative_to(here))]


class Reloader:
    """Runs `leaseq ARGUMENTS` in a child, which is asked to stop and starts again when a Python file changes.

    The child leads a process group, so that Ctrl-C reaches this process alone, which passes each signal on once.
    """

    def __init__(self, folders: Sequence[Path], arguments: Sequence[str]) -> None:
        self._folders = folders
        self._command = [sys.executable, "-c", PROGRAM, *arguments]
        self._events: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._child: subprocess.Popen[bytes] | None = None
        self._restarts = False
        self._stops = False
        self._code: int | None = None

    def run(self) -> int:
        """Work until stopped. Return the exit code. Raises CommandError if files cannot be watched."""
        over = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(over,), name="leaseq reload")
        watcher.start()
        try:
            with signals.handling(_stops(), self._on_signal):
                while self._code is None:
                    with contextlib.suppress(Empty):
                        self._events.get(timeout=LOOK_SECS)()
        finally:
            over.set()
            watcher.join()
            if self._child is not None:
                self._child.terminate()
                self._child.wait()
        return self._code

    def _watch(self, over: threading.Event) -> None:
        """Report changes. A look without one says that files are watched, so that no later change is missed."""
        watching = False
        try:
            for changes in watchfiles.watch(
                *self._folders,
                watch_filter=watchfiles.PythonFilter(),
                stop_event=over,
                rust_timeout=round(LOOK_SECS * 1000),
                yield_on_timeout=True,
            ):
                if changes:
                    names = sorted({Path(path).name for _, path in changes})
                    self._events.put(partial(self._changed, names))
                elif not watching:
                    watching = True
                    self._events.put(self._begin)
        except Exception as error:  # noqa: BLE001 (raised where it is run)
            self._events.put(partial(self._fail, error))

    def _fail(self, error: Exception) -> None:
        raise CommandError(f"the files of the program cannot be watched: {error}") from error

    def _on_signal(self, number: int) -> None:
        self._events.put(partial(self._stop, number))

    def _begin(self) -> None:
        log.info("reload: watches %s", ", ".join(map(str, self._folders)))
        if self._child is None and not self._stops:
            self._start()

    def _start(self) -> None:
        self._restarts = False
        child = self._child = subprocess.Popen(self._command, process_group=0)
        threading.Thread(target=self._wait, args=(child,), daemon=True).start()

    def _wait(self, child: subprocess.Popen[bytes]) -> None:
        code = child.wait()
        self._events.put(partial(self._ended, code))

    def _changed(self, names: Sequence[str]) -> None:
        more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
        log.info("reload: %s%s changed", ", ".join(names[:MAX_NAMES]), more)
        if self._child is None:
            self._start()
        elif not self._restarts and not self._stops:
            self._restarts = True
            self._child.terminate()

    def _stop(self, number: int) -> None:
        self._stops = True
        if self._child is None:
            self._code = 0
        elif self._restarts:
            self._restarts = False  # it was asked to stop already
        else:
            self._child.send_signal(number)

    def _ended(self, code: int) -> None:
        self._child = None
        if self._stops:
            self._code = max(code, 0)
        elif self._restarts:
            self._start()
        elif code == 0:  # it was stopped from elsewhere
            self._code = 0
        else:
            log.warning(
                "reload: the worker ended with exit code %d; it starts again when a file changes", code
            )


def _stops() -> list[signal.Signals]:
    """The signals that end the worker, without that of a terminal that closes if it is ignored, as under nohup."""
    hangup = [] if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else [signal.SIGHUP]
    return [signal.SIGTERM, signal.SIGINT, *hangup]
