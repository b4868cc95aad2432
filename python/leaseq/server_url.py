"""URLs as redis-py does not know them: of sets of servers (Sentinel and Cluster), and with files that have passwords. No input or output."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal
from urllib.parse import unquote, unquote_plus

from redis.connection import to_bool

from leaseq.errors import BadArgumentError
from leaseq.password_file import PasswordFile, UnsendableLoginError, check_login

FORMS: Final = (
    "redis+sentinel://[USER:PASSWORD@]HOST[:26379],HOST...[/SERVICE[/DB]][?OPTION=VALUE&...] or"
    " redis+cluster://[USER:PASSWORD@]HOST[:6379],HOST...[?OPTION=VALUE&...]"
)
PASSWORD_FILE: Final = "password_file"  # noqa: S105 (the name of an option)

_OPTIONS: Final[dict[str, Callable[[str], Any]]] = {
    "socket_timeout": float,
    "socket_connect_timeout": float,
    "socket_keepalive": to_bool,
    "client_name": str,
}
_TLS_OPTIONS: Final[dict[str, Callable[[str], Any]]] = {
    "ssl_ca_certs": str,
    "ssl_certfile": str,
    "ssl_keyfile": str,
    "ssl_password": str,
    "ssl_cert_reqs": str,
    "ssl_check_hostname": to_bool,
}
_LOGIN: Final = ("username", "password", PASSWORD_FILE)
"""The names of the login of Sentinels, behind `sentinel_`. For the servers user and password are before the hosts."""

_URL: Final = re.compile(
    r"redis(?P<tls>s?)\+(?P<kind>sentinel|cluster)://"
    r"(?:(?P<user>[^:@/]*)(?::(?P<password>[^@/]*))?@)?(?P<hosts>[^/?@]+)(?:/(?P<service>[^/?]+))?(?:/(?P<db>\d+))?/?"
    r"(?:\?(?P<query>.*))?",
    re.DOTALL,
)


_DATABASE: Final = re.compile(r"[^/?#]*(/\d*)?/?([?#].*)?", re.DOTALL)
"""The part of a single server's URL behind its scheme. redis-py takes any other path for database 0."""


@dataclass(frozen=True, slots=True)
class ServerSet:
    """The parts of such a URL.

    `hosts` are Sentinels or nodes; `service` and `database` are for Sentinel; `options` are arguments of redis-py, such as username,
    password and ssl, and `sentinel_options` those of the connections to Sentinels.
    """

    kind: Literal["sentinel", "cluster"]
    hosts: tuple[tuple[str, int], ...]
    service: str
    database: int
    options: dict[str, Any]
    sentinel_options: dict[str, Any] = field(default_factory=dict)


def with_password_file(url: str) -> tuple[str, PasswordFile | None]:
    """Return the URL of a single server as redis-py takes it, and the file that has its password. Raises BadArgumentError."""
    scheme, _, rest = url.partition("://")
    place, _, query = rest.partition("?")
    pieces = query.split("&")
    files = [piece for piece in pieces if piece.partition("=")[0] == PASSWORD_FILE]
    if "+" in scheme or not files:
        return url, None
    login, slash, path = place.partition("/")
    user, _, host = login.rpartition("@")
    others = [piece for piece in pieces if piece not in files]
    behind = f"?{'&'.join(others)}" if others else ""
    found = _password_file(unquote_plus(files[-1].partition("=")[2]), *_user_and_password(user))
    return f"{scheme}://{host}{slash}{path}{behind}", found


def _user_and_password(text: str) -> tuple[str, str]:
    user, _, password = text.partition(":")
    return unquote(user), unquote(password)


def _password_file(path: str, username: str, password: str) -> PasswordFile:
    if password:
        raise BadArgumentError(f"this URL has a password and {PASSWORD_FILE}: leave one out")
    if not path:
        raise BadArgumentError(f"{PASSWORD_FILE} of this URL names no file")
    return PasswordFile(path, username)


