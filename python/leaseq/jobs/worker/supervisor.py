"""The supervisor of a worker's processes. It keeps them, and does nothing else: no call to a server can hold it up."""

import logging
import os
import select
import signal
import socket
import time
from collections import deque
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from setproctitle import getproctitle, setproctitle

from leaseq import extras, signals
from leaseq.durations import seconds
from leaseq.errors import BadArgumentError
from leaseq.jobs.errors import WorkerFailedError
from leaseq.jobs.program import Program
from leaseq.jobs.worker import process_life
from leaseq.jobs.worker.child import Child
from leaseq.jobs.worker.estate import Estate
from leaseq.jobs.worker.job_worker import GRACE_SECS, LEASE_SECS, WorkerOptions
from leaseq.jobs.worker.lease_journal import JournalReader, new_marks
from leaseq.jobs.worker.process_group import LOOK_SECS, end_all
from leaseq.jobs.worker.worker_process import BEAT_SECS, WorkerProcess
from leaseq.orphans import adopts_orphans, reap_orphans
from leaseq.worker import server_health
from leaseq.worker.hooks import logger
from leaseq.worker.work_counts import WorkCounts, new_memory

if TYPE_CHECKING:
    from leaseq.jobs.worker.supervisor_status import SupervisorStatus

progress = logging.getLogger("leaseq.worker.progress")
"""The logger for stops, which `leaseq worker` shows without --verbose."""

MAX_FAILED_STARTS: Final = 5
"""The worker gives up after that many processes in a row that ended before they could work, unless one has worked before."""

MIN_STILL_SECS: Final = 2.0
"""A process stands still after half a lease without a sign of life, and not before this. Its leases last a little longer."""

STEADY_SECS: Final = 60.0
"""A process that lived that long does not count among deaths in a row."""


