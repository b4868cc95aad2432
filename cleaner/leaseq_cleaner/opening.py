"""From a URL to a client: those of `leaseq`, and sets of servers, which those do not name."""

import os
import re
from typing import Any
from urllib.parse import unquote

from redis.asyncio import Redis, RedisCluster, sentinel
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from leaseq._aio.opening import OpenedServer
from leaseq.errors import BadArgumentError

Server = str | Redis | RedisCluster

_SET = re.compile(
    r"redis(?P<tls>s?)\+(?P<kind>sentinel|cluster)://"
    r"(?:(?P<user>[^:@/]*)(?::(?P<password>[^@/]*))?@)?(?P<hosts>[^/?@]+)(?:/(?P<service>[^/?]+))?(?:/(?P<db>\d+))?/?"
)
_FORMS = (
    "redis+sentinel://[USER:PASSWORD@]HOST[:26379],HOST...[/SERVICE[/DB]] or"
    " redis+cluster://[USER:PASSWORD@]HOST[:6379],HOST..."
)


class Opened:
    """A client and how to close what was opened for it."""

    def __init__(self, server: Server | None) -> None:
        """Opens nothing yet. Raises NoServerError, BadArgumentError, BadTypeError."""
        self._watchers: list[Any] = []
        self.client: Redis | RedisCluster
        if server is None:
            server = os.environ.get("REDIS_URL")
        if isinstance(server, str) and "+" in server.split("://", 1)[0]:
            self._plain = None
            self.client = self._open_set(server)
        else:
            self._plain = OpenedServer(server, "the cleaner", "Cleaner('redis://localhost')")
            self.client = self._plain.client

    def _open_set(self, url: str) -> Redis | RedisCluster:
        match = _SET.fullmatch(url)
        if match is None:
            # not the URL: there may be a password in it
            raise BadArgumentError(f"this is not a URL of a set of servers, which looks like {_FORMS}")
        options: dict[str, Any] = {
            "username": unquote(match["user"] or "") or None,
            "password": unquote(match["password"] or "") or None,
        }
        if match["tls"]:
            options["ssl"] = True
        hosts = [
            _address(host, 26379 if match["kind"] == "sentinel" else 6379)
            for host in match["hosts"].split(",")
        ]
        if match["kind"] == "cluster":
            if match["service"]:
                raise BadArgumentError(f"a cluster has neither services nor databases: write {_FORMS}")
            host, port = hosts[0]
            return RedisCluster(host=host, port=port, **options)
        make: Any = sentinel.Sentinel
        found = make(hosts, sentinel_kwargs={"ssl": True} if match["tls"] else {}, **options)
        self._watchers = list(found.sentinels)
        client: Redis = found.master_for(
            match["service"] or "mymaster", db=int(match["db"] or 0), retry=Retry(NoBackoff(), 0)
        )
        return client

    async def close(self) -> None:
        """Close what was opened here."""
        if self._plain is not None:
            await self._plain.close()
            return
        client: Any = self.client
        for each in (client, *self._watchers):
            await each.aclose()


def _address(text: str, port: int) -> tuple[str, int]:
    host, _, given = text.rpartition(":") if re.search(r":\d+$", text) else (text, "", "")
    return host, int(given or port)
