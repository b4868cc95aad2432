"""Ready-made integrations, each with its real library, in programs as a user has them."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

import pytest
from support import programs
from support.cli_runner import WORKER_SECS, run_worker

import leaseq
from leaseq.jobs import App

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HEAD = f"""
import asyncio
import json
import logging
import os
import sys
from leaseq.jobs import App, Backoff, Retry

sys.path.append({str(programs.TESTS)!r})
from support.job_app import extend_program_timeouts

extend_program_timeouts()
app = App()
AT_ONCE = Backoff(0.001, 0.001)

class FrozenError(Exception):
    def __setattr__(self, name, value):
        if name != "__traceback__":  # contextlib sets it
            raise AttributeError(name)
        super().__setattr__(name, value)

def fail(what):
    if what == "frozen":
        raise FrozenError(what)
    if what != "well":
        raise ValueError(what)

@app.job(name="thread", retries=1, backoff=AT_ONCE)
def in_thread(what: str) -> None:
    logging.getLogger("shop").warning("my own line")
    fail(what)

@app.job(name="loop", retries=1, backoff=AT_ONCE)
async def in_loop(what: str) -> None:
    await asyncio.sleep(0)
    logging.getLogger("shop").warning("my own line")
    fail(what)

@app.job(name="fork", retries=1, backoff=AT_ONCE, fork=True)
def in_fork(what: str) -> None:
    logging.getLogger("shop").warning("my own line")
    fail(what)
"""
PLACES = ["thread", "loop", "fork"]


def run_script(folder: Path, url: str, place: str) -> str:
    """Run the module as the program that enqueues. Return its output."""
    return subprocess.run(
        [sys.executable, "shop.py", place],
        cwd=folder,
        env={**os.environ, "REDIS_URL": url},
        stdout=subprocess.PIPE,
        text=True,
        timeout=WORKER_SECS,
        check=True,
    ).stdout


def work_off(folder: Path, url: str, *arguments: str) -> str:
    """Run workers until no job is left: a burst ends before a job is due again. Return their log."""
    log = ""
    with leaseq.WorkQueue("default", url, group="jobs") as queue:
        while queue.stats().ready + queue.stats().delayed:
            log += run_worker(folder, url, "shop:app", "--burst", "-p", "1", *arguments).stderr
    return log


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.slow
def test_a_line_in_json_has_the_job_that_wrote_it_and_each_attempt_has_a_line(
    tmp_path: Path, url: str
) -> None:
    (tmp_path / "shop.py").write_text(
        HEAD + "\nfrom leaseq.jobs.integrations import logs\nlogs.install(app)\n"
    )
    with App(url) as app:
        for place in PLACES:
            app.function(place).with_options(id=f"{place}-1", retries=1).enqueue("well")
            app.function(place).with_options(id=f"{place}-2", retries=1).enqueue("badly")
    log = work_off(tmp_path, url, "--log-format", "json")
    lines = [json.loads(line) for line in log.splitlines()]
    own = Counter(
        (line["item"], line["queue"], line["function"], line["attempt"])
        for line in lines
        if line["message"] == "my own line"
    )
    attempts = [(f"{place}-{job}", place, n) for place in PLACES for job, n in ((1, 1), (2, 1), (2, 2))]
    assert own == Counter((job, "default", place, attempt) for job, place, attempt in attempts)
    ends = {
        (line["item"], line["function"], line["attempt"]): (line["ended"], line["level"])
        for line in lines
        if line["logger"] == "leaseq.jobs.attempts"
    }
    words = {(1, 1): "succeeded", (2, 1): "retried", (2, 2): "failed"}
    assert ends == {
        (f"{place}-{job}", place, attempt): (word, "info")
        for place in PLACES
        for (job, attempt), word in words.items()
    }
    took = [line["seconds"] for line in lines if "seconds" in line]
    assert len(took) == len(ends)
    assert all(0 <= seconds < 600 for seconds in took)
    introduction = next(line for line in lines if line["logger"] == "leaseq.cli.worker")
    assert introduction.keys() == {"time", "level", "logger", "message"}


TRACED = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter
from leaseq.jobs.integrations import otel

provider = TracerProvider()
provider.add_span_processor(
    BatchSpanProcessor(
        ConsoleSpanExporter(out=open("spans", "a"), formatter=lambda span: span.to_json(indent=None) + "\\n"),
        schedule_delay_millis=3_600_000,
    )
)
app.on_shutdown(provider.shutdown)
otel.install(app, provider)

if __name__ == "__main__":
    with provider.get_tracer("test").start_as_current_span("order"):
        app.function(sys.argv[1]).with_options(id="job", retries=1).enqueue("badly")
        app.close()
    provider.shutdown()
"""


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_spans_lead_from_the_call_that_enqueues_to_each_attempt(tmp_path: Path, url: str, place: str) -> None:
    (tmp_path / "shop.py").write_text(HEAD + TRACED)
    run_script(tmp_path, url, place)
    work_off(tmp_path, url)
    spans = lines_of(tmp_path / "spans")
    named = {(span["name"], span["attributes"].get("leaseq.attempt")): span for span in spans}
    assert set(named) == {
        ("order", None),
        ("create default", None),
        ("process default", 1),
        ("process default", 2),
    }
    created = named["create default", None]
    assert created["parent_id"] == named["order", None]["context"]["span_id"]
    assert created["kind"] == "SpanKind.PRODUCER"
    for attempt in (1, 2):
        span = named["process default", attempt]
        assert span["parent_id"] == created["context"]["span_id"]
        assert span["context"]["trace_id"] == created["context"]["trace_id"]
        assert span["kind"] == "SpanKind.CONSUMER"
        assert span["status"]["status_code"] == "ERROR"
        assert [event["name"] for event in span["events"]] == ["exception"]
        assert span["attributes"] == {
            "messaging.system": "leaseq",
            "messaging.operation.type": "process",
            "messaging.destination.name": "default",
            "messaging.message.id": "job",
            "leaseq.function": place,
            "leaseq.attempt": attempt,
        }
    assert created["attributes"]["messaging.message.id"] == "job"


