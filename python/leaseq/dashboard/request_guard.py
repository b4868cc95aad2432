"""The rules of every request: allowed hosts, changes only from the dashboard's own pages, and headers of the response."""

from collections.abc import Collection
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        *(f"{kind} 'self'" for kind in ("script-src", "style-src", "img-src", "connect-src", "form-action")),
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
"""The Content-Security-Policy: nothing inline, nothing of another origin."""

_HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}

_STATIC_CACHE: Final = "public, max-age=86400"
"""For style and script, whose addresses have the version."""


class RequestGuard:
    """Refuses requests of other sites, and adds the security headers.

    `hosts` are the names that a browser may use for this server, without ports. A name that an attacker points at this
    address is none of them. None allows any: the application that mounts the dashboard checks its own.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str] | None = None) -> None:
        self._app = app
        self._hosts = None if hosts is None else {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault(
                    "cache-control", _STATIC_CACHE if "/static/" in scope["path"] else "no-store"
                )
            await send(message)

        refusal = self._refusal(scope)
        if refusal is None:
            await self._app(scope, receive, send_guarded)
        else:
            await refusal(scope, receive, send_guarded)

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        headers = Headers(scope=scope)
        if self._hosts is not None and host_name(headers.get("host", "")) not in self._hosts:
            return PlainTextResponse(
                "This host name is not allowed. Start the dashboard with --allowed-host and this name.\n", 400
            )
        if scope["method"] not in {"GET", "HEAD"} and not is_same_origin(headers):
            return PlainTextResponse(
                "This change does not come from a page of the dashboard. Nothing was done.\n", 403
            )
        return None


def host_name(host: str) -> str:
    """Return the name in a Host header, without its port, in lower case; "" if it is none."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def is_same_origin(headers: Headers) -> bool:
    """Return whether a request comes from a page of this server.

    A browser sends Sec-Fetch-Site over TLS and to localhost. Elsewhere Origin must name the host of the request.
    """
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    try:
        origin = urlsplit(headers.get("origin", "")).netloc
    except ValueError:
        return False
    return bool(origin) and origin.lower() == headers.get("host", "").lower()
