"""Blocks that the pages ask an operator to paste work unchanged, on each server: settings, units, containers, shell lines."""

from __future__ import annotations

import configparser
import json
import re
import shutil
import signal
import subprocess
import threading
import urllib.error
import urllib.request
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support import page_server
from support.page_server import PageServer
from support.pasted import block, service, settings_of_operations, shell
from support.servers import WITH_TLS, ReservedPort, find_program, wait_until
from support.snippets import ROOT, blocks

import leaseq
import leaseq.doctor
import leaseq.jobs
import leaseq.registry
from leaseq.worker import Worker
from leaseq.worker.registry import live_workers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COMPOSE: dict[str, Any] = yaml.safe_load(block("docs/deployment.md", "yaml").text)["services"]
JOBS = """
import leaseq.jobs

app = leaseq.jobs.App()


@app.job(name="double")
def double(number: int) -> int:
    return 2 * number
"""


@pytest.fixture
def deployed(startable_name: str, tmp_path: Path) -> Iterator[PageServer]:
    """A server with the lines of docs/deployment.md, and with items of every state in the queue orders."""
    folder = tmp_path / "server"
    folder.mkdir()
    with PageServer(startable_name, folder) as started:
        page_server.fill(started.users["shop"])
        yield started


@pytest.fixture
def in_containers(startable_name: str, tmp_path: Path) -> Iterator[PageServer]:
    """A server with the arguments of the compose file."""
    folder = tmp_path / "composed"
    folder.mkdir()
    options = " ".join(COMPOSE["redis"]["command"][1:]).split("--")
    with PageServer(startable_name, folder, [option.strip() for option in options], users=[]) as started:
        yield started


def unit(text: str) -> configparser.SectionProxy:
    """The section [Service] of a unit."""
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    return parser["Service"]


@pytest.mark.each_server
@pytest.mark.parametrize("sync", ["everysec", "always"])
def test_the_settings_of_operations(sync: str, startable_name: str, tmp_path: Path) -> None:
    settings = settings_of_operations()
    assert settings[:4] == ["maxmemory-policy noeviction", "appendonly yes", "appendfsync everysec", "always"]
    assert all(setting.startswith("min-replicas-") for setting in settings[4:])
    with PageServer(startable_name, tmp_path, [*settings[:2], f"appendfsync {sync}"], users=[]) as server:
        page_server.fill(server.url)
        page_server.survives(server)


@pytest.mark.each_server
def test_the_server_of_the_compose_file(in_containers: PageServer) -> None:
    page_server.fill(in_containers.url)
    page_server.survives(in_containers)
    assert COMPOSE["redis"]["healthcheck"]["test"][-1] == "ping"
    with in_containers.client() as client:
        assert client.ping()


def worked(url: str, folder: Path, command: list[str] | str, variables: dict[str, str]) -> None:
    """Check that a worker runs a job."""
    (folder / "shop_jobs.py").write_text(JOBS)
    with service(command, folder, variables), leaseq.jobs.App(url) as app:
        assert app.job(name="double")(page_server.double).enqueue(4).result(timeout=60) == 8


@pytest.mark.slow
@pytest.mark.each_server
def test_the_worker_of_the_unit(deployed: PageServer, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"one line, `(.*?)`", page)
    name, _, url = line.partition("=")
    password = page_server.passwords(page_server.lines("user "))["shop"]
    url = url.replace("PASSWORD", password).replace("redis.internal", f"{deployed.host}:{deployed.port}")
    assert url == deployed.users["shop"]
    worked(url, tmp_path, unit(block("docs/deployment.md", "ini").text)["ExecStart"], {name: url})
    page_server.survives(deployed)


@pytest.mark.slow
@pytest.mark.each_server
def test_the_worker_of_the_containers(in_containers: PageServer, tmp_path: Path) -> None:
    dockerfile = block("docs/deployment.md", "dockerfile").text
    entry: list[str] = json.loads(re.findall(r"^ENTRYPOINT (.*)$", dockerfile, re.MULTILINE)[-1])
    worker = COMPOSE["worker"]
    variables = {name: of_this(value, in_containers) for name, value in worker["environment"].items()}
    worked(in_containers.url, tmp_path, [*entry, *worker["command"]], variables)


def of_this(url: str, server: PageServer) -> str:
    """A URL of the compose file, with this server's address."""
    return url.replace("redis://redis:6379", server.url)


