"""Observations of a server and of a queue of any flavour: commands that ran, clients that are blocked, outcomes."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING, Any

from support import servers
from support.client_flavours import unwrap

import leaseq
from leaseq import Completion

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    import redis

    from leaseq_conformance.fault_proxy import Listener

EVALS = ("cmdstat_evalsha", "cmdstat_eval")
BLOCKS = ("cmdstat_blpop", "cmdstat_blmove")
WAKE_UP = b"*2\r\n$17\r\nleaseq:{q}:q:wake\r\n$1\r\n1\r\n"
"""The reply to a BLPOP that was woken."""


def load(client: redis.Redis) -> None:
    """Make every script known, so that no call takes two commands."""
    for script in leaseq._scripts.SCRIPTS:
        client.script_load(script.source)


def calls(client: redis.Redis, *names: str) -> int:
    """Return how often the server has run these commands, or scripts, since the statistics were reset."""
    stats: dict[str, Any] = client.info("commandstats")
    return sum(stats[name]["calls"] for name in names or EVALS if name in stats)


def count_blocked(client: redis.Redis) -> int:
    """Return how many clients are blocked on the server."""
    info: Any = client.info("clients")
    return int(info["blocked_clients"])


def blocked(client: redis.Redis, count: int) -> None:
    """Wait until `count` clients are blocked on the server."""
    servers.wait_until(lambda: count_blocked(client) == count)


def blocked_with_a_command_behind(client: redis.Redis, proxy: Listener) -> None:
    """Wait until a client of the proxy is blocked and the server has the command that it sent behind the block.

    The server does not say whether it has that: Valkey 9.1 shows no byte of what it has parsed already.
    """

    def is_behind() -> bool:
        sent = [command for command in list(proxy.proxy.commands) if command.sent]
        block = next((command for command in reversed(sent) if command.name == "BLPOP"), None)
        return block is not None and any(
            command.connection == block.connection and command.number > block.number for command in sent
        )

    servers.wait_until(lambda: count_blocked(client) == 1)
    servers.wait_until(is_behind)
    client.ping()  # the server has read what was sent before


def blocked_ids(client: redis.Redis) -> list[int]:
    """Ids of the blocked connections."""
    listed: Any = client.client_list()
    return [int(entry["id"]) for entry in listed if "b" in entry["flags"]]


def look(queue: Any, *ids: str) -> list[tuple[str, bytes]]:
    """State and content of outcomes, without waiting."""
    return [(outcome.state, outcome.content) for outcome in queue.outcomes(ids)]


def finished(item: Any, then: Any = (), **options: Any) -> Completion:
    """Return what complete_items takes, of whatever flavour."""
    return Completion(unwrap(item), then=unwrap(list(then)), **options)


def due_for_a_beat(*items: Any) -> None:
    """As if a third of their leases had passed: entered, they are extended at once. The leases can be long then."""
    for item in map(unwrap, items):
        item.hold.held_until -= item.hold.secs / 3


def is_sending(thread: threading.Thread) -> bool:
    """Return whether a thread is where redis-py sends: interrupted there, it closes the connection, and the reply is lost."""
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None:
        if frame.f_code.co_name == "send_packed_command":
            return True
        frame = frame.f_back
    return False


def beat(queue: Any) -> None:
    """Send the heartbeats of a queue now. Otherwise they come after a third of the leases."""
    heartbeater: Any = unwrap(queue).heartbeater

    def all_due() -> None:
        for item, (_, since) in list(heartbeater._schedule._next.items()):
            heartbeater._schedule._next[item] = (time.monotonic(), since)
        heartbeater._wake_event.set()

    if queue is unwrap(queue):
        all_due()
    else:  # a stand-in for a queue of asyncio, whose loop runs in another thread
        queue.flavour.loop.call_soon_threadsafe(all_due)


async def until(check: Callable[[], bool]) -> None:
    """Poll."""
    async with asyncio.timeout(servers.TIMEOUT_SECS):
        while not check():  # noqa: ASYNC110 (the condition is the server's)
            await asyncio.sleep(0.005)
