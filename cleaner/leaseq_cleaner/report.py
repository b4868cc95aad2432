"""The report of one pass over all queues, or of a dry run."""

from dataclasses import dataclass
from typing import Any

from leaseq.errors import LeaseqError
from leaseq.formatting import counted, one_line
from leaseq.keys import RegisteredQueue
from leaseq.results import DeepClean, LightClean
from leaseq_cleaner.selector import label


@dataclass(frozen=True, slots=True)
class QueueReport:
    """One queue: what light clean moved, what deep clean repaired (or would), the error that ended it, if any, and how many dead letters went."""

    queue: RegisteredQueue
    light: LightClean
    deep: DeepClean
    dry_run: bool
    error: LeaseqError | None = None
    purged: int = 0

    def line(self) -> str:
        """For people."""
        parts = [moved] if (moved := counted(self.light.counts)) else []
        if repairs := counted(self.deep.repairs):
            parts.append(f"{'would repair' if self.dry_run else 'repaired'}: {repairs}")
        if self.purged:
            parts.append(f"purged {self.purged} dead letters")
        if self.error is not None:
            parts.append(f"failed: {one_line(self.error)}")
        return f"{label(self.queue)}: {'; '.join(parts) or 'nothing to do'}"

    def record(self) -> dict[str, Any]:
        """For programs."""
        return {
            "queue": self.queue.name,
            "group": self.queue.group,
            "moved": self.light.counts,
            "repairs": self.deep.repairs,
            "purged": self.purged,
            "dry_run": self.dry_run,
            "error": None if self.error is None else str(self.error),
        }
