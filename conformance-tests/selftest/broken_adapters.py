"""Adapters of no client at all: python -m selftest.broken_adapters NAME. A suite that one of them passes is none.

They answer `hello` and `open` as every adapter does, claim everything, and then do what their names say.
"""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from conformance_adapter import dispatch

if TYPE_CHECKING:
    from collections.abc import Callable

    from leaseq_conformance.adapter_protocol import Json

_NOTHING: Final[dict[str, Any]] = {
    "lease": {"queue": None, "leases": []},
    "lease_any": {"queue": None, "leases": []},
    "list": {"total": 0, "items": []},
    "light_clean": dict.fromkeys(("promoted", "reclaimed", "died", "expired", "pruned"), 0),
    "complete_and_lease": {"completed": True, "leases": []},
}


def always_ok(message: Json) -> Json | None:
    """Answers every call with success, and does nothing."""
    method, args = message["method"], message["args"]
    if method in _NOTHING:
        return {"ok": _NOTHING[method]}
    entries = args.get("items", args.get("ids"))
    if entries is None:
        return {"ok": {}}
    each = {"add": "added", "release": "ready", "remove": "ready", "extend": "1"}.get(method, True)
    return {"ok": [each] * len(entries)}


def echo(message: Json) -> Json | None:
    """Answers every call with its own arguments."""
    return {"ok": message["args"]}


def hang(_message: Json) -> Json | None:
    """Answers no call."""
    return None


def crash(_message: Json) -> Json | None:
    """Ends at its first call."""
    sys.exit(3)


def noisy(message: Json) -> Json | None:
    """Prints what is no message beside its answers."""
    print("warning: this library is deprecated", flush=True)
    return always_ok(message)


def all_unsupported(message: Json) -> Json | None:
    """Claims everything and supports nothing."""
    return {"unsupported": message["method"]}


def wrong_id(message: Json) -> Json | None:
    """Answer calls that were never made."""
    print(json.dumps({"id": message["id"] + 1000, "ok": {}}), flush=True)
    return None


def always_error(_message: Json) -> Json | None:
    """Answers every call with an indefinite error."""
    return {"error": {"code": None, "definite": False, "message": "something went wrong", "answers": []}}


DEGENERATE: Final[dict[str, Callable[[Json], Json | None]]] = {
    function.__name__.replace("_", "-"): function
    for function in (always_ok, echo, hang, crash, noisy, all_unsupported, wrong_id, always_error)
}


def main() -> int:
    """Answer what comes in, until nothing more does."""
    if len(sys.argv) != 2 or sys.argv[1] not in DEGENERATE:
        print(f"usage: degenerate NAME, one of {', '.join(DEGENERATE)}", file=sys.stderr)
        return 2
    answer = DEGENERATE[sys.argv[1]]
    for line in sys.stdin:
        message = json.loads(line)
        reply: Json | None = {"ok": {}}
        if message["op"] == "hello":
            reply = {"ok": dispatch.hello(sys.argv[1])}
        elif message["op"] == "call":
            reply = answer(message)
        if reply is not None:
            print(json.dumps({"id": message["id"], **reply}), flush=True)
    while answer is hang:  # nor does it end at the end of its input
        time.sleep(3600)
    return 0


if __name__ == "__main__":
    sys.exit(main())
