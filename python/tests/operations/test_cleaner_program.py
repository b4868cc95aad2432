"""The program `leaseq-cleaner`: settings, one line and a code for whatever is wrong, signals, what it serves over HTTP."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import promql_parser
import pytest
from prometheus_client.parser import text_string_to_metric_families
from support import crowd, servers
from support.alert_rules import alert_rules, selectors
from support.full_pipe import full_pipe

import leaseq
from leaseq import Item
from leaseq.cli.exit_codes import ExitCode
from leaseq.extras import install_command
from leaseq_cleaner.cli import main
from leaseq_cleaner.command import MEANINGS
from leaseq_cleaner.service import MAX_CONCURRENT_CALLS
from leaseq_conformance.acl_suite import roles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import redis

TIMEOUT_SECS = 60.0
PROGRAM = Path(sys.executable).with_name("leaseq-cleaner")


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("LEASEQ_CLEANER_", "REDIS_URL"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("LEASEQ_CLEANER_LISTEN", "off")  # the default port is everybody's


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """Run the program in this process: its code, stdout, stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["leaseq-cleaner", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        output = capsys.readouterr()
        return int(end.value.code or 0), output.out, output.err

    return run


Run = "Callable[..., tuple[int, str, str]]"


def one_line(error: str) -> str:
    """The one line that it is."""
    assert error.count("\n") == 1, error
    assert error.startswith("leaseq-cleaner: ")
    return error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no server: say --url redis://HOST, or set LEASEQ_CLEANER_URL or REDIS_URL"),
        (["--what"], "No such option '--what'"),
        (["more"], "unexpected extra argument"),
        (["--url"], "requires an argument"),
        (["--url", "what://secret@host"], "this is not a server URL"),
        (["--url", "redis+sentinel://secret@"], "not a URL of a set of servers"),
        (["-u", "redis://h", "--queue", "a b"], "names no queue"),
        (["-u", "redis://h", "--light-every", "soon"], "'soon' is no duration"),
        (["-u", "redis://h", "--light-every", "1ms"], "--light-every is at least 50ms"),
        (["-u", "redis://h", "--deep-every", "-1"], "is no duration"),
        (["-u", "redis://h", "--deep-rate", "0"], "'--deep-rate'"),
        (["-u", "redis://h", "--dead-for", "0s"], "--dead-for is more than 0"),
        (["-u", "redis://h", "--dead-most", "0"], "'--dead-most'"),
        (["-u", "redis://h", "--listen", "9742"], "write HOST:PORT, or off"),
        (["-u", "redis://h", "--listen", "h:99999"], "write HOST:PORT, or off"),
        (["-u", "redis://h", "--metrics-limit", "-1"], "'--metrics-limit'"),
        (["-u", "redis://h", "--metrics-limit", "all"], "'--metrics-limit'"),
        (["-u", "redis://h", "--metrics-queue", "a b"], "names no queue"),
        (["-u", "redis://h", "--log-format", "xml"], "'--log-format'"),
        (["-u", "redis://h", "--log-level", "loud"], "'--log-level'"),
        (["--config", "/nowhere/at.toml"], "/nowhere/at.toml: No such file"),
        (["--config", "/"], "Is a directory"),
    ],
)
def test_a_bad_flag_is_one_line_and_2(run: Any, arguments: list[str], message: str) -> None:
    code, out, error = run(*arguments)
    assert (code, out) == (ExitCode.BAD_INPUT, "")
    assert message in one_line(error)
    assert "secret" not in error


@pytest.mark.parametrize(("redirection", "code"), [("", 141), (">&-", 0)])
def test_nobody_reads_what_once_did(url: str, redirection: str, code: int) -> None:
    read, write = os.pipe()
    os.close(read)
    call = f'exec "$@" --once --queue orders {redirection}'
    with os.fdopen(write, "wb") as out:
        done = subprocess.run(
            ["sh", "-c", call, "sh", PROGRAM, "-u", url],
            stdout=out,
            stderr=subprocess.PIPE,
            timeout=TIMEOUT_SECS,
            check=False,
        )
    assert (done.returncode, done.stderr) == (code, b"")


