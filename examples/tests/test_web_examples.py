"""The web applications that `make example-fastapi` and `make example-django` start."""

from __future__ import annotations

import os
import re
import shutil
import signal
import tempfile
from pathlib import Path

import pytest
from example_run.web import call
from support.example_commands import SECONDS, output, processes, start
from support.servers import wait_until

pytestmark = pytest.mark.slow


def test_fastapi_builds_a_report_and_shows_its_progress() -> None:
    out = output("fastapi", "--check --port=0")
    totals = "{'CH': 105.0, 'DE': 200.0, 'FR': 100.0, 'GB': 115.0, 'IT': 100.0, 'SE': 9.0}"
    assert f"GET /reports/ID/result: 200 {{'sales': 7, 'totals': {totals}}}" in out
    assert "GET /reports/ID/result: 422 {'detail': 'a sale has the amount -1'}" in out
    assert any(re.search(r"'progress': \[\d.0, 6.0\]", line) for line in out)


def test_django_writes_the_invoices_of_committed_orders_only() -> None:
    assert output("django", "--check --port=0") == [
        "POST /orders for 700 euros: 202 {'number': 1}",
        "GET /orders/1: {'customer': 'Ada', 'job': 'succeeded', 'invoice': 'Invoice 1: Ada owes 700 euros'}",
        "POST /orders for 400 euros: 402 {'error': 'Ada would owe 1100 euros'}",
        "GET /orders: 200 {'orders': 1}",
    ]


@pytest.mark.parametrize(
    ("example", "path", "programs"), [("fastapi", "openapi.json", 5), ("django", "orders", 7)]
)
def test_ctrl_c_stops_every_process_and_leaves_no_file(example: str, path: str, programs: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="lq-"))  # short: a socket lies in it
    with start(example, "--port=0", folder) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split()[3]
            assert call("GET", f"{url}/{path}")[0] == 200
            wait_until(lambda: len(processes(process, folder)) >= programs)
            os.killpg(process.pid, signal.SIGINT)
            out, errors = process.communicate(timeout=SECONDS)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
    assert out == f"{example}_app is stopped\n", errors
    assert "Traceback" not in errors
    wait_until(lambda: not processes(process, folder))
    assert list(folder.iterdir()) == []
    shutil.rmtree(folder)