def cleaned(url: str, folder: Path, command: list[str] | str, variables: dict[str, str]) -> None:
    """Check that a cleaner promotes a due item."""
    with leaseq.WorkQueue("orders", url) as queue:
        before = queue.stats().promoted
        queue.add_item(leaseq.Item(b"due"), delay=0.05)
        with service(command, folder, variables):
            wait_until(lambda: queue.stats().promoted > before)


@pytest.mark.slow
@pytest.mark.each_server
def test_the_cleaner_of_the_unit(deployed: PageServer, tmp_path: Path) -> None:
    settings = block("docs/cleaner.md", "toml").text
    place = "redis://cleaner:password@redis.internal:6379"
    assert place in settings
    (tmp_path / "cleaner.toml").write_text(settings.replace(place, deployed.users["cleaner"]))
    file = ROOT / "cleaner" / "systemd" / "leaseq-cleaner.service"
    command = unit(file.read_text(encoding="utf-8"))["ExecStart"].replace("%d", str(tmp_path))
    cleaned(deployed.users["operator"], tmp_path, command, {})


@pytest.mark.slow
@pytest.mark.each_server
def test_the_cleaner_of_the_containers(in_containers: PageServer, tmp_path: Path) -> None:
    dockerfile = (ROOT / "cleaner" / "Dockerfile").read_text(encoding="utf-8")
    entry: list[str] = json.loads(re.findall(r"^ENTRYPOINT (.*)$", dockerfile, re.MULTILINE)[-1])
    variables = {
        name: of_this(value, in_containers) for name, value in COMPOSE["cleaner"]["environment"].items()
    }
    cleaned(in_containers.url, tmp_path, entry, {"LEASEQ_CLEANER_LOG_FORMAT": "json", **variables})


@pytest.mark.slow
@pytest.mark.each_server
def test_the_lines_about_doctor(deployed: PageServer, tmp_path: Path) -> None:
    for line in block("docs/doctor.md", "sh").text.splitlines():
        printed = shell(f"{line} --role operator", tmp_path, {"REDIS_URL": deployed.users["operator"]})
        assert "eviction" in printed


@pytest.mark.slow
@pytest.mark.each_server
def test_the_lines_about_the_dashboard(deployed: PageServer, tmp_path: Path) -> None:
    lines = [each.text for each in blocks(ROOT / "docs" / "dashboard.md") if each.kind == "sh"]
    (install, alone), (add_user, beyond) = (text.splitlines() for text in lines)
    assert install.startswith("pip install")  # test_docs looks at its extra
    shell(f"printf 'secret\\nsecret\\n' | {add_user}", tmp_path, {})
    variables = {"REDIS_URL": deployed.users["operator"]}
    for line, status in ((alone, 200), (beyond, 401)):
        port = ReservedPort()
        given = re.sub(r" --(?:listen|url) \S+", "", line)
        with service(f"{given} --listen 127.0.0.1:{port.number}", tmp_path, variables):
            wait_until(lambda: _status(f"http://127.0.0.1:{port.number}/") == status)  # noqa: B023 (of this round)
        port.close()


def _status(address: str) -> int:
    """The status of a page; 0 if there is none."""
    try:
        with urllib.request.urlopen(address, timeout=30) as reply:  # noqa: S310 (of this machine)
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code
    except urllib.error.URLError:
        return 0


@pytest.mark.slow
@pytest.mark.each_server
def test_the_lines_about_the_cleaner(deployed: PageServer, tmp_path: Path) -> None:
    install, *lines = block("docs/cleaner.md", "sh").text.splitlines()
    assert install.startswith("pip install")  # test_docs looks at its extra
    for line in lines:
        here = line.replace("redis://localhost", deployed.users["cleaner"])
        if line.endswith(("--once", "--dry-run")):
            assert "orders" in shell(here, tmp_path, {})
        else:
            cleaned(deployed.users["operator"], tmp_path, here, {})


@pytest.mark.slow
@pytest.mark.each_server
def test_the_lines_about_export_and_import(
    deployed: PageServer, in_containers: PageServer, tmp_path: Path
) -> None:
    operator = deployed.users["operator"]
    for line in block("docs/transfer.md", "sh").text.splitlines():
        here = line.replace("redis://new", in_containers.url).replace("redis://old", operator)
        shell(here, tmp_path, {"REDIS_URL": operator})
        if " import " in line:
            with leaseq.WorkQueue("orders", in_containers.url) as copy:
                assert copy.stats().ready == 2
            in_containers.flush()
    assert (tmp_path / "orders.jsonl").stat().st_size > 100


