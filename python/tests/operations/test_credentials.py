"""Passwords from files and TLS by URL, for the library and for each program: as they start, and when a secret changes."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trustme
from support import programs, servers
from support.cli_runner import COMMAND, Calls
from support.sentinel_set import SentinelSet, Watcher
from support.servers import TIMEOUT_SECS, SpawnedServer, wait_until

import leaseq
import leaseq.jobs
from leaseq import Item

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.client_flavours import ClientFlavour
    from support.servers import StartServer

JOBS = """
import os
import leaseq.jobs

app = leaseq.jobs.App()

@app.job(name="double")
def double(number: int) -> int:
    return 2 * number
"""
FIRST, SECOND = "the first secret", "the second secret"

pytestmark = pytest.mark.slow


@contextlib.contextmanager
def started(
    url: str, folder: Path, *command: str, variable: str = "REDIS_URL"
) -> Iterator[subprocess.Popen[bytes]]:
    """A program that has the server's URL in its environment, until the end of the block."""
    with (folder / f"{Path(command[0]).name}-{command[1]}.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=programs.environment(**({variable: url} if variable else {})),
            stdout=log,
            stderr=log,
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(TIMEOUT_SECS)


def test_programs_go_on_when_the_password_in_their_file_changes(
    own_server: StartServer, tmp_path: Path
) -> None:
    """A command for each item, a worker of jobs and the cleaner; none has the password in its arguments or its environment."""
    server, file = own_server(), tmp_path / "password"
    file.write_text(f"{FIRST}\n")
    (tmp_path / "shop_jobs.py").write_text(JOBS)
    url = f"{server.url}?password_file={file}"
    with contextlib.ExitStack() as stack:
        admin = stack.enter_context(server.client())
        admin.config_set("requirepass", FIRST)
        queue, swept = (stack.enter_context(leaseq.WorkQueue(name, url)) for name in ("q", "swept"))
        app = stack.enter_context(leaseq.jobs.App(url))
        double = app.job(name="double")(print)
        processes = [
            stack.enter_context(started(url, tmp_path, *COMMAND, "exec", "q", "--", "true")),
            stack.enter_context(started(url, tmp_path, *COMMAND, "worker", "-p", "1", "shop_jobs:app")),
            stack.enter_context(
                started(
                    url,
                    tmp_path,
                    str(Path(sys.executable).with_name("leaseq-cleaner")),
                    "--listen",
                    "off",
                    "--light-every",
                    "0.2",
                )
            ),
        ]

        def all_work(number: int) -> None:
            wait_until(lambda: attempted(queue.add_item, Item(b"x", id=str(number))), TIMEOUT_SECS)
            assert swept.add_item(Item(b"x", id=str(number)), delay=0.05)
            assert double.enqueue(number).result(timeout=TIMEOUT_SECS) == 2 * number
            wait_until(lambda: queue.stats().completed == number, TIMEOUT_SECS)
            wait_until(lambda: swept.inspect(str(number)).state == "ready", TIMEOUT_SECS)

        all_work(1)
        for process in processes:
            seen = b"".join(
                Path("/proc", str(process.pid), name).read_bytes() for name in ("cmdline", "environ")
            )
            assert b"secret" not in seen
        admin.config_set("requirepass", SECOND)
        admin.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        file.write_text(SECOND)
        all_work(2)
        assert [process.poll() for process in processes] == [None, None, None]


@pytest.mark.parametrize(
    ("name", "by"),
    [
        ("leaseq exec", "argument"),
        ("leaseq exec", "environment"),
        ("leaseq worker", "environment"),
        ("leaseq-cleaner", "argument"),
        ("leaseq-cleaner", "environment"),
    ],
)
def test_neither_ps_nor_commands_see_the_password_of_a_url(
    own_server: StartServer, tmp_path: Path, name: str, by: str
) -> None:
    server = own_server()
    with server.client() as admin:
        admin.config_set("requirepass", "topsecret")
    url = server.url.replace("://", "://:topsecret@")
    (tmp_path / "shop_jobs.py").write_text(JOBS)
    cleaner = str(Path(sys.executable).with_name("leaseq-cleaner"))
    # without the processes of a worker of jobs, whose functions open what they want themselves
    command = {
        "leaseq exec": [*COMMAND, "exec", "q"],
        "leaseq worker": [*COMMAND, "worker", "-p", "1"],
        "leaseq-cleaner": [cleaner, "--listen", "off"],
    }[name]
    command += ["--url", url] if by == "argument" else []
    command += {"leaseq exec": ["--", "sh", "-c", "env > seen"], "leaseq worker": ["shop_jobs:app"]}.get(
        name, []
    )
    variable = "LEASEQ_CLEANER_URL" if name == "leaseq-cleaner" else "REDIS_URL"
    with (
        leaseq.WorkQueue("q", url) as queue,
        started(url, tmp_path, *command, variable=variable if by == "environment" else "") as process,
    ):
        queue.add_item(Item(b"x", id="a"), delay=0.05)
        if name == "leaseq exec":
            wait_until(lambda: queue.stats().completed == 1, TIMEOUT_SECS)
            seen = (tmp_path / "seen").read_text()
            assert "LEASEQ_ID=a" in seen
            assert "topsecret" not in seen
        elif name == "leaseq-cleaner":
            wait_until(lambda: queue.inspect("a").state == "ready", TIMEOUT_SECS)
        else:
            wait_until(lambda: Calls(url)("workers", "--json").out.strip("[]\n"), TIMEOUT_SECS)
        shown = Path("/proc", str(process.pid), "cmdline").read_bytes().replace(b"\0", b" ")
        assert b"topsecret" not in shown
        assert name.rsplit(maxsplit=1)[-1].encode() in shown
    assert b"topsecret" not in b"".join(log.read_bytes() for log in tmp_path.glob("*.log"))


def attempted(call: Any, *args: Any) -> bool:
    with contextlib.suppress(leaseq.AccessDeniedError, leaseq.UnavailableError):
        return bool(call(*args))
    return False


@pytest.fixture
def tls(tmp_path: Path) -> tuple[list[str], str]:
    """Options of a server that wants a certificate of its clients, and options of a URL that has one."""
    issuer = trustme.CA()
    issuer.cert_pem.write_to_path(tmp_path / "ca")
    for name, host in (("server", "127.0.0.1"), ("client", "client")):
        made = issuer.issue_cert(host)
        made.private_key_pem.write_to_path(tmp_path / f"{name}-key")
        made.cert_chain_pems[0].write_to_path(tmp_path / f"{name}-cert")
    files = {"cert-file": "server-cert", "key-file": "server-key", "ca-cert-file": "ca"}
    given = [word for name, file in files.items() for word in (f"tls-{name}", str(tmp_path / file))]
    folder = tmp_path
    options = f"ssl_ca_certs={folder / 'ca'}&ssl_certfile={folder / 'client-cert'}&ssl_keyfile={folder / 'client-key'}"
    return [*given, "tls-auth-clients", "yes"], options


def as_options(words: list[str]) -> list[str]:
    return [f"--{word}" if number % 2 == 0 else word for number, word in enumerate(words)]


class TlsWatcher(Watcher):
    """A Sentinel that speaks TLS, also to the servers."""

    def __init__(self, name: str, primary: int, port: int, options: list[str]) -> None:
        self._tls = [
            f"tls-port {port}",
            "tls-replication yes",
            *map(" ".join, zip(options[::2], options[1::2], strict=True)),
        ]
        super().__init__(name, SentinelSet.service, primary)

    def command(self) -> list[str]:
        """Return the command line of a Sentinel."""
        self._lines = [*self._tls, *self._lines]
        return super().command()


def test_a_url_of_sentinels_has_what_tls_needs(flavour: ClientFlavour, tls: tuple[list[str], str]) -> None:
    """For the Sentinel and for the primary; without the certificate of the client both refuse."""
    options, given = tls
    with contextlib.ExitStack() as stack:
        ports = [stack.enter_context(contextlib.closing(servers.ReservedPort())).number for _ in range(2)]
        stack.enter_context(
            SpawnedServer(servers.WITH_TLS, "--tls-port", str(ports[0]), *as_options(options))
        )
        stack.enter_context(TlsWatcher(servers.WITH_TLS, ports[0], ports[1], options))
        url = f"rediss+sentinel://127.0.0.1:{ports[1]}/{SentinelSet.service}"
        queue = flavour.queue("q", f"{url}?{given}")
        wait_until(lambda: attempted(queue.add_item, Item(b"x")), TIMEOUT_SECS)
        assert Calls(f"{url}?{given}").yes("stats", "q", "--json").document["items"] == 1
        bare = flavour.queue("q", f"{url}?{given.partition('&')[0]}")
        with pytest.raises(leaseq.UnavailableError):
            bare.stats()


def test_a_url_of_a_cluster_has_what_tls_needs(flavour: ClientFlavour, tls: tuple[list[str], str]) -> None:
    options, given = tls
    with contextlib.ExitStack() as stack:
        port = stack.enter_context(contextlib.closing(servers.ReservedPort())).number
        node = stack.enter_context(
            SpawnedServer(
                servers.WITH_TLS,
                *("--cluster-enabled", "yes", "--tls-port", str(port), "--tls-cluster", "yes"),
                *as_options(options),
            )
        )
        with node.client(decode_responses=True) as client:
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
            wait_until(lambda: "cluster_state:ok" in client.execute_command("CLUSTER", "INFO"), TIMEOUT_SECS)
        url = f"rediss+cluster://127.0.0.1:{port}"
        queue = flavour.queue("q", f"{url}?{given}")
        assert queue.add_item(Item(b"x"))
        assert Calls(f"{url}?{given}").yes("stats", "q", "--json").document["items"] == 1
        with pytest.raises(leaseq.UnavailableError):
            flavour.queue("q", f"{url}?{given.partition('&')[0]}").stats()