def test_the_output_cannot_be_written(url: str) -> None:
    with Path("/dev/full").open("wb") as out:
        done = subprocess.run(
            [PROGRAM, "-u", url, "--once", "--queue", "orders"],
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            timeout=TIMEOUT_SECS,
            check=False,
        )
    assert done.returncode == ExitCode.IO
    assert "No space left" in one_line(done.stderr)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("url = ", "is no TOML"),
        (
            "uri = 'redis://h'",
            "unknown key 'uri'; there are dead-for, dead-most, deep-every, deep-rate, light-every, listen",
        ),
        ("once = true", "unknown key 'once'"),
        ("[cleaner]\nurl = 'redis://h'", "unknown key 'cleaner'"),
        ("queue = 'orders'", "queue: must be a list of strings"),
        ("queue = [1]", "queue: must be a list of strings"),
        ("light-every = true", "light-every: must be a string or a number"),
        ("light-every = 'soon'", "light-every: 'soon' is no duration"),
        ("deep_rate = 0", "deep_rate: "),
        ("log-format = 'xml'", "log-format: "),
    ],
)
def test_a_bad_file_is_one_line_that_names_the_key(run: Any, tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "cleaner.toml"
    file.write_text(text)
    code, out, error = run("--config", str(file))
    assert (code, out) == (ExitCode.BAD_INPUT, "")
    assert str(file) in one_line(error)
    assert message in error


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("LEASEQ_CLEANER_LIGHT_EVERY", "soon", "no duration"),
        ("LEASEQ_CLEANER_DEEP_RATE", "many", "many"),
        ("LEASEQ_CLEANER_LISTEN", "x", "HOST:PORT"),
        ("LEASEQ_CLEANER_QUEUE", "good bad/", "'bad/' names no queue"),
    ],
)
def test_a_bad_environment(
    run: Any, monkeypatch: pytest.MonkeyPatch, name: str, value: str, message: str
) -> None:
    monkeypatch.setenv(name, value)
    code, _, error = run("--url", "redis://h", "--once")
    assert code == ExitCode.BAD_INPUT
    assert message in one_line(error)


