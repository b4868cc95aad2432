"""RQ.

Settings:
- `SimpleWorker`, which runs jobs in its own process, where `Worker`, the default, forks for each job
- results are not kept (`result_ttl=0`), no description is built; results on: `result_ttl` of a day;
  `JSONSerializer` is no faster than pickle
- bulk: `enqueue_many` of `prepare_data`, 500 at a time
- recovery: `Worker`; an abandoned job fails and, without retries, stays failed
- quickest recovery: `Retry(max=3)`, `maintenance_interval=1`, `job_monitoring_interval=1`, `worker_ttl=16`

Reference: https://python-rq.org/docs/workers/, https://python-rq.org/docs/#bulk-job-enqueueing,
https://python-rq.org/docs/exceptions/#retrying-failed-jobs
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from redis import Redis
from rq import Queue, Retry, SimpleWorker, Worker

from peers.adapters import common

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH = 500
HANDLER = "peers.adapters.common.handle"  # by name: a module run as a program has no other that a worker could import

db = Redis.from_url(common.ORDERS.url)
queue = Queue("bench", connection=db)
OPTIONS: dict[str, Any] = {"result_ttl": common.DAY if common.ORDERS.results else 0, "description": "-"}
if common.ORDERS.quickest:
    OPTIONS["retry"] = Retry(max=3)


def one(job: common.Job) -> str:
    """Enqueue one."""
    queue.enqueue_call(HANDLER, args=(job.data,), job_id=job.id, **OPTIONS)
    return job.id


def result(job_id: str) -> object:
    """Its result."""
    job = queue.fetch_job(job_id)
    return job and job.return_value()


def bulk(jobs: Sequence[common.Job]) -> None:
    """Enqueue many."""
    for at in range(0, len(jobs), WIDTH):
        queue.enqueue_many(
            [
                Queue.prepare_data(HANDLER, args=(job.data,), job_id=job.id, **OPTIONS)
                for job in jobs[at : at + WIDTH]
            ]
        )


def work() -> None:
    """Work until killed."""
    kind = Worker if common.ORDERS.handler == "hold" else SimpleWorker
    options: dict[str, Any] = {}
    if common.ORDERS.quickest:
        options = {"maintenance_interval": 1, "job_monitoring_interval": 1, "worker_ttl": 16}
    kind([queue], connection=db, log_job_description=False, **options).work(logging_level="ERROR")


if __name__ == "__main__":
    if common.ORDERS.role == "produce":
        common.produce(one, bulk, result)
    else:
        work()
