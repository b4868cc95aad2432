"""The program of a worker: the functions, schedules and hooks of an App, on its server."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from leaseq.jobs.clients import Clients
from leaseq.jobs.cron.declared import DeclaredSchedules
from leaseq.jobs.middleware import Middleware

Hook = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Program:
    """The program of one App, which may get more functions later.

    Attributes:
        clients: that ask its server; their settings have its functions.
        schedules: that were declared.
        startup: called in each process before its first job.
        shutdown: called in each process after its last job.
        fork_shutdown: called in the process of each job with `fork=True`, after the job.
        middleware: in which jobs run, the first one outermost.
    """

    clients: Clients
    schedules: DeclaredSchedules = field(default_factory=DeclaredSchedules)
    startup: list[Hook] = field(default_factory=list)
    shutdown: list[Hook] = field(default_factory=list)
    fork_shutdown: list[Hook] = field(default_factory=list)
    middleware: list[Middleware] = field(default_factory=list)
