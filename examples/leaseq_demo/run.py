"""One run of the demo: feeds the queue, kills workers that hold an item, and checks what came out."""

import random
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import leaseq
from leaseq._scripts import SCRIPTS
from leaseq.keys import REGISTRY, QueueKeys
from leaseq_demo.client import open_client
from leaseq_demo.corpus import copies, count_words, cut, read_text
from leaseq_demo.processes import WorkerProcesses
from leaseq_demo.result import Kill, Result
from leaseq_demo.scoreboard import Held, Scoreboard

_TICK_SECS: Final = 0.01
_PAUSE_SECS: Final = 0.01  # how long a worker waits in each piece, as work with a disk or a network would
_WAITING: Final = 2  # items for each worker
_KILL_TRIES: Final = 50  # a worker may be between two items when it is looked at
_KEY_PARTS: Final = frozenset(part for script in SCRIPTS for part in script.keys)


class DemoError(leaseq.LeaseqError):
    """The demo cannot go on."""


@dataclass(frozen=True, slots=True)
class Options:
    """The amount of work of the demo."""

    items: int = 3000
    workers: int = 4
    kills: int = 5
    lease_secs: float = 2.0
    seed: int = 1


@dataclass(slots=True)
class Progress:
    """The view of a running demo."""

    options: Options
    server: str = ""
    seconds: float = 0
    added: int = 0
    completed: int = 0
    waiting: int = 0
    leased: int = 0
    workers: list[tuple[int, str | None]] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)


class Run:
    """A run on the server at `url`. `scratch` is a folder for what the workers write when they fail."""

    def __init__(self, url: str, scratch: Path, options: Options) -> None:
        self._url = url
        self._log = scratch / "workers.log"
        self._options = options
        self._name = f"demo-{uuid.uuid4().hex[:8]}"
        self._text = read_text()
        self._pieces = cut(self._text, options.items)
        self._random = random.Random(options.seed)  # noqa: S311 # no secret
        self._due = self._kill_times()
        self._killed_at: list[float] = []  # as the server tells the time
        self._progress = Progress(options)
        self._client = open_client(url)
        self._scoreboard = Scoreboard(self._client, self._name)
        self._queue = leaseq.WorkQueue(self._name, self._client)

    def go(self, show: Callable[[Progress], None]) -> Result:
        """Run to the end; `show` is called again and again. Nothing is left behind, whatever happens."""
        settings = {
            "url": self._url,
            "name": self._name,
            "lease_secs": self._options.lease_secs,
            "pause": _PAUSE_SECS,
        }
        with self._client, self._queue:
            self._progress.server = server_name(self._client)
            with self._cleared(), WorkerProcesses([settings] * self._options.workers, self._log) as processes:
                return self._watch(processes, show)

    def _watch(self, processes: WorkerProcesses, show: Callable[[Progress], None]) -> Result:
        progress = self._progress
        begin = time.monotonic()
        while True:
            stats = self._queue.stats()
            self._observe(stats, processes, time.monotonic() - begin)
            show(progress)
            if stats.completed == progress.added == len(self._pieces):
                return self._result()
            self._feed(stats.ready)
            killed = len(progress.kills)
            if killed < len(self._due) and stats.completed >= self._due[killed]:
                self._kill_one(processes)
            failure = processes.failure()
            if failure is not None:
                raise DemoError(f"a worker ended without being killed: {failure}")
            time.sleep(_TICK_SECS)

    def _kill_times(self) -> list[int]:
        """At how many completed items the workers are killed: spread evenly, a little shaken."""
        step = self._options.items / (self._options.kills + 1)
        return [int(step * (n + self._random.uniform(0.7, 1.0))) for n in range(self._options.kills)]

    def _feed(self, ready: int) -> None:
        """Keep few items waiting, as a producer does that keeps pace; what comes back queues up behind them."""
        begin = self._progress.added
        end = begin + max(0, _WAITING * self._options.workers - ready)
        self._progress.added += sum(self._queue.add_items(self._pieces[begin:end]))

    def _observe(self, stats: leaseq.QueueStats, processes: WorkerProcesses, seconds: float) -> None:
        progress = self._progress
        progress.seconds = seconds
        progress.completed, progress.waiting, progress.leased = stats.completed, stats.ready, stats.leased
        pids = [each.pid for each in processes.workers]
        held = self._scoreboard.held(pids)
        progress.workers = [(pid, lease and lease.id) for pid, lease in zip(pids, held, strict=True)]
        self._look_for_recoveries()

    def _look_for_recoveries(self) -> None:
        if all(kill.recovery is not None for kill in self._progress.kills):
            return
        leased_again = self._scoreboard.again()
        for kill, killed_at in zip(self._progress.kills, self._killed_at, strict=True):
            again = leased_again.get(kill.item)
            if kill.recovery is None and again is not None and again.token > kill.token:
                kill.again_by, kill.recovery = again.pid, again.time - killed_at

    def _kill_one(self, processes: WorkerProcesses) -> None:
        """Kill a worker that holds an item. Without one, the next call tries again."""
        for _ in range(_KILL_TRIES):
            victim = self._random.choice(processes.workers)
            if not victim.freeze():
                return
            (held,) = self._scoreboard.held([victim.pid])
            if held is None or not self._is_current(held):
                victim.thaw()
                time.sleep(0.001)
                continue
            killed_at = self._server_time()
            victim.kill()
            if self._is_current(held):  # it had sent nothing that would have ended its lease
                self._killed_at.append(killed_at)
                self._progress.kills.append(Kill(victim.pid, held.id, held.token, self._progress.seconds))
            processes.replace(victim)
            return

    def _is_current(self, held: Held) -> bool:
        """Return whether the server says that this lease is the current one of its item."""
        info = self._queue.inspect(held.id)
        return info.state == "leased" and info.token == held.token

    def _result(self) -> Result:
        options = self._options
        total = self._scoreboard.total()
        times = copies(self._text, options.items)
        truth = {word: count * times for word, count in count_words(self._text).items()}  # in one go, uncut
        return Result(
            server=self._progress.server,
            items=options.items,
            workers=options.workers,
            lease_secs=options.lease_secs,
            added=self._progress.added,
            completed_once=self._scoreboard.completed_once(),
            kills=self._progress.kills,
            words=total.total(),
            answer_right=dict(total) == truth,
            seconds=self._progress.seconds,
        )

    def _server_time(self) -> float:
        secs, micros = self._client.time()
        return float(secs) + float(micros) / 1e6

    @contextmanager
    def _cleared(self) -> Iterator[None]:
        """Delete the keys of this run at the end."""
        keys = QueueKeys(self._name)
        try:
            yield
        finally:
            self._client.delete(*map(keys.key, _KEY_PARTS))
            self._client.srem(REGISTRY, keys.entry)
            self._scoreboard.clear()


def server_name(client: Any) -> str:
    """Name and version of a server."""
    info = client.info("server")
    valkey = info.get("valkey_version")
    return f"Valkey {valkey}" if valkey else f"Redis {info['redis_version']}"