@pytest.mark.each_server
def test_a_queue_is_deleted(deployed: PageServer, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"`(leaseq delete .*?)`", page)
    operator = deployed.users["operator"]
    with leaseq.WorkQueue("old", operator) as queue:
        queue.add_item(leaseq.Item(b"", id="a"))
        queue.remove("a")
    with deployed.client() as client:
        assert "old" in [queue.name for queue in leaseq.registry.queues(client)]
        shell(line.replace("QUEUE", "old"), tmp_path, {"REDIS_URL": operator})
        assert sorted(queue.name for queue in leaseq.registry.queues(client)) == ["default", "orders"]
        assert not list(client.scan_iter("leaseq:{old}:*"))


@pytest.mark.each_server
def test_what_doctor_says_to_do_is_what_to_do(startable_name: str, tmp_path: Path) -> None:
    ill = ["maxmemory-policy allkeys-lru", "appendonly no", 'save ""']
    with PageServer(startable_name, tmp_path, ill, users=[]) as server, server.client() as client:
        for _ in range(2):  # the second time for appendfsync, if that is no
            for finding in leaseq.doctor.doctor(client).findings:
                for command in re.findall(r"CONFIG SET [a-z-]+ [a-z0-9-]+", finding.do):
                    client.execute_command(*command.split())
        after = {one.check: one.status for one in leaseq.doctor.doctor(client).findings}
    assert (after["eviction"], after["persistence"]) == ("ok", "ok")


@pytest.mark.slow
def test_the_way_in_of_the_administrator(deployed: PageServer) -> None:
    page = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"`(redis-cli .*?)`", page)
    program = shutil.which("redis-cli") or find_program(f"{WITH_TLS}-cli")
    done = subprocess.run(
        [program, *line.split()[1:], "-p", str(deployed.port)],
        input=f"{page_server.passwords(page_server.lines('user '))['admin']}\nACL WHOAMI\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "admin\n"


def test_the_lines_about_users(tmp_path: Path) -> None:
    """They print what the servers of the other tests take."""
    first, second = shell(block("docs/deployment.md", "sh", "leaseq acl").text, tmp_path, {}).splitlines()
    assert first.startswith("ACL SETUSER shop reset on >CHANGE-ME ~leaseq:* -@all ")
    assert second.startswith("user producer reset on >CHANGE-ME ~leaseq:{orders}:* ~leaseq:queues -@all ")


@pytest.mark.slow
def test_the_lines_about_completion(tmp_path: Path) -> None:
    text = block("docs/cli.md", "sh").text
    shell(text, tmp_path, {"HOME": str(tmp_path)})
    for file in re.findall(r"> ~/(.*)$", text, re.MULTILINE):
        assert (tmp_path / file).stat().st_size > 100, file


@pytest.mark.slow
def test_the_programs_of_fastapi(tmp_path: Path) -> None:
    files(tmp_path, "docs/fastapi.md")
    worker, web = block("docs/fastapi.md", "console").text.splitlines()
    port = ReservedPort()
    totals = f"http://127.0.0.1:{port.number}/totals/order-1"

    def look(data: bytes | None = None) -> dict[str, Any]:
        request = urllib.request.Request(totals, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 (the one of uvicorn)
            found: dict[str, Any] = json.load(answer)
            return found

    def is_up() -> bool:
        try:
            return bool(look(b"[1.5, 2]"))
        except OSError:
            return False

    with (
        service(worker, tmp_path, {}),
        service(web, tmp_path, {"UVICORN_PORT": str(port.number)}, -signal.SIGTERM),
    ):
        wait_until(is_up)
        wait_until(lambda: look() == {"status": "succeeded", "total": 3.5})
    port.close()


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2], ids=["preload", "gevent"])
def test_the_programs_of_gunicorn(number: int, url: str, tmp_path: Path) -> None:
    """Each of its processes enqueues with the App that was made when the module was imported."""
    for one in blocks(ROOT / "docs" / "forks.md"):
        if one.file:
            (tmp_path / one.file).write_text(one.text.replace("embedded:data", url), encoding="utf-8")
    lines = block("docs/forks.md", "console").text.splitlines()
    port = ReservedPort()
    place = f"127.0.0.1:{port.number}"

    def look() -> str:
        try:
            with urllib.request.urlopen(f"http://{place}", timeout=30) as answer:
                return str(answer.read().decode())
        except OSError:
            return ""

    with (
        service(lines[0], tmp_path, {}),
        service(lines[number], tmp_path, {"GUNICORN_CMD_ARGS": f"--bind {place}"}),
        leaseq.jobs.App(url) as app,
    ):
        wait_until(look)
        ids = [look() for _ in range(20)]
        assert [app.handle(each).result(timeout=60) for each in ids] == [30] * 20
    port.close()


