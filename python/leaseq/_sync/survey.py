# Generated from _aio/survey.py by tools/unasync.py: do not edit.
"""Reads of many queues in few round trips: the calls to one server are sent together."""

from collections.abc import Iterable, Sequence
from typing import Any

import redis

from leaseq import errors
from leaseq._sync import concurrency
from leaseq._sync.executor import Executor
from leaseq._sync.route import NOT_CONNECTED, Cluster, Route
from leaseq._sync.server_handle import ServerHandle
from leaseq.commands import Argument, Command, pack
from leaseq.commands.encoding import UNREADABLE
from leaseq.errors import LeaseqError

Call = Command[Any] | tuple[Argument, ...]
"""A script or a plain command. Its first key says where it is sent."""

TOGETHER = 256
"""Calls that are sent before their replies are read."""


def read_all(client: concurrency.Client, calls: Sequence[Call]) -> list[Any]:
    """Make calls that change nothing, of any number of queues. Return the answer of each, or its error of `leaseq.errors`."""
    answers: list[Any] = [None] * len(calls)
    with ServerHandle(client, "calls of many queues", "read_all(client, calls)") as opened:
        try:
            nodes = _by_node(opened.route, calls)
        except NOT_CONNECTED as error:
            return [errors.from_connection(error, sent=False)] * len(calls)
        for places in nodes:
            for at in range(0, len(places), TOGETHER):
                group = places[at : at + TOGETHER]
                for place in _read_group(opened.route, calls, group, answers):
                    answers[place] = _read_alone(client, calls[place])
    return answers


def _by_node(connections: Route, calls: Sequence[Call]) -> Iterable[Sequence[int]]:
    """Return the places of the calls to each server. Raises errors of redis-py if a cluster does not say where its queues are."""
    if not isinstance(connections, Cluster):
        return [range(len(calls))]
    nodes: dict[str, list[int]] = {}
    for place, call in enumerate(calls):
        nodes.setdefault(connections.node_of(_key(call)), []).append(place)
    return nodes.values()


def _read_group(
    connections: Route, calls: Sequence[Call], group: Sequence[int], answers: list[Any]
) -> list[int]:
    """Send calls to one server and fill in their answers. Return the places of those that it refused."""
    until = concurrency.now() + connections.limit_secs
    try:
        connection = connections.acquire(_key(calls[group[0]]), None, until)
    except NOT_CONNECTED as error:
        for place in group:
            answers[place] = errors.from_connection(error, sent=False)
        return []
    refused: list[int] = []
    done = 0
    try:
        connection.send_all([_packed(calls[place]) for place in group])
        for done, place in enumerate(group):  # noqa: B007 (how far it came)
            call = calls[place]
            try:
                reply = connection.read()
                answers[place] = call.parse(reply) if isinstance(call, Command) else reply
            except (redis.ResponseError, *UNREADABLE):
                refused.append(place)
    except (redis.RedisError, OSError) as error:
        connection.close()
        for place in group[done:]:
            answers[place] = errors.from_connection(error, sent=True)
    finally:
        connections.release(connection)
    return refused


def _read_alone(client: concurrency.Client, call: Call) -> Any:
    """Make a call again that was refused: its script is loaded, a cluster's redirection followed, its error named."""
    executor = Executor(client, _key(call))
    try:
        return executor.run(call) if isinstance(call, Command) else executor.execute(*call)
    except LeaseqError as error:
        return error


def _packed(call: Call) -> bytes:
    if isinstance(call, Command):
        return call.packed or pack(call.evalsha())
    return pack(call)


def _key(call: Call) -> str:
    return call.keys[0] if isinstance(call, Command) else str(call[1])
