"""`leaseq dashboard`: where it listens, whom it lets in, how it ends."""

from __future__ import annotations

import base64
import contextlib
import re
import signal
import socket
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

import pytest
from support.servers import wait_until

import leaseq
from leaseq.dashboard.purge_plans import QUEUE, PurgePlans
from leaseq.dashboard.source import Source
from leaseq.extras import install_command
from leaseq.keys import RegisteredQueue

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.cli_runner import Calls


@contextlib.contextmanager
def running(call: Calls, *args: str, quiet: bool = True) -> Iterator[str]:
    """Run the command at a free port; yield its address. SIGTERM ends it with 0, and without a line if it is quiet."""
    with call.process("dashboard", "--listen", "127.0.0.1:0", *args, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        address = re.fullmatch(r"leaseq dashboard: (http://\S+)\n", process.stderr.readline())
        assert address
        yield address[1]
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert process.stderr.read() == "" or not quiet


def get(address: str, headers: dict[str, str] | None = None) -> str:
    with urllib.request.urlopen(urllib.request.Request(address, headers=headers or {}), timeout=30) as reply:  # noqa: S310 (ours)
        return str(reply.read().decode())


@pytest.mark.slow
def test_it_serves_pages_read_only_for_the_user_of_the_system(call: Calls) -> None:
    with leaseq.WorkQueue("orders", call.url) as queue:
        queue.add_item(leaseq.Item(b"secret", id="a"))
    with running(call) as address:
        assert "orders" in get(address)
        page = get(f"{address}item?queue=orders&id=a")
        assert "hidden from you" in page
        assert "/change?" not in page
        assert "you are" in page
        with pytest.raises(urllib.error.HTTPError, match="400"):
            get(address, {"Host": "evil.example"})


@pytest.mark.slow
def test_with_its_flags_it_shows_data_and_changes_things(call: Calls) -> None:
    with leaseq.WorkQueue("orders", call.url) as queue:
        queue.add_item(leaseq.Item(b"secret", id="a"))
    with running(call, "--allow-actions", "--show-data", "--root-path", "/deep") as address:
        page = get(f"{address.removesuffix('deep/')}item?queue=orders&id=a")
        assert "secret" in page
        assert 'href="/deep/change?action=remove' in page


@pytest.mark.slow
@pytest.mark.parametrize("flags", [(), ("--allow-actions",)])
def test_it_carries_out_purges_only_if_it_allows_changes(call: Calls, flags: tuple[str, ...]) -> None:
    source = Source(call.url)
    with leaseq.WorkQueue("orders", call.url) as queue, leaseq.WorkQueue(QUEUE.name, call.url) as planned:
        queue.add_item(leaseq.Item(b"", id="a"))
        queue.dead_letter_items(queue.lease_items(1, 60), error="x")
        PurgePlans(source).add(RegisteredQueue("orders", "orders"), [queue.inspect("a")], "ada")
        assert planned.promote(planned.list_items("delayed").items[0].id)
        with running(call, *flags, quiet=False) as address:
            if flags:
                wait_until(lambda: planned.stats().items == 0)
            else:
                get(address)
                before = queue.stats().now
                wait_until(lambda: get(address) and queue.stats().now - before > 5)
        assert queue.stats().dead == (0 if flags else 1)
    source.close()


@pytest.mark.slow
def test_users_of_a_file_log_in(call: Calls, tmp_path: Path) -> None:
    users = tmp_path / "users"
    for name, password in (("ada", "old"), ("eve", "x"), ("ada", "new")):
        given = ("dashboard", "--auth", str(users), "--add-user", name)
        done = call(*given, stdin=f"{password}\n" * 2)
        assert (done.code, done.out) == (0, f"wrote {name} to {users}\n")
    assert stat.S_IMODE(users.stat().st_mode) == 0o600
    assert len(users.read_text().splitlines()) == 2
    with running(call, "--auth", str(users)) as address:
        with pytest.raises(urllib.error.HTTPError, match="401"):
            get(address)
        right = base64.b64encode(b"ada:new").decode()
        assert "<bdi>ada</bdi>" in get(address, {"Authorization": f"Basic {right}"})


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("--listen", "0.0.0.0:0"), "on 0.0.0.0 others can reach the dashboard"),
        (("--listen", "[::]:0"), "on :: others can reach the dashboard"),
        (("--listen", "example.org:80"), "on example.org others can reach the dashboard"),
        (("--listen", "off"), "'off' is no address"),
        (("--trusted-proxy", "proxy"), "'proxy' is no IP address and no network"),
        (("--auth", "users", "--trusted-proxy", "::1"), "give --auth or --trusted-proxy, not both"),
        (("--root-path", "queues"), "it starts with a slash"),
        (("--add-user", "ada"), "--add-user needs --auth FILE"),
    ],
)
def test_what_would_not_be_safe_is_refused(call: Calls, args: tuple[str, ...], expected: str) -> None:
    call.refused(2, expected, "dashboard", *args)


def test_a_file_without_users_is_refused(call: Calls, tmp_path: Path) -> None:
    call.refused(74, "No such file", "dashboard", "--auth", str(tmp_path / "none"))
    (tmp_path / "users").write_text("ada:secret\n")
    call.refused(2, "line 1 of the file of users", "dashboard", "--auth", str(tmp_path / "users"))


@pytest.mark.parametrize("missing", ["starlette", "uvicorn"])
def test_without_the_extra_one_line_says_how_to_install_it(missing: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; from leaseq.cli import main; main()"
    arguments = [sys.executable, "-c", code, "dashboard", "--url", "redis://localhost"]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(f"leaseq dashboard: it needs {missing}; install it with: ")
    assert done.stderr.endswith(f"{install_command('dashboard')}\n")


def test_a_port_in_use_is_reported(call: Calls) -> None:
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = used.getsockname()[1]
        call.refused(2, "--listen takes another HOST:PORT", "dashboard", "--listen", f"127.0.0.1:{port}")
