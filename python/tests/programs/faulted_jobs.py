"""Python's part of `typescript/nightly/job-faults.test.ts`: `python -m programs.faulted_jobs work|produce PATH`, a worker or a producer.

It prints lines of JSON, those of `fleet-jobs.ts`, and ends after SIGTERM. A call that raises what has no name ends it at once.
"""

from __future__ import annotations

import json
import logging
import os
import random
import signal
import sys
import threading
import time
import traceback
from typing import TYPE_CHECKING, Any, Final

from leaseq import LeaseqError
from leaseq.jobs import App, Backoff, ChainHandle, Context, DeadLetter, JobCancelled, JobFailed, ResultNotKept

if TYPE_CHECKING:
    from collections.abc import Callable

    from leaseq.jobs import Handle

    Enqueued = Handle[Any] | ChainHandle[Any]

PATH: Final = sys.argv[2] if len(sys.argv) > 2 else "/"
QUEUES: Final = ("node", "python", "both")
KINDS: Final = ("work", "work", "work", "fail", "die", "sleep", "chain", "cancel")
HOUR: Final = 3600.0
LEASE_SECS, GRACE_SECS = 2.0, 1.5
CALL_SECS: Final = 7.0
"""A call ends by then, whatever happens: its reply timeout, and what follows on it."""
THREADS: Final = 8

app = App(f"unix://{PATH}?socket_timeout=3&socket_connect_timeout=2", queue="python")


def report(**line: Any) -> None:
    """Print a line, in one call of the system."""
    os.write(1, (json.dumps(line) + "\n").encode())


@app.on_startup
def begin() -> None:
    """Report that the worker ends as it should from now on."""
    report(began=True)


# -- the functions


@app.job(name="work")
def work(ctx: Context, number: int) -> dict[str, int]:
    """Take a while, and now and then fail."""
    what = random.randrange(100)
    if what < 5:
        message = "a function that fails"
        raise ValueError(message)
    if what < 25:
        ctx.progress(1, 2)
        time.sleep(random.uniform(0.01, 0.3))
    return {"number": number, "token": ctx.token}


@app.job(name="fail")
async def fail(number: int) -> None:
    """Fail."""
    message = f"{number} fails"
    raise ValueError(message)


@app.job(name="die")
async def die(number: int) -> None:
    """Fail for good."""
    message = f"{number} dies"
    raise DeadLetter(message)


@app.job(name="sleep")
def sleep(_: int) -> None:
    """Take longer than the time limit."""
    time.sleep(60)


@app.job(name="step")
async def step(ctx: Context, values: list[Any]) -> list[Any]:
    """Append the queue."""
    return [*values, ctx.queue]


@app.every(1, name="tick", missed="all", queue="both", keep=HOUR, retries=None)
@app.job(name="tick", queue="both")
async def tick(ctx: Context) -> dict[str, int]:
    """Return its slot."""
    return {"number": round(ctx.due * 1000), "token": ctx.token}


# -- the producer


def end_of(handle: Enqueued, timeout: float) -> str | None:
    """Return the end of a job as `fleet-jobs.ts` calls it; None if it is not known yet."""
    try:
        return json.dumps(handle.result(timeout), separators=(",", ":"))
    except JobFailed as error:
        return f"failed: {error.type}: {error.message}"
    except JobCancelled:
        return "cancelled"
    except ResultNotKept:
        return "not kept"
    except TimeoutError:  # it has not ended: what `result` raises then, as documented
        return None


class Producer:
    """Threads that enqueue, wait, cancel and look."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._enqueued = 0
        self._calls = 0
        self._longest = 0.0

    def run(self) -> None:
        """Run until SIGTERM; then close the App in the midst of it."""
        signal.signal(signal.SIGTERM, lambda *_: self._over.set())
        report(began=True)
        threads = [threading.Thread(target=self._act) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        self._over.wait()
        for thread in threads:
            thread.join()
        app.close()
        report(calls=self._calls, longest=round(self._longest * 1000))

    def _act(self) -> None:
        try:
            while not self._over.wait(random.uniform(0, 0.1)):
                self._job(random.choice(KINDS))
        except BaseException:  # noqa: BLE001 (an error without a name, or the program itself is wrong)
            traceback.print_exc()
            os._exit(1)

    def _call(self, name: str, limit: float, call: Callable[..., Any], *args: Any) -> Any:
        """Make a call that may take `limit` seconds. Return None if it raised a named error."""
        began = time.monotonic()
        answer = None
        try:
            answer = call(*args)
        except LeaseqError:
            self._over.wait(0.05)
        took = time.monotonic() - began
        with self._lock:
            self._calls += 1
            self._longest = max(self._longest, took - limit)
        if took > limit:
            report(late=f"{name} in Python took {took:.2f} s, limit {limit}")
        return answer

    def _job(self, kind: str) -> None:
        with self._lock:
            self._enqueued += 1
            number = self._enqueued
        handle = self._call("enqueue", 2 * CALL_SECS, self._enqueue, kind, number)
        if handle is None:
            return
        last = handle.last if isinstance(handle, ChainHandle) else handle
        report(accepted=last.id, queue=last.queue)
        if kind == "cancel":
            self._over.wait(random.uniform(0, 1.5))
            if self._call("cancel", 2 * CALL_SECS, handle.cancel):
                report(cancelled=handle.id)
        for _ in range(random.randrange(3)):
            self._look(handle)

    def _enqueue(self, kind: str, number: int) -> Enqueued:
        name = f"{kind}-{os.getpid()}-{number}"
        delay = random.uniform(0, 1.5) if kind == "cancel" else random.choice((0, 0, 0.3))
        options: Any = {"retries": None, "backoff": Backoff(0.05, 0.2), "keep": HOUR, "timeout": 2}
        if kind == "chain":
            function = app.function("step")
            chain = app.chain(
                function.with_options(queue=QUEUES[0], id=name, delay=delay, **options).call([number])
            )
            for queue in QUEUES[1:]:
                chain = chain.then(function.with_options(queue=queue, **options).partial())
            return chain.enqueue()
        options |= {"retries": 2} if kind == "fail" else {}
        options |= {"retries": 1, "timeout": 0.3} if kind == "sleep" else {}
        called = app.function("work" if kind == "cancel" else kind)
        return called.with_options(queue=random.choice(QUEUES), id=name, delay=delay, **options).enqueue(
            number
        )

    def _look(self, handle: Enqueued) -> None:
        last = handle.last if isinstance(handle, ChainHandle) else handle
        timeout = random.uniform(0, 4)
        end = self._call("result", timeout + 2 * CALL_SECS, end_of, handle, timeout)
        if end is not None:
            report(answer=end, of=last.id)
        if random.random() < 0.25:
            self._call("info", 2 * CALL_SECS, last.info)
        if random.random() < 0.25:
            self._call("status", CALL_SECS, lambda: handle.status)


def main() -> None:
    """Work or produce, until SIGTERM."""
    logging.disable(logging.CRITICAL)
    if sys.argv[1] == "produce":
        Producer().run()
        return
    from programs.faulted_jobs import app as importable  # jobs are those of the module, not of __main__

    importable.run_worker(
        processes=1, queues=["python", "both"], lease_secs=LEASE_SECS, grace_secs=GRACE_SECS
    )


if __name__ == "__main__":
    main()
