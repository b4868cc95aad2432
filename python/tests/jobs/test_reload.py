"""`leaseq worker --reload`: it starts again when a file of the program changes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Any, Self

import psutil
import pytest
from support import programs
from support.cli_runner import COMMAND, run_worker
from support.job_app import TIMEOUT_SECS, until

from leaseq import extras
from leaseq.cli.reload import folders_of
from leaseq.jobs import App

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MODULE = f"""
import os
import sys
import time
from leaseq.jobs import App

sys.path.append({str(programs.TESTS)!r})
from support.job_app import extend_program_timeouts

extend_program_timeouts()
app = App()

@app.job(name="version")
def version() -> str:
    import shop.version
    return shop.version.TEXT

@app.job(name="wait")
def wait() -> str:
    open("waiting", "x").close()
    while not os.path.exists("go on"):
        time.sleep(0.01)
    return version()
"""


class ReloadedWorker:
    """`leaseq worker --reload shop.tasks:app`, in a folder of a program."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.app = App(url)
        (folder / "shop").mkdir()
        (folder / "shop" / "tasks.py").write_text(MODULE)
        self.write("first")
        self._wrote = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed where the process is ended)
        self.process = subprocess.Popen(
            [*COMMAND, "worker", "--reload", "shop.tasks:app", "-p", "1", "--grace", "10m"],
            cwd=folder,
            env={**os.environ, "REDIS_URL": url},
            stderr=self._wrote,
        )

    def write(self, text: str) -> None:
        """Change a module of the program. Each text has another length, which Python's caches look at."""
        self.write_code(f"TEXT = {text!r}\n")

    def write_code(self, code: str) -> None:
        (self.folder / "shop" / "version.py").write_text(code)

    def version(self) -> Any:
        return self.app.enqueue("version").result(TIMEOUT_SECS)

    def log(self) -> str:
        return os.pread(self._wrote.fileno(), os.fstat(self._wrote.fileno()).st_size, 0).decode()

    def until_logged(self, text: str, times: int = 1) -> None:
        def logged() -> bool:
            assert self.process.poll() is None, self.log()
            return self.log().count(text) >= times

        until(logged)

    def end(self, *numbers: signal.Signals) -> int:
        for number in numbers or (signal.SIGTERM,):
            self.process.send_signal(number)
        return self.process.wait(TIMEOUT_SECS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            (self.folder / "go on").touch()
            self.end()
        self._wrote.close()
        self.app.close()


@pytest.fixture
def worker(tmp_path: Path, url: str) -> Iterator[ReloadedWorker]:
    with ReloadedWorker(tmp_path, url) as made:
        yield made


@pytest.mark.slow
def test_a_change_starts_the_worker_again(worker: ReloadedWorker, redis_client: Any) -> None:
    assert worker.version() == "first"
    worker.write("the second")
    worker.until_logged("reload: version.py changed")
    worker.until_logged("leaseq.cli.worker: leaseq ", 2)
    assert worker.version() == "the second"
    (worker.folder / "notes.txt").write_text("no module")
    (worker.folder / "shop" / "another.py").write_text("")
    worker.until_logged("reload: another.py changed")
    assert "notes.txt" not in worker.log()
    assert worker.end() == 0
    until(lambda: not redis_client.zcard("leaseq:workers"))


@pytest.mark.slow
def test_running_jobs_finish_before_it_starts_again(worker: ReloadedWorker) -> None:
    job = worker.app.enqueue("wait")
    until((worker.folder / "waiting").exists)
    worker.write("the second")
    worker.until_logged("stopping: running jobs have 600 s to finish")
    worker.write("the third one")
    worker.until_logged("reload: version.py changed", 2)
    assert worker.log().count("stopping") == 1
    (worker.folder / "go on").touch()
    assert job.result(TIMEOUT_SECS) == "the third one"  # it imports the module now
    assert job.info().attempt == 1
    worker.until_logged("leaseq.cli.worker: leaseq ", 2)
    assert worker.version() == "the third one"


@pytest.mark.slow
def test_a_program_that_cannot_be_imported_waits_for_the_next_change(worker: ReloadedWorker) -> None:
    assert worker.version() == "first"
    tasks = worker.folder / "shop" / "tasks.py"
    tasks.write_text("def wrong(:\n")
    worker.until_logged("reload: the worker ended with exit code 2; it starts again when a file changes")
    assert "SyntaxError" in worker.log()
    job = worker.app.enqueue("version")
    worker.write("mended")
    worker.until_logged("reload: the worker ended", 2)  # the other file is wrong still
    tasks.write_text(MODULE)
    assert job.result(TIMEOUT_SECS) == "mended"
    tasks.write_text("def wrong(:\n")
    worker.until_logged("reload: the worker ended", 3)
    assert worker.end() == 0


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_second_signal_releases_running_jobs(worker: ReloadedWorker, number: signal.Signals) -> None:
    job = worker.app.enqueue("wait")
    until((worker.folder / "waiting").exists)
    worker.process.send_signal(number)
    worker.until_logged("stopping: running jobs have 600 s to finish")
    assert worker.end(number) == 0
    assert worker.log().count("stopping at once") == 1
    assert job.status() == "ready"


@pytest.mark.slow
def test_a_signal_while_it_starts_again_lets_jobs_finish(worker: ReloadedWorker) -> None:
    job = worker.app.enqueue("wait")
    until((worker.folder / "waiting").exists)
    worker.write("the second")
    worker.until_logged("stopping: running jobs have 600 s to finish")
    worker.process.send_signal(signal.SIGTERM)
    (worker.folder / "go on").touch()
    assert worker.process.wait(TIMEOUT_SECS) == 0
    assert job.result(TIMEOUT_SECS) == "the second"
    assert worker.log().count("leaseq.cli.worker: leaseq ") == 1


@pytest.mark.slow
def test_a_worker_that_is_stopped_from_elsewhere_ends_it(worker: ReloadedWorker) -> None:
    assert worker.version() == "first"
    (child,) = psutil.Process(worker.process.pid).children()
    child.terminate()
    assert worker.process.wait(TIMEOUT_SECS) == 0


def test_what_cannot_be_reloaded_is_refused(tmp_path: Path, url: str) -> None:
    burst = run_worker(tmp_path, url, "--reload", "--burst", "shop.tasks:app")
    assert burst.returncode == 2
    assert "leave one of them out" in burst.stderr
    file = run_worker(tmp_path, url, "--reload", "shop/tasks.py:app")
    assert file.returncode == 2
    assert "name the module: shop.tasks:app" in file.stderr


def test_without_its_extra_it_says_how_to_install_it(tmp_path: Path) -> None:
    code = "import sys; sys.modules['watchfiles'] = None; from leaseq.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "worker", "--reload", "shop.tasks:app"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == (
        f"leaseq worker: --reload needs watchfiles; install it with: {extras.install_command('reload')}\n"
    )


def test_it_watches_this_folder_and_the_package_if_that_is_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    for folder in (here / "near", elsewhere / "far"):
        folder.mkdir(parents=True)
        (folder / "__init__.py").touch()
    (elsewhere / "single.py").touch()
    monkeypatch.chdir(here)
    monkeypatch.syspath_prepend(elsewhere)
    with contextlib.suppress(KeyError):
        del sys.modules["near"], sys.modules["far"]
    assert folders_of("near.tasks") == [here]
    assert folders_of("far.tasks") == [here, elsewhere / "far"]
    assert folders_of("single") == [here, elsewhere / "single.py"]
    assert folders_of("nowhere.tasks") == [here]
