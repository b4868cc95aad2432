"""For how long dead letters stay, and how many."""

from dataclasses import dataclass

from leaseq.aio import WorkQueue
from leaseq.errors import BadArgumentError
from leaseq.results import QueueStats


@dataclass(frozen=True, slots=True)
class Retention:
    """The limits beyond which a cleaner deletes dead letters of a queue; by default none. Raises BadArgumentError.

    Attributes:
        secs: how long they stay after their death.
        most: how many of the latest stay.
    """

    secs: float | None = None
    most: int | None = None

    def __post_init__(self) -> None:
        """Refuse what would delete each dead letter at once."""
        if (self.secs is not None and self.secs <= 0) or (self.most is not None and self.most < 1):
            raise BadArgumentError(
                "dead_secs is above 0, dead_most at least 1; without them dead letters stay"
            )

    def concerns(self, stats: QueueStats) -> bool:
        """Return whether there may be something to delete in a queue with these counts."""
        return bool(stats.dead) and (
            self.secs is not None or (self.most is not None and stats.dead > self.most)
        )

    async def purge(self, queue: WorkQueue) -> int:
        """Delete what is too old or too much. Return how many dead letters that were."""
        count = 0
        if self.secs is not None:
            count += await queue.purge_all(self.secs)
        if self.most is not None:
            count += await queue.purge_all(keep_newest=self.most)
        return count
