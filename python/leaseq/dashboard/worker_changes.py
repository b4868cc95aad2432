"""Changes of a live worker: quiet, resume, stop."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from leaseq.dashboard.access import Action
from leaseq.dashboard.change import Fact, Plan, Report
from leaseq.dashboard.source import Source
from leaseq.errors import BadArgumentError
from leaseq.formatting import duration
from leaseq.worker.registry import WorkerInfo, live_worker, quiet_worker, resume_worker, stop_worker

_WITHIN: Final = "It does so with its next report, within 15 seconds."

_QUESTIONS: Final[dict[Action, str]] = {
    "quiet_worker": "Let this worker lease nothing more, for a day or until you resume it? It finishes what it has started.",
    "resume_worker": "Let this worker lease again?",
    "stop_worker": "Stop this worker, as SIGTERM does? Its supervisor may start another.",
}

_CALLS: Final[dict[Action, Callable[..., bool]]] = {
    "quiet_worker": quiet_worker,
    "resume_worker": resume_worker,
    "stop_worker": stop_worker,
}

_DONE: Final[dict[Action, str]] = {
    "quiet_worker": "The worker is asked to lease nothing more.",
    "resume_worker": "The worker is asked to lease again.",
    "stop_worker": "The worker is asked to stop.",
}


class WorkerChange:
    """A change of one worker."""

    queue = None

    def __init__(self, source: Source, action: Action, worker_id: str) -> None:
        self.action = self.name = action
        self.permanent = action == "stop_worker"
        self._source = source
        self._id = worker_id

    def options(self) -> Mapping[str, Any]:
        """Return the id of the worker."""
        return {"worker": self._id}

    def plan(self) -> Plan:
        """Return the worker as it reported itself last."""
        worker = self._find()
        facts: list[Fact] = []
        if worker is not None:
            facts = [("state", worker.state), ("holds", f"{worker.held} of {worker.concurrency}")]
            longest = max(worker.items, key=lambda each: each.seconds, default=None)
            facts += [("longest", f"{longest.id}, {duration(longest.seconds)}")] if longest else []
        return Plan(f"{_QUESTIONS[self.action]} {_WITHIN}", facts=facts, refusal=self._refusal(worker))

    def perform(self, shown: Mapping[str, str]) -> Report:  # noqa: ARG002 (its id is of this worker only)
        """Ask the worker, unless it is in that state."""
        if refusal := self._refusal(self._find()):
            return Report(f"Nothing was done. {refusal}")
        if not _CALLS[self.action](self._id, self._source.client):
            return Report("Nothing was done. The worker has ended.")
        return Report(f"{_DONE[self.action]} {_WITHIN}", 1)

    def _find(self) -> WorkerInfo | None:
        try:
            return live_worker(self._id, self._source.client)
        except BadArgumentError:  # no id of a worker
            return None

    def _refusal(self, worker: WorkerInfo | None) -> str:
        if worker is None:
            return "There is no such worker now."
        if worker.stopping:
            return "The worker is stopping."
        if self.action == "quiet_worker" and worker.quiet:
            return "The worker is quiet already."
        if self.action == "resume_worker" and not worker.quiet:
            return "The worker is not quiet."
        return ""