class Supervisor:
    """`processes` of them, until it is stopped: SIGTERM or SIGINT lets jobs end, a second one does not, a third kills."""

    def __init__(
        self,
        program: Program,
        processes: int | None,
        options: WorkerOptions,
        listen: str | None = None,
    ) -> None:
        """`processes` is one for each CPU by default. `listen` is where metrics and health are served. Raises BadArgumentError."""
        self._program = program
        self._processes = _cpus() if processes is None else processes
        if self._processes < 1:
            raise BadArgumentError(
                "processes must be at least 1; await app.aio.run_worker() runs jobs in this one"
            )
        self._options = options
        self._burst = options.get("burst", False)
        self._grace_secs = seconds(options.get("grace_secs", GRACE_SECS), "grace_secs")
        self._lease_secs = seconds(options.get("lease_secs", LEASE_SECS), "lease_secs")
        self._still_secs = max(MIN_STILL_SECS, self._lease_secs / 2)
        self._children: dict[int, Child] = {}
        self._stops = 0
        self._stops_forwarded = 0
        self._warned = False
        self._failed_starts = 0
        self._has_worked = False
        self._deaths = 0
        self._start_at = 0.0
        self._estates: deque[Estate] = deque()
        self._refused = 0
        self._room_at = 0.0
        self._adopts = adopts_orphans()
        self._watched_at = time.monotonic()
        self._done = 0
        self._status = None if listen is None else self._status_at(listen)
        self.performed = 0

    @property
    def children(self) -> Collection[Child]:
        """The processes."""
        return self._children.values()

    @property
    def stopping(self) -> bool:
        """True if it was asked to stop."""
        return self._stops > 0

    def is_silent(self, child: Child) -> bool:
        """Return whether a process does not answer; it is killed if that lasts as long again."""
        return child.silence >= self._still_secs / 2

    def run(self) -> int:
        """Work until stopped. Return the number of jobs that have ended. Raises WorkerFailedError."""
        if self._program.clients.is_embedded:
            self._program.clients.sync  # noqa: B018 (opened: the server ends with this process, not with one of those)
        title = getproctitle()
        setproctitle(f"leaseq worker: supervises {self._processes}")
        woken, waker = os.pipe()
        os.set_blocking(woken, False)
        os.set_blocking(waker, False)
        wakeup = signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        try:
            with signals.handling((*process_life.STOPS, *_hangup(), signal.SIGCHLD), self._on_signal):
                try:
                    while self._goes_on():
                        self._pass_on_stops()
                        self._wait(woken, self._start_missing())
                        self._reap()
                        self._watch()
                finally:
                    self._kill_all()
        finally:
            if self._status is not None:
                self._status.close()
            signal.set_wakeup_fd(wakeup)
            os.close(woken)
            os.close(waker)
            setproctitle(title)
        return self.performed

    def _status_at(self, address: str) -> "SupervisorStatus":
        """Listen there. Raises BadArgumentError; ModuleNotFoundError without the extra."""
        try:
            from leaseq.jobs.worker.supervisor_status import SupervisorStatus
        except ModuleNotFoundError as error:
            raise extras.missing("cleaner", "a worker that listens", error) from error
        return SupervisorStatus(self, address, self._program.clients.settings)

    def _on_signal(self, number: int) -> None:
        """Handle a signal: wake the loop, which does what the signal asks for."""
        if number != signal.SIGCHLD:
            self._stops += 1

    def _goes_on(self) -> bool:
        return bool(self._children or self._estates) or not (
            self._stops or (self._burst and self._done >= self._processes)
        )

    def _pass_on_stops(self) -> None:
        while self._stops_forwarded < self._stops:
            self._stops_forwarded += 1
            self._log_stop()
            now = time.monotonic()
            for child in self._children.values():
                if self._stops_forwarded == 1:
                    child.stop(now, self._grace_secs)
                elif self._stops_forwarded == 2:
                    child.stop_now(now)
                else:
                    child.blameless = True
                    child.kill("was killed, since the worker was asked to stop three times")

    def _log_stop(self) -> None:
        if self._stops_forwarded == 1:
            progress.info(
                "stopping: running jobs have %g s to finish, in %d processes; a second signal gives them back",
                self._grace_secs,
                len(self._children),
            )
        else:
            progress.info("stopping at once, %d processes", len(self._children))

    def _start_missing(self) -> float | None:
        """Start what settles estates and missing processes, or return in how many seconds to start them."""
        pause = self._room_at - time.monotonic()
        if pause > 0:
            return pause
        self._settle_estates()
        workers = [child for child in self._children.values() if child.estate is None]
        working = sum(child.works for child in workers)
        missing = self._processes - (self._done if self._burst else 0) - working
        missing = min(missing, 2 * self._processes - len(workers))  # those that drain may be long about it
        if self._stops or missing <= 0:
            return None
        pause = max(self._start_at, self._room_at) - time.monotonic()
        if pause > 0:
            return pause
        while missing > 0 and self._fork(None):
            missing -= 1
        return None

    def _settle_estates(self) -> None:
        """Have a process settle each estate. If there is no room for one, it is tried again, by a worker that stops not for long."""
        while self._estates:
            estate = self._estates[0]
            if not self._fork(estate.without_trials() if self._stops else estate):
                if not self._stops or self._refused < MAX_FAILED_STARTS:
                    return
                logger.error("worker: %d jobs wait for the end of their leases", len(estate))
            self._estates.popleft()

    def _fork(self, estate: Estate | None) -> bool:
        """Fork a process. Return false if the system has no room for a process or a descriptor."""
        ends: tuple[socket.socket, ...] = ()
        try:
            ends = ours, theirs = socket.socketpair()
            marks = new_marks()
            memory = None if self._status is None else new_memory()
            pid, threads = process_life.fork_process()
        except OSError as error:
            logger.error("worker: a process cannot be started: %s", error)
            for end in ends:
                end.close()
            self._refused += 1
            self._room_at = time.monotonic() + server_health.pause(self._refused)
            return False
        self._refused = 0
        if pid == 0:
            for fileno in (ours, *(other.wire for other in self._children.values())):
                fileno.close()
            if self._status is not None:
                self._status.close()
            WorkerProcess(self._program, theirs, marks, self._options, estate, memory).run()
        if threads and not self._warned:
            self._warned = True
            logger.warning(
                "the processes of this worker are forked from a process with %d other threads: what these had locked stays"
                " locked there; call run_worker before there are threads",
                threads,
            )
        theirs.close()
        counts = None if memory is None else WorkCounts(memory)
        reader = JournalReader(marks, estate or (), counts)
        self._children[pid] = Child(pid, ours, reader, estate, self._lease_secs)
        if self._stops:
            self._children[pid].stop(time.monotonic(), 0)
        return True

    def _wait(self, woken: int, pause: float | None) -> None:
        """Wait until a process writes or ends, a signal comes, or it is time to look at them."""
        poll = select.poll()
        poll.register(woken, select.POLLIN)
        wires = {child.wire.fileno(): child for child in self._children.values()}
        for fileno in wires:
            if fileno >= 0:
                poll.register(fileno, select.POLLIN)
        if self._status is not None:
            for fileno, events in self._status.interests().items():
                poll.register(fileno, events)
        lingers = any(child.group.lingers for child in self._children.values())
        pause = min(LOOK_SECS if lingers else BEAT_SECS, BEAT_SECS if pause is None else pause)
        for fileno, _ in poll.poll(pause * 1000):
            if fileno == woken:
                os.read(woken, 4096)
            elif fileno not in wires:
                self._serve(fileno)
            else:
                wires[fileno].listen()
                self._has_worked |= bool(wires[fileno].reader.worker)

    def _serve(self, fileno: int) -> None:
        if self._status is not None:
            self._status.serve(fileno)

    def _watch(self) -> None:
        """Kill what stands still or outlives its grace. Where this process stood still itself, the others may have as well."""
        now = time.monotonic()
        elapsed = min(now - self._watched_at, BEAT_SECS)
        self._watched_at = now
        for child in self._children.values():
            child.watch(now, elapsed, self._still_secs, self._grace_secs)

    def _reap(self) -> None:
        for child in list(self._children.values()):
            code = child.ended()
            if code is not None:
                del self._children[child.pid]
                self._ended(child, code)
        if self._adopts:
            reap_orphans(self._children)

    def _ended(self, child: Child, code: int) -> None:
        self.performed += child.reader.performed
        if self._status is not None:
            self._status.ended(child, code)
        if code == 0 and child.reader.over:
            self._done += child.estate is None and not child.reader.stopped  # a drained process is replaced
            return
        estate = child.left(code)
        level = logging.WARNING if child.blameless else logging.ERROR
        logger.log(level, "worker: process %d %s", child.pid, estate.why)
        self._count_death(child, code)
        self._settle(child.estate, estate)

    def _count_death(self, child: Child, code: int) -> None:
        """Put off the next start: deaths in a row are further and further apart."""
        if child.estate is not None:  # each death of these settles something
            return
        started = bool(child.reader.worker)
        # a killed process may start the next time
        self._failed_starts = 0 if started or code < 0 else self._failed_starts + 1
        if self._failed_starts >= MAX_FAILED_STARTS and not self._has_worked:
            raise WorkerFailedError(
                f"{MAX_FAILED_STARTS} processes of this worker ended before they could work, the last with exit code {code}:"
                " what they printed says why"
            )
        if time.monotonic() - child.born >= STEADY_SECS:
            self._deaths = 0
        self._deaths += 1
        if self._deaths > 1 or not started:
            self._delay_start()

    def _delay_start(self) -> None:
        self._start_at = time.monotonic() + server_health.pause(max(1, self._deaths - 1))

    def _settle(self, before: Estate | None, estate: Estate) -> None:
        """Have a process settle what another one has left; `before` is what that one had to settle itself."""
        if not len(estate):
            return
        if before is not None and len(estate) == len(before) and estate.charged == before.charged:
            logger.error("worker: %d jobs wait for the end of their leases", len(estate))
            return
        self._estates.append(estate)

    def _kill_all(self) -> None:
        """Kill all processes. There are some only if the loop ended by an exception."""
        end_all([child.group for child in self._children.values()])


def _hangup() -> tuple[signal.Signals, ...]:
    """The signal of a terminal that closes, unless it is ignored, as under nohup."""
    return () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)


def _cpus() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
