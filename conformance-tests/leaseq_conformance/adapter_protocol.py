"""The messages of the adapter protocol: each is checked, from either side (conformance-tests/ADAPTER.md)."""

import base64
import functools
import importlib.resources
import json
from typing import Any, Final

from leaseq_conformance.schemas import Schema

Json = dict[str, Any]

PROTOCOL: Final = 3
OLDEST: Final = 2
"""An adapter of this version is run too, without the cases that need more."""
MAX_LINE_BYTES: Final = 16 << 20
"""Bytes that a line may have: a call with 256 items and 4 MiB of data, as base64, has fewer."""

SCHEMA: Final[Json] = json.loads(
    importlib.resources.files("leaseq_conformance")
    .joinpath("adapter_protocol.schema.json")
    .read_text("utf-8")
)
METHODS: Final = tuple(SCHEMA["$defs"]["methods"])
"""The methods of a call, in the order of ADAPTER.md."""


class MessageError(ValueError):
    """A message that the protocol does not know."""


def b64(value: bytes) -> Json:
    """Bytes, as messages carry them."""
    return {"$b64": base64.b64encode(value).decode("ascii")}


def unb64(value: Json) -> bytes:
    """Return what `b64` made."""
    return base64.b64decode(value["$b64"], validate=True)


def check_request(message: Json) -> None:
    """Raises MessageError for what no adapter has to understand."""
    op = message.get("op")
    if op not in SCHEMA["$defs"]["requests"]:
        raise MessageError(f"there is no op {op!r}")
    _check(message, "requests", str(op))
    if op == "call":
        if message["method"] not in METHODS:
            raise MessageError(f"there is no method {message['method']!r}")
        _check(message["args"], "methods", message["method"], "args")


def check_reply(reply: Any, request: Json) -> None:
    """Raises MessageError for what does not answer this request."""
    _check(reply, "reply")
    if "ok" not in reply:
        return
    if request["op"] == "call":
        _check(reply["ok"], "methods", request["method"], "ok")
    else:
        _check(reply["ok"], "answers", request["op"])


def version_needed(value: Any) -> int:
    """Return the version of the adapter protocol that a case needs, by its steps."""
    if isinstance(value, list):
        return max(map(version_needed, value), default=OLDEST)
    if not isinstance(value, dict):
        return OLDEST
    if value.keys() & {"$text", "close_client"} or value.get("then") == "close_client":
        return PROTOCOL
    if any(isinstance(part, float) and name.endswith("_ms") for name, part in value.items()):
        return PROTOCOL
    return max(map(version_needed, value.values()), default=OLDEST)


def described(request: Json) -> str:
    """A request for people: its id, its op and what else it has."""
    fields = {name: value for name, value in request.items() if name not in {"id", "op"}}
    text = f"{request['id']} ({request['op']} {json.dumps(fields)})"
    return text if len(text) <= 300 else text[:300] + "...)"


def quoted(line: bytes) -> str:
    """A line of an adapter for people: at most its first 300 bytes."""
    text = repr(line[:300].decode(errors="replace").rstrip("\n"))
    return f"{text}..." if len(line) > 300 else text


def _check(message: Any, *path: str) -> None:
    error = _schema(path).error(message)
    if error is not None:
        place = "/".join(str(part) for part in error.absolute_path) or "the message"
        raise MessageError(f"{place}: {error.message[:500]}")


@functools.cache
def _schema(path: tuple[str, ...]) -> Schema:
    return Schema({"$ref": "#/$defs/" + "/".join(path), "$defs": SCHEMA["$defs"]})
