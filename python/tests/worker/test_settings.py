"""Settings of a worker that are wrong: each is refused by its name."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import leaseq
import leaseq.aio
import leaseq.worker.aio
from leaseq.worker import Backoff, Worker


async def asynchronous_delay(attempt: int) -> float:
    return float(attempt)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"concurrency": 0}, leaseq.BadArgumentError, "concurrency must be 1 to"),
        ({"concurrency": "2"}, leaseq.BadTypeError, "concurrency must be an int"),
        ({"lease_secs": 0}, leaseq.BadArgumentError, "lease_secs must be"),
        ({"max_attempts": -1}, leaseq.BadArgumentError, "max_attempts"),
        ({"backoff": -3}, leaseq.BadArgumentError, "backoff must be 0 to"),
        ({"backoff": []}, leaseq.BadArgumentError, "backoff has no delay"),
        ({"backoff": [1, "x"]}, leaseq.BadArgumentError, "'x' is no duration"),
        ({"backoff": [1, None]}, leaseq.BadTypeError, "a delay of backoff is a NoneType; write"),
        ({"backoff": {1, 2}}, leaseq.BadTypeError, "backoff is a set; write Backoff"),
        ({"backoff": b"10"}, leaseq.BadTypeError, "backoff is a bytes"),
        ({"backoff": True}, leaseq.BadTypeError, "backoff is a bool"),
        ({"backoff": float("nan")}, leaseq.BadArgumentError, "backoff"),
        ({"backoff": Backoff}, leaseq.BadTypeError, "the class Backoff: call it"),
        ({"backoff": lambda: 3}, leaseq.BadTypeError, "number of the attempt that failed: too many"),
        ({"backoff": asynchronous_delay}, leaseq.BadTypeError, "must not be an async def"),
        ({"lease_secs": timedelta(days=31)}, leaseq.BadArgumentError, "lease_secs must be"),
        ({"dead_letter_on": "ValueError"}, leaseq.BadTypeError, "exceptions"),
        ({"dead_letter_on": [3]}, leaseq.BadTypeError, "classes of exceptions"),
        ({"time_limit": 0}, leaseq.BadArgumentError, "time_limit"),
        ({"grace_secs": -1}, leaseq.BadArgumentError, "grace_secs"),
        ({"hooks": 3}, leaseq.BadTypeError, "hooks"),
        ({"hooks": [3]}, leaseq.BadTypeError, "leaseq.worker.Hooks"),
        ({"handler": None}, leaseq.BadTypeError, "a handler is called"),
        ({"queues": "q"}, leaseq.BadTypeError, "a WorkQueue, a list of them"),
        ({"queues": []}, leaseq.BadArgumentError, "needs a queue"),
        ({"queues": [3]}, leaseq.BadTypeError, "WorkQueue"),
    ],
)
@pytest.mark.parametrize("worker", [Worker, leaseq.worker.aio.Worker], ids=["threads", "asyncio"])
def test_bad_settings_are_refused_by_name(
    worker: Any, options: dict[str, Any], error: type[Exception], text: str
) -> None:
    with leaseq.WorkQueue("q", "redis://127.0.0.1:1") as queue:
        given = {"queues": queue, "handler": lambda _: None, **options}
        if worker is not Worker and "queues" not in options:
            given["queues"] = leaseq.aio.WorkQueue("q", "redis://127.0.0.1:1")
        with pytest.raises(error, match=text):
            worker(**given)


def test_queues_of_the_other_flavour_are_refused() -> None:
    with leaseq.WorkQueue("q", "redis://127.0.0.1:1") as queue, pytest.raises(leaseq.BadTypeError):
        leaseq.worker.aio.Worker(queue, lambda _: None)  # type: ignore[arg-type, return-value]
