"""Persistence: whether items outlive the server's process."""

from typing import Any

from leaseq.doctor.finding import Verdict, advice, ok, problem, unknown
from leaseq.doctor.node import Node

TURN_ON = "CONFIG SET appendonly yes, CONFIG SET appendfsync everysec, and write both into the server's configuration"


def persistence(node: Node) -> Verdict:
    """With an append-only file a restart loses nothing, and a crash of the machine the last second."""
    info = node.info("persistence")
    if "aof_enabled" not in info:
        return unknown("the server does not tell how it writes to disk", "see that appendonly is yes")
    failed = _failed(info)
    if failed:
        return problem(failed, "look at the server's log and at its disk: it may be full")
    if not info["aof_enabled"]:
        return _without_aof(node.setting("save"))
    sync = node.setting("appendfsync")
    if sync is None:
        return advice(
            "appendonly is yes; appendfsync is not told", "see that appendfsync is everysec or always"
        )
    if sync == "no":
        return advice(
            "appendonly is yes, appendfsync is no: a crash of the machine loses what the system had not yet written,"
            " about 30 s",
            "CONFIG SET appendfsync everysec",
        )
    return ok(f"appendonly is yes, appendfsync is {sync}")


def _failed(info: dict[str, Any]) -> str:
    if info.get("aof_enabled") and info.get("aof_last_write_status", "ok") != "ok":
        return "the last write to the append-only file failed: what is added is not on disk"
    if info.get("rdb_last_bgsave_status", "ok") != "ok":
        return "the last snapshot failed: what is added is not on disk, and the server may refuse writes"
    return ""


def _without_aof(save: str | None) -> Verdict:
    if save:
        return problem(
            f"snapshots only (save {save}): a restart after a crash loses what was added since the last, and what was"
            " completed since then runs again",
            TURN_ON,
        )
    also = "" if save == "" else ", as far as the server tells"
    return problem(f"nothing is written to disk{also}: a restart loses every item", TURN_ON)
