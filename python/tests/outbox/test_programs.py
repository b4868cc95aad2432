"""`leaseq outbox relay`, `manage.py leaseq_relay`, and what the page asks an operator to paste."""

from __future__ import annotations

import re
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa
from support.cli_runner import Calls
from support.job_app import TIMEOUT_SECS, until
from support.pasted import block, environment, service
from support.snippets import ROOT, blocks

import leaseq
from leaseq.jobs import App

if TYPE_CHECKING:
    from pathlib import Path

    from support.outbox_shop import Shop

PAGE = "docs/outbox.md"


def relay(shop: Shop, *arguments: str) -> tuple[str, ...]:
    return ("outbox", "relay", "--database", shop.database, *arguments)


def test_once_hands_on_what_is_there(shop: Shop, call: Calls) -> None:
    shop.order(1)
    done = call(*relay(shop, "--once"))
    assert (done.code, done.out) == (0, "")
    assert shop.work() == [1]


def test_once_reports_that_rows_are_left(shop: Shop, call: Calls) -> None:
    with shop.engine.begin() as connection:
        shop.outbox.add_item(connection, leaseq.Item(b""), "q", priority=99)
    assert call(*relay(shop, "--once")).code == 1
    assert call(*relay(shop, "--once")).code == 0  # it was set apart
    shop.app.queue().configure(max_items=1)
    shop.order(1)
    shop.order(2)
    assert call(*relay(shop, "--once")).code == 1


@pytest.mark.parametrize(
    ("code", "message", "arguments"),
    [
        (2, "Missing option '--database'", []),
        (2, "is for asyncio", ["--database", "sqlite+aiosqlite:///x"]),
        (2, "not the URL of a database", ["--database", "secret"]),
        (2, "load plugin", ["--database", "shop://secret@host"]),
        (2, "No module named 'psycopg2'", ["--database", "postgresql+psycopg2://shop:secret@host"]),
        (2, "that is no time at all", ["--database", "sqlite://", "--poll", "0"]),
        (3, "no such table", ["--database", "sqlite://", "--once"]),
    ],
)
def test_wrong_arguments(call: Calls, code: int, message: str, arguments: list[str]) -> None:
    done = call("outbox", "relay", *arguments)
    assert done.code == code, done
    assert message in done.err
    assert "secret" not in done.err


def test_a_server_that_is_away_is_reported_by_once(shop: Shop, closed_url: str) -> None:
    shop.order(1)
    assert Calls(closed_url)(*relay(shop, "--once")).code == 3


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it(shop: Shop, call: Calls, number: signal.Signals) -> None:
    with call.process(*relay(shop, "--log-format", "json"), stderr=subprocess.PIPE) as process:
        shop.order(1)
        shop.until_handed_on()
        process.send_signal(number)
        _, err = process.communicate(timeout=TIMEOUT_SECS)
    assert process.returncode == 0
    assert err.count("\n") == 1
    assert '"message": "leaseq' in err


@pytest.mark.slow
def test_the_relay_of_the_page(shop: Shop, tmp_path: Path) -> None:
    line = block(PAGE, "console", "leaseq outbox").text
    line = line.replace("sqlite:///shop.sqlite3", shop.database).replace("redis://localhost", shop.url)
    shop.order(1)
    with service(line, tmp_path, {}):
        shop.until_handed_on()
    assert shop.work() == [1]


def test_rows_with_an_error_are_tried_again_with_the_lines_of_the_page(shop: Shop) -> None:
    select, update = block(PAGE, "sql").text.split(";\n")[:2]
    queue = shop.app.queue()
    queue.configure(max_data=1)
    job_id = shop.order(1)
    assert shop.relay_once() == 0
    with shop.engine.begin() as connection:
        [(_, item_id, error)] = connection.execute(sa.text(select))
        assert item_id == job_id
        assert "longer than this queue takes" in error
        connection.execute(sa.text(update))
    queue.configure(max_data=1000)
    assert shop.relay_once() == 1
    assert shop.work() == [1]


def django_files(folder: Path, url: str, database: str = "") -> None:
    """Write the modules of the page, for this server, and for a database of PostgreSQL in place of SQLite."""
    for each in blocks(ROOT / PAGE):
        if each.file.startswith("outbox_"):
            (folder / each.file).write_text(each.text.replace("embedded:data", url), encoding="utf-8")
    if database.startswith("postgresql"):
        place = sa.make_url(database)
        entry = {"ENGINE": "django.db.backends.postgresql", "NAME": place.database}
        entry |= {"HOST": place.host, "PORT": str(place.port), "USER": place.username}
        with (folder / "outbox_settings.py").open("a") as settings:
            settings.write(f"DATABASES = {{'default': {entry!r}}}\n")


