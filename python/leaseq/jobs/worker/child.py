"""One process of a worker, as its supervisor knows it: by what it says, and by the time since then."""

import contextlib
import socket
import time

from leaseq.jobs.worker import worker_process
from leaseq.jobs.worker.estate import Estate
from leaseq.jobs.worker.lease_journal import JournalReader
from leaseq.jobs.worker.process_group import ProcessGroup
from leaseq.jobs.worker.process_life import END_SECS, exit_text


class Child:
    """A process that works, drains, ends, or settles the estate of another one; docs/worker-processes.md draws its life.

    Attributes:
        pid: of the process.
        group: that it leads.
        reader: what it has said.
        estate: what it settles; None for a process that works.
        born: when it was forked.
        killed: why the supervisor killed it, "" if it did not.
        blameless: whether it was killed for nothing that a job of its did.
    """

    def __init__(
        self,
        pid: int,
        wire: socket.socket,
        reader: JournalReader,
        estate: Estate | None,
        lease_secs: float,
    ) -> None:
        born = time.monotonic()
        self.pid = pid
        self.group = ProcessGroup(pid)
        self.wire = wire
        self.reader = reader
        self.estate = estate
        self.born = born
        self.killed = ""
        self.blameless = False
        self._silence = 0.0
        self._gave_sign = False
        self._ends_at: float | None = None
        if (
            estate is not None and not estate.suspects
        ):  # it makes calls only, which are of no use after the leases
            self._end_by(born + lease_secs + END_SECS)

    @property
    def silence(self) -> float:
        """For how many seconds it has given no sign of life, though it should; 0.0 before its first, and while the end is seen to."""
        return 0.0 if self.group.lingers else self._silence

    @property
    def works(self) -> bool:
        """True if it takes jobs, or is about to."""
        return self.estate is None and not self.reader.drains

    def listen(self) -> bool:
        """Read what it has written; false if there is no more."""
        try:
            received = self.wire.recv(1 << 20, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except ConnectionError:
            received = b""
        if received:
            self._gave_sign = True
            self.reader.take(received)
        else:
            self.wire.close()
        return bool(received)

    def stop(self, now: float, grace_secs: float) -> None:
        """Order the process to start no more jobs, and to end within its grace time."""
        self._send(worker_process.STOP)
        self._end_by(now + grace_secs + END_SECS)

    def stop_now(self, now: float) -> None:
        """Order the process to release the jobs that it runs."""
        self._send(worker_process.NOW)
        self._end_by(now + END_SECS)

    def _send(self, word: bytes) -> None:
        with contextlib.suppress(OSError):  # it has ended, or listens to nothing
            self.wire.send(word, socket.MSG_DONTWAIT)

    def _end_by(self, moment: float) -> None:
        self._ends_at = moment if self._ends_at is None else min(self._ends_at, moment)

    def watch(self, now: float, elapsed: float, still_secs: float, grace_secs: float) -> None:
        """Kill it if it stands still for `still_secs`, or outlives its grace. `elapsed` seconds have passed since the last look."""
        if self.group.lingers:
            return
        if self.reader.over:
            self._end_by(now + grace_secs + END_SECS)
        elif self.reader.worker:  # before that, hooks may take their time
            self._silence = 0.0 if self._gave_sign else self._silence + elapsed
        self._gave_sign = False
        if self._ends_at is not None and now >= self._ends_at:
            self.blameless = True
            self.kill("outlived its grace time and was killed")
        elif self._silence >= still_secs:
            self.kill(
                f"stood still for {still_secs:g} s and was killed; a function that keeps its process from doing anything else"
                " needs fork=True"
            )

    def kill(self, why: str) -> None:
        """Kill it. Its end is seen as that of any other."""
        if not self.killed:
            self.killed = why
            self.group.kill()

    def ended(self) -> int | None:
        """Its exit code, or the negative of a signal, if it has ended. Nothing of its group is left then."""
        code = self.group.ended()
        if code is None:
            return None
        while self.wire.fileno() >= 0 and self.listen():
            pass
        self.wire.close()  # what it had said was there; who inherited its end of the wire may outlive it
        return code

    def left(self, code: int) -> Estate:
        """Return its estate, if it did not end as it should."""
        why = self.killed or exit_text(code)
        if self.estate is None:
            return Estate.of_worker(self.reader, why, blameless=self.blameless)
        return self.estate.after_death(self.reader, why, blameless=self.blameless)
