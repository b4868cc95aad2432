"""Envelopes, results and texts of failures, written and read by the tables of spec/jobs.md."""

from __future__ import annotations

import json
import re
from importlib import resources
from typing import Any, Final, Literal

import msgspec

from leaseq_conformance.schemas import Schema

Form = Literal["json", "msgpack"]

MAX_FAILURE_BYTES: Final = 8192
HEAD: Final = re.compile(
    r"(?P<kind>[^:\n]+): (?P<message>[^\n]*)(?P<lines>(\n[a-z]+: [^\n]*)*)\n\n", re.DOTALL
)
"""The form of LQ-JOB-9, up to the other text."""
_SCHEMAS: Final = json.loads((resources.files(__package__) / "schema.json").read_text("utf-8"))["$defs"]


class PayloadError(Exception):
    """Bytes that are not what spec/jobs.md says."""


def encode(value: Any, form: Form) -> bytes:
    """Return a value in one of the two formats."""
    coder: Any = msgspec.json if form == "json" else msgspec.msgpack
    data: bytes = coder.encode(value)
    return data


def decode(data: bytes) -> tuple[Form, Any]:
    """Return the format and the value (LQ-JOB-17). Raises PayloadError."""
    form: Form = "json" if data.startswith(b"{") else "msgpack"
    coder: Any = msgspec.json if form == "json" else msgspec.msgpack
    try:
        return form, coder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PayloadError(
            f"{data[:200]!r} is neither a map in JSON nor one in MessagePack: {error}"
        ) from error


def read(data: bytes, kind: Literal["envelope", "result"]) -> tuple[Form, dict[str, Any]]:
    """Return the format and the map of an envelope or a result that keeps to its table. Raises PayloadError."""
    form, found = decode(data)
    wrong = Schema({"$ref": f"#/$defs/{kind}", "$defs": _SCHEMAS}).error(found)
    if wrong is not None:
        place = "/".join(map(str, wrong.absolute_path)) or f"the {kind}"
        raise PayloadError(f"{place}: {wrong.message[:300]} (the table of the {kind}, spec/jobs.md)")
    return form, found


def failure(text: str) -> dict[str, str]:
    """Return kind, message and lines of the text of a failure. Raises PayloadError (LQ-JOB-9, LQ-JOB-23)."""
    if len(text.encode()) > MAX_FAILURE_BYTES:
        raise PayloadError(f"the text of the failure has {len(text.encode())} bytes (LQ-JOB-23)")
    found = HEAD.match(text)
    if found is None:
        raise PayloadError(f"{text[:300]!r} is no `<kind>: <message>`, lines and an empty line (LQ-JOB-9)")
    lines = dict(line.split(": ", 1) for line in found["lines"].split("\n") if line)
    return {**lines, "kind": found["kind"], "message": found["message"]}
