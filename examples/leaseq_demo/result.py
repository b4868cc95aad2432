"""The findings of a run of the demo, and the check that they are as promised."""

from dataclasses import dataclass
from typing import Any, Final

FEWEST_KILLS: Final = 5
POLL_SECS: Final = 0.1
"""Seconds by which a waiting worker may notice late that a lease has ended."""


@dataclass(slots=True)
class Kill:
    """A worker killed while it held an item. `time` is seconds from the start of the run."""

    pid: int
    item: str
    token: int
    time: float
    again_by: int | None = None
    recovery: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "pid": self.pid,
            "item": self.item,
            "token": self.token,
            "time_secs": round(self.time, 3),
            "leased_again_by": self.again_by,
            "recovery_secs": None if self.recovery is None else round(self.recovery, 3),
        }


@dataclass(frozen=True, slots=True)
class Result:
    """The figures of one run. Times are in seconds."""

    server: str
    items: int
    workers: int
    lease_secs: float
    added: int
    completed_once: int
    kills: list[Kill]
    words: int
    answer_right: bool
    seconds: float

    @property
    def leased_again(self) -> int:
        """The number of items that were leased again after their holder was killed."""
        return sum(kill.recovery is not None for kill in self.kills)

    @property
    def longest_recovery(self) -> float:
        """The longest time from a kill to the next lease of the item."""
        return max((kill.recovery or 0.0 for kill in self.kills), default=0.0)

    @property
    def recovery_bound(self) -> float:
        """The longest that a recovery should take: the lease, and until a waiting worker looks."""
        return self.lease_secs + POLL_SECS

    def problems(self) -> list[str]:
        """Return what is not as promised; empty when all is well."""
        found = []
        if len(self.kills) < FEWEST_KILLS:
            found.append(
                f"{len(self.kills)} workers were killed while they held an item, not {FEWEST_KILLS} or more"
            )
        if self.leased_again != len(self.kills):
            found.append(
                f"{self.leased_again} of {len(self.kills)} items of killed workers were leased again"
            )
        if self.added != self.items:
            found.append(f"{self.added} of {self.items} items were added")
        if self.completed_once != self.items:
            found.append(f"{self.completed_once} of {self.items} items were completed exactly once")
        if not self.answer_right:
            found.append("the counted words are wrong")
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
            "workers": self.workers,
            "lease_secs": self.lease_secs,
            "added": self.added,
            "completed_once": self.completed_once,
            "kills": len(self.kills),
            "leased_again": self.leased_again,
            "longest_recovery_secs": round(self.longest_recovery, 3),
            "recovery_bound_secs": self.recovery_bound,
            "words": self.words,
            "answer_right": self.answer_right,
            "seconds": round(self.seconds, 3),
            "killed": [kill.as_dict() for kill in self.kills],
        }
