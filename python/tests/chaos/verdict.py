"""The verdict on a fault, read from the journals and from what the server has at the end."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from chaos.journal import ADDED, ENDED, ENQUEUED, TRUE, WRONG

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from chaos.journal import Line

NEVER: Final = float("inf")


@dataclass
class Verdict:
    """The counts of one row of the table.

    Attributes:
        items, jobs: those that the server said it has.
        lost: items of them that no handler ever ran to its end, and that are gone.
        lost_jobs: the same of jobs.
        no_outcome: jobs that are gone, and so is their outcome, or they are lost.
        twice: items for which two calls returned that they completed it.
        stuck: items and jobs that are left after the time, without repair.
        stuck_after: the same after a deep clean.
        recovery: the longest time from the end of a fault to the next completion, in seconds.
        wrong: errors that have no name of leaseq.
    """

    items: int = 0
    jobs: int = 0
    lost: int = 0
    lost_jobs: int = 0
    no_outcome: int = 0
    twice: int = 0
    stuck: int = 0
    stuck_after: int = 0
    recovery: float = 0.0
    wrong: list[str] = field(default_factory=list)

    def problems(self, *, server_loses: bool) -> list[str]:
        """Return what should not be. A server that lost data may have lost items, and what said that they were completed."""
        zeros = {"stuck after a deep clean": self.stuck_after, "without a name": len(self.wrong)}
        if not server_loses:
            zeros |= {"lost": self.lost + self.lost_jobs, "jobs without an outcome": self.no_outcome}
            zeros |= {"completed twice": self.twice, "stuck": self.stuck}
        found = [f"{count} {what}" for what, count in zeros.items() if count]
        if not self.items or not self.jobs:
            found.append("no load")
        if self.recovery == NEVER:
            found.append("no completion behind a fault")
        return found


def judge(
    lines: Iterable[Line], unknown_jobs: Sequence[str], stuck: Sequence[int], over: Sequence[float]
) -> Verdict:
    """Return the verdict.

    Args:
        lines: those of all journals.
        unknown_jobs: ids of acknowledged jobs that are gone without an outcome.
        stuck: items and jobs on the server when all should be done, and after a deep clean.
        over: the times at which a fault was over, in seconds since 1970.
    """
    about: dict[str, Counter[str]] = {word: Counter() for word in (ADDED, ENDED, ENQUEUED, TRUE)}
    completions, wrong = [], []
    for line in lines:
        if line.word == WRONG:
            wrong.append(line.about)
            continue
        about[line.word][line.about] += 1
        if line.word == TRUE:
            completions.append(line.time)
    completions.sort()
    gone = about[ADDED].keys() - about[ENDED].keys()
    return Verdict(
        items=len(about[ADDED]),
        jobs=len(about[ENQUEUED]),
        lost=max(0, len(gone) - stuck[-1]),
        lost_jobs=len(set(unknown_jobs) - about[ENDED].keys()),
        no_outcome=len(unknown_jobs),
        twice=sum(count > 1 for count in about[TRUE].values()),
        stuck=stuck[0],
        stuck_after=stuck[-1],
        recovery=max((_until_next(completions, moment) for moment in over), default=0.0),
        wrong=wrong,
    )


def _until_next(sorted_times: Sequence[float], moment: float) -> float:
    place = bisect_right(sorted_times, moment)
    return sorted_times[place] - moment if place < len(sorted_times) else NEVER
