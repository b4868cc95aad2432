"""huey.

Settings:
- the consumer with one thread, `-w 1 -k thread`, its default
- `RedisHuey`, which waits with a blocking pop; `results=False`; no periodic tasks (`-n`), no health check (`-C`)
- bulk: it has no call for many
- recovery: none, an item is taken from the server before it is worked on

Reference: https://huey.readthedocs.io/en/latest/consumer.html, https://huey.readthedocs.io/en/latest/api.html#RedisHuey
"""

from __future__ import annotations

import importlib

from huey import RedisHuey

from peers.roles import kit

huey = RedisHuey("bench", url=kit.ORDERS.url, results=False)


@huey.task(name="handle")
def handle(data: str) -> None:
    """Work on one item."""
    kit.handle(data)


def one(job: kit.Job) -> None:
    """Enqueue one."""
    handle(job.data)


if __name__ == "__main__":
    if kit.ORDERS.role == "produce":
        # a task is known by its module, which must not be __main__ to the worker
        kit.produce(importlib.import_module("peers.roles.huey").one)
    else:
        kit.become(
            "huey_consumer",
            "peers.roles.huey.huey",
            "-w",
            str(kit.concurrency(1)),
            "-k",
            "thread",
            "-n",
            "-C",
            "-q",
        )
