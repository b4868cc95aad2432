"""What one pass over all queues did, or would do."""

from dataclasses import asdict, dataclass
from typing import Any

from leaseq.errors import LeaseqError
from leaseq.keys import RegisteredQueue
from leaseq.results import DeepClean, LightClean
from leaseq_cleaner.choice import label


@dataclass(frozen=True, slots=True)
class QueueReport:
    """One queue: what light clean moved, what deep clean repaired (or would), and the error that ended it, if any."""

    queue: RegisteredQueue
    light: LightClean
    deep: DeepClean
    dry_run: bool
    error: LeaseqError | None = None

    def line(self) -> str:
        """For people."""
        moved = [f"{name} {count}" for name, count in self._moved().items() if count]
        repairs = [f"{kind} {count}" for kind, count in self.deep.repairs.items()]
        parts = [", ".join(moved)] if moved else []
        if repairs:
            parts.append(("would repair: " if self.dry_run else "repaired: ") + ", ".join(repairs))
        if self.error is not None:
            parts.append(f"failed: {' '.join(str(self.error).split())}")
        return f"{label(self.queue)}: {'; '.join(parts) or 'nothing to do'}"

    def record(self) -> dict[str, Any]:
        """For programs."""
        return {
            "queue": self.queue.name,
            "group": self.queue.group,
            "moved": self._moved(),
            "repairs": self.deep.repairs,
            "dry_run": self.dry_run,
            "error": None if self.error is None else str(self.error),
        }

    def _moved(self) -> dict[str, int]:
        moved = asdict(self.light)
        del moved["wait"]
        return moved
