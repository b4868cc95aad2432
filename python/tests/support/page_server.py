"""A server that is set up with nothing but what a page tells an operator to paste, and what queues hold on it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final, Literal

from support.servers import SpawnedServer, plain_client, wait_until
from support.snippets import ROOT, blocks

import leaseq
import leaseq.doctor
import leaseq.jobs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import redis

Way = Literal["aclfile", "redis.conf", "ACL SAVE", "CONFIG REWRITE"]
WAYS: Final[tuple[Way, ...]] = ("aclfile", "redis.conf", "ACL SAVE", "CONFIG REWRITE")
"""Ways to give a server its users: in one of its files, or by ACL SETUSER and one of the commands that write a file."""
ACL_FILE: Final = "aclfile /etc/redis/users.acl"
"""The line of the page that names the file of users."""


def lines(start: str) -> list[str]:
    """The lines of the only block of text of docs/deployment.md that starts so."""
    page = blocks(ROOT / "docs" / "deployment.md")
    (found,) = (block.text for block in page if block.kind == "text" and block.text.startswith(start))
    return found.splitlines()


def passwords(users: Sequence[str]) -> dict[str, str]:
    """The password of each user that has one, by the lines of a page."""
    found = {}
    for line in users:
        _, name, *rules = line.split()
        for rule in rules:
            if rule.startswith(">"):
                found[name] = rule.removeprefix(">")
    return found


class PageServer(SpawnedServer):
    """A server whose configuration is the lines of a page, but for its address and its folder.

    Args:
        program: as for `SpawnedServer`.
        folder: an empty folder for its configuration.
        settings, users: lines of redis.conf and of users; those of docs/deployment.md where they are not given.
        way: how the users get there.

    Attributes:
        users: the URL of each user with a password.
        more: options at the end of its command line, for its next start.
    """

    def __init__(
        self,
        program: str,
        folder: Path,
        settings: Sequence[str] | None = None,
        users: Sequence[str] | None = None,
        way: Way = "aclfile",
    ) -> None:
        settings = lines("aclfile ") if settings is None else settings
        users = lines("user ") if users is None else users
        self.more: list[str] = []
        self._config = folder / "redis.conf"
        self._password = ""
        acl_file = folder / "users.acl"
        config = [line for line in settings if line != ACL_FILE]
        if way in {"aclfile", "ACL SAVE"}:
            config.append(f"aclfile {acl_file}")
        if way == "redis.conf":
            config += users
        acl_file.write_text("".join(f"{line}\n" for line in users) if way == "aclfile" else "")
        self._config.write_text("".join(f"{line}\n" for line in config))
        if way in {"aclfile", "redis.conf"}:
            self._password = passwords(users).get("admin", "")
        super().__init__(program)
        if way in {"ACL SAVE", "CONFIG REWRITE"}:
            with self.client() as client:
                for line in users:
                    client.execute_command("ACL", "SETUSER", *line.split()[1:])
                client.execute_command(*way.split())
            self._password = passwords(users).get("admin", "")
        place = self.url.removeprefix("redis://")
        self.users = {name: f"redis://{name}:{secret}@{place}" for name, secret in passwords(users).items()}

    def command(self) -> list[str]:
        """Return the command line: the configuration, and where this server is."""
        place = {"port": self.port, "bind": self.host, "dir": self.folder, "logfile": "log"}
        return [
            self.program,
            str(self._config),
            *(part for name, value in place.items() for part in (f"--{name}", str(value))),
            *self.more,
        ]

    def client(self, **options: Any) -> redis.Redis:
        """Return a connection of the page's administrator, if the page has users."""
        login = {"username": "admin", "password": self._password} if self._password else {}
        return plain_client(self.url, **{"protocol": 2, **login, **options})

    def kill(self) -> None:
        """End it with SIGKILL, once the system has what it acknowledged: everysec may hold a write back for 2 s."""
        if self._process is not None:
            with contextlib.suppress(leaseq.LeaseqError), self.client() as client:
                wait_until(lambda: client.info("persistence").get("aof_buffer_length", 0) == 0)
        super().kill()

    def contents(self) -> dict[bytes, Any]:
        """Every key with what it holds."""
        with self.client() as client:
            reads: dict[bytes, Any] = {
                b"string": client.get,
                b"hash": client.hgetall,
                b"list": lambda key: client.lrange(key, 0, -1),
                b"set": client.smembers,
                b"zset": lambda key: client.zrange(key, 0, -1, withscores=True),
            }
            return {key: reads[client.type(key)](key) for key in client.scan_iter(count=1000)}


def double(number: int) -> int:
    """Be a job."""
    return 2 * number


def fill(url: str) -> None:
    """Put items of every state, with outcomes of both kinds and a job, on a server, as this user."""
    with leaseq.WorkQueue("orders", url) as queue:
        queue.add_items([leaseq.Item(b"ready", headers={"a": "b"}) for _ in range(2)], max_attempts=5)
        queue.add_item(leaseq.Item(b"later"), delay=3600, priority=3)
        for end in ("completed", "dead", "leased"):
            queue.add_item(leaseq.Item(end, id=end), priority=7, keep=3600)
            item = queue.lease(3600, block=False)
            assert item is not None
            if end == "completed":
                queue.complete(item, result=b"result")
            elif end == "dead":
                queue.dead_letter(item, error="the reason")
    with leaseq.jobs.App(url) as app:
        app.job(double).enqueue(4)


def survives(server: PageServer) -> None:
    """Check that all is there after a restart and after SIGKILL."""
    before = server.contents()
    assert len(before) > 10
    server.restart()
    assert server.contents() == before
    server.kill()
    server.start()
    assert server.contents() == before


def replay(server: PageServer) -> leaseq.doctor.Finding:
    """Return what doctor finds about the append-only files of a server and its replicas."""
    with server.client() as client:
        (found,) = [one for one in leaseq.doctor.doctor(client).findings if one.check == "replay"]
    return found
