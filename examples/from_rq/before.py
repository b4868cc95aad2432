"""The jobs of a shop, and a program that enqueues them, on RQ."""

import os
import time
from datetime import timedelta

from example_run.programs import Programs
from redis import Redis
from rq import Queue, Retry, cron, get_current_job
from rq.exceptions import DuplicateJobError

URL = os.environ["REDIS_URL"]
notes = Redis.from_url(URL, socket_timeout=90)
queue = Queue(connection=notes)
RETRIES = 4


def total(prices: list[float], tax: float = 0.2) -> float:
    return round(sum(prices) * (1 + tax), 2)


def charge(order: int) -> str:
    attempt = 1 + RETRIES - get_current_job().retries_left
    if attempt < 3:
        raise ConnectionError("the bank does not answer")
    return f"order {order} is paid at attempt {attempt}"


def refund(order: int) -> None:
    raise ValueError(f"order {order} was never paid")


def remind(order: int) -> str:
    return f"order {order} is due"


def count_stock() -> None:
    notes.rpush("stock", "counted")


cron.register(count_stock, "default", interval=2)


def pack(order: int) -> str:
    notes.rpush("packing", order)
    time.sleep(1)
    return f"order {order} is packed"


def shop(worker: Programs) -> None:
    job = queue.enqueue(total, [10, 20], tax=0.1)
    print("total:", job.latest_result(timeout=60).return_value)

    job = queue.enqueue(charge, 7, retry=Retry(max=RETRIES, interval=1))
    print("charge:", job.latest_result(timeout=60).return_value)

    job = queue.enqueue(refund, 7)
    error = job.latest_result(timeout=60).exc_string.splitlines()[-1]
    print("refund: failed with", error.replace(": ", " | ", 1))

    job = queue.enqueue_in(timedelta(seconds=1), remind, 7, job_id="remind-7", unique=True)
    try:
        again = bool(queue.enqueue(remind, 7, job_id="remind-7", unique=True))
    except DuplicateJobError:
        again = False
    print("remind: delayed", job.get_status() == "scheduled", "| again", again)
    print("remind:", job.latest_result(timeout=60).return_value)

    notes.blpop("stock", timeout=60)
    notes.blpop("stock", timeout=60)
    print("count_stock: ran twice")

    job = queue.enqueue(pack, 7)
    notes.blpop("packing", timeout=60)
    print("the worker is stopped:", worker.stop()[0])
    print("pack:", job.latest_result(timeout=60).return_value)


def main() -> None:
    with Programs() as worker:
        worker.start("rq", "worker", "--with-scheduler", "--url", URL)
        worker.start("rq", "cron", "from_rq.before", "--url", URL)
        shop(worker)
