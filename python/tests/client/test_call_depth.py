"""The number of functions that a call passes: few enough that a reader can follow it from the top to the socket."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

COUNT = """
import asyncio, gc, json, sys, threading
from pathlib import Path
import leaseq
from leaseq import Item, jobs

PACKAGE = str(Path(leaseq.__file__).parent)
GENERATED = "commands/codecs.py"  # generated from the manifest
LOOP = "worker/_aio/worker_loop.py WorkerLoop."
REPORT = (LOOP + "_status", LOOP + "_steer", "worker/presence.py encode")  # at its own times
BY_CHANCE = "_aio/pool.py Pool._close_unused"  # if two connections were idle
COMPREHENSIONS = ("<listcomp>", "<dictcomp>", "<setcomp>")  # separate functions until Python 3.12

def passed(call):
    found = set()
    def note(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE) and not code.co_name.endswith(COMPREHENSIONS):
            file = code.co_filename[len(PACKAGE) + 1 :]
            if file != GENERATED:
                found.add(file + " " + code.co_qualname)
    gc.collect()
    gc.disable()  # what is ended then is no part of the call
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        answer = call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        gc.enable()
    assert answer is not None, call
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
    found["result"] = passed(lambda: handles[0].result(timeout=60))

    def work():
        return asyncio.run(app.aio.run_worker(burst=True, handle_signals=False))

    @app.job(keep=60, name="triple")
    async def triple(number):
        return 3 * number

    for name, function in (("run", job), ("run in the loop", triple)):
        function.enqueue(3)
        work()
        idle = passed(work)
        function.enqueue(4)
        found[name] = [each for each in passed(work) if each not in [*idle, *REPORT, BY_CHANCE]]
print(json.dumps(found))
"""


@pytest.fixture
def found(url: str) -> dict[str, list[str]]:
    """Return what the second call of each kind passes, and a job's run above what a worker without a job passes.

    That is found in a separate program: the profiler of a program that runs tests is not ours.
    """
    argv = [sys.executable, "-c", COUNT, url]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert not done.returncode, done.stderr
    depths: dict[str, list[str]] = json.loads(done.stdout)
    return depths


def test_a_call_passes_few_functions(found: dict[str, list[str]]) -> None:
    most = {
        "add": (10, 5),
        "lease": (18, 7),
        "complete": (14, 6),
        "release": (14, 6),
        "enqueue": (15, 9),
        "result": (19, 9),
        "run": (60, 18),
        "run in the loop": (54, 18),
    }
    for call, (functions, files) in most.items():
        assert len(found[call]) <= functions, (call, found[call])
        read = {each.split()[0] for each in found[call]}
        assert len(read) <= files, (call, found[call])
