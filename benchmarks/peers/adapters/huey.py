"""huey.

Settings:
- the consumer with one thread, `-w 1 -k thread`, its default: four threads, or greenlets, are no faster
- `RedisHuey`, which waits with a blocking pop; `results=False`; no periodic tasks (`-n`), no health check (`-C`)
- results on: `results=True`, which keeps them until they are read
- bulk: it has no call that enqueues many
- recovery: none, an item is taken from the server before it is worked on

Reference: https://huey.readthedocs.io/en/latest/consumer.html, https://huey.readthedocs.io/en/latest/api.html#RedisHuey
"""

from __future__ import annotations

import importlib

from huey import RedisHuey

from peers.adapters import common

huey = RedisHuey("bench", url=common.ORDERS.url, results=common.ORDERS.results)


@huey.task(name="handle")
def handle(data: str) -> object:
    """Work on one item."""
    return common.handle(data)


def one(job: common.Job) -> object:
    """Enqueue one job. Return its id."""
    handle_result = handle(job.data)
    return handle_result and handle_result.id


def result(task_id: str) -> object:
    """Return the result of a job; None if there is none yet."""
    return huey.result(task_id, preserve=True)


if __name__ == "__main__":
    if common.ORDERS.role == "produce":
        # a task is known by its module, which must not be __main__ to the worker
        module = importlib.import_module("peers.adapters.huey")
        common.produce(module.one, result=module.result)
    else:
        common.become(
            "huey_consumer",
            "peers.adapters.huey.huey",
            "-w",
            str(common.concurrency(1)),
            "-k",
            "thread",
            "-n",
            "-C",
            "-q",
        )
