"""The metrics and the health of a supervisor and its processes, at one port."""

import logging
from collections.abc import Collection, Mapping
from typing import Final, Protocol

from prometheus_client import Counter, Gauge

from leaseq.jobs.settings import Settings
from leaseq.jobs.worker.child import Child
from leaseq.status_server import PolledStatusServer, Status
from leaseq.worker.work_counts import WorkCounts, WorkKind, WorkRow, WorkTotals
from leaseq.worker.work_metrics import WorkCollector

progress = logging.getLogger("leaseq.worker.progress")

RESTARTS: Final = ("died", "silent", "recycled")
"""Why a process was replaced: it died, it stood still and was killed, or it had done enough."""


class Watched(Protocol):
    """A supervisor, as its status sees it."""

    @property
    def children(self) -> Collection[Child]:
        """Its processes."""

    @property
    def stopping(self) -> bool:
        """True if it was asked to stop."""

    def is_silent(self, child: Child) -> bool:
        """Return whether a process does not answer."""


class SupervisorStatus:
    """Serves the status of a supervisor, from its loop. Raises BadArgumentError if it cannot listen there."""

    def __init__(self, supervisor: Watched, address: str, settings: Settings) -> None:
        self._supervisor = supervisor
        self._retired = WorkTotals()
        for function in settings.functions.values():  # from 0: else a rate would not show the first job
            kind = WorkKind(settings.group, function.options.queue, function.name)
            self._retired[kind] = WorkRow.empty()
        self._answered_at = 0.0
        registry = WorkCollector(self._totals, self._last_answer, self._server_up).registry
        self._restarts = Counter(
            "leaseq_worker_process_restarts", "Processes that were replaced.", ["reason"], registry=registry
        )
        for reason in RESTARTS:
            self._restarts.labels(reason)
        processes = Gauge(
            "leaseq_worker_processes", "Processes that run jobs, or are about to.", registry=registry
        )
        processes.set_function(lambda: sum(child.works for child in supervisor.children))
        self._server = PolledStatusServer(Status(registry, self._unhealthy, self._unready), address)
        progress.info("serving %s: /metrics, /healthz, /readyz", self._server.url)

    def interests(self) -> Mapping[int, int]:
        """Return the descriptors to poll, each with its events."""
        self._server.drop_slow()
        return self._server.interests()

    def serve(self, descriptor: int) -> None:
        """Do what can be done now with one of these descriptors."""
        self._server.serve(descriptor)

    def close(self) -> None:
        """Close what is open in this process."""
        self._server.close()

    def ended(self, child: Child, code: int) -> None:
        """Keep the counts of a process that has ended, and count why."""
        if child.reader.counts is not None:
            self._answered_at = self._last_answer()
            self._retired.retire(child.reader.counts)
        if self._supervisor.stopping or (code == 0 and child.reader.over and not child.reader.drains):
            return
        reason = "recycled" if code == 0 and child.reader.over else "silent" if child.killed else "died"
        self._restarts.labels(reason).inc()

    def _counts(self) -> list[WorkCounts]:
        return [child.reader.counts for child in self._supervisor.children if child.reader.counts is not None]

    def _totals(self) -> WorkTotals:
        totals = WorkTotals(self._retired)
        for child in self._supervisor.children:
            if child.reader.counts is not None:
                (totals.retire if child.group.lingers else totals.add)(child.reader.counts)
        return totals

    def _last_answer(self) -> float:
        return max(self._answered_at, *(counts.answered_at for counts in self._counts()), 0.0)

    def _readiness(self) -> set[str]:
        """Return how far the processes are that lease jobs and answer."""
        workers = [child for child in self._supervisor.children if child.estate is None]
        answering = [child for child in workers if not self._supervisor.is_silent(child)]
        return {child.reader.counts.readiness for child in answering if child.reader.counts is not None}

    def _server_up(self) -> bool:
        return "away" not in self._readiness() and self._last_answer() > 0

    def _unhealthy(self) -> str:
        for child in self._supervisor.children:
            if self._supervisor.is_silent(child):
                return f"process {child.pid} has not answered for {child.silence:.0f} s"
        return ""

    def _unready(self) -> str:
        if self._supervisor.stopping:
            return "the worker stops"
        readiness = self._readiness()
        if "away" in readiness:
            return "the server does not answer, or refuses"
        return "" if readiness & {"leasing", "quiet"} else "no process leases jobs yet"
