"""`leaseq exec`: real commands on a real shell, and how their exit codes decide."""

from __future__ import annotations

import array
import ctypes
import fcntl
import json
import os
import pty
import signal
import subprocess
import termios
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.cli_runner import Calls, Done, one_line
from support.full_pipe import full_pipe
from support.servers import wait_until

import leaseq
from leaseq.cli import workers
from leaseq.worker.registry import HeldItem, WorkerInfo

if TYPE_CHECKING:
    import contextlib
    from collections.abc import Iterator

    from support.servers import StartServer


LONG_SECS = 3600


@pytest.fixture
def queue(url: str) -> Iterator[leaseq.WorkQueue]:
    with leaseq.WorkQueue("q", url) as opened:
        yield opened


def start(
    call: Calls, *args: str, **options: Any
) -> contextlib.AbstractContextManager[subprocess.Popen[str]]:
    """`leaseq exec q ...`, which ends with the block at the latest."""
    return call.process("exec", "q", *args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def work(call: Calls, *args: str, **options: Any) -> Done:
    """`leaseq exec q --burst ...` to its end."""
    with start(call, "--burst", *args, **options) as working:
        out, err = working.communicate(timeout=150)
    return Done(working.returncode, out, err)


def gone(pid: int) -> bool:
    """Return whether a process is no more, or only its entry is left."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def pid_in(file: Path) -> int:
    """The pid that a command writes there, once it has."""
    wait_until(lambda: file.exists() and file.read_text(encoding="utf-8").endswith("\n"), 50)
    return int(file.read_text(encoding="utf-8"))


def test_a_shell_task(call: Calls, queue: leaseq.WorkQueue, tmp_path: Path) -> None:
    """A thousand lines are sorted in pieces, by three jobs at a time; the pieces make up the whole."""
    words = [f"word-{n * 7919 % 1000:03}" for n in range(1000)]
    for at in range(0, 1000, 50):
        queue.add_item(leaseq.Item("\n".join(words[at : at + 50]) + "\n", id=f"piece-{at}"))
    done = work(call, "--jobs", "3", "--", "sh", "-c", 'sort > "$LEASEQ_ID"', cwd=tmp_path)
    assert done.code == 0, done.err
    assert sum(line.startswith("completed piece-") for line in done.err.splitlines()) == 20
    files = [path.read_text(encoding="utf-8").split() for path in tmp_path.iterdir()]
    assert len(files) == 20
    assert all(lines == sorted(lines) for lines in files)
    assert sorted(word for lines in files for word in lines) == sorted(words)
    assert queue.stats().completed == 20


class TestExitCodes:
    def test_decide(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        codes = {"done": 0, "dead": 65, "again": 75, "failed": 3}
        queue.add_items(leaseq.Item(str(code), id=name) for name, code in codes.items())
        script = 'read code; echo "about $LEASEQ_ID" >&2; exit $code'
        done = work(call, "--jobs", "4", "--", "sh", "-c", script)
        assert (done.code, done.out) == (1, "")
        infos = {info.id: info for info in queue.inspect_items(list(codes))}
        assert infos["done"].state == "absent"
        assert (infos["dead"].state, infos["dead"].error) == ("dead", "exit code 65: about dead")
        assert (infos["again"].state, infos["again"].attempt) == ("delayed", 0)
        assert infos["failed"].state == "delayed"
        assert infos["failed"].attempt >= 1, "more where the run took longer than the pause"
        assert infos["failed"].error == "exit code 3: about failed"
        assert "dead dead after" in done.err
        assert "about dead\n" in done.err, "what the command says passes"

    def test_a_signal_is_a_failure(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        queue.add_item(leaseq.Item(b"data", id="a"))
        assert work(call, "--", "sh", "-c", "kill -9 $$").code == 1
        assert (queue.inspect("a").state, queue.inspect("a").error) == ("delayed", "ended by SIGKILL")

    def test_a_signal_without_a_name_is_one_too(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        queue.add_item(leaseq.Item(b"data", id="a"))
        assert work(call, "--", "bash", "-c", "kill -40 $$").code == 1
        assert queue.inspect("a").error == "ended by signal 40"

    def test_other_codes_may_mean_death(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        queue.add_items([leaseq.Item(b"4", id="a"), leaseq.Item(b"5", id="b"), leaseq.Item(b"65", id="c")])
        work(call, "--dead-on", "4", "--dead-on", "5", "--", "sh", "-c", "exit $(cat)")
        assert [info.state for info in queue.inspect_items(list("abc"))] == ["dead", "dead", "delayed"]

    def test_75_is_death_if_it_is_said(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        """`--dead-on` goes before the usual meaning of 75."""
        queue.add_item(leaseq.Item(b"data", id="a"))
        work(call, "--dead-on", "75", "--", "sh", "-c", "exit 75")
        assert (queue.inspect("a").state, queue.inspect("a").attempt) == ("dead", 1)

    def test_attempts_end(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        queue.add_item(leaseq.Item(b"data", id="a"))
        work(call, "--max-attempts", "1", "--", "false")
        assert (queue.inspect("a").state, queue.inspect("a").error) == ("dead", "exit code 1")

    def test_no_failure_is_0(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        queue.add_item(leaseq.Item(b"data", id="a"))
        assert work(call, "--", "true").code == 0
        assert work(call, "--", "true").code == 0, "nothing to do is no failure"


class TestCommand:
    def test_gets_data_and_what_is_known_of_the_item(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        item = leaseq.Item(b"\x00\xff" + b"x" * 300_000, id="a", headers={"k": "v"}, content_type="c/t")
        queue.add_item(item)
        script = 'env | grep ^LEASEQ_ | sort; printf "%s %s" "$1" "$(cksum)"'
        done = work(call, "--quiet", "--", "sh", "-c", script, "sh", "an argument")
        *env, last = done.lines
        variables = dict(line.split("=", 1) for line in env)
        variables = {name: value for name, value in variables.items() if name not in os.environ}
        token = variables.pop("LEASEQ_TOKEN")
        assert int(token) > 10**15
        assert variables == {
            "LEASEQ_ATTEMPT": "1",
            "LEASEQ_CONTENT_TYPE": "c/t",
            "LEASEQ_GROUP": "q",
            "LEASEQ_HEADERS": '{"k": "v"}',
            "LEASEQ_ID": "a",
            "LEASEQ_QUEUE": "q",
        }
        cksum = subprocess.run(["cksum"], input=item.data, capture_output=True, check=True).stdout.decode()
        assert last == f"an argument {cksum.strip()}"
        assert done.err == "", "--quiet"

    def test_need_not_read_its_data(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        queue.add_item(leaseq.Item(b"x" * 1_000_000, id="a"))
        assert work(call, "--", "true").code == 0

    @pytest.mark.parametrize("leave", ["", "setsid "], ids=["in its group", "in another"])
    def test_what_it_leaves_behind_holds_nothing_up(
        self, leave: str, call: Calls, queue: leaseq.WorkQueue, tmp_path: Path
    ) -> None:
        """A process that the command leaves behind holds its stderr open for an hour; `exec` does not wait for it."""
        queue.add_item(leaseq.Item(b"data", id="a"))
        script = f"{leave}sh -c 'echo $$ > pid; exec sleep 3600' > /dev/null & while [ ! -s pid ]; do sleep 0.02; done; echo last >&2; exit 65"
        try:
            assert work(call, "--", "sh", "-c", script, cwd=tmp_path).code == 1
        finally:
            left = pid_in(tmp_path / "pid")
            if leave:
                os.kill(left, signal.SIGKILL)  # ours to end
        assert queue.inspect("a").error == "exit code 65: last"
        wait_until(lambda: gone(left), 50)

    def test_its_output_can_be_the_result(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        queue.add_item(leaseq.Item(b"two books", id="a"), keep=3600)
        done = work(call, "--result", "--", "tr", "a-z", "A-Z")
        assert (done.code, done.out) == (0, "")
        assert queue.outcome("a").content == b"TWO BOOKS"

    def test_json_tells_how_each_ended(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        queue.add_items([leaseq.Item(b"0", id="a"), leaseq.Item(b"65", id="b")])
        done = work(call, "--json", "--", "sh", "-c", "echo printed; exit $(cat)")
        assert "printed" in done.err
        a, b = done.records
        assert a.pop("seconds") > 0
        assert b.pop("seconds") > 0
        assert a == {"id": "a", "state": "completed", "attempt": 1, "delay": 0, "error": None}
        assert b == {"id": "b", "state": "dead", "attempt": 1, "delay": 0, "error": "exit code 65"}

    def test_it_ends_when_nobody_reads_its_json(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        """Without this, it would wait for more items and report their ends to a closed pipe."""
        queue.add_item(leaseq.Item(b"data", id="a"))
        read, write = os.pipe()
        os.close(read)
        args = ("exec", "q", "--json", "--", "true")
        with call.process(*args, stdout=write, stderr=subprocess.PIPE) as working:
            os.close(write)
            _, err = working.communicate(timeout=150)
        assert (working.returncode, err) == (141, "")
        assert queue.stats().completed == 1

    def test_at_most_once(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        queue.add_items([leaseq.Item(b"0", id="a"), leaseq.Item(b"3", id="b")])
        done = work(call, "--at-most-once", "--json", "--", "sh", "-c", "exit $(cat)")
        assert done.code == 1
        assert {each["id"]: each["state"] for each in done.records} == {"a": "completed", "b": "failed"}
        assert queue.stats().items == 0


def test_leases_are_as_long_and_as_many_as_asked_for(
    call: Calls, queue: leaseq.WorkQueue, tmp_path: Path
) -> None:
    queue.add_items(leaseq.Item(b"", id=f"{n}") for n in range(5))
    script = "echo > at-$LEASEQ_ID; while [ ! -e go ]; do sleep 0.02; done"
    with start(
        call, "--burst", "--for", "2h", "-j", "3", "--quiet", "--", "sh", "-c", script, cwd=tmp_path
    ) as working:
        wait_until(lambda: len(list(tmp_path.glob("at-*"))) == 3, 50)
        leased = queue.list_items("leased").items
        assert len(leased) == 3
        now = queue.stats().now
        assert all(7100 < entry.time - now <= 7200 for entry in leased)
        (tmp_path / "go").touch()
        out, err = working.communicate(timeout=150)
    assert (working.returncode, out, err) == (0, "", "")
    assert queue.stats().completed == 5


def test_the_terminal_stops_no_command_that_reads_from_it(call: Calls, queue: leaseq.WorkQueue) -> None:
    queue.add_item(leaseq.Item(b"data"))
    master, slave = pty.openpty()
    try:
        done = work(
            call,
            "--",
            "sh",
            "-c",
            "sh -c 'read line < /dev/tty' || echo none",
            stdin=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # it is the program's terminal
        )
    finally:
        os.close(master)
        os.close(slave)
    assert (done.code, done.out) == (0, "none\n")


@pytest.mark.slow
class TestStopping:
    SCRIPT = "echo $$ > pid.new; mv pid.new pid; sleep 3600 & wait; echo never"
    FINISHING = "echo $$ > pid.new; mv pid.new pid; while [ ! -e go ]; do sleep 0.02; done; echo finished"

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "Ctrl-C"])
    def test_the_command_may_finish(
        self, number: signal.Signals, call: Calls, queue: leaseq.WorkQueue, tmp_path: Path
    ) -> None:
        queue.add_items([leaseq.Item(b"data", id="a"), leaseq.Item(b"data", id="b")])
        with start(call, "--grace", "1h", "--", "sh", "-c", self.FINISHING, cwd=tmp_path) as working:
            pid_in(tmp_path / "pid")
            working.send_signal(number)
            # it got the signal, and does not end while the command runs; then it leases no more
            wait_until(lambda: stopping(working), 50)
            (tmp_path / "go").touch()
            out, err = working.communicate(timeout=150)
        assert (working.returncode, out) == (0, "finished\n"), err
        assert queue.inspect("a").state == "absent"
        assert (queue.inspect("b").state, queue.inspect("b").attempt) == ("ready", 0)

    def test_a_second_signal_ends_it(self, call: Calls, queue: leaseq.WorkQueue, tmp_path: Path) -> None:
        queue.add_item(leaseq.Item(b"data", id="a"))
        with start(call, "--grace", "1h", "--", "sh", "-c", self.SCRIPT, cwd=tmp_path) as working:
            pid = pid_in(tmp_path / "pid")
            working.send_signal(signal.SIGTERM)
            wait_until(lambda: stopping(working), 50)
            working.send_signal(signal.SIGTERM)
            out, _ = working.communicate(timeout=150)
        assert (working.returncode, out) == (0, "")
        wait_until(lambda: gone(pid), 50)
        assert (queue.inspect("a").state, queue.inspect("a").attempt) == ("ready", 0)

    def test_after_the_grace_time_too(self, call: Calls, queue: leaseq.WorkQueue, tmp_path: Path) -> None:
        queue.add_item(leaseq.Item(b"data", id="a"))
        with start(call, "--grace", "0s", "--", "sh", "-c", self.SCRIPT, cwd=tmp_path) as working:
            pid = pid_in(tmp_path / "pid")
            working.send_signal(signal.SIGTERM)
            working.communicate(timeout=150)
        wait_until(lambda: gone(pid), 50)
        assert queue.inspect("a").state == "ready"

    def test_a_time_limit_ends_the_command(
        self, call: Calls, queue: leaseq.WorkQueue, tmp_path: Path
    ) -> None:
        queue.add_item(leaseq.Item(b"data", id="a"))
        done = work(call, "--time-limit", "1s", "--", "sh", "-c", self.SCRIPT, cwd=tmp_path)
        assert done.code == 1
        wait_until(lambda: gone(pid_in(tmp_path / "pid")), 50)
        info = queue.inspect("a")
        assert info.state == "delayed"
        assert info.attempt >= 1
        assert "took longer than 1 seconds" in info.error

    def test_a_removed_item_ends_the_command(
        self, call: Calls, queue: leaseq.WorkQueue, tmp_path: Path
    ) -> None:
        """The worker learns it when it extends: with a lease of 3 s after a second; the command would take an hour."""
        queue.add_item(leaseq.Item(b"data", id="a"))
        with start(call, "--for", "3s", "--burst", "--", "sh", "-c", self.SCRIPT, cwd=tmp_path) as working:
            pid = pid_in(tmp_path / "pid")
            assert queue.remove("a") == "leased"
            _, err = working.communicate(timeout=150)
        assert gone(pid)
        assert working.returncode == 1
        assert "lost a" in err

    def test_a_command_that_hears_no_sigterm_is_killed(
        self, call: Calls, queue: leaseq.WorkQueue, tmp_path: Path
    ) -> None:
        queue.add_item(leaseq.Item(b"data", id="a"))
        deaf = f"trap '' TERM; {self.SCRIPT}; while :; do sleep 1; done"
        with start(call, "--grace", "0s", "--", "sh", "-c", deaf, cwd=tmp_path) as working:
            pid = pid_in(tmp_path / "pid")
            working.send_signal(signal.SIGTERM)
            working.communicate(timeout=150)
        wait_until(lambda: gone(pid), 50)


def stopping(working: subprocess.Popen[str]) -> bool:
    """Return whether the worker has heard the signal: it is no longer pending, and the process lives."""
    status = Path(f"/proc/{working.pid}/status").read_text(encoding="utf-8")
    pending = [
        int(line.split()[1], 16) for line in status.splitlines() if line.startswith(("SigPnd", "ShdPnd"))
    ]
    assert working.poll() is None
    return not any(pending)


class TestRefused:
    def test_no_such_program(self, call: Calls) -> None:
        call.refused(2, "'no-such-program' is no program", "exec", "q", "--", "no-such-program")

    def test_no_time(self, call: Calls) -> None:
        call.refused(2, "leave it out for no limit", "exec", "q", "--time-limit", "0s", "--", "true")

    def test_no_command(self, call: Calls) -> None:
        call.refused(2, "Missing argument 'COMMAND", "exec", "q")

    def test_at_most_once_has_no_result(self, call: Calls) -> None:
        call.refused(
            2, "--at-most-once completes before", "exec", "q", "--at-most-once", "--result", "--", "true"
        )

    def test_a_server_that_is_away(self) -> None:
        Calls("redis://127.0.0.1:1").refused(3, "cannot be reached", "exec", "q", "--", "true")

    def test_a_user_who_may_only_read(self, own_server: StartServer) -> None:
        server = own_server()
        with server.client() as client:
            reads = ["+evalsha", "+eval", "+time", "+get", "+zrange", "+zcard", "+zscore"]
            client.acl_setuser("reader", enabled=True, nopass=True, reset=True, keys=["*"], commands=reads)
        Calls(server.url).yes("add", "q", "data")
        reader = Calls(server.url.replace("redis://", "redis://reader:x@"))
        done = reader("exec", "q", "--", "true")
        assert done.code in {3, 4}
        one_line(done.err, "the server user lacks a right")

    def test_a_worker_may_do_with_a_workers_rights(self, own_server: StartServer) -> None:
        """The list of spec/11-security.md."""
        spec = (Path(__file__).parents[3] / "spec" / "11-security.md").read_text(encoding="utf-8")
        (row,) = [line for line in spec.splitlines() if line.startswith("| worker |")]
        rights = row.split("`")[1].split()
        server = own_server()
        with server.client() as client:
            client.acl_setuser(
                "worker", enabled=True, nopass=True, reset=True, keys=["leaseq:*"], commands=rights
            )
        Calls(server.url).yes("add", "q", "data")
        worker = Calls(server.url.replace("redis://", "redis://worker:x@"))
        done = work(worker, "--json", "--", "true")
        assert [each["state"] for each in done.records] == ["completed"], done.err


def test_the_server_may_go_and_come_back(own_server: StartServer, tmp_path: Path) -> None:
    """One line in the log, and the work goes on."""
    server = own_server("--appendonly", "yes", "--appendfsync", "always")
    call = Calls(server.url)
    script = 'cat >> seen; echo >> seen; [ "$LEASEQ_ID" = a ] || exit 0; touch started; while [ ! -e go ]; do sleep 0.02; done'
    call.yes("add", "q", "first", "--id", "a")
    with start(call, "--json", "--", "sh", "-c", script, cwd=tmp_path) as working:
        wait_until((tmp_path / "started").exists, 50)
        server.stop()
        (tmp_path / "go").touch()
        assert working.stderr is not None
        assert "goes on trying" in working.stderr.readline()
        server.start()
        assert working.stdout is not None
        assert json.loads(working.stdout.readline())["state"] == "completed"
        call.yes("add", "q", "second", "--id", "b")
        assert json.loads(working.stdout.readline())["id"] == "b"
        working.send_signal(signal.SIGTERM)
        _, err = working.communicate(timeout=150)
    assert working.returncode == 0, err
    assert (tmp_path / "seen").read_text(encoding="utf-8").split() == ["first", "second"]


class TestWorkers:
    def test_a_live_one_is_listed_with_what_it_holds(
        self, call: Calls, queue: leaseq.WorkQueue, tmp_path: Path
    ) -> None:
        call.refused(1, "no worker lives", "workers")
        queue.add_item(leaseq.Item(b"data", id="a"))
        with start(call, "--grace", "0s", "--", "sh", "-c", TestStopping.SCRIPT, cwd=tmp_path) as working:
            pid_in(tmp_path / "pid")
            wait_until(lambda: call("workers").code == 0, 50)
            (head, row) = call.yes("workers").lines
            assert head.startswith("worker")
            assert f":{working.pid}:" in row
            wait_until(lambda: call.yes("workers").lines[1].split()[-1] == "busy", 50)
            (record,) = call.yes("workers", "q", "--json").records
            assert record["state"] == "busy"
            assert (record["pid"], record["concurrency"], record["queues"]) == (working.pid, 1, ["q:q"])
            call.refused(1, "no worker lives", "workers", "other")
            call.refused(1, "no worker lives", "workers", "q", "--group", "other")
            working.send_signal(signal.SIGTERM)
            working.communicate(timeout=150)
        assert call("workers", "--json").code == 1

    def test_a_group_needs_a_queue(self, call: Calls) -> None:
        call.refused(2, "--group is for a QUEUE", "workers", "--group", "shop")

    def test_a_server_that_is_away(self) -> None:
        Calls("redis://127.0.0.1:1").refused(3, "cannot be reached", "workers")

    def test_the_table(self) -> None:
        held = tuple(HeldItem("mails", "shop", f"\x1b{n}", 1, 90.0) for n in range(4))
        worker = WorkerInfo(
            "w", "host", 7, "leaseq 1", 0, True, 8, 12, 9, (("shop", "mails"), ("q", "q")), held
        )
        row = workers._row(worker)
        assert row[:6] == ("w", "leaseq 1", "shop:mails, q", 12, 9, 8)
        assert row[6].endswith("(1.5 min), and 6 more")
        assert row[7] == "stopping"


FLOOD = "i=0; while [ $i -lt 3000 ]; do echo 0123456789012345678901234567890123456789 >&2; i=$((i+1)); done"
"""More than a pipe holds."""


@pytest.mark.slow
class TestOutputThatCannotBeWritten:
    """The command goes on: a reader that is gone does not block it permanently, with its lease extended."""

    @pytest.mark.parametrize(
        "options", [(), ("--json",), ("--quiet",), ("--result",), ("--json", "--result")]
    )
    def test_of_a_closed_pipe(self, call: Calls, queue: leaseq.WorkQueue, options: tuple[str, ...]) -> None:
        queue.add_items([leaseq.Item(b"", id="a"), leaseq.Item(b"", id="b")])
        read, write = os.pipe()
        os.close(read)
        with call.process(
            "exec", "q", "--burst", *options, "--", "sh", "-c", FLOOD, stdout=subprocess.PIPE, stderr=write
        ) as working:
            os.close(write)
            out, _ = working.communicate(timeout=150)
        assert working.returncode == 0
        assert [json.loads(line)["state"] for line in out.splitlines()] == ["completed"] * 2 * (
            "--json" in options
        )
        assert queue.stats().completed == 2

    def test_on_a_full_disk(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        queue.add_item(leaseq.Item(b"", id="a"))
        with (
            Path("/dev/full").open("wb") as full,
            call.process(
                "exec", "q", "--burst", "--", "sh", "-c", FLOOD + "; exit 65", stderr=full
            ) as working,
        ):
            working.communicate(timeout=150)
        info = queue.inspect("a")
        assert info is not None
        assert (info.state, info.error) == ("dead", "exit code 65: " + "0123456789" * 4)

    def test_is_counted_and_said_at_the_end(
        self, call: Calls, queue: leaseq.WorkQueue, tmp_path: Path
    ) -> None:
        queue.add_item(leaseq.Item(b"", id="a"))
        pipe, go_on = tmp_path / "pipe", tmp_path / "go on"
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        writer = os.open(pipe, os.O_WRONLY)
        os.close(reader)
        command = f"{FLOOD}; echo > reached; while ! test -e '{go_on}'; do sleep 0.01; done"
        with call.process(
            "exec", "q", "--burst", "--quiet", "--", "sh", "-c", command, stderr=writer, cwd=tmp_path
        ) as working:
            os.close(writer)
            wait_until((tmp_path / "reached").exists, 50)
            reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
            go_on.touch()
            working.communicate(timeout=150)
            message = os.read(reader, 1 << 20).decode().splitlines(keepends=True)[-1]
            os.close(reader)
        one_line(message, "bytes of the commands' stderr could not be written")
        count = int(message.split()[2])
        assert 0 < count <= 3000 * 41

    def test_as_nobody_reads_it_keeps_no_signal_waiting(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        queue.add_item(leaseq.Item(b"", id="a"))
        read, write = os.pipe()
        with call.process(
            "exec", "q", "--grace", "10ms", "--", "sh", "-c", f"{FLOOD}; sleep {LONG_SECS}", stderr=write
        ) as working:
            os.close(write)
            wait_until(lambda: _readable(read) > PAGE_BYTES // 2, 50)
            working.send_signal(signal.SIGTERM)
            assert working.wait(50) == 0
        os.close(read)
        info = queue.inspect("a")
        assert info is not None
        assert (info.state, info.attempt) == ("ready", 0)

    def test_that_is_full_holds_no_stop_up(self, call: Calls, queue: leaseq.WorkQueue) -> None:
        """The log of a stop, with the items that go back, has no room."""
        queue.add_item(leaseq.Item(b"", id="a"))
        sleep = ("exec", "q", "--grace", "10ms", "--", "sleep", str(LONG_SECS))
        with full_pipe() as stderr, call.process(*sleep, stderr=stderr) as working:
            wait_until(lambda: queue.stats().leased == 1, 50)
            working.send_signal(signal.SIGTERM)
            assert working.wait(50) == 0


PAGE_BYTES = 4096


def _readable(descriptor: int) -> int:
    """Return how many bytes a pipe holds."""
    count = array.array("i", [0])
    fcntl.ioctl(descriptor, termios.FIONREAD, count)
    return count[0]


def adopt_orphans() -> None:
    """As process 1 of a container does; before the program is started."""
    ctypes.CDLL(None).prctl(36, 1)


def test_it_leaves_no_zombie_where_it_adopts_what_commands_leave(
    call: Calls, queue: leaseq.WorkQueue, tmp_path: Path
) -> None:
    left = tmp_path / "left"
    queue.add_item(leaseq.Item(b"", id="a"))
    command = f"setsid sh -c 'echo $$ > {left}; exec sleep 0.05' & while [ ! -s {left} ]; do sleep 0.01; done"
    with start(call, "--", "sh", "-c", command, preexec_fn=adopt_orphans):
        wait_until(lambda: left.exists() and left.read_text(), 50)
        wait_until(lambda: not Path(f"/proc/{int(left.read_text())}").exists(), 50)
        wait_until(lambda: not queue.queue_len() and not queue.processing(), 50)
