"""The jobs of a shop, and a program that enqueues them, on leaseq."""

import os
import time

from example_run.programs import Programs
from redis import Redis

from leaseq.jobs import App, Context, JobFailed

URL = os.environ["REDIS_URL"]
notes = Redis.from_url(URL, socket_timeout=90)
app = App(URL)


@app.job
def total(prices: list[float], tax: float = 0.2) -> float:
    return round(sum(prices) * (1 + tax), 2)


@app.job(retries=4, backoff=1)
def charge(ctx: Context, order: int) -> str:
    if ctx.attempt < 3:
        raise ConnectionError("the bank does not answer")
    return f"order {order} is paid at attempt {ctx.attempt}"


@app.job(retries=0)
def refund(order: int) -> None:
    raise ValueError(f"order {order} was never paid")


@app.job
def remind(order: int) -> str:
    return f"order {order} is due"


@app.every(2)
@app.job
def count_stock() -> None:
    notes.rpush("stock", "counted")


@app.job
def pack(order: int) -> str:
    notes.rpush("packing", order)
    time.sleep(1)
    return f"order {order} is packed"


def shop(worker: Programs) -> None:
    job = total.enqueue([10, 20], tax=0.1)
    print("total:", job.result(timeout=60))

    paid = charge.enqueue(7)
    print("charge:", paid.result(timeout=60))

    refunded = refund.enqueue(7)
    try:
        refunded.result(timeout=60)
    except JobFailed as error:
        print("refund: failed with", error.type, "|", error.message)

    reminder = remind.with_options(id="remind-7", delay=1).enqueue(7)
    again = remind.with_options(id="remind-7").enqueue(7)
    print("remind: delayed", reminder.status() == "delayed", "| again", again.added)
    print("remind:", reminder.result(timeout=60))

    notes.blpop("stock", timeout=60)
    notes.blpop("stock", timeout=60)
    print("count_stock: ran twice")

    packed = pack.enqueue(7)
    notes.blpop("packing", timeout=60)
    print("the worker is stopped:", worker.stop()[0])
    print("pack:", packed.result(timeout=60))

    app.close()


def main() -> None:
    with Programs() as worker:
        worker.start("leaseq", "worker", "from_rq.after:app")
        shop(worker)
