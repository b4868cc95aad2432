"""The lines of the log of a worker, whose processes write to one pipe."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import select

import pytest

from leaseq.log_format import formatter
from leaseq.log_lines import LogLines

PROCESSES = 4
LINES = 300


# other tests may have left threads
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_lines_of_several_processes_do_not_mix() -> None:
    """A line with a traceback is longer than 512 bytes, which is all that POSIX asks of a pipe to take in one piece."""
    read, write = os.pipe()
    children = []
    for letter in "abcd"[:PROCESSES]:
        pid = os.fork()
        if pid == 0:
            handler = LogLines(write, "test")
            for _ in range(LINES):
                select.select([], [write], [])
                handler.emit(logging.makeLogRecord({"msg": letter * (select.PIPE_BUF - 1)}))
            os._exit(0)
        children.append(pid)
    os.close(write)
    with os.fdopen(read, encoding="ascii") as lines:
        found = [line for line in lines if "were not read" not in line]
    for pid in children:
        os.waitpid(pid, 0)
    assert {(len(line), len(set(line))) for line in found} == {(select.PIPE_BUF, 2)}


def test_lost_lines_are_reported_once() -> None:
    read, write = os.pipe()
    handler = LogLines(write, "test")
    os.set_blocking(write, False)
    filled = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            filled += os.write(write, b"x" * select.PIPE_BUF)
    for _ in range(3):
        handler.emit(logging.makeLogRecord({"msg": "lost"}))
    while filled:
        filled -= len(os.read(read, filled))
    for _ in range(2):
        handler.emit(logging.makeLogRecord({"msg": "seen"}))
    os.close(write)
    with os.fdopen(read, encoding="ascii") as lines:
        assert lines.read().splitlines() == [
            "test: 3 lines of the log were not read, and are lost",
            "seen",
            "seen",
        ]


def test_a_line_of_json_has_the_stack_that_a_program_asked_for() -> None:
    record = logging.makeLogRecord({"msg": "here", "stack_info": "Stack (most recent call last):\n  File"})
    assert json.loads(formatter("json").format(record))["stack"].startswith("Stack (most recent")
    assert "stack" not in json.loads(formatter("json").format(logging.makeLogRecord({"msg": "here"})))
