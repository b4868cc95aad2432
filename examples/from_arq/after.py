"""The jobs of a shop, and a program that enqueues them, on leaseq."""

import asyncio
import os

from example_run.programs import Programs
from redis.asyncio import Redis

from leaseq.jobs import Context, JobFailed
from leaseq.jobs.aio import App

URL = os.environ["REDIS_URL"]
app = App(URL)
notes = Redis.from_url(URL, socket_timeout=90)


@app.on_shutdown
async def close_notes() -> None:
    await notes.aclose()


@app.job
async def total(prices: list[float], tax: float = 0.2) -> float:
    return round(sum(prices) * (1 + tax), 2)


@app.job(retries=4, backoff=0.2)
async def charge(ctx: Context, order: int) -> str:
    if ctx.attempt < 3:
        raise ConnectionError("the bank does not answer")
    return f"order {order} is paid at attempt {ctx.attempt}"


@app.job(retries=0)
async def refund(order: int) -> None:
    raise ValueError(f"order {order} was never paid")


@app.job
async def remind(order: int) -> str:
    return f"order {order} is due"


@app.cron("* * * * * *")
@app.job
async def count_stock() -> None:
    await notes.rpush("stock", "counted")


@app.job
async def pack(order: int) -> str:
    await notes.rpush("packing", order)
    await asyncio.sleep(1)
    return f"order {order} is packed"


async def shop(worker: Programs) -> None:
    job = await total.enqueue([10, 20], tax=0.1)
    print("total:", await job.result(timeout=60))

    paid = await charge.enqueue(7)
    print("charge:", await paid.result(timeout=60))

    refunded = await refund.enqueue(7)
    try:
        await refunded.result(timeout=60)
    except JobFailed as error:
        print("refund: failed with", error.type, "|", error.message)

    reminder = await remind.with_options(id="remind-7", delay=1).enqueue(7)
    again = await remind.with_options(id="remind-7").enqueue(7)
    print("remind: delayed", await reminder.status() == "delayed", "| again", again.added)
    print("remind:", await reminder.result(timeout=60))

    await notes.blpop("stock", timeout=60)
    await notes.blpop("stock", timeout=60)
    print("count_stock: ran twice")

    packed = await pack.enqueue(7)
    await notes.blpop("packing", timeout=60)
    print("the worker is stopped:", *await asyncio.to_thread(worker.stop))
    print("pack:", await packed.result(timeout=60))

    await notes.aclose()
    await app.close()


def main() -> None:
    with Programs() as worker:
        worker.start("leaseq", "worker", "from_arq.after:app")
        asyncio.run(shop(worker))