@pytest.mark.slow
def test_the_worker_of_django(tmp_path: Path) -> None:
    files(tmp_path, "docs/django.md")
    migrate = "import shop_jobs; from django.core.management import call_command; call_command('migrate', verbosity=0)"
    join = (
        "import shop_jobs; from django.contrib.auth import get_user_model as model;"
        " user = model().objects.create_user('ada');"
        " print(shop_jobs.greet.enqueue(user.pk).result(timeout=60))"
    )
    shell(f'python -c "{migrate}"', tmp_path, {})
    with service(block("docs/django.md", "console").text, tmp_path, {}):
        assert shell(f'python -c "{join}"', tmp_path, {}) == "Dear ada\n"


@pytest.mark.slow
def test_the_worker_of_several_queues(url: str, tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "tasks.py").write_text(JOBS)
    line = block("docs/jobs.md", "console", "leaseq worker shop.tasks:app").text
    with service(line, tmp_path, {"REDIS_URL": url}), leaseq.jobs.App(url) as app:
        double = app.job(name="double")(page_server.double)
        for queue in ("urgent", "default"):
            assert double.with_options(queue=queue).enqueue(4).result(timeout=60) == 8


@pytest.mark.slow
def test_the_worker_of_the_quick_start(tmp_path: Path) -> None:
    files(tmp_path, "docs/quickstart.md")
    total = "from shop import total; print(total.enqueue([10, 20], tax=0.5).result(timeout=60))"
    with service(block("docs/quickstart.md", "sh", "leaseq worker").text, tmp_path, {}):
        assert shell(f'python -c "{total}"', tmp_path, {}) == "45.0\n"


def is_in(server: str, state: str) -> bool:
    """Return whether all live workers are in a state."""
    return {each.state for each in live_workers(server)} == {state}


@pytest.mark.slow
def test_the_lines_about_steering(deployed: PageServer, tmp_path: Path) -> None:
    """The worker does what each line says, as the users of the page."""
    operator = deployed.users["operator"]
    with leaseq.WorkQueue("orders", deployed.users["shop"]) as queue:
        worker = Worker(queue, lambda _: None, handle_signals=False)
        working = threading.Thread(target=worker.run)
        working.start()
        wait_until(lambda: live_workers(operator), 60)
        first, *lines = block("docs/worker.md", "sh").text.splitlines()
        assert worker.id in shell(first, tmp_path, {"REDIS_URL": operator})
        for line, state in zip(lines[:2], ("quiet", "idle"), strict=True):
            shell(line.replace("web-3:4711:1f0c2a9b7d3e", worker.id), tmp_path, {"REDIS_URL": operator})
            wait_until(partial(is_in, operator, state), 60)
        shell(lines[2].replace("web-3:4711:1f0c2a9b7d3e", worker.id), tmp_path, {"REDIS_URL": operator})
        working.join(60)
        assert not working.is_alive()


@pytest.mark.slow
def test_the_lines_about_upgrading(deployed: PageServer, tmp_path: Path) -> None:
    """An old worker stops and a new one works, as the page says; its lines show who works, and that all is well."""
    (tmp_path / "shop_jobs.py").write_text(JOBS)
    worker = unit(block("docs/deployment.md", "ini").text)["ExecStart"]
    variables = {"REDIS_URL": deployed.users["shop"]}
    with leaseq.jobs.App(deployed.users["shop"]) as app:
        double = app.job(name="double")(page_server.double)
        with service(worker, tmp_path, variables):
            assert double.enqueue(4).result(timeout=60) == 8
        with service(worker, tmp_path, variables):
            assert double.enqueue(5).result(timeout=60) == 10
            printed = shell(
                block("docs/upgrading.md", "sh").text, tmp_path, {"REDIS_URL": deployed.users["operator"]}
            )
    assert f"leaseq-python {leaseq.__version__}" in printed


def files(folder: Path, page: str) -> None:
    """Write the modules of a page."""
    for one in blocks(ROOT / page):
        if one.file and not one.file.startswith("test_"):
            (folder / one.file).write_text(one.text, encoding="utf-8")
