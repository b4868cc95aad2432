"""The server and the queue that a command works on: options --url and --group, argument QUEUE."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import click

from leaseq import NoServerError, QueueStats, WorkQueue
from leaseq._sync.server_handle import ServerHandle
from leaseq.cli.exit_codes import CommandError
from leaseq.errors import LeaseqError
from leaseq.registry import queues

Function = Callable[..., Any]


_MAX_DATA: Final = 1048576  # until it is set (spec/04-operations.md, configure)


@dataclass(frozen=True, slots=True)
class Server:
    """The value of --url."""

    url: str | None

    def named(self) -> str:
        """The URL. Raises NoServerError."""
        if not self.url:
            raise NoServerError(
                "no server: say --url redis://HOST or set REDIS_URL; --url embedded:DIR starts one in a folder"
            )
        return self.url

    @contextlib.contextmanager
    def opened(self, what: str) -> Iterator[Any]:
        """One client, for calls on several queues or workers. Raises NoServerError."""
        with ServerHandle(self.named(), what, "--url redis://localhost") as handle:
            yield handle.client

    def queue(self, name: str, group: str | None = None) -> WorkQueue:
        """A queue, to be closed. Raises NoServerError, BadNameError."""
        return WorkQueue(name, self.named(), group=group)


def on_server(function: Function) -> Function:
    """Give a command the option --url; it gets `server`."""

    @click.option(
        "--url",
        "-u",
        envvar="REDIS_URL",
        metavar="URL",
        help="The server: redis://HOST, rediss://, unix://, redis+sentinel://HOST,HOST/SERVICE,"
        " redis+cluster://HOST, embedded:DIR. With ?password_file=FILE the password stays out of it. [default: $REDIS_URL]",
    )
    @functools.wraps(function)
    def with_server(*args: Any, url: str | None, **options: Any) -> Any:
        return function(*args, server=Server(url), **options)

    return with_server


in_group: Final = click.option(
    "--group", "-g", metavar="GROUP", help="The queue's group. [default: its name]"
)
"""The option of all commands on one queue."""


def on_queue(function: Function) -> Function:
    """Give a command the argument QUEUE and the options --url and --group; it gets `queue`, open."""

    @click.argument("queue")
    @on_server
    @in_group
    @functools.wraps(function)
    def with_queue(*args: Any, queue: str, server: Server, group: str | None, **options: Any) -> Any:
        with server.queue(queue, group) as opened:
            return function(*args, queue=opened, **options)

    return with_queue


def stats_of(queue: WorkQueue) -> QueueStats:
    """Its stats. Raises CommandError if there is no such queue: nothing was ever added, no limit set."""
    stats = queue.stats()
    if existed(stats):
        return stats
    where = "" if queue.group == queue.name else f" in group {queue.group}"
    raise CommandError(
        f"there is no queue {queue.name}{where}: nothing was ever added; {_other_queues(queue)}"
    )


def existed(stats: QueueStats) -> bool:
    """Return whether the queue was ever used: something was added, or a limit set."""
    limited = stats.max_items or stats.max_attempts or stats.max_data != _MAX_DATA
    return bool(stats.items or stats.added or stats.paused or stats.kept or limited)


def _other_queues(queue: WorkQueue) -> str:
    """Return what else may have been meant."""
    with contextlib.suppress(LeaseqError):
        for name, group in queues(queue.executor.client):
            if name == queue.name and group != queue.group:
                return f"there is one in group {group}: say --group {group}"
    return "`leaseq queues` lists those there are"


def data_of(queue: WorkQueue, item_id: str) -> bytes:
    """The data of an item, read without a lease, which no operation does; empty where there is none (LQ-KEY-1)."""
    data: bytes | None = queue.executor.execute("HGET", queue.keys.key("items"), item_id)
    return data or b""
