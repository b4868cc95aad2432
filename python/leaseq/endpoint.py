"""The settings by which a client of redis-py connects, read for leaseq's connections. No input or output."""

import socket
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

import hiredis
import redis
import redis.asyncio
from redis import exceptions

from leaseq._version import __version__
from leaseq.errors import BadArgumentError, BadTypeError
from leaseq.password_file import UnsendableLoginError, check_login
from leaseq.script_errors import TURNED_AWAY
from leaseq.tls_contexts import tls_context

REPLY_SECS: Final = 5.0
"""Seconds that a reply and a connection may take if a URL says nothing of it."""

DEFAULT_REPLY_SECONDS: Final = 60.0
"""The same if a client waits without limit (socket_timeout None)."""

_MAX_SECONDS: Final = 1e8
"""Three years: a socket takes no time limit that is much longer."""

_KEEPALIVE: Final = {"TCP_KEEPIDLE": 30, "TCP_KEEPALIVE": 30, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
"""When the system asks a silent server whether it is there: seconds of silence, seconds between, how often."""

_ERRORS: Final[Mapping[str, type[Exception]]] = {
    "ASK": exceptions.AskError,
    "CLUSTERDOWN": exceptions.ClusterDownError,
    "CROSSSLOT": exceptions.ClusterCrossSlotError,
    "EXECABORT": exceptions.ExecAbortError,
    "LOADING": exceptions.BusyLoadingError,
    "MASTERDOWN": exceptions.MasterDownError,
    "MOVED": exceptions.MovedError,
    "NOAUTH": exceptions.AuthenticationError,
    "NOPERM": exceptions.NoPermissionError,
    "NOSCRIPT": exceptions.NoScriptError,
    "OOM": exceptions.OutOfMemoryError,
    "READONLY": exceptions.ReadOnlyError,
    "TRYAGAIN": exceptions.TryAgainError,
    "WRONGPASS": exceptions.AuthenticationError,
}
_OVER_TLS: Final = (redis.SSLConnection, redis.asyncio.SSLConnection)
_UNIX: Final = (redis.UnixDomainSocketConnection, redis.asyncio.UnixDomainSocketConnection)
_NOT_OURS: Final = (
    "ssl_validate_ocsp",
    "ssl_validate_ocsp_stapled",
    "ssl_ocsp_context",
    "ssl_ocsp_expected_cert",
)

NOTHING: Final = object()
"""The answer of a reader when there is no whole reply."""


def reader() -> hiredis.Reader:
    """A parser of replies: bytes for all texts, exceptions of redis-py for errors."""
    return hiredis.Reader(
        protocolError=exceptions.InvalidResponse, replyError=error_reply, notEnoughData=NOTHING
    )


def error_reply(text: str) -> Exception:
    """The exception of redis-py for an error reply, its text without a code that the exception says."""
    code, _, rest = text.partition(" ")
    kind = _ERRORS.get(code)
    if kind is not None:
        try:
            return kind(rest)
        except ValueError:  # MOVED or ASK to nowhere
            return redis.ResponseError(text)
    if code != "ERR":
        return redis.ResponseError(text)
    # sent instead of any reply, and then the connection is closed
    return (redis.ConnectionError if text.startswith(TURNED_AWAY) else redis.ResponseError)(rest)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a server is and how to get in.

    Attributes:
        host: with `port`, unless there is a `path` of a Unix socket.
        connect_secs: how long connecting may take, up to the last reply before the first call.
        reply_secs: how long a reply may take.
        given: all settings of the client, by the names of redis-py.
    """

    host: str
    port: int
    path: str | None
    connect_secs: float
    reply_secs: float
    given: Mapping[str, Any] = field(repr=False)  # with a password
    over_tls: bool

    def __str__(self) -> str:
        return self.path or f"{self.host}:{self.port}"

    def within(self, seconds: float) -> Self:
        """Return the same endpoint, with at most this time for connecting."""
        if seconds >= self.connect_secs:
            return self
        return replace(self, connect_secs=max(0.001, seconds))

    @property
    def family(self) -> int:
        """The kind of address; 0 for any."""
        return int(self.given.get("socket_type") or 0)

    @property
    def credentials(self) -> Any:
        """The provider of user and password for each new connection, if the client has one."""
        return self.given.get("credential_provider")

    def tls(self) -> ssl.SSLContext | None:
        """Return how to speak TLS, from files as they are now; None without TLS. Raises OSError for a file that is none."""
        return tls_context(self.given) if self.over_tls else None

    def set_up(self, sock: Any) -> None:
        """Set the options of a TCP connection."""
        if self.path is not None:
            return
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not self.given.get("socket_keepalive", True):
            return
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        options = self.given.get("socket_keepalive_options")
        if not isinstance(options, Mapping):
            named = {getattr(socket, name, None): value for name, value in _KEEPALIVE.items()}
            options = {number: value for number, value in named.items() if number is not None}
        for option, value in options.items():
            sock.setsockopt(socket.IPPROTO_TCP, option, value)

    def greeting(self, provided: Sequence[str] | None) -> list[tuple[str, ...]]:
        """Return what to say before the first call, all at once; `provided` is user and password, or a password alone."""
        given = self.given
        user, password = given.get("username"), given.get("password")
        if provided is not None:
            user, password = provided if len(provided) > 1 else (None, provided[0])
        check_login(user, password)
        known = password is not None or bool(user)
        access: tuple[str, ...] = ("AUTH", *([user] if user else []), password or "") if known else ()
        commands: list[tuple[str, ...]] = []
        if str(given.get("protocol")) == "3":
            commands.append(("HELLO", "3", *(("AUTH", user or "default", password or "") if known else ())))
        elif known:
            commands.append(access)
        if given.get("client_name"):
            commands.append(("CLIENT", "SETNAME", given["client_name"]))
        if given.get("lib_name", "") is not None and given.get("driver_info", "") is not None:
            commands += [
                ("CLIENT", "SETINFO", "LIB-NAME", "leaseq"),
                ("CLIENT", "SETINFO", "LIB-VER", __version__),
            ]
        if int(given.get("db") or 0):
            commands.append(("SELECT", str(int(given["db"]))))
        return commands

    @staticmethod
    def refusal(command: Sequence[str], reply: object) -> Exception | None:
        """Return what a reply to a part of the greeting means for the connection; None if nothing."""
        if not isinstance(reply, Exception) or command[:2] == ("CLIENT", "SETINFO"):
            # an old server does not know SETINFO, and not everybody may say it; NOAUTH stands for all that comes behind
            return reply if isinstance(reply, redis.AuthenticationError) else None
        if command[0] == "AUTH" and type(reply) is redis.ResponseError:
            return redis.AuthenticationError(*reply.args)
        if isinstance(reply, redis.ResponseError) and command[0] in {"CLIENT", "SELECT"}:
            # of the others, there may be a password in it; the code stays in front
            return type(reply)(f"{reply} (the reply to {' '.join(command)})")
        return reply


def endpoint(given: Mapping[str, Any], kind: type, at: tuple[str, int] | None = None) -> Endpoint:
    """Return where connections of this class with these settings lead, or of a set of servers to the one `at` this address.

    Raises BadTypeError, BadArgumentError for settings that leaseq's connections do not support.
    """
    if kind.__module__.partition(".")[0] != "redis":
        raise BadTypeError(
            f"the connections of this client are of a custom class, {kind.__module__}.{kind.__qualname__}; leaseq"
            " opens connections itself, so it has to have a client of redis-py as it is"
        )
    for name in _NOT_OURS:
        if given.get(name):
            raise BadArgumentError(f"{name}: leaseq does not ask whether certificates were revoked")
    if at is None and given.get("redis_connect_func") is not None:
        raise BadArgumentError(
            "redis_connect_func: leaseq opens connections itself and would not call it; use a credential_provider"
        )
    host, port = at or (given.get("host", "localhost"), given.get("port", 6379))
    reply = given.get("socket_timeout", REPLY_SECS)
    reply = DEFAULT_REPLY_SECONDS if reply is None else _seconds(reply, "socket_timeout")
    connect = given.get("socket_connect_timeout", reply)
    found = Endpoint(
        host=str(host),
        port=int(port),
        path=str(given.get("path", "")) if issubclass(kind, _UNIX) else None,
        connect_secs=reply if connect is None else _seconds(connect, "socket_connect_timeout"),
        reply_secs=reply,
        given=given,
        over_tls=issubclass(kind, _OVER_TLS) or bool(given.get("ssl")),
    )
    if at is None:
        _check(found)
    return found


def _seconds(given: float, name: str) -> float:
    """Return a time limit. Raises BadArgumentError."""
    if not float(given) > 0:  # or it is no number
        raise BadArgumentError(
            f"{name} is {given!r}: it must be above 0 seconds, or None for leaseq's own limit"
        )
    return min(float(given), _MAX_SECONDS)


def _check(found: Endpoint) -> None:
    """Tell now what every connection would fail with."""
    try:
        found.tls()
        found.greeting(None)
    except UnsendableLoginError as error:
        raise BadArgumentError(str(error)) from error
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise BadArgumentError(
            f"the settings of the connection do not do: {type(error).__name__}: {error}"
        ) from error
