"""Values of messages of the adapter protocol (conformance-tests/ADAPTER.md)."""

import base64
from typing import Any, Final

Json = dict[str, Any]

PROTOCOL: Final = 3
MAX_LINE_BYTES: Final = 16 << 20
CAPABILITIES: Final = (
    *(
        "core",
        "blocking",
        "many",
        "fused",
        "heartbeat",
        "schedule",
        "expiry",
        "headers",
        "outcome",
        "handoff",
    ),
    *("dead_letters", "limits", "many_queues", "cancel", "look", "registry", "live_workers", "worker"),
    *("clean", "configure", "delete", "promote", "pipeline", "cluster", "jobs", "job_worker"),
    *("job_chains", "job_schedules"),
)
"""All that spec/12 knows: both Python clients claim everything."""


def b64(value: bytes) -> Json:
    """Bytes, as messages carry them."""
    return {"$b64": base64.b64encode(value).decode("ascii")}


def unb64(value: Json) -> bytes:
    """Return the bytes that `b64` encoded."""
    return base64.b64decode(value["$b64"], validate=True)