class TestServersThatFail:
    def test_a_dead_server(self, run: Any, closed_url: str) -> None:
        for more in (["--listen", "off"], ["--once"], ["--dry-run"], ["--listen", "off", "--queue", "q"]):
            code, out, error = run("--url", closed_url, *more)
            if more[-1] == "q":
                assert (code, out) == (ExitCode.NO_SERVER, "")
            assert (code, out) == (ExitCode.NO_SERVER, "")
            assert "the server cannot be reached" in one_line(error)

    def test_a_wrong_password(self, run: Any, own_server: servers.StartServer) -> None:
        server = own_server()
        with server.client() as client:
            client.config_set("requirepass", "right")
        for url in (server.url, server.url.replace("//", "//:wrong@")):
            code, _, error = run("--url", url, "--listen", "off")
            assert code == ExitCode.NO_SERVER
            assert "wrong@" not in one_line(error)

    @pytest.mark.parametrize(
        ("lacks", "queues"), [("+sscan", []), ("+evalsha", ["-q", "q"]), ("+zrangebyscore", ["-q", "q"])]
    )
    def test_a_right_that_is_refused(
        self, run: Any, redis_client: redis.Redis, url: str, lacks: str, queues: list[str]
    ) -> None:
        rights = [right for right in roles()["cleaner"][1] if right != lacks]
        user = ["reset", "on", ">password", "~leaseq:*", "-@all", "+client", "+hello", *rights]
        redis_client.execute_command("ACL", "SETUSER", "janitor", *user)  # type: ignore[no-untyped-call]
        try:
            code, _, error = run(
                "--url", url.replace("//", "//janitor:password@"), "--listen", "off", *queues
            )
        finally:
            redis_client.execute_command("ACL", "DELUSER", "janitor")  # type: ignore[no-untyped-call]
        assert code == ExitCode.NO_SERVER
        assert "lacks a right" in one_line(error)
        assert "password" not in error

    def test_an_address_that_is_taken(self, run: Any, url: str) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            code, _, error = run("--url", url, "--listen", f"127.0.0.1:{taken.getsockname()[1]}")
        assert code == ExitCode.BAD_INPUT
        assert "--listen takes another HOST:PORT, or off" in one_line(error)

    def test_what_nobody_foresaw(self, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(*_: object, **__: object) -> None:
            raise RuntimeError("two\nlines")

        monkeypatch.setattr("leaseq_cleaner.command.Cleaner", broken)
        code, _, error = run("--url", "redis://h")
        assert code == ExitCode.BUG
        assert "Traceback" in error
        assert error.endswith("RuntimeError: two\nlines\n")


def content(client: redis.Redis) -> dict[bytes, Any]:
    """Return what all keys hold. Not DUMP: the order of a hash changes while its table grows."""
    reads: dict[bytes, Callable[[bytes], Any]] = {
        b"hash": client.hgetall,
        b"zset": lambda key: client.zrange(key, 0, -1, withscores=True),
        b"set": client.smembers,
        b"list": lambda key: client.lrange(key, 0, -1),
        b"string": client.get,
    }
    keys: Any = client.keys()
    kinds: dict[bytes, Any] = {key: client.type(key) for key in keys}
    return {key: reads[kinds[key]](key) for key in keys}


class TestOnce:
    @pytest.fixture
    def damaged(self, url: str, redis_client: redis.Redis) -> Iterator[leaseq.WorkQueue]:
        with leaseq.WorkQueue("orders", url) as queue, leaseq.WorkQueue("mail", url, group="shop") as other:
            queue.add_items(Item(b"x", id=f"{n}") for n in range(600))
            other.add_item(Item(b"x"), delay=0.001)
            redis_client.zremrangebyrank("leaseq:{orders}:orders:ready", 0, 299)
            yield queue

    def test_dry_run_then_once(
        self, run: Any, url: str, redis_client: redis.Redis, damaged: leaseq.WorkQueue
    ) -> None:
        before = content(redis_client)
        code, out, error = run("--url", url, "--dry-run")
        assert (code, error) == (ExitCode.NO, "")
        assert out == "shop/mail: nothing to do\norders: would repair: unplaced 300\n"
        assert content(redis_client) == before, "nothing was written"
        code, out, error = run("--url", url, "--once", "--deep-rate", "1000")
        assert (code, error) == (ExitCode.DONE, "")
        assert out == "shop/mail: promoted 1\norders: repaired: unplaced 300\n"
        assert damaged.stats().ready == 600
        assert run("--url", url, "--dry-run")[0] == ExitCode.DONE

    def test_json(self, run: Any, url: str, damaged: leaseq.WorkQueue) -> None:
        _, out, _ = run("--url", url, "--dry-run", "--log-format", "json", "-q", "ord*")
        (record,) = map(json.loads, out.splitlines())
        assert record == {
            "queue": "orders",
            "group": "orders",
            "moved": {"promoted": 0, "reclaimed": 0, "died": 0, "expired": 0, "pruned": 0},
            "repairs": {"unplaced": 300},
            "purged": 0,
            "dry_run": True,
            "error": None,
        }

    def test_dead_letters_that_are_old_or_too_many_are_deleted(self, run: Any, url: str) -> None:
        with leaseq.WorkQueue("orders", url) as queue:
            queue.add_items(Item(b"", id=str(number)) for number in range(5))
            for item in queue.lease_items(5, 60):
                queue.dead_letter(item)
            assert run("--url", url, "--dry-run", "--dead-most", "2")[1] == "orders: nothing to do\n"
            code, out, _ = run("--url", url, "--once", "--dead-for", "1h", "--dead-most", "2")
            assert (code, out) == (ExitCode.DONE, "orders: purged 3 dead letters\n")
            assert [info.id for info in queue.dead_letters()] == ["3", "4"]
            out = run("--url", url, "--once", "--dead-for", "1ms", "--log-format", "json")[1]
            assert json.loads(out)["purged"] == 2
            assert queue.stats().purged == 5

    def test_a_queue_that_fails_hinders_no_other(
        self, run: Any, url: str, redis_client: redis.Redis, damaged: leaseq.WorkQueue
    ) -> None:
        redis_client.set("leaseq:{bad}:bad:items", "mine")
        code, out, _ = run("--url", url, "--once", "-q", "bad", "-q", "orders")
        assert code == ExitCode.NO
        assert re.fullmatch(r"bad: failed: .*\norders: repaired: unplaced 300\n", out)

    def test_settings_of_three_places(
        self, run: Any, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damaged: leaseq.WorkQueue
    ) -> None:
        """A flag goes before the environment, that before the file."""
        file = tmp_path / "cleaner.toml"
        file.write_text(f'url = "{url}"\nqueue = ["orders"]\nlog-format = "json"\ndeep-rate = 1000\n')
        assert json.loads(run("--config", str(file), "--dry-run")[1])["queue"] == "orders"
        monkeypatch.setenv("LEASEQ_CLEANER_CONFIG", str(file))
        assert json.loads(run("--dry-run")[1])["queue"] == "orders"
        monkeypatch.setenv("LEASEQ_CLEANER_QUEUE", "shop/mail other")
        assert [json.loads(line)["queue"] for line in run("--dry-run")[1].splitlines()] == ["mail", "other"]
        assert json.loads(run("--dry-run", "-q", "third")[1])["queue"] == "third"
        monkeypatch.setenv("LEASEQ_CLEANER_DRY_RUN", "1")
        monkeypatch.setenv("LEASEQ_CLEANER_LOG_FORMAT", "text")
        assert run()[1] == "shop/mail: nothing to do\nother: nothing to do\n"

    def test_the_servers_usual_variable(self, run: Any, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("REDIS_URL", url)
        assert run("--dry-run", "-q", "q") == (0, "q: nothing to do\n", "")


def test_help_and_version(run: Any) -> None:
    code, out, _ = run("--help")
    assert code == 0
    assert run("-h") == (code, out, "")
    for number, meaning in MEANINGS.items():
        assert f"{number}  {meaning}" in out
    assert run("--version") == (0, f"leaseq-cleaner {leaseq.__version__}\n", "")


class Service:
    """The program as a service, in a separate process."""

    def __init__(self, url: str, *arguments: str, stderr: int = subprocess.PIPE) -> None:
        self._reserved = servers.ReservedPort()
        self.port = self._reserved.number
        command: list[str] = [str(PROGRAM), "--url", url, "--listen", f"127.0.0.1:{self.port}", *arguments]
        self.process = subprocess.Popen(command, stderr=stderr, text=True)

    def get(self, path: str) -> tuple[int, str]:
        """Status and text."""
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self.port}{path}", timeout=TIMEOUT_SECS
            ) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def wait(self, check: Callable[[], object], pause: float = 0.0) -> None:
        """Until it is so. `pause` is between two looks, in seconds: they take time from the service."""

        def checked() -> object:
            time.sleep(pause)
            assert self.process.poll() is None, "it has ended"
            with contextlib.suppress(OSError):
                return check()
            return False

        servers.wait_until(checked, TIMEOUT_SECS)

    def ready(self) -> bool:
        """Return whether it says so."""
        return self.get("/readyz")[0] == 200

    def end(self, *numbers: int) -> str:
        """Return what it logged until these signals ended it."""
        for number in numbers:
            self.process.send_signal(number)
        _, log = self.process.communicate(timeout=TIMEOUT_SECS)
        assert isinstance(log, str)
        return log

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()
        self._reserved.close()


