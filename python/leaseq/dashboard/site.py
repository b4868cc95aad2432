"""The site that all pages share, and one visit of a page."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from leaseq.dashboard.access import Visitor
from leaseq.dashboard.reader import Reader
from leaseq.dashboard.shared_reads import SharedReads
from leaseq.dashboard.source import Source
from leaseq.dashboard.templates import render
from leaseq.errors import BadArgumentError
from leaseq.keys import QueueKeys, RegisteredQueue


class Site:
    """The server that is shown, and what was read of it.

    Attributes:
        source: the server.
        reader: the stats of its queues.
        reads: other reads, which viewers share.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.reader = Reader(source)
        self.reads = SharedReads()

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
