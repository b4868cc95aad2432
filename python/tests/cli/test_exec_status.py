"""`leaseq exec --listen`: metrics and health of one worker that runs commands."""

from __future__ import annotations

import signal
import socket
from typing import TYPE_CHECKING

import pytest
from support.cli_runner import Calls, one_line
from support.watched_program import WatchedProgram

import leaseq
from leaseq.worker.work_counts import EVENTS

if TYPE_CHECKING:
    from pathlib import Path

    from support.servers import StartServer

SCRIPT = """
case $LEASEQ_ID in
bad) exit 65 ;;
later) [ -e tried ] || { touch tried; exit 75; } ;;
hold) while [ ! -e go ]; do sleep 0.05; done ;;
esac
"""


@pytest.mark.slow
def test_what_becomes_of_items_is_counted(url: str, tmp_path: Path) -> None:
    with (
        leaseq.WorkQueue("q", url) as queue,
        WatchedProgram(url, tmp_path, "exec", "q", "--jobs", "2", "--", "sh", "-c", SCRIPT) as program,
    ):
        program.until_ready()
        assert program.events("completed") == 0, "a rate needs the first one"
        queue.add_items([leaseq.Item("", id=each) for each in ("bad", "later", "a", "b", "hold")])
        program.until(lambda: program.events("completed") == 3)
        program.until(lambda: program.value("in_flight", queue="q") == 1)
        (tmp_path / "go").touch()
        program.until(lambda: program.events("completed") == 4)
        assert program.value("in_flight") == 0
        assert [program.events(event) for event in EVENTS] == [6, 4, 2, 1, 0, 1, 0]
        assert program.value("run_seconds_count", group="q", queue="q") == 6
        assert program.get("/healthz") == (200, "ok")
        assert program.end() == 0


def test_an_item_that_was_completed_before_its_command_fails_once(url: str, tmp_path: Path) -> None:
    with leaseq.WorkQueue("q", url) as queue:
        queue.add_items([leaseq.Item("", id=each) for each in ("bad", "a")])
        with WatchedProgram(
            url, tmp_path, "exec", "q", "--at-most-once", "--", "sh", "-c", SCRIPT
        ) as program:
            program.until(lambda: program.value("run_seconds_count") == 2)
            assert [program.events(event) for event in EVENTS] == [2, 2, 1, 0, 0, 0, 0]


@pytest.mark.slow
def test_it_is_ready_while_it_leases(own_server: StartServer, tmp_path: Path) -> None:
    server = own_server("--appendonly", "yes")
    with WatchedProgram(server.url, tmp_path, "exec", "q", "--", "sh", "-c", SCRIPT) as program:
        program.until_ready()
        server.stop()
        program.until(lambda: program.get("/readyz") == (503, "the server does not answer, or refuses"))
        assert program.get("/healthz") == (200, "ok"), "nothing that a restart would mend"
        assert program.value("server_up") == 0
        server.start()
        program.until_ready()
        assert program.value("server_up") == 1
        with leaseq.WorkQueue("q", server.url) as queue:
            queue.add_item(leaseq.Item("", id="hold"))
        program.until(lambda: program.value("in_flight") == 1)
        program.process.send_signal(signal.SIGTERM)
        program.until(lambda: program.get("/readyz") == (503, "the worker stops"))
        assert program.get("/healthz") == (200, "ok")


def test_a_port_that_is_taken_is_bad_input(call: Calls) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = call("exec", "q", "--burst", "--listen", address, "true")
    assert done.code == 2
    one_line(done.err, f"leaseq exec: cannot listen on {address}: ")