class Sentry:
    """A server that takes the envelopes of Sentry's SDK."""

    def __init__(self) -> None:
        items = self.items = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    content = gzip.decompress(content)
                _, *lines = content.splitlines()
                items.extend(zip(map(json.loads, lines[::2]), map(json.loads, lines[1::2]), strict=True))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.dsn = f"http://key@127.0.0.1:{self._server.server_port}/1"
        self._thread = threading.Thread(target=self._server.serve_forever)

    items: list[tuple[dict[str, Any], dict[str, Any]]]

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        return [content for head, content in self.items if head["type"] == kind]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def sentry() -> Iterator[Sentry]:
    with Sentry() as server:
        yield server


REPORTED = r"""
import warnings

warnings.filterwarnings("ignore", r"\s*Eventlet is deprecated")  # Sentry imports it where it is installed
import sentry_sdk
from leaseq.jobs.integrations import sentry

sentry_sdk.init(dsn=os.environ["DSN"], traces_sample_rate=1.0, shutdown_timeout=60)
sentry.install(app)

if __name__ == "__main__":
    with sentry_sdk.start_transaction(op="test", name="order") as order:
        print(order.trace_id)
        app.function(sys.argv[1]).with_options(id="job", retries=1).enqueue("badly")
        app.function(sys.argv[1]).with_options(id="other").enqueue("well")
        app.close()
"""


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_a_job_that_failed_for_good_is_one_issue(
    tmp_path: Path, url: str, place: str, sentry: Sentry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DSN", sentry.dsn)
    (tmp_path / "shop.py").write_text(HEAD + REPORTED)
    trace_id = run_script(tmp_path, url, place).strip()
    work_off(tmp_path, url)
    [issue] = sentry.of_kind("event")
    [*_, error] = issue["exception"]["values"]
    assert error["mechanism"]["handled"] is False
    assert issue["tags"] == {"leaseq.function": place, "leaseq.queue": "default"}
    assert issue["contexts"]["leaseq job"] | {"type": ""} == {
        "id": "job",
        "queue": "default",
        "function": place,
        "attempt": 2,
        "type": "",
    }
    assert issue["transaction"] == place
    if place == "fork":
        assert error["type"] == "JobFailed"
        assert "ValueError: badly" in error["value"]
    else:
        assert (error["type"], error["value"]) == ("ValueError", "badly")
        assert [frame["function"] for frame in error["stacktrace"]["frames"]][-1] == "fail"
        crumbs = [crumb["message"] for crumb in issue["breadcrumbs"]["values"]]
        assert crumbs == ["my own line"], "of this attempt alone"
    runs = [each for each in sentry.of_kind("transaction") if each["transaction"] == place]
    assert [each["contexts"]["trace"]["trace_id"] for each in runs] == [trace_id] * 3
    assert Counter(each["contexts"]["trace"]["status"] for each in runs) == {"internal_error": 2, "ok": 1}


@pytest.mark.slow
def test_an_exception_that_takes_no_attributes_is_reported_as_it_is(
    tmp_path: Path, url: str, sentry: Sentry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DSN", sentry.dsn)
    (tmp_path / "shop.py").write_text(HEAD + REPORTED)
    with App(url) as app:
        app.function("thread").with_options(retries=0).enqueue("frozen")
    work_off(tmp_path, url)
    [issue] = sentry.of_kind("event")
    assert [error["type"] for error in issue["exception"]["values"]] == ["FrozenError"]


DJANGO = """
import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.sqlite3", "CONN_MAX_AGE": 0}}
)
django.setup()

from asgiref.sync import sync_to_async
from django.db import connection
from leaseq.jobs.integrations import django as django_jobs

django_jobs.install(app)

def asked() -> bool:
    was_open = connection.connection is not None
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return was_open

@app.job(name="ask in thread")
def ask() -> bool:
    return asked()

@app.job(name="ask in loop")
async def ask_in_loop() -> bool:
    return await sync_to_async(asked)()

@app.job(name="ask in fork", fork=True)
def ask_in_fork() -> bool:
    return asked()
"""


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_no_connection_of_django_is_left_open(tmp_path: Path, url: str, place: str) -> None:
    """With `CONN_MAX_AGE` 0, each job has a separate connection."""
    (tmp_path / "shop.py").write_text(HEAD + DJANGO)
    with App(url) as app:
        handles = [app.enqueue(f"ask in {place}") for _ in range(3)]
        work_off(tmp_path, url, "-c", "1")
        assert [handle.result(0) for handle in handles] == [False] * 3
