"""A pipeline of three stages whose workers and cleaners are killed all the time, passing items on in one of two ways."""

import random
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import leaseq
from leaseq._scripts import SCRIPTS
from leaseq.keys import REGISTRY
from leaseq_demo import stage as program
from leaseq_demo.client import open_client
from leaseq_demo.pipeline_result import PipelineResult, Standing
from leaseq_demo.processes import WorkerProcess, WorkerProcesses
from leaseq_demo.run import DemoError, server_name
from leaseq_demo.stage import LAST, MOMENTS, QUEUES, STAGES, Signals, open_queue

FEWEST_KILLS: Final = 18
"""With fewer, not every stage would see a worker die at each of the moments."""
ITEMS_PER_KILL: Final = 10
"""With fewer, what comes in between two kills might all be lost before the stage where the next worker is to die."""
_TICK_SECS: Final = 0.02
_TIMEOUT_SECS: Final = 60.0  # far more than it takes: many processes start meanwhile
_KINDS: Final = ("told", "worker", "told", "cleaner")
_KEY_PARTS: Final = frozenset(part for script in SCRIPTS for part in script.keys)


@dataclass(frozen=True, slots=True)
class PipelineOptions:
    """The amount of work. `workers` is for each stage, `kills` for all."""

    items: int = 1000
    workers: int = 2
    cleaners: int = 1
    kills: int = 24
    lease_secs: float = 1.0
    seed: int = 1

    @property
    def batch(self) -> int:
        """Items that a worker leases at once: few enough that a kill leaves some of those that came last."""
        return max(1, min(16, self.items // self.kills // 6))


class Pipeline:
    """One pipeline on the server at `url`, and its processes; a context manager that leaves nothing behind.

    `scratch` is a folder for what the processes write when they fail.
    """

    def __init__(self, url: str, scratch: Path, options: PipelineOptions, *, handoff: bool) -> None:
        self._options = options
        self._handoff = handoff
        self._random = random.Random(options.seed)  # noqa: S311 # no secret
        self._url = url
        self._log = scratch / f"{'handoff' if handoff else 'then-add'}.log"
        self._name = f"demo-{uuid.uuid4().hex[:8]}"
        self._client = open_client(url)
        self._signals = Signals(self._client, self._name)
        self._begin = time.monotonic()
        self.queues = {stage: open_queue(self._client, self._name, stage) for stage in QUEUES}
        self.standing = Standing(handoff)

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self._client)
            stack.callback(self._clear)
            self._processes = stack.enter_context(
                WorkerProcesses(self._settings(), self._log, program.__name__)
            )
            self._exit = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exit.close()

    def run(self) -> Iterator[None]:
        """Run to the end, in small steps: feed a few items, kill one process, and so on; then wait for the rest."""
        self._begin = time.monotonic()
        kills, items = self._options.kills, self._options.items
        for number in range(kills):
            yield from self._kill(number, range(items * number // kills, items * (number + 1) // kills))
        for stage in STAGES:
            yield from self._finish(stage)
        self._observe()

    def _finish(self, stage: str) -> Iterator[None]:
        """Wait until a stage is empty and its workers are gone. Then nothing more comes to the next stage."""
        queue, workers = self.queues[stage], self._of_stage(stage)
        yield from self._until(lambda: queue.stats().items == 0, f"{stage} to become empty")
        self._signals.end(stage)
        yield from self._until(lambda: all(each.ended() for each in workers), f"the end of {stage}")

    def server(self) -> str:
        """Name and version of the server."""
        return server_name(self._client)

    def _kill(self, number: int, items: range) -> Iterator[None]:
        """Kill one process, while these items are on their way: so there is work until the last kill."""
        kind = _KINDS[number % len(_KINDS)]
        pair_number = number // 2
        stage, moment = STAGES[pair_number % len(STAGES)], MOMENTS[pair_number // len(STAGES) % len(MOMENTS)]
        if kind == "told":
            self._signals.condemn(stage, moment)
        self._feed(items)
        if kind == "told":
            yield from self._until(
                lambda: self._kill_waiting(moment), f"a worker of {stage} to come to {moment}"
            )
        else:
            pause = time.monotonic() + self._random.uniform(0, 0.1)
            while time.monotonic() < pause:
                self._observe()
                yield
            cleaners = self._options.cleaners
            among = (
                self._processes.workers[-cleaners:]
                if kind == "cleaner"
                else self._processes.workers[:-cleaners]
            )
            self._end(self._random.choice(among))
        self.standing.kills[kind] += 1

    def _kill_waiting(self, moment: str) -> bool:
        waiting = self._signals.waiting()
        if waiting is None:
            return False
        pid, items = waiting
        (victim,) = (each for each in self._processes.workers if each.pid == pid)
        self._end(victim)
        self.standing.moments[moment] += 1
        if moment == "answered":
            self.standing.left_behind += items
        return True

    def _end(self, victim: WorkerProcess) -> None:
        """Kill one (SIGKILL) and start another in its place."""
        victim.kill()
        self._processes.replace(victim)

    def _feed(self, numbers: range) -> None:
        ids = [item_id(number) for number in numbers]
        self.queues[STAGES[0]].add_items(leaseq.Item(each, id=each) for each in ids)

    def _until(self, done: Callable[[], bool], what: str) -> Iterator[None]:
        deadline = time.monotonic() + _TIMEOUT_SECS
        while not done():
            if time.monotonic() > deadline:
                raise DemoError(f"waited {_TIMEOUT_SECS:g} s for {what}, in vain")
            self._observe()
            yield

    def _observe(self) -> None:
        self.standing.stats = {stage: queue.stats() for stage, queue in self.queues.items()}
        self.standing.seconds = time.monotonic() - self._begin
        if failure := self._processes.failure():
            raise DemoError(f"a process of the pipeline failed: {failure}")

    def _of_stage(self, stage: str) -> list[WorkerProcess]:
        first = STAGES.index(stage) * self._options.workers
        return self._processes.workers[first : first + self._options.workers]

    def _settings(self) -> list[dict[str, Any]]:
        options = self._options
        stages = [stage for stage in STAGES for _ in range(options.workers)] + [None] * options.cleaners
        common = {
            "url": self._url,
            "name": self._name,
            "lease_secs": options.lease_secs,
            "batch": options.batch,
            "handoff": self._handoff,
        }
        return [common | {"stage": stage} for stage in stages]

    def _clear(self) -> None:
        """Delete the keys of this run."""
        for queue in self.queues.values():
            self._client.delete(*map(queue.keys.key, _KEY_PARTS))
            self._client.srem(REGISTRY, queue.keys.entry)
        self._signals.clear()


def run_both(
    url: str, scratch: Path, options: PipelineOptions, show: Callable[[Sequence[Standing]], None]
) -> PipelineResult:
    """Run a pipeline of each kind, side by side; `show` is called again and again."""
    pipelines = [Pipeline(url, scratch, options, handoff=handoff) for handoff in (True, False)]
    standings = [each.standing for each in pipelines]
    with pipelines[0], pipelines[1]:
        for _ in zip_longest(*(each.run() for each in pipelines)):
            show(standings)
            time.sleep(_TICK_SECS)
        show(standings)
        return PipelineResult(pipelines[0].server(), options.items, options.kills, *standings)


def item_id(number: int) -> str:
    """The id of an order when it comes in."""
    return f"order-{number:05}"


def shipped_id(number: int) -> str:
    """The id of an order that has left the last stage: each stage derives the next one's."""
    return "/".join([item_id(number), *STAGES[1:], LAST])
