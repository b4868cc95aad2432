"""The server and the queue that a command works on: options --url and --group, argument QUEUE."""

from __future__ import annotations

import functools
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from leaseq import NoServerError, QueueStats, WorkQueue
from leaseq.cli.ends import Code, Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Server:
    """What --url says."""

    url: str | None

    @contextmanager
    def queue(self, name: str, group: str | None = None) -> Iterator[WorkQueue]:
        """A queue, closed at the end. Raises NoServerError, BadNameError."""
        if not self.url:
            raise NoServerError(
                "no server: say --url redis://HOST or set REDIS_URL; --url embedded:DIR starts one in a folder"
            )
        with WorkQueue(name, self.url, group=group) as queue:
            yield queue


def on_server(function: Function) -> Function:
    """Give a command the option --url; it gets `server`."""

    @click.option(
        "--url",
        "-u",
        envvar="REDIS_URL",
        metavar="URL",
        help="The server: redis://HOST, rediss://, unix://, embedded:DIR. [default: $REDIS_URL]",
    )
    @functools.wraps(function)
    def with_server(*args: Any, url: str | None, **options: Any) -> Any:
        return function(*args, server=Server(url), **options)

    return with_server


def on_queue(function: Function) -> Function:
    """Give a command the argument QUEUE and the options --url and --group; it gets `queue`, open."""

    @click.argument("queue")
    @on_server
    @click.option("--group", "-g", metavar="GROUP", help="The queue's group. [default: its name]")
    @functools.wraps(function)
    def with_queue(*args: Any, queue: str, server: Server, group: str | None, **options: Any) -> Any:
        with server.queue(queue, group) as opened:
            return function(*args, queue=opened, **options)

    return with_queue


def stats_of(queue: WorkQueue) -> QueueStats:
    """Its stats. Raises Refusal where there is no such queue: nothing was ever added, no limit set."""
    stats = queue.stats()
    if stats.items or stats.added or stats.paused or stats.max_items or stats.max_attempts or stats.kept:
        return stats
    group = "" if queue.group == queue.name else f" in group {queue.group}"
    message = (
        f"there is no queue {queue.name}{group}: nothing was ever added; is name, --group and --url right?"
    )
    raise Refusal(message, Code.NO)


def data_of(queue: WorkQueue, item_id: str) -> bytes:
    """The data of an item, read without a lease, which no operation does; empty where there is none (LQ-KEY-1)."""
    client: Any = queue._transport.client
    data: bytes | None = client.execute_command("HGET", queue._keys.key("items"), item_id, NEVER_DECODE=True)
    return data or b""
