"""A worker of the demo: a process that counts the words of one piece after the other, until it is killed."""

import json
import os
import threading
import time

import leaseq
from leaseq_demo.client import open_client
from leaseq_demo.corpus import count_words
from leaseq_demo.scoreboard import Scoreboard

SETTINGS = "LEASEQ_DEMO_WORKER"
"""The environment variable that holds the arguments of `work` as JSON: unlike argv it is not for all to see."""


def work(url: str, name: str, lease_secs: float, pause: float) -> None:
    """Lease, count, complete, without end. `pause` stands for the waiting of real work."""
    pid = os.getpid()
    client = open_client(url)
    scoreboard = Scoreboard(client, name)
    with leaseq.WorkQueue(name, client) as queue:
        for item in queue.items(lease_secs):
            scoreboard.leased(pid, item, lease_secs)
            with item:
                counts = count_words(item.data.decode())
                time.sleep(pause)
                scoreboard.counted(
                    item.id, counts
                )  # before complete: after its reply, no worker does this again
                if queue.complete(item):
                    scoreboard.completed(item.id)


def end_with_starter() -> None:
    """End when the process that started this one closes the pipe, or ends in any way."""
    while os.read(0, 1):
        pass
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=end_with_starter, daemon=True).start()
    work(**json.loads(os.environ[SETTINGS]))
