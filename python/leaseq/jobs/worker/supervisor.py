"""The supervisor of a worker's processes: starts them, replaces dead ones, and releases what they held."""

import contextlib
import os
import select
import signal
import socket
import time
from dataclasses import dataclass
from typing import Any, Final

from setproctitle import getproctitle, setproctitle

from leaseq.errors import BadArgumentError, LeaseqError
from leaseq.item import LeasedItemBase
from leaseq.jobs import failure
from leaseq.jobs.program import Program
from leaseq.jobs.worker import forkserver, worker_process
from leaseq.jobs.worker.job_worker import WorkerOptions
from leaseq.jobs.worker.lease_journal import HeldLease, JournalReader, new_marks
from leaseq.process import fork
from leaseq.worker import server_health
from leaseq.worker.hooks import logger

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

MAX_FAILED_STARTS: Final = 5
"""The worker gives up after that many processes in a row that ended before they could work."""

TRIES: Final = 5
"""How often releasing is tried if the server does not answer; after that the leases expire."""


class WorkerFailedError(LeaseqError):
    """The processes of a worker end before they can work; what they printed says why."""


@dataclass
class Child:
    """A process, and what it has said."""

    pid: int
    wire: socket.socket
    reader: JournalReader


class Supervisor:
    """`processes` of them, until it is stopped: SIGTERM or SIGINT lets jobs end, a second one does not, a third kills."""

    def __init__(self, program: Program, processes: int | None, options: WorkerOptions) -> None:
        """`processes` is one for each CPU by default. Raises BadArgumentError."""
        self._clients = program.clients
        self._program = program
        self._processes = _cpus() if processes is None else processes
        if self._processes < 1:
            raise BadArgumentError("processes must be at least 1; arun_worker runs jobs in this one")
        self._options = options
        self._burst = options.get("burst", False)
        self._children: dict[int, Child] = {}
        self._stops = 0
        self._stops_forwarded = 0
        self._warned = False
        self._failed_starts = 0
        self._begin_at = 0.0
        self._done = 0
        self.performed = 0

    def run(self) -> int:
        """Work; returns how many jobs have ended. Raises WorkerFailedError."""
        if self._clients.is_embedded:
            self._clients.sync  # noqa: B018 (opened: the server ends with this process, not with one of those)
        else:
            self._clients.close()
        title = getproctitle()
        setproctitle(f"leaseq worker: supervises {self._processes}")
        woken, waker = os.pipe()
        os.set_blocking(waker, False)
        handlers = {number: signal.signal(number, self._on_signal) for number in (*SIGNALS, signal.SIGCHLD)}
        wakeup = signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        try:
            while self._goes_on():
                self._pass_on_stops()
                self._wait(woken, self._begin_missing())
                self._reap()
        finally:
            self._kill_all()
            signal.set_wakeup_fd(wakeup)
            for number, handler in handlers.items():
                signal.signal(number, handler)
            os.close(woken)
            os.close(waker)
            setproctitle(title)
        return self.performed

    def _on_signal(self, number: int, _frame: object) -> None:
        """A signal, which wakes the loop; what it asks for is done there."""
        if number != signal.SIGCHLD:
            self._stops += 1

    def _goes_on(self) -> bool:
        return bool(self._children) or not (self._stops or (self._burst and self._done >= self._processes))

    def _pass_on_stops(self) -> None:
        while self._stops_forwarded < self._stops:
            self._stops_forwarded += 1
            again = "; asked again, they give back what they run" if self._stops_forwarded == 1 else ""
            logger.info("worker: asked to stop, %d processes work%s", len(self._children), again)
            for each in self._children.values():
                if self._stops_forwarded > 2:
                    os.kill(each.pid, signal.SIGKILL)
                    continue
                with contextlib.suppress(OSError):  # it has ended
                    each.wire.sendall(
                        worker_process.STOP if self._stops_forwarded == 1 else worker_process.NOW
                    )

    def _begin_missing(self) -> float | None:
        """Start missing processes, or return in how many seconds to start them."""
        missing = self._processes - (self._done if self._burst else 0) - len(self._children)
        if self._stops or missing <= 0:
            return None
        pause = self._begin_at - time.monotonic()
        if pause > 0:
            return pause
        for _ in range(missing):
            self._fork()
        return None

    def _fork(self) -> None:
        ours, theirs = socket.socketpair()
        marks = new_marks()
        forkserver.flush()  # what is not written yet would be written twice
        pid, threads = fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for number in SIGNALS:  # what comes before it can listen is passed on to it
                signal.signal(number, signal.SIG_IGN)
            for each in (ours, *(other.wire for other in self._children.values())):
                each.close()
            worker_process.run(self._program, theirs, marks, self._options)
        if threads and not self._warned:
            self._warned = True
            logger.warning(
                "the processes of this worker are forked from a process with %d other threads: what these had locked stays"
                " locked there; call run_worker before there are threads",
                threads,
            )
        theirs.close()
        self._children[pid] = Child(pid, ours, JournalReader(marks))

    def _wait(self, woken: int, pause: float | None) -> None:
        """Wait until a process writes or ends, a signal comes, or the time is over."""
        wires = {each.wire.fileno(): each for each in self._children.values() if each.wire.fileno() >= 0}
        readable, _, _ = select.select([woken, *wires], [], [], pause)
        for number in readable:
            if number == woken:
                os.read(woken, 4096)
            else:
                _listen(wires[number])

    def _reap(self) -> None:
        for pid in list(self._children):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                one = self._children.pop(pid)
                while one.wire.fileno() >= 0 and _listen(one):
                    pass
                one.wire.close()  # what it had said was there; who inherited its end of the wire may outlive it
                self._ended(one, os.waitstatus_to_exitcode(status))

    def _ended(self, one: Child, code: int) -> None:
        self.performed += one.reader.performed
        if code == 0:
            self._done += not one.reader.stopped  # a process after its last job is replaced in a burst too
            self._failed_starts = 0
            return
        why = f"exit code {code}" if code > 0 else f"signal {-code}"
        logger.error("worker: process %d ended with %s", one.pid, why)
        self._release_held(one, why)
        began = bool(one.reader.worker)
        self._failed_starts = (
            0 if began or code < 0 else self._failed_starts + 1
        )  # the killed job may start the next time
        if self._failed_starts >= MAX_FAILED_STARTS:
            raise WorkerFailedError(
                f"{MAX_FAILED_STARTS} processes of this worker ended before they could work, the last with {why}: what they"
                " printed says why"
            )
        self._begin_at = time.monotonic() + (0.0 if began else server_health.pause(self._failed_starts or 1))

    def _release_held(self, one: Child, why: str) -> None:
        """Release what a process held: a started job counts, and may be why it died."""
        begun, rest = one.reader.left()
        text = failure.written("ProcessDied", f"its process ended with {why}", "", one.reader.worker, 0)
        for held, options in ((begun, {"error": text}), (rest, {"uncounted": True})):
            for queue in {each.queue for each in held}:
                self._release(queue, [each for each in held if each.queue == queue], options)
        if not self._clients.is_embedded:
            self._clients.close()  # nothing is open here when the next process is forked

    def _release(self, queue: str, held: list[HeldLease], options: dict[str, Any]) -> None:
        for attempt in range(1, TRIES + 1):
            try:
                self._clients.sync.store.queue(queue).release_items(map(_item, held), **options)
            except LeaseqError as error:
                if attempt == TRIES:
                    logger.error("worker: %d jobs wait for the end of their leases: %s", len(held), error)
                    return
                time.sleep(server_health.pause(attempt))
            else:
                return

    def _kill_all(self) -> None:
        """Only where the loop ends before its time: by an exception."""
        for each in self._children.values():
            os.kill(each.pid, signal.SIGKILL)
            os.waitpid(each.pid, 0)
            each.wire.close()


def _cpus() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _listen(one: Child) -> bool:
    """Read what a process has written; false if there is no more."""
    try:
        received = one.wire.recv(1 << 20, socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except ConnectionError:
        received = b""
    if received:
        one.reader.take(received)
    else:
        one.wire.close()
    return bool(received)


def _item(held: HeldLease) -> LeasedItemBase:
    item = LeasedItemBase(held.id, b"", held.token, held.attempt, 0.0, 0.0)
    item.keep = float(held.keep)
    return item
