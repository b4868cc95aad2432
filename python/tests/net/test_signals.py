"""A signal handler that raises, or that calls the queue, at any point of a call: the next call works and reads its own reply."""

from __future__ import annotations

import subprocess

import pytest
from programs.signalled_calls import CALLS, GIVES_BACK, PLAIN
from support import programs


def run(test: str, name: str, url: str) -> None:
    """Run one of the program's tests."""
    subprocess.run(
        programs.command("signalled_calls", test, name, url),
        env=programs.environment(),
        check=True,
        timeout=240,
    )


@pytest.mark.usefixtures("redis_client")
@pytest.mark.parametrize("name", PLAIN)
def test_an_interrupted_call_leaves_the_next_the_only_connection(url: str, name: str) -> None:
    run("leave_the_next_the_only_connection", name, url)


@pytest.mark.slow
@pytest.mark.usefixtures("redis_client")
@pytest.mark.parametrize("name", GIVES_BACK)
def test_an_interrupted_call_leaves_no_reply_to_the_next(url: str, name: str) -> None:
    run("leave_no_reply_to_the_next", name, url)


@pytest.mark.usefixtures("redis_client")
@pytest.mark.parametrize("name", CALLS)
def test_a_handler_that_calls_the_queue(url: str, name: str) -> None:
    run("call_from_the_handler", name, url)
