"""The state of a pipeline of the demo, and the findings of a run of two of them."""

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import leaseq
from leaseq_demo.stage import LAST, QUEUES, STAGES


@dataclass(slots=True)
class Standing:
    """The state of a pipeline.

    `kills` are of workers with a planned time of death ("told"), of any worker at any time ("worker"), and of a cleaner
    ("cleaner"); `moments` those at which the told ones died. `left_behind` are items that workers had completed when
    they died, knew that, and had not yet added to the next stage.
    """

    handoff: bool
    seconds: float = 0
    stats: dict[str, leaseq.QueueStats] = field(default_factory=dict)
    kills: Counter[str] = field(default_factory=Counter)
    moments: Counter[str] = field(default_factory=Counter)
    left_behind: int = 0

    @property
    def lost(self) -> int:
        """The number of items that have left a stage and not come to the next; while it runs, some may be on their way."""
        if not self.stats:
            return 0
        return sum(self.stats[one].completed - self.stats[other].added for one, other in pairwise(QUEUES))

    @property
    def arrived(self) -> int:
        """The number of items that have left the last stage."""
        return self.stats[LAST].items if self.stats else 0

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "kills": self.kills.total(),
            "kills_of_cleaners": self.kills["cleaner"],
            "completed": {stage: self.stats[stage].completed for stage in STAGES},
            "reclaimed": sum(self.stats[stage].reclaimed for stage in STAGES),
            "arrived": self.arrived,
            "lost": self.lost,
            "seconds": round(self.seconds, 3),
        }


@dataclass(frozen=True, slots=True)
class PipelineResult:
    """The figures of one run: of the pipeline with a hand-off, and of the one with complete, then add."""

    server: str
    items: int
    kills: int
    handoff: Standing
    then_add: Standing

    def problems(self) -> list[str]:
        """Return what is not as promised; empty when all is well."""
        found = []
        for stage in STAGES:
            stats = self.handoff.stats[stage]
            if not stats.added == stats.completed == self.items:
                found.append(
                    f"with a hand-off {stats.added} items came to the stage {stage} and {stats.completed} left it,"
                    f" not {self.items}"
                )
        if self.handoff.arrived != self.items:
            found.append(f"with a hand-off {self.handoff.arrived} of {self.items} items left the last stage")
        if not self.then_add.lost >= self.then_add.left_behind > 0:
            found.append("without a hand-off the workers that died between complete and add lost nothing")
        killed = [each.kills.total() for each in (self.handoff, self.then_add)]
        if killed != [self.kills] * 2:
            found.append(
                f"{killed[0]} and {killed[1]} processes were killed, not {self.kills} in each pipeline"
            )
        return found

    def exit_code(self) -> int:
        """0 when all is as promised, else 1."""
        return 1 if self.problems() else 0

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "ok": not self.problems(),
            "problems": self.problems(),
            "server": self.server,
            "items": self.items,
            "handoff": self.handoff.as_dict(),
            "complete_then_add": self.then_add.as_dict(),
        }
