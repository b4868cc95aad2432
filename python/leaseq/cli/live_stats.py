"""The live view of `leaseq stats --watch`: how a queue stands, and how it went lately."""

import itertools
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from leaseq import QueueStats, formatting
from leaseq.results import STATES

_BARS: Final = "▁▂▃▄▅▆▇█"
_MAX_SAMPLES: Final = 60  # looks that are shown
_RATES: Final = ("added", "leases", "completed", "released", "reclaimed", "died")


def sparkline(values: Sequence[float]) -> str:
    """The values as bars of eight heights, from 0 to the largest."""
    highest = max(values, default=0)
    if highest <= 0:
        return _BARS[0] * len(values)
    return "".join(_BARS[round(value / highest * (len(_BARS) - 1))] for value in values)


class LiveStats:
    """The history of a queue, look by look."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._samples: deque[QueueStats] = deque(maxlen=_MAX_SAMPLES + 1)

    def add(self, stats: QueueStats) -> None:
        """Take in a look."""
        self._samples.append(stats)

    def rates(self, name: str) -> list[float]:
        """Return how a counter grew, per second of the server's clock, between each look and the one before."""
        return [
            max(0, getattr(after, name) - getattr(before, name)) / max(after.now - before.now, 1e-6)
            for before, after in itertools.pairwise(self._samples)
        ]

    def render(self) -> RenderableType:
        """The queue's name, its states and its rates, each with a line of its past."""
        now = self._samples[-1]
        notes = Text("  ").join(_notes(now))
        table = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False, header_style="dim")
        table.add_column("items")
        table.add_column("now", justify="right")
        table.add_column("lately", style="cyan", no_wrap=True)
        for state in STATES:
            past = [getattr(sample, state) for sample in list(self._samples)[-_MAX_SAMPLES:]]
            style = "red" if state == "dead" and now.dead else ""
            table.add_row(Text(state, style), Text(str(getattr(now, state)), style), sparkline(past))
        table.add_row("")
        table.add_row(Text("per second", "dim"))
        for name in _RATES:
            rates = self.rates(name)
            table.add_row(name, f"{rates[-1]:.1f}" if rates else "", sparkline(rates))
        return Group(Text.assemble((self._name, "bold"), f"  {formatting.moment(now.now)}"), notes, table)


def _notes(now: QueueStats) -> Iterator[Text]:
    """Yield the lines that a person should see at a glance."""
    if now.paused:
        yield Text("PAUSED: nothing is leased", "bold yellow")
    if now.overdue:
        yield Text(f"{now.overdue} leases overdue: does no worker live?", "bold red")
    if now.ready:
        yield Text(f"the next has waited {formatting.duration(now.waited)}", "dim")