def python(folder: Path, code: str) -> str:
    """Run a program with the modules of the page. Return what it prints."""
    variables = {"DJANGO_SETTINGS_MODULE": "outbox_settings"}
    return subprocess.run(
        ["python", "-W", "error", "-c", code],
        cwd=folder,
        env={**environment(variables), "PYTHONPATH": f"{folder}:{ROOT / 'python'}"},
        stdout=subprocess.PIPE,
        text=True,
        timeout=TIMEOUT_SECS,
        check=True,
    ).stdout


MIGRATE = """
import outbox_jobs
from django.core.management import call_command
call_command("migrate", verbosity=0)
call_command("makemigrations", "--check", "--dry-run", "leaseq_outbox")
"""
JOIN = """
from outbox_jobs import join, outbox, transaction
import leaseq
print(join("Ada"))
try:
    with transaction.atomic():
        join("Grace")
        raise ZeroDivisionError
except ZeroDivisionError:
    pass
outbox.add_item(leaseq.Item(b"x"), "orders", priority=3)
"""


@pytest.mark.slow
def test_the_relay_of_django(url: str, tmp_path: Path) -> None:
    django_files(tmp_path, url)
    assert "No changes detected" in python(tmp_path, MIGRATE)
    with App(url) as app, leaseq.WorkQueue("orders", url) as queue:
        job_id = python(tmp_path, JOIN).strip()
        line = block(PAGE, "console", "python -m django").text
        variables = {"DJANGO_SETTINGS_MODULE": "outbox_settings"}
        with service(line, tmp_path, {**variables, "PYTHONPATH": f"{tmp_path}:{ROOT / 'python'}"}):
            until(lambda: queue.stats().ready and app.queue().stats().ready)
        assert app.queue().stats().added == 1
        assert app.handle(job_id).status() == "ready"


BAD_ROWS = """
import outbox_jobs
from leaseq.outbox.django.models import OutboxRow
import leaseq
outbox_jobs.outbox.add_item(leaseq.Item(b"", id="high"), "q", priority=99)
for number in range(3):
    outbox_jobs.join(f"ada{number}")
from leaseq.outbox import Relay
from leaseq.outbox.django import rows
outbox_jobs.app.queue().configure(max_items=2)
with Relay(outbox_jobs.settings.LEASEQ_URL, rows()) as relay:
    print(relay.run_once(), relay.refused, relay.left())
print([(row.queue, row.tried is None, row.error) for row in OutboxRow.objects.order_by("id")])
outbox_jobs.app.close()
"""


@pytest.mark.slow
def test_rows_of_django_are_refused_and_put_back(url: str, database: str, tmp_path: Path) -> None:
    django_files(tmp_path, url, database)
    python(tmp_path, MIGRATE)
    lines = python(tmp_path, BAD_ROWS).splitlines()
    assert lines[0] == "2 1 True"
    assert re.fullmatch(r"\[\('q', False, '.*priority must be .*'\), \('default', True, None\)\]", lines[1])


ORDER = """
from outbox_jobs import app, join
for number in range(5):
    join(f"ada{number}")
app.close()
"""
KILLED = """
import os
import signal
import outbox_jobs
from leaseq.jobs.store._sync.store import Store
from leaseq.outbox import Relay
from leaseq.outbox.django import rows

class KilledStore(Store):
    def add(self, *args):
        super().add(*args)
        os.kill(os.getpid(), signal.SIGKILL)

class KilledRelay(Relay):
    def _open(self, group):
        return KilledStore(self._opened.client, group)

with KilledRelay(outbox_jobs.settings.LEASEQ_URL, rows()) as relay:
    relay.run_once()
"""
WORK = """
from outbox_jobs import app
print(app.run_worker(burst=True, processes=1))
app.close()
"""
RELAY = """
import outbox_jobs
from leaseq.outbox import Relay
from leaseq.outbox.django import rows
for _ in range(2):
    with Relay(outbox_jobs.settings.LEASEQ_URL, rows()) as relay:
        print(relay.run_once())
"""


@pytest.mark.slow
def test_a_killed_relay_of_django_is_repeated(url: str, database: str, tmp_path: Path) -> None:
    django_files(tmp_path, url, database)
    python(tmp_path, MIGRATE)
    python(tmp_path, ORDER)
    with pytest.raises(subprocess.CalledProcessError) as killed:
        python(tmp_path, KILLED)
    assert killed.value.returncode == -signal.SIGKILL
    assert python(tmp_path, WORK) == "5\n"
    assert python(tmp_path, RELAY) == "5\n0\n"
    with App(url) as app:
        assert app.queue().stats().added == 5


@pytest.mark.slow
def test_django_and_sqlalchemy_share_the_table(url: str, tmp_path: Path) -> None:
    django_files(tmp_path, url)
    python(tmp_path, MIGRATE)
    job_id = python(tmp_path, JOIN).strip()
    done = Calls(url)("outbox", "relay", "--once", "--database", f"sqlite:///{tmp_path / 'shop.sqlite3'}")
    assert done.code == 0
    with App(url) as app:
        assert app.handle(job_id).status() == "ready"
