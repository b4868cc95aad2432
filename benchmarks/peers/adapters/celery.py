"""Celery.

Settings:
- `--pool solo`, which runs the handler in the worker's own thread: a tenth faster than one of `--pool threads`, which is
  for several handlers at a time; `worker_prefetch_multiplier=100`, for which 0 (no limit) is no faster
- `ignore_result`; no gossip, mingle or heartbeat, which are events between workers; no remote control
- results on: the Redis backend, where they stay for a day
- bulk: it has no call for many
- recovery: by default an item is acknowledged before it runs; quickest: `acks_late`, and of the transport
  `visibility_timeout=1`, `unacked_restore_interval=1`, `unacked_restore_throttle=1`

Reference: https://docs.celeryq.dev/en/stable/userguide/optimizing.html,
https://docs.celeryq.dev/en/stable/userguide/concurrency/index.html,
https://docs.celeryq.dev/en/stable/getting-started/backends-and-brokers/redis.html#visibility-timeout
"""

from __future__ import annotations

from typing import Any

from celery import Celery

from peers.adapters import common

TRANSPORT = {"visibility_timeout": 1, "unacked_restore_interval": 1, "unacked_restore_throttle": 1}

app = Celery("bench", broker=common.ORDERS.url, backend=common.ORDERS.url if common.ORDERS.results else None)
app.conf.update(
    task_ignore_result=not common.ORDERS.results,
    task_default_queue="bench",
    worker_prefetch_multiplier=100,
    worker_enable_remote_control=False,
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
)
if common.ORDERS.quickest:
    app.conf.update(
        task_acks_late=True, worker_prefetch_multiplier=1, broker_transport_options=dict[str, Any](TRANSPORT)
    )


@app.task(name="handle")
def handle(data: str) -> object:
    """Work on one item."""
    return common.handle(data)


def one(job: common.Job) -> str:
    """Enqueue one."""
    handle.apply_async((job.data,), task_id=job.id)
    return job.id


def result(task_id: str) -> object:
    """Its result."""
    return app.AsyncResult(task_id).result


if __name__ == "__main__":
    if common.ORDERS.role == "produce":
        common.produce(one, result=result)
    else:
        at_once = common.concurrency(1)
        common.become(
            "celery", "-A", "peers.adapters.celery", "worker",
            "--pool", "solo" if at_once == 1 else "threads", "--concurrency", str(at_once),
            "--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "ERROR",
        )  # fmt: skip
