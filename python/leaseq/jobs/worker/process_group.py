"""A process with all that it has started: none of it outlives the process for long."""

import os
import signal
import time
from typing import Final

LAST_SECS: Final = 1.0
"""Seconds from SIGTERM to SIGKILL for what outlives its leader."""

LOOK_SECS: Final = 0.05
"""Seconds between two looks at what outlives its leader."""


class ProcessGroup:
    """The group that a process leads."""

    def __init__(self, leader: int) -> None:
        """`leader` is the id of a child of this process, forked by `process_life.fork_process`."""
        self._leader = leader
        self._code: int | None = None
        self._kill_at = 0.0

    @property
    def lingers(self) -> bool:
        """True if the leader has ended; processes that it started may be there."""
        return self._code is not None

    def kill(self) -> None:
        """Kill the leader. `ended` ends the others."""
        if self._code is None:
            os.kill(self._leader, signal.SIGKILL)

    def ended(self) -> int | None:
        """Return the leader's exit code, or the negative of a signal, when nothing of the group is left; until then None.

        What outlives the leader gets SIGTERM, and SIGKILL LAST_SECS later. A resource tracker, as multiprocessing and
        joblib have one, ignores SIGTERM: it removes the shared memory that the others have left, and ends.
        """
        if self._code is None:
            pid, status = os.waitpid(self._leader, os.WNOHANG)
            if pid == 0:
                return None
            self._code = os.waitstatus_to_exitcode(status)
            self._kill_at = time.monotonic() + LAST_SECS
            return None if self._send(signal.SIGTERM) else self._code
        if time.monotonic() >= self._kill_at:
            self._send(signal.SIGKILL)
            return self._code
        return None if self._send(0) else self._code

    def _send(self, number: int) -> bool:
        """Send a signal to the group; false if nothing of it is left. Its number is not used again until then."""
        try:
            os.killpg(self._leader, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True


def end_all(groups: list[ProcessGroup]) -> None:
    """Kill several, and wait until nothing of them is left."""
    for group in groups:
        group.kill()
    while groups := [group for group in groups if group.ended() is None]:
        time.sleep(LOOK_SECS)
