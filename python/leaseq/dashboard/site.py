"""The site that all pages share, and one visit of a page."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from leaseq.dashboard.access import Visitor
from leaseq.dashboard.purge_plans import PurgePlan, PurgePlans
from leaseq.dashboard.reader import Reader
from leaseq.dashboard.shared_reads import SharedReads
from leaseq.dashboard.source import Source
from leaseq.dashboard.templates import render
from leaseq.errors import BadArgumentError, UnavailableError
from leaseq.keys import QueueKeys, RegisteredQueue

PLANS_SECS: Final = 2.0
"""Seconds for which viewers share the list of planned purges."""


class Site:
    """The server that is shown, and what was read of it.

    Attributes:
        source: the server.
        reader: the stats of its queues.
        reads: other reads, which viewers share.
        plans: the purges that are planned.
    """

    def __init__(self, source: Source, *, purges: bool) -> None:
        """`purges`: it carries out planned purges that are due."""
        self._purges = purges
        self.source = source
        self.plans = PurgePlans(source)
        self.reader = Reader(source, self.plans.carry_out if purges else None)
        self.reads = SharedReads()

    def start(self) -> None:
        """Start what is to be done without a visit."""
        if self._purges:
            self.reader.start()

    def pending(self, queue: RegisteredQueue | None = None) -> Sequence[PurgePlan]:
        """Return the planned purges, of one queue or of all, read at most 2 s ago; while the server is away, the last ones."""
        found = self.plans.known()
        if not self.reader.error:
            with contextlib.suppress(UnavailableError):
                found = self.reads.get("plans", PLANS_SECS, self.plans.pending)
        return [plan for plan in found if queue in {None, plan.queue}]

    def close(self) -> None:
        """End the reader and close the connections."""
        self.reader.close()
        self.source.close()


@dataclass(frozen=True, slots=True)
class Visit:
    """One request of a visitor.

    Attributes:
        request: the request.
        visitor: the user and what it may do.
        form: the fields of the form that was sent; empty for GET.
    """

    request: Request
    visitor: Visitor
    form: Mapping[str, str] = field(default_factory=dict)

    def text(self, name: str, default: str = "") -> str:
        """Return a parameter of the address."""
        return self.request.query_params.get(name, default)

    def choice(self, name: str, choices: Mapping[str, Any] | tuple[str, ...]) -> str:
        """Return a parameter that is one of these; the first of them if it is not."""
        given = self.text(name)
        return given if given in choices else next(iter(choices))

    def number(self, name: str) -> int:
        """Return a parameter that is a number of up to 9 digits; 1 if it is not."""
        given = self.text(name)
        return int(given) if given.isascii() and given.isdecimal() and len(given) < 10 else 1

    def queue(self) -> RegisteredQueue:
        """Return the queue that the address names. Raises BadNameError, BadArgumentError."""
        name = self.text("queue")
        if not name:
            raise BadArgumentError("this address names no queue")
        keys = QueueKeys(name, self.text("group") or None)
        return RegisteredQueue(keys.name, keys.group)

    def render(self, template: str, status: int = 200, **values: Any) -> Response:
        """Return a page."""
        return render(template, self.request, self.visitor, status, **values)
