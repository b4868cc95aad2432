"""Jobs between languages: programs in TypeScript, written from spec/jobs.md alone, enqueue what a worker in Python runs, and
run what a program in Python enqueues."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from support import adapters
from support.job_app import TIMEOUT_SECS, JobAppFlavour

from leaseq import Item
from leaseq.jobs import App, Backoff, Context, JobFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.typescript

EXAMPLES = adapters.ROOT / "typescript" / "dist" / "examples"


@pytest.fixture
def flavour(url: str) -> Iterator[JobAppFlavour]:
    with JobAppFlavour(App(url), asynchronous=False) as made:
        yield made


def enqueued(url: str, *call: str) -> subprocess.CompletedProcess[str]:
    """Return what the program in TypeScript says of a call."""
    return subprocess.run(
        [adapters.NODE, "node", str(EXAMPLES / "enqueue.js"), url, *call],
        capture_output=True,
        text=True,
        timeout=2 * TIMEOUT_SECS,
        check=False,
    )


def test_a_program_in_typescript_enqueues_a_job_and_reads_its_result(
    flavour: JobAppFlavour, url: str
) -> None:
    seen: list[Any] = []

    @flavour.app.job(name="shop.place")
    async def place(
        ctx: Context, number: int, *, at: datetime, names: list[str]
    ) -> dict[str, datetime | list[str]]:
        seen.append((number, at, ctx.headers, ctx.attempt, flavour.app.handle(ctx.id, queue="default")))
        return {"at": at, "names": names}

    with flavour.working():
        done = enqueued(
            url, "shop.place", "[7]", json.dumps({"at": "2026-03-01T12:00:00Z", "names": ["ü", "𝄞"]})
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {"at": "2026-03-01T12:00:00Z", "names": ["ü", "𝄞"]}
    number, at, headers, attempt, handle = seen[0]
    assert (number, at, attempt) == (7, datetime(2026, 3, 1, 12, tzinfo=UTC), 1)
    assert headers == {"from": "typescript"}
    # what it wrote is a job like any other, for programs in Python too
    info = handle.info()
    assert (info.status, info.function, info.args) == ("succeeded", "shop.place", (7,))
    assert info.description.startswith("shop.place(7, at='2026-03-01T12:00:00Z'")
    assert 0 < info.due <= info.ended + 600
    assert handle.result(0)["names"] == ["ü", "𝄞"]


@pytest.mark.parametrize(
    ("function", "args", "expected"),
    [
        ("shop.fail", '["no such order"]', "ValueError: no such order\nTraceback"),
        ("shop.fail", "[]", "missing a required argument: 'why'"),
    ],
)
def test_a_program_in_typescript_is_told_why_a_job_failed(
    flavour: JobAppFlavour, url: str, function: str, args: str, expected: str
) -> None:
    @flavour.app.job(name="shop.fail", retry_on=())
    def fail(why: str) -> None:
        raise ValueError(why)

    with flavour.working():
        done = enqueued(url, function, args)
    assert (done.returncode, done.stdout) == (1, "")
    assert expected in done.stderr


def test_a_program_in_typescript_sends_no_other_value(flavour: JobAppFlavour, url: str) -> None:
    done = enqueued(url, "shop.fail", "[1e999]")
    assert done.returncode == 1
    assert "is Infinity, which JSON does not have" in done.stderr  # LQ-JOB-60
    assert flavour.app.queue().stats().ready == 0


def test_a_worker_in_typescript_runs_what_a_program_in_python_enqueues(
    flavour: JobAppFlavour, url: str
) -> None:
    """Each kind of end once: what returns, what is tried again, what dies, what nobody can run, what goes on elsewhere."""

    @flavour.app.job(name="count")
    def count(words: list[str], more: int) -> int:
        return len(words) + more

    words, number = (
        flavour.app.function("text.words").with_options(queue="node"),
        flavour.app.function("text.number"),
    )
    number = number.with_options(queue="node", backoff=Backoff(0.001, 0.001))
    split = words.enqueue("a-b", separator="-")
    failing = number.with_options(retries=1).enqueue("seven")
    waiting = number.with_options(backoff=Backoff(3600, 7200)).enqueue("seven")
    unkept = number.with_options(keep=None).enqueue("7")
    unknown = flavour.app.function("text.none").with_options(queue="node").enqueue()
    flavour.app.queue("node").add_item(Item(b"{rubbish", id="rubbish"), max_attempts=5, keep=60)
    endless = number.enqueue("1e999")
    chain = flavour.app.chain(words.call("a b c")).then(count.with_options(delay=0.001).partial(10)).enqueue()
    ends = 9
    done = subprocess.run(
        [adapters.NODE, "node", str(EXAMPLES / "work.js"), url, str(ends)],
        capture_output=True,
        text=True,
        timeout=2 * TIMEOUT_SECS,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert split.result(0) == ["a", "b"]
    info = split.info()
    assert (info.function, info.kwargs) == ("text.words", {"separator": "-"})
    assert 0 < info.started <= info.ended + 600
    with pytest.raises(JobFailed, match="RangeError: seven is no number") as failed:
        failing.result(0)
    assert (failed.value.type, failed.value.attempt) == ("RangeError", 2)
    assert "work.js" in failed.value.traceback
    with pytest.raises(JobFailed, match=r"result cannot be written: .* Infinity") as unwritten:
        endless.result(0)
    assert unwritten.value.attempt == 1  # LQ-JOB-61
    assert waiting.status() == "retrying"
    assert waiting.info().error == "RangeError: seven is no number"
    queue = flavour.app.queue("node")
    assert queue.inspect(waiting.id).time - queue.stats().now > 3600 - 600
    assert unkept.status() == "unknown"
    assert (unknown.status(), unknown.info().attempt) == ("delayed", 0)  # LQ-JOB-42
    assert "no function 'text.none'" in unknown.info().error
    with pytest.raises(JobFailed, match="no job that can be read") as refused:
        flavour.app.handle("rubbish", queue="node").result(0)
    assert refused.value.attempt == 1
    with flavour.working(queues=["default"]):
        assert chain.result(TIMEOUT_SECS) == 13
