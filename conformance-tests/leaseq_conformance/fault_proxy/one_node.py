"""Replies of a cluster of one node. With them a client can be sent redirections although no server moves slots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance import resp

if TYPE_CHECKING:
    from collections.abc import Callable

NODE_ID: Final = "0" * 39 + "1"
LAST_SLOT: Final = 16383


def reply(arguments: tuple[bytes, ...], port: int) -> bytes | None:
    """The reply to a command about the cluster; None for any other, which is the server's to answer."""
    words = [word.decode("ascii", "replace").upper() for word in arguments[:2]]
    if words in (["READONLY"], ["READWRITE"], ["ASKING"]):
        return b"+OK\r\n"
    make_reply = _REPLIES.get(words[1]) if len(words) == 2 and words[0] == "CLUSTER" else None
    return None if make_reply is None else resp.reply(make_reply(port))


def _slots(port: int) -> Any:
    return [[0, LAST_SLOT, ["127.0.0.1", port, NODE_ID]]]


def _shards(port: int) -> Any:
    node = ["id", NODE_ID, "port", port, "ip", "127.0.0.1", "endpoint", "127.0.0.1", "role", "master"]
    return [["slots", [0, LAST_SLOT], "nodes", [[*node, "replication-offset", 0, "health", "online"]]]]


def _nodes(port: int) -> Any:
    return f"{NODE_ID} 127.0.0.1:{port}@{port + 10000} myself,master - 0 0 1 connected 0-{LAST_SLOT}\n"


def _info(_port: int) -> Any:
    return f"cluster_enabled:1\r\ncluster_state:ok\r\ncluster_slots_assigned:{LAST_SLOT + 1}\r\n"


def _my_id(_port: int) -> Any:
    return NODE_ID


_REPLIES: Final[dict[str, Callable[[int], Any]]] = {
    "SLOTS": _slots,
    "SHARDS": _shards,
    "NODES": _nodes,
    "INFO": _info,
    "MYID": _my_id,
}