def server_set(url: str) -> ServerSet | None:
    """The set of servers that a URL names; None if it names a single server. Raises BadArgumentError."""
    scheme, _, rest = url.partition("://")
    if "+" not in scheme:
        if scheme in {"redis", "rediss"} and not _DATABASE.fullmatch(rest):
            raise BadArgumentError(
                "the path of this URL is no database: it is a number, as in redis://user:password@host:6379/2"
            )
        return None
    match = _URL.fullmatch(url)
    if match is None:
        # not the URL: there may be a password in it
        raise BadArgumentError(f"this is not a URL of a set of servers, which looks like {FORMS}")
    kind: Literal["sentinel", "cluster"] = "sentinel" if match["kind"] == "sentinel" else "cluster"
    if kind == "cluster" and match["service"]:
        raise BadArgumentError(f"a cluster has neither services nor databases: write {FORMS}")
    port = 26379 if kind == "sentinel" else 6379
    hosts = tuple(_address(host, port) for host in match["hosts"].split(","))
    given = _given(match["query"] or "", kind, over_tls=bool(match["tls"]))
    login = {"username": unquote(match["user"] or ""), "password": unquote(match["password"] or "")}
    login |= {PASSWORD_FILE: given.pop(PASSWORD_FILE, None)}
    of_sentinels = {name: given.pop(f"sentinel_{name}", None) for name in _LOGIN}
    shared = {**({"ssl": True} if match["tls"] else {}), **given}
    asked = {**shared, **{name: value for name, value in _login(**of_sentinels).items() if value is not None}}
    return ServerSet(
        kind,
        hosts,
        match["service"] or "mymaster",
        int(match["db"] or 0),
        {**_login(**login), **shared},
        asked if kind == "sentinel" else {},
    )


def _login(
    username: str | None = None, password: str | None = None, password_file: str | None = None
) -> dict[str, Any]:
    """Return arguments of redis-py. It takes a provider of both, or both. Raises BadArgumentError."""
    try:
        check_login(username, password)
    except UnsendableLoginError as error:
        raise BadArgumentError(str(error)) from error
    if password_file is None:
        return {"username": username or None, "password": password or None}
    return {"credential_provider": _password_file(password_file, username or "", password or "")}


def _given(query: str, kind: str, *, over_tls: bool) -> dict[str, Any]:
    """Return the options of a URL. Raises BadArgumentError for an option that leaseq does not know (LQ-CLIENT-27)."""
    known: dict[str, Callable[[str], Any]] = {**_OPTIONS, **_TLS_OPTIONS, PASSWORD_FILE: str}
    if kind == "sentinel":
        known |= {f"sentinel_{name}": str for name in _LOGIN}
    found: dict[str, Any] = {}
    for piece in filter(None, query.split("&")):
        name, _, value = piece.partition("=")
        if name not in known:
            raise BadArgumentError(
                f"{name!r} is no option of this URL, which takes {', '.join(sorted(known))}; others need a client of redis-py"
            )
        if name in _TLS_OPTIONS and not over_tls:
            raise BadArgumentError(f"{name} is about TLS: the URL starts with rediss+{kind}:// then")
        try:
            found[name] = known[name](unquote_plus(value))
        except ValueError:
            raise BadArgumentError(f"{name} of this URL is a number of seconds") from None
    return found


_ADDRESS: Final = re.compile(r"(?:\[(?P<ipv6>[^\[\]]+)\]|(?P<host>[^:\[\]]+))(?::(?P<port>\d+))?")


def _address(text: str, port: int) -> tuple[str, int]:
    """Return a host without brackets, as connections take it, and its port. Raises BadArgumentError."""
    match = _ADDRESS.fullmatch(text)
    if match is None:
        raise BadArgumentError(
            f"{text!r} in this URL is no HOST or HOST:PORT; an IPv6 address is in brackets, as in [::1]:26379"
        )
    return match["ipv6"] or match["host"], int(match["port"] or port)
