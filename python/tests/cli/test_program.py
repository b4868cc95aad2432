"""The program `leaseq` as a whole: its help, its exit codes, and one line for whatever goes wrong."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest
from support.cli_runner import COMMAND, Calls, one_line, run
from support.servers import wait_until

import leaseq
from leaseq import registry
from leaseq.cli import exit_codes
from leaseq.cli.program import program
from leaseq.extras import install_command

if TYPE_CHECKING:
    from collections.abc import Iterator

    import redis
    from support.servers import RedisCluster, StartServer

    from leaseq_conformance.fault_proxy import Listener


def commands(group: click.Group, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command that does something, and how it is called."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, *path, name)
        else:
            yield (*path, name), command


ALL = dict(commands(program))
ON_QUEUE = [
    path
    for path, command in ALL.items()
    if command.params and command.params[0].name == "queue" and command.params[0].required
]
BESIDES = {
    "complete": ["id", "5"],
    "extend": ["id", "5"],
    "release": ["id", "5"],
    "inspect": ["id"],
    "promote": ["id"],
    "remove": ["id"],
    "expire": ["id"],
    "list": ["ready"],
    "add": ["data"],
    "exec": ["--burst", "--", "true"],
    "dead revive": ["id"],
    "dead purge": ["id"],
}
"""Arguments of a command after the queue."""


def full(path: tuple[str, ...]) -> list[str]:
    """A call that is right, on queue q."""
    return [*path, "q", *BESIDES.get(" ".join(path), [])]


def test_there_are_commands() -> None:
    assert {("add",), ("stats",), ("dead", "revive"), ("queues",)} <= set(ALL)
    assert len(ON_QUEUE) >= 15


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_each_command_has_a_help_with_an_example(path: tuple[str, ...]) -> None:
    done = Calls("")(*path, "--help")
    assert (done.code, done.err) == (0, "")
    assert re.search(r"\n  Examples?:\n", done.out)
    (example, *_) = re.findall(rf"leaseq {' '.join(path)}\b.*", done.out.split("Example", 1)[1])
    assert example
    for option in ALL[path].params:
        if isinstance(option, click.Option) and option.name != "help":
            assert option.help or option.show_default, f"{option.name} says nothing"


def test_the_program_lists_all_commands_and_all_codes() -> None:
    done = Calls("")("--help")
    for name in program.list_commands(click.Context(program)):
        assert re.search(rf"^  {name}  +[A-Z]", done.out, re.MULTILINE)
    for code, meaning in exit_codes.MEANINGS.items():
        assert re.search(rf"^  {code} +{re.escape(meaning[:40])}", done.out, re.MULTILINE)
    assert sorted(exit_codes.MEANINGS) == sorted(map(int, exit_codes.ExitCode))


def test_the_list_of_commands_has_a_line_for_each() -> None:
    commands, _ = Calls("")("--help").out.split("Exit codes:")
    for section in re.findall(r"^[A-Z].*:\n((?:  .*\n)+)", commands, re.MULTILINE):
        for line in section.splitlines():
            assert not line.endswith("...")
    names = program.list_commands(click.Context(program))
    listed = re.findall(r"^  ([a-z][a-z-]*)  +[A-Z].*\.$", commands, re.MULTILINE)
    assert listed == names


def test_the_program_of_a_python_is_its_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "leaseq", "--version"], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout.split()[0], done.stderr) == (0, "leaseq", "")


def test_version() -> None:
    done = Calls("")("--version")
    assert done.out == f"leaseq {leaseq.__version__}\n"


class TestBadInput:
    @pytest.mark.parametrize("path", ALL, ids=" ".join)
    def test_an_unknown_flag(self, path: tuple[str, ...]) -> None:
        done = Calls("").refused(2, "No such option", *path, "--no-such-flag")
        assert f"see leaseq {' '.join(path)} --help" in done.err

    def test_an_option_before_the_command(self) -> None:
        for flag in ("-u", "--url"):
            done = Calls("").refused(2, "No such option", flag, "redis://localhost", "queues")
            assert flag in done.err
            assert "options of a command go after its name" in done.err

    @pytest.mark.parametrize("path", ON_QUEUE, ids=" ".join)
    def test_no_queue_named(self, path: tuple[str, ...]) -> None:
        Calls("redis://127.0.0.1:1").refused(2, "Missing argument 'QUEUE'", *path)

    @pytest.mark.parametrize("path", ON_QUEUE, ids=" ".join)
    def test_no_server_named(self, path: tuple[str, ...]) -> None:
        Calls("").refused(2, "say --url redis://HOST or set REDIS_URL", *full(path))

    @pytest.mark.parametrize("path", ON_QUEUE, ids=" ".join)
    def test_no_name_of_a_queue(self, path: tuple[str, ...]) -> None:
        args = [each if each != "q" else "no/name" for each in full(path)]
        Calls("redis://127.0.0.1:1").refused(2, "1 to 100 of the characters", *args)

    def test_no_url(self) -> None:
        done = Calls("").refused(2, "not a server URL", "stats", "q", "--url", "http://secret@host")
        assert "secret" not in done.err

    def test_no_such_command(self) -> None:
        Calls("").refused(2, "No such command 'stat'. Did you mean 'stats'?", "stat")
        Calls("").refused(2, "No such command 'lst'. Did you mean 'list'?", "dead", "lst")
        Calls("").refused(2, "No such command 'zzz'", "zzz")

    @pytest.mark.parametrize(
        ("expected", "args"),
        [
            ("'5x' is no duration; write 30s", ["add", "q", "data", "--delay", "5x"]),
            ("'tomorrow' is no time; write 2026-", ["add", "q", "data", "--not-before", "tomorrow"]),
            ("which time zone", ["add", "q", "data", "--not-before", "2026-12-24T18:00:00"]),
            ("9 is not in the range", ["add", "q", "data", "--priority", "9"]),
            ("'x' is not NAME=VALUE", ["add", "q", "data", "--header", "x"]),
            ("say what to add", ["add", "q"]),
            ("--id is for a single item", ["add", "q", "a", "b", "--id", "x"]),
            ("stand alone", ["add", "q", "a", "--lines", "-"]),
            ("No such file", ["add", "q", "--lines", "/no/such/file"]),
            ("No such file", ["lease", "q", "--data", "/no/such/folder/file"]),
            ("leave --count out", ["lease", "q", "--count", "2", "--data", "/dev/null"]),
            (
                "--result and --result-file",
                ["complete", "q", "a", "5", "--result", "a", "--result-file", "-"],
            ),
            ("'x' is not a valid integer", ["complete", "q", "a", "x"]),
            ("--dead excludes", ["release", "q", "a", "5", "--dead", "--delay", "5s"]),
            ("ID... or --all", ["expire", "q"]),
            ("ID... or --all", ["expire", "q", "a", "--all"]),
            ("one of the three", ["dead", "revive", "q"]),
            ("one of the three", ["dead", "purge", "q", "a", "--all"]),
            ("'gone' is not one of", ["list", "q", "gone"]),
            ("'tcsh' is not one of", ["completion", "tcsh"]),
        ],
    )
    def test_a_bad_value(
        self, expected: str, args: list[str], call: Calls, redis_client: redis.Redis
    ) -> None:
        call.refused(2, expected, *args)
        assert redis_client.dbsize() == 0, "something was done"

    @pytest.mark.parametrize(
        ("expected", "args"),
        [
            ("LEASEQ_BAD_ID", ["add", "q", "data", "--id", "x" * 257]),
            ("LEASEQ_BAD_ARGUMENT", ["lease", "q", "--for", "31d"]),
            ("LEASEQ_BAD_ARGUMENT", ["add", "q", "data", "--delay", "5s", "--not-before", "1"]),
            ("LEASEQ_TOO_LARGE", ["add", "q", "x" * 1048577]),
        ],
    )
    def test_what_the_scripts_refuse(
        self, expected: str, args: list[str], call: Calls, redis_client: redis.Redis
    ) -> None:
        call.refused(2, expected, *args)
        assert redis_client.dbsize() == 0, "something was done"


class TestMissingQueue:
    LOOKING = ("stats", "peek", "list", "dead list", "pause", "resume", "configure", "clean", "drain")

    @pytest.mark.parametrize("name", LOOKING)
    def test_is_told(self, name: str, call: Calls, redis_client: redis.Redis) -> None:
        call.refused(1, "there is no queue q: nothing was ever added", *full(tuple(name.split())))
        assert redis_client.dbsize() == 0

    def test_in_another_group(self, call: Calls) -> None:
        call.yes("add", "mails", "data", "--group", "shop")
        call.refused(1, "there is one in group shop: say --group shop", "stats", "mails")
        assert call.yes("stats", "mails", "-g", "shop", "--json").document["ready"] == 1

    def test_one_that_has_a_limit_only_is_there(self, call: Calls) -> None:
        call.yes("configure", "q", "--max-data", "5")
        assert call.yes("configure", "q", "--json").document["max_data"] == 5


class TestServer:
    @pytest.mark.parametrize("path", ON_QUEUE, ids=" ".join)
    def test_away(self, path: tuple[str, ...]) -> None:
        Calls("redis://127.0.0.1:1").refused(3, "the server cannot be reached", *full(path))

    def test_queues_away(self) -> None:
        Calls("redis://127.0.0.1:1").refused(3, "the server cannot be reached", "queues")

    def test_wrong_password(self, own_server: StartServer) -> None:
        server = own_server()
        call = Calls(server.url.replace("redis://", "redis://:wr0ng@"))
        call.refused(3, "The server has no password: leave it out of the URL", "stats", "q")
        with server.client() as client:
            client.config_set("requirepass", "right")
        done = call.refused(3, "refused the user or password", "stats", "q")
        assert "wr0ng" not in done.err
        # Redis 7 refuses a call of many arguments before it looks at the password
        for command in (["stats", "q"], ["add", "q", "data"]):
            done = Calls(server.url).refused(3, "refused the user or password, nothing was done", *command)
            assert "redis://USER:PASSWORD@HOST" in done.err

    def test_no_right(self, own_server: StartServer) -> None:
        """A user who may only connect, and one who may only read."""
        server = own_server()
        with server.client() as client:
            client.acl_setuser("nobody", enabled=True, nopass=True, reset=True, commands=["+ping"])
            reads = "+evalsha +eval +time +get +hget +hmget +hlen +hexists +hstrlen +zcard +zcount +zrange +zscore"
            client.acl_setuser(
                "reader", enabled=True, nopass=True, reset=True, keys=["leaseq:*"], commands=reads.split()
            )
        nobody = Calls(server.url.replace("redis://", "redis://nobody:x@"))
        for path in ON_QUEUE:
            nobody.refused(3, "the server user lacks a right", *full(path))
        nobody.refused(3, "the server user lacks a right", "queues")
        reader = Calls(server.url.replace("redis://", "redis://reader:x@"))
        Calls(server.url).yes("add", "q", "data")
        assert reader.yes("stats", "q", "--json").document["ready"] == 1
        # a script may have stopped on its way: what it did is not known
        reader.refused(4, "the server user lacks a right", "add", "q", "data")
        reader.refused(4, "the server user lacks a right", "pause", "q")

    def test_reply_lost(self, proxy: Listener) -> None:
        """The connection is there, the item is added, and then the reply does not come."""
        starting = Calls(proxy.url).process(
            "add", "q", "--lines", "-", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        direct = proxy.proxy.server_url
        with starting as adding, leaseq.WorkQueue("q", direct) as queue:
            assert adding.stdin is not None
            adding.stdin.write("first\n")
            adding.stdin.flush()
            # entered in the registry is a queue whose first reply has come
            wait_until(lambda: bool(registry.queues(direct)), 50)
            assert queue.queue_len() == 1
            # more than the registry's ":1", which may be under way, and less than "added"
            proxy.cut_replies_after = 5
            _, err = adding.communicate("second\n", timeout=150)
        assert adding.returncode == 4
        one_line(err, "may have taken effect")
        assert "line 2: " in err
        assert "(1 added before)" in err

    def test_a_key_that_is_somebody_elses(self, call: Calls, redis_client: redis.Redis) -> None:
        redis_client.set("leaseq:{q}:q:items", "text")
        call.refused(3, "LEASEQ_WRONG_TYPE", "add", "q", "data")

    def test_in_a_cluster_the_right_node_is_named(self, cluster: RedisCluster) -> None:
        others = 0
        for node in cluster.nodes:
            done = Calls(node.url)("add", "q", "data", "--id", "a")
            if done.code in {0, 1}:  # added, or added by way of another node before
                continue
            others += 1
            assert done.code == 3
            one_line(done.err, "another has the keys: --url redis://127.0.0.1:")
            there = Calls(done.err.split("--url ")[1].strip())
            there("add", "q", "data", "--id", "a")
            assert there.yes("inspect", "q", "a", "--json").document["state"] == "ready"
        assert others == 2

    def test_full(self, call: Calls) -> None:
        call.yes("configure", "q", "--max-items", "1")
        done = call.refused(5, "queue q is full", "add", "q", "a", "b", "c")
        assert "--wait" in done.err
        assert len(done.lines) == 1, "added ids are printed"

    def test_out_of_memory(self, own_server: StartServer) -> None:
        server = own_server()
        call = Calls(server.url)
        call.yes("add", "q", "data", "--id", "a")
        with server.client() as client:
            client.config_set("maxmemory", 1)
        call.refused(5, "LEASEQ_OUT_OF_MEMORY", "add", "q", "data")
        (lease,) = call.yes("lease", "q", "--json").records
        call.yes("complete", "q", "a", str(lease["token"]))


class TestEnds:
    def test_interrupted(self, call: Calls) -> None:
        call.yes("add", "q", "data", "--delay", "1h")
        starting = call.process("lease", "q", "--wait", "0", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with starting as waiting, leaseq.WorkQueue("q", call.url) as queue:
            client: Any = queue.executor.client
            wait_until(lambda: blocked(client), 50)
            waiting.send_signal(signal.SIGINT)
            out, err = waiting.communicate(timeout=150)
        assert (waiting.returncode, out) == (130, "")
        one_line(err, "interrupted")

    def test_nobody_reads_any_more(self, call: Calls) -> None:
        """As in `leaseq list ... | head -1`."""
        for n in range(20):
            call.yes("add", "q", *(f"{n}-{m}" for m in range(100)))
        read, write = os.pipe()
        starting = call.process("list", "q", "ready", "--all", "--json", stdout=write, stderr=subprocess.PIPE)
        with starting as listing:
            os.close(write)
            with os.fdopen(read, encoding="utf-8") as out:
                assert out.readline()
            _, err = listing.communicate(timeout=150)
        assert (listing.returncode, err) == (141, "")

    def test_a_lease_that_nobody_heard_of_goes_back(self, call: Calls) -> None:
        call.yes("add", "q", "data", "--id", "a")
        read, write = os.pipe()
        os.close(read)
        starting = call.process("lease", "q", stdout=write, stderr=subprocess.PIPE)
        with starting as leasing:
            os.close(write)
            leasing.communicate(timeout=150)
        assert leasing.returncode == 141
        (info,) = call.yes("inspect", "q", "a", "--json").records
        assert (info["state"], info["attempt"]) == ("ready", 0)

    def test_nobody_reads_the_help(self) -> None:
        read, write = os.pipe()
        os.close(read)
        with os.fdopen(write, "wb") as out:
            done = subprocess.run(
                [*COMMAND, "--help"], stdout=out, stderr=subprocess.PIPE, timeout=150, check=False
            )
        assert (done.returncode, done.stderr) == (141, b"")

    @pytest.mark.parametrize("args", [["list", "q", "ready"], ["doctor", "q"]], ids=" ".join)
    def test_nobody_reads_a_table(self, args: list[str], call: Calls) -> None:
        call.yes("add", "q", "data")
        read, write = os.pipe()
        os.close(read)
        with call.process(*args, stdout=write, stderr=subprocess.PIPE) as looking:
            os.close(write)
            _, err = looking.communicate(timeout=150)
        assert (looking.returncode, err) == (141, "")

    @pytest.mark.parametrize(
        "args",
        [["--help"], ["stats", "q"], ["list", "q", "ready", "--json"]],
        ids=" ".join,
    )
    def test_the_output_cannot_be_written(self, args: list[str], call: Calls) -> None:
        call.yes("add", "q", "data")
        env = os.environ | {"REDIS_URL": call.url}
        with Path("/dev/full").open("wb") as out:
            done = subprocess.run(
                [*COMMAND, *args], env=env, stdout=out, stderr=subprocess.PIPE, timeout=150, check=False
            )
        assert done.returncode == 74
        one_line(done.stderr.decode(), "No space left")

    @pytest.mark.parametrize(
        ("call_and_closed", "code"),
        [("stats q >&-", 0), ("add q --lines - <&-", 0), ("drain q <&-", 2), ("stats q <&- >&- 2>&-", 0)],
    )
    def test_streams_may_be_closed(self, call: Calls, call_and_closed: str, code: int) -> None:
        """Of a daemon, or with >&- in a shell."""
        call.yes("add", "q", "data")
        done = subprocess.run(
            ["sh", "-c", f'exec "$@" {call_and_closed}', "sh", *COMMAND],
            env=os.environ | {"REDIS_URL": call.url},
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
        )
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr

    def test_without_a_command(self) -> None:
        for group, command in (
            ([], "worker"),
            (["jobs"], "status"),
            (["jobs", "cron"], "trigger"),
            (["dead"], "revive"),
        ):
            done = run(group)
            assert (done.returncode, done.stdout) == (2, "")
            assert done.stderr.startswith(" ".join(["Usage: leaseq", *group]))
            assert f"\n  {command}" in done.stderr

    def test_an_error_of_leaseq_itself_is_no_answer(self) -> None:
        """A script must not take it for a no, and a report of it needs the traceback."""
        before = "import leaseq.cli.stats as s; s.stats_of = None"
        command = [sys.executable, "-c", f"from leaseq.cli import main; {before}; main()"]
        done = subprocess.run(
            [*command, "stats", "q", "--url", "redis://127.0.0.1:1"],
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
        )
        assert done.returncode == 70
        assert "Traceback" in done.stderr

    def test_in_a_pipe_there_is_no_colour_and_no_line_is_cut(self, call: Calls) -> None:
        long = "x" * 200
        call.yes("add", "q", "data", "--id", long)
        done = run(["list", "q", "ready", "--url", call.url], env=os.environ | {"COLUMNS": "40"})
        assert done.returncode == 0, done.stderr
        assert "\x1b" not in done.stdout
        assert long in done.stdout

    def test_in_a_pipe_no_line_ends_with_blanks(self, call: Calls) -> None:
        call.yes("add", "q", "data")
        assert not re.search(" $", call.yes("stats", "q").out, re.MULTILINE)


def blocked(client: Any) -> bool:
    return int(client.info("clients")["blocked_clients"]) > 0


def test_it_can_be_run_by_threads() -> None:
    """The tests above rest on this: a call leaves nothing behind."""
    before = threading.active_count()
    Calls("redis://127.0.0.1:1")("stats", "q")
    assert threading.active_count() == before
    assert COMMAND


class TestCompletion:
    @pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
    def test_the_shell_asks_the_program(self, shell: str) -> None:
        done = Calls("").yes("completion", shell)
        assert f"_LEASEQ_COMPLETE={shell}_complete" in done.out

    def test_bash_takes_it(self) -> None:
        script = Calls("").yes("completion", "bash").out
        subprocess.run(["bash", "-n"], input=script, text=True, check=True, timeout=150)

    def test_commands_and_options_are_completed(self) -> None:
        env = os.environ | {
            "_LEASEQ_COMPLETE": "bash_complete",
            "COMP_WORDS": "leaseq sta",
            "COMP_CWORD": "1",
        }
        assert run([], env=env).stdout == "plain,stats\n"
        env |= {"COMP_WORDS": "leaseq dead re", "COMP_CWORD": "2"}
        assert run([], env=env).stdout == "plain,revive\n"


class TestParts:
    """Commands while the modules of an extra are missing."""

    @pytest.mark.parametrize("missing", ["click", "rich"])
    def test_without_the_extra_one_line_says_how_to_install_it(self, missing: str) -> None:
        done = without(missing)
        assert done.returncode == 2
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1
        assert done.stderr.endswith(f"{install_command('cli')}\n")

    def test_another_missing_module_is_not_hidden(self) -> None:
        assert "ModuleNotFoundError" in without("leaseq.registry").stderr


def without(module: str) -> subprocess.CompletedProcess[str]:
    """Return what `leaseq queues` prints where a module is missing."""
    program = f"import sys; from leaseq.cli import main; sys.modules['{module}'] = None; main()"
    argv = [sys.executable, "-c", program, "queues", "--url", "redis://127.0.0.1:1"]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)


def test_sigterm_ends_a_program_that_loads_also_as_process_1(call: Calls, tmp_path: Path) -> None:
    """The system discards a signal for process 1 if there is no handler; whether there is one is seen from outside."""
    (tmp_path / "slow.py").write_text("open('loading', 'w').close()\nimport time\ntime.sleep(3600)\n")
    with call.process("worker", "slow:app", cwd=tmp_path) as loading:
        wait_until((tmp_path / "loading").exists, 50)
        status = Path(f"/proc/{loading.pid}/status").read_text(encoding="utf-8")
        caught = int(re.findall(r"^SigCgt:\s+(\w+)", status, re.MULTILINE)[0], 16)
        assert caught >> (signal.SIGTERM - 1) & 1
        loading.send_signal(signal.SIGTERM)
        assert loading.wait(50) == -signal.SIGTERM


def test_a_process_that_outlives_its_signal_exits_as_if_it_had_not() -> None:
    program = (
        "import signal, leaseq.cli as cli;"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM]); cli.end_by(signal.SIGTERM)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 128 + signal.SIGTERM
