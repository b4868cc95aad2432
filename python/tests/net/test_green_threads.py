"""Programs whose sockets and threads gevent or eventlet have replaced."""

from __future__ import annotations

import subprocess
import sys

import pytest

PATCH = {
    "gevent": "from gevent import monkey; monkey.patch_all()",
    "eventlet": "import eventlet; eventlet.monkey_patch()",
}

PROGRAM = """
import socket, sys
import leaseq
from leaseq.worker import Worker

queue = leaseq.WorkQueue("green", sys.argv[1])
queue.add_items([leaseq.Item(b"x") for _ in range(50)])
with queue.lease(30) as item:
    pass
done = []
print(Worker(queue, lambda item: done.append(item.id), burst=True).run(), len(done))
silent = socket.create_server(("127.0.0.1", 0))
other = leaseq.WorkQueue("other", f"redis://127.0.0.1:{silent.getsockname()[1]}?socket_timeout=0.2")
try:
    other.add_item(leaseq.Item(b"x"))
except leaseq.LeaseqError as error:
    print(type(error).__name__)
"""


@pytest.mark.parametrize("library", PATCH)
def test_a_queue_and_a_worker_run_and_a_silent_server_is_given_up(library: str, url: str) -> None:
    code = f"{PATCH[library]}\n{PROGRAM}"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, url],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout.split() == ["49", "49", "UnavailableError"], done.stderr
