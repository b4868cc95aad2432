"""A dashboard on a server of the tests, visited as a browser does."""

from __future__ import annotations

import contextlib
import html
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from starlette.testclient import TestClient

from leaseq import dashboard

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from starlette.types import ASGIApp

SAME_ORIGIN = {"sec-fetch-site": "same-origin"}
_FIELD = re.compile(r'<input type="hidden" name="([^"]*)" value="([^"]*)">')


class Browser:
    """Pages of a dashboard, below a prefix.

    Attributes:
        client: sends the requests.
    """

    def __init__(self, client: TestClient, prefix: str = "") -> None:
        self.client = client
        self._prefix = prefix

    def get(self, path: str, status: Any = 200, **query: object) -> str:
        """Return a page, as it is sent."""
        reply = self.client.get(self.address(path, query))
        assert reply.status_code == status, (reply.status_code, reply.text)
        return reply.text

    def fields(self, **query: object) -> dict[str, str]:
        """Return the hidden fields of the form of a change."""
        reply = self.client.get(self.address("/change", query))
        assert reply.status_code == 200, (reply.status_code, reply.text)
        page = reply.text
        return {name: html.unescape(value) for name, value in _FIELD.findall(page)}

    def post(self, fields: Mapping[str, str], status: int = 200, **query: object) -> str:
        """Send the form of a change; return the text of what it did."""
        reply = self.client.post(self.address("/change", query), data=dict(fields), headers=SAME_ORIGIN)
        assert reply.status_code == status, (reply.status_code, reply.text)
        (note,) = re.findall(r'<p class="note"[^>]*>(.*?)</p>', reply.text)
        return html.unescape(note)

    def change(self, status: Any = 200, **query: object) -> str:
        """Make a change as it is shown."""
        return self.post(self.fields(**query), status, **query)

    def address(self, path: str, query: Mapping[str, object]) -> str:
        """Return the address of a page."""
        return f"{self._prefix}{path}?{urlencode(query)}"


@contextlib.contextmanager
def browser(url: str, **options: Any) -> Iterator[Browser]:
    """Visit a dashboard of a server; `options` are those of `asgi`."""
    app = dashboard.asgi(url, **options)
    with visiting(app) as made:
        yield made


@contextlib.contextmanager
def visiting(app: ASGIApp, prefix: str = "") -> Iterator[Browser]:
    """Visit an application."""
    with TestClient(app, base_url="http://localhost", follow_redirects=False) as client:
        yield Browser(client, prefix)


def everything(_request: object, _action: object) -> bool:
    """Allow every action."""
    return True
