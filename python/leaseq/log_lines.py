"""Lines of a log on stderr that hold nothing up: where a reader does not read, lines are dropped and counted."""

import logging
import os
import select
from typing import Final

STDERR: Final = 2
"""The descriptor of stderr."""

CHUNK_BYTES: Final = select.PIPE_BUF
"""Bytes that a pipe that can be written to takes without waiting, in one piece: lines of several processes do not mix."""


class LogLines(logging.Handler):
    """Writes to a descriptor. It starts no thread, so a process that has one can be forked."""

    def __init__(self, descriptor: int, program: str) -> None:
        """`program` starts the line that reports dropped ones."""
        super().__init__()
        self._descriptor = descriptor
        self._program = program
        self._dropped = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, or count it as dropped."""
        try:
            line = f"{self.format(record)}\n"
        except Exception:  # noqa: BLE001 (as every handler of logging does)
            self.handleError(record)
            return
        if self._dropped:
            report = f"{self._program}: {self._dropped} lines of the log were not read, and are lost\n"
            if not self._write(report.encode()):
                self._dropped += 1
                return
            self._dropped = 0
        if not self._write(line.encode(errors="backslashreplace")):
            self._dropped += 1

    def _write(self, data: bytes) -> bool:
        """Write as much as can be written without waiting; false if that is not all."""
        poll = select.poll()
        poll.register(self._descriptor, select.POLLOUT)
        try:
            for start in range(0, len(data), CHUNK_BYTES):
                if not any(events & select.POLLOUT for _, events in poll.poll(0)):
                    return False
                os.write(self._descriptor, data[start : start + CHUNK_BYTES])
        except OSError:  # no reader is left
            return False
        return True
