"""The jobs of a shop, and a program that enqueues them, on Celery."""

import os
import time
from typing import Any

from celery import Celery, Task
from example_run.programs import Programs
from redis import Redis

URL = os.environ["REDIS_URL"]
notes = Redis.from_url(URL, socket_timeout=90)
BROKER = URL.replace("unix://", "redis+socket://")  # Celery's word for a server at a unix socket
app = Celery("shop", broker=BROKER, backend=BROKER)
app.conf.beat_schedule = {"count stock": {"task": "from_celery.before.count_stock", "schedule": 1.0}}


@app.task
def total(prices: list[float], tax: float = 0.2) -> float:
    return round(sum(prices) * (1 + tax), 2)


@app.task(bind=True, autoretry_for=(ConnectionError,), max_retries=4, default_retry_delay=1)
def charge(self: Task, order: int) -> str:
    attempt = 1 + self.request.retries
    if attempt < 3:
        raise ConnectionError("the bank does not answer")
    return f"order {order} is paid at attempt {attempt}"


@app.task
def refund(order: int) -> None:
    raise ValueError(f"order {order} was never paid")


@app.task
def remind(order: int) -> str:
    return f"order {order} is due"


@app.task(ignore_result=True)
def count_stock() -> None:
    notes.rpush("stock", "counted")


@app.task
def pack(order: int) -> str:
    notes.rpush("packing", order)
    time.sleep(1)
    return f"order {order} is packed"


def shop(worker: Programs) -> None:
    job: Any = total.delay([10, 20], tax=0.1)
    print("total:", job.get(timeout=60))

    job = charge.delay(7)
    print("charge:", job.get(timeout=60))

    job = refund.delay(7)
    try:
        job.get(timeout=60)
    except ValueError as error:
        print("refund: failed with", type(error).__name__, "|", error)

    job = remind.apply_async((7,), countdown=1)  # the same id again would run it twice
    print("remind: delayed", job.state == "PENDING")
    print("remind:", job.get(timeout=60))

    notes.blpop("stock", timeout=60)
    notes.blpop("stock", timeout=60)
    print("count_stock: ran twice")

    job = pack.delay(7)
    notes.blpop("packing", timeout=60)
    print("the worker is stopped:", worker.stop()[0])
    print("pack:", job.get(timeout=60))


def main() -> None:
    with Programs() as worker:
        worker.start("celery", "-A", "from_celery.before", "worker", "--loglevel", "WARNING")
        worker.start("celery", "-A", "from_celery.before", "beat", "--loglevel", "WARNING")
        shop(worker)
