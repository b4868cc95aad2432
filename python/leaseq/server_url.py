"""URLs of sets of servers, which redis-py does not know: Sentinel and Cluster. No input or output."""

import re
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import unquote

from leaseq.errors import BadArgumentError

FORMS: Final = (
    "redis+sentinel://[USER:PASSWORD@]HOST[:26379],HOST...[/SERVICE[/DB]] or"
    " redis+cluster://[USER:PASSWORD@]HOST[:6379],HOST..."
)

_URL: Final = re.compile(
    r"redis(?P<tls>s?)\+(?P<kind>sentinel|cluster)://"
    r"(?:(?P<user>[^:@/]*)(?::(?P<password>[^@/]*))?@)?(?P<hosts>[^/?@]+)(?:/(?P<service>[^/?]+))?(?:/(?P<db>\d+))?/?"
)


_DATABASE: Final = re.compile(r"[^/?#]*(/\d*)?/?([?#].*)?", re.DOTALL)
"""The part of a single server's URL behind its scheme. redis-py takes any other path for database 0."""


@dataclass(frozen=True, slots=True)
class ServerSet:
    """The parts of such a URL.

    `hosts` are Sentinels or nodes; `service` and `database` are for Sentinel; `options` are arguments of redis-py: username,
    password, ssl.
    """

    kind: Literal["sentinel", "cluster"]
    hosts: tuple[tuple[str, int], ...]
    service: str
    database: int
    options: dict[str, Any]


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
    options: dict[str, Any] = {
        "username": unquote(match["user"] or "") or None,
        "password": unquote(match["password"] or "") or None,
    }
    if match["tls"]:
        options["ssl"] = True
    kind: Literal["sentinel", "cluster"] = "sentinel" if match["kind"] == "sentinel" else "cluster"
    if kind == "cluster" and match["service"]:
        raise BadArgumentError(f"a cluster has neither services nor databases: write {FORMS}")
    port = 26379 if kind == "sentinel" else 6379
    hosts = tuple(_address(host, port) for host in match["hosts"].split(","))
    return ServerSet(kind, hosts, match["service"] or "mymaster", int(match["db"] or 0), options)


_ADDRESS: Final = re.compile(r"(?:\[(?P<ipv6>[^\[\]]+)\]|(?P<host>[^:\[\]]+))(?::(?P<port>\d+))?")


def _address(text: str, port: int) -> tuple[str, int]:
    """Return a host without brackets, as connections take it, and its port. Raises BadArgumentError."""
    match = _ADDRESS.fullmatch(text)
    if match is None:
        raise BadArgumentError(
            f"{text!r} in this URL is no HOST or HOST:PORT; an IPv6 address is in brackets, as in [::1]:26379"
        )
    return match["ipv6"] or match["host"], int(match["port"] or port)
