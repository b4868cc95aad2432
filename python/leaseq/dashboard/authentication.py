"""The user of a request to a dashboard that stands alone: by password, or as a proxy in front of it says."""

import base64
import binascii
import ipaddress
from collections.abc import Sequence
from typing import Final

from starlette.authentication import SimpleUser
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from leaseq.dashboard.passwords import Passwords

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

USER_HEADER: Final = "x-forwarded-user"
"""The header in which a trusted proxy names the user."""


class LocalUser:
    """Gives every request the user that started the dashboard: it listens on the loopback only."""

    def __init__(self, app: ASGIApp, name: str) -> None:
        self._app = app
        self._name = name

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._app({**scope, "user": SimpleUser(self._name)}, receive, send)


class PasswordLogin:
    """Asks for a name and a password, by the Basic scheme of HTTP."""

    def __init__(self, app: ASGIApp, passwords: Passwords) -> None:
        self._app = app
        self._passwords = passwords

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        name, password = _credentials(Headers(scope=scope).get("authorization", ""))
        is_right = await run_in_threadpool(self._passwords.accept, name, password) if name else False
        if is_right:
            await self._app({**scope, "user": SimpleUser(name)}, receive, send)
            return
        asking = {"www-authenticate": 'Basic realm="leaseq dashboard", charset="UTF-8"'}
        await PlainTextResponse("Log in.\n", 401, asking)(scope, receive, send)


class ProxyLogin:
    """Takes the user from the header X-Forwarded-User, and requests only from the proxies that are trusted to set it."""

    def __init__(self, app: ASGIApp, proxies: Sequence[Network]) -> None:
        self._app = app
        self._proxies = proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif not self._is_trusted(scope):
            await PlainTextResponse("Use the proxy.\n", 403)(scope, receive, send)
        elif name := Headers(scope=scope).get(USER_HEADER, ""):
            await self._app({**scope, "user": SimpleUser(name)}, receive, send)
        else:
            await PlainTextResponse("The proxy names no user.\n", 401)(scope, receive, send)

    def _is_trusted(self, scope: Scope) -> bool:
        host, _ = scope.get("client") or ("", 0)
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return False
        return any(address in network for network in self._proxies)


def _credentials(header: str) -> tuple[str, str]:
    """Return the name and the password of an Authorization header; two empty texts if it has none."""
    scheme, _, coded = header.partition(" ")
    if scheme.lower() != "basic":
        return "", ""
    try:
        name, _, password = base64.b64decode(coded, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return "", ""
    return name, password