FROM_FIRST_FAILURE = {"leaseq_cleaner_errors_total"}
"""Its labels are the errors: its alert wants more than ten."""


def unread(scraped: str) -> set[str]:
    """Return the metrics that alerts read, and that a scrape has no series of, with the labels that they select."""
    series = [
        (sample.name, sample.labels)
        for family in text_string_to_metric_families(scraped)
        for sample in family.samples
    ]

    def is_there(selector: promql_parser.VectorSelector) -> bool:
        return any(
            name == selector.name
            and all(
                (labels.get(each.name) == each.value) == (each.op == promql_parser.MatchOp.Equal)
                for each in selector.matchers.matchers
            )
            for name, labels in series
        )

    return {
        selector.name or ""
        for rule in alert_rules()
        for selector in selectors(rule["expr"])
        if not is_there(selector)
    }


class TestService:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_a_signal_ends_it_in_order(self, url: str, number: int) -> None:
        with leaseq.WorkQueue("q", url) as queue, Service(url, "--log-format", "json") as service:
            queue.add_item(Item(b"x"), delay=0.001)
            service.wait(service.ready)
            servers.wait_until(lambda: queue.stats().ready == 1, TIMEOUT_SECS)
            log = [json.loads(line) for line in service.end(number).splitlines()]
        assert service.process.returncode == 0
        messages = [entry["message"] for entry in log]
        assert any(message.startswith("serving http://127.0.0.1:") for message in messages)
        assert messages[-2:] == [f"stopping, on {signal.Signals(number).name}", "stopped"]
        assert {"time", "level", "logger", "message"} == set(log[0])

    def test_it_cleans_although_nobody_reads_its_log(self, url: str) -> None:
        with (
            leaseq.WorkQueue("q", url) as queue,
            full_pipe() as stderr,
            Service(url, "--light-every", "50ms", "--log-level", "debug", stderr=stderr) as service,
        ):
            queue.add_item(Item(b"x"), delay=0.001)
            service.wait(service.ready)
            service.wait(lambda: queue.stats().ready == 1)
            service.process.send_signal(signal.SIGTERM)
            assert service.process.wait(TIMEOUT_SECS) == 0

    @pytest.mark.slow
    def test_a_second_signal_does_not_wait(self, own_server: servers.StartServer) -> None:
        """A call is under way that never ends, as the server is frozen."""
        server = own_server()
        with server.client() as client:
            client.sadd("leaseq:queues", *(f"q{n}:q{n}" for n in range(50)))
        with Service(f"{server.url}?socket_timeout=3600", "--light-every", "50ms") as service:
            service.wait(service.ready)
            os.kill(server.pid, signal.SIGSTOP)
            try:
                service.wait(
                    lambda: (
                        f"\nleaseq_cleaner_calls_under_way {MAX_CONCURRENT_CALLS}.0\n"
                        in service.get("/metrics")[1]
                    )
                )
                service.process.send_signal(signal.SIGTERM)
                line = ""
                while "stopping, on SIGTERM" not in line:
                    assert service.process.stderr
                    line = service.process.stderr.readline()
                rest = service.end(signal.SIGTERM)
            finally:
                os.kill(server.pid, signal.SIGCONT)
        assert service.process.returncode == ExitCode.INTERRUPTED
        assert "Traceback" not in rest

    def test_metrics_over_http(self, url: str) -> None:
        with leaseq.WorkQueue("q", url, group="g") as queue:
            queue.add_items(Item(b"x", id=f"{n}") for n in range(5))
            queue.lease_items(2, 3600)
            queue.dead_letter(queue.lease(3600))  # type: ignore[arg-type]
            with Service(url, "-q", "g/q") as service:
                service.wait(lambda: "leaseq_items{" in service.get("/metrics")[1])
                status, text = service.get("/metrics")
        assert status == 200
        found: dict[str, dict[tuple[str, ...], float]] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                labels = {**sample.labels}
                if labels.get("group") == "*":
                    continue
                assert labels.pop("queue", "q") == "q"
                assert labels.pop("group", "g") == "g"
                found.setdefault(sample.name, {})[tuple(labels.values())] = sample.value
        assert found["leaseq_items"] == {("ready",): 2, ("delayed",): 0, ("leased",): 2, ("dead",): 1}
        assert found["leaseq_events_total"]["added",] == 5
        assert found["leaseq_events_total"]["leases",] == 3
        assert found["leaseq_next_item_wait_seconds"][()] > 0
        assert found["leaseq_overdue_leases"] == {(): 0}
        assert found["leaseq_cleaner_queues"] == {(): 1}
        assert found["leaseq_cleaner_server_up"] == {(): 1}
        assert found["leaseq_cleaner_call_seconds_count"]["stats",] >= 1

    @pytest.mark.slow
    def test_thousands_of_queues(self, own_server: servers.StartServer) -> None:
        """Bounded: bytes of /metrics, connections, memory. What alerts read is there, and each queue is cleaned."""
        server = own_server()
        with server.client() as client:
            named = crowd.fill(client, 2000, filled=30)
            client.config_resetstat()
            with Service(server.url) as service:
                service.wait(service.ready, 0.5)
                seen = 'leaseq_group_items{group="*",state="ready"} 120.0'
                service.wait(lambda: seen in service.get("/metrics")[1], 0.5)
                with leaseq.WorkQueue(named[-1].name, client) as queue:
                    queue.add_item(Item(b"x"), delay=0.001)
                    service.wait(lambda: queue.stats().promoted == 1)
                status, page = service.get("/metrics")
                memory = Path(f"/proc/{service.process.pid}/status").read_text()
                stats: Any = client.info("stats")
        assert status == 200
        assert len(page) < 1_000_000
        assert "\nleaseq_cleaner_hidden_queues 1850.0\n" in page
        assert unread(page) == FROM_FIRST_FAILURE
        assert all(f'leaseq_items{{group="{keys.group}",queue="{keys.name}",' in page for keys in named[:30])
        peak = re.search(r"VmHWM:\s+(\d+) kB", memory)
        assert peak
        assert int(peak[1]) < 70 * 1024
        assert stats["total_connections_received"] <= MAX_CONCURRENT_CALLS + 5

    @pytest.mark.slow
    def test_alerts_have_what_they_read_from_the_first_scrape_on(
        self, own_server: servers.StartServer
    ) -> None:
        """A series that comes with its first event is seen neither by a rate nor by `== 0`."""
        server = own_server("--appendonly", "yes")
        with leaseq.WorkQueue("q", server.url) as queue, Service(server.url) as service:
            queue.add_item(Item(b"x"))
            service.wait(lambda: "leaseq_items{" in service.get("/metrics")[1])
            assert unread(service.get("/metrics")[1]) == FROM_FIRST_FAILURE
            server.stop()
            service.wait(lambda: "\nleaseq_cleaner_server_up 0.0\n" in service.get("/metrics")[1])
            assert unread(service.get("/metrics")[1]) == set()
            server.start()
            service.wait(lambda: "\nleaseq_cleaner_server_restarts_total 1.0\n" in service.get("/metrics")[1])
            service.wait(service.ready)
            assert unread(service.get("/metrics")[1]) == set()

    @pytest.mark.slow
    def test_health_while_the_server_is_away(self, own_server: servers.StartServer) -> None:
        server = own_server("--appendonly", "yes")
        with leaseq.WorkQueue("q", server.url) as queue:
            queue.add_item(Item(b"x"))
        with Service(server.url) as service:
            service.wait(service.ready)
            assert service.get("/healthz") == (200, "ok\n")
            assert service.get("/readyz") == (200, "ok\n")
            server.stop()
            service.wait(lambda: service.get("/readyz") == (503, "the server does not answer\n"))
            assert service.get("/healthz") == (200, "ok\n"), "nothing that a restart would mend"
            server.start()
            service.wait(service.ready)
            assert service.get("/what")[0] == 404
            assert service.end(signal.SIGTERM).count("the server does not answer") == 1
        assert service.process.returncode == 0


def test_without_the_extra(tmp_path: Path) -> None:
    """As where `prometheus_client` is not installed."""
    (tmp_path / "prometheus_client.py").write_text(
        "raise ModuleNotFoundError('no', name='prometheus_client')"
    )
    done = subprocess.run(
        [sys.executable, "-c", "from leaseq_cleaner.cli import main; main()"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        timeout=TIMEOUT_SECS,
    )
    assert done.returncode == 2
    assert install_command("cleaner") in one_line(done.stderr)
