"""The number of functions that a call passes: few enough that a reader can follow it from the top to the socket."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

COUNT = """
import gc, json, sys
from pathlib import Path
import leaseq
from leaseq import Item, jobs

PACKAGE = str(Path(leaseq.__file__).parent)

def passed(call):
    found = set()
    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            found.add(frame.f_code.co_filename[len(PACKAGE) + 1 :] + " " + frame.f_code.co_qualname)
    gc.collect()
    gc.disable()  # what is ended then is no part of the call
    sys.setprofile(note)
    try:
        answer = call()
    finally:
        sys.setprofile(None)
        gc.enable()
    assert answer, call
    return sorted(found)

url, found = sys.argv[1], {}
with leaseq.WorkQueue("q", url) as queue:
    items = [Item(b"x") for _ in range(4)]
    queue.add_items(items[:2])
    queue.add_item(items[2])
    found["add"] = passed(lambda: queue.add_item(items[3]))
    item = queue.lease(30)
    assert queue.release(item) and queue.complete(item)  # the first of each sends the script's text
    leased = []
    found["lease"] = passed(lambda: leased.append(queue.lease(30)) or leased)
    found["release"] = passed(lambda: queue.release(leased[0]))
    found["complete"] = passed(lambda: queue.complete(leased[0]))
app = jobs.App(url)
job = app.job(name="double", keep=60)(lambda number: 2 * number)
with app:
    job.enqueue(1)
    handles = []
    found["enqueue"] = passed(lambda: handles.append(job.enqueue(2)) or handles)
    app.run_worker(burst=True)
    handles[0].result(timeout=60)
    found["result"] = passed(lambda: handles[0].result(timeout=60) == 4)
print(json.dumps(found))
"""


@pytest.fixture
def found(url: str) -> dict[str, list[str]]:
    """Return what the second call of each kind passes, in a program of its own: the profiler of one that runs tests is not ours."""
    argv = [sys.executable, "-c", COUNT, url]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert not done.returncode, done.stderr
    depths: dict[str, list[str]] = json.loads(done.stdout)
    return depths


def test_a_call_passes_few_functions(found: dict[str, list[str]]) -> None:
    most = {
        "add": (14, 6),
        "lease": (21, 8),
        "complete": (17, 8),
        "release": (17, 8),
        "enqueue": (22, 11),
        "result": (39, 15),
    }
    for call, (functions, files) in most.items():
        assert len(found[call]) <= functions, (call, found[call])
        read = {each.split()[0] for each in found[call]} - {
            "commands/codecs.py"
        }  # generated from the manifest
        assert len(read) <= files, (call, found[call])
