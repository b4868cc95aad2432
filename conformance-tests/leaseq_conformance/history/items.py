"""The calls of a history as they concern each item, in the form that `linearize` reads.

Nothing of what the server said is used, only what clients were told: this check is independent of the other.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance.history.model_calls import FORGE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from leaseq_conformance.history.record import Call, History, Left

Operation = dict[str, Any]

LOST_TO_ALL: Final = "lease"
"""Whose loss may concern any item."""


def operations(history: History) -> dict[str, list[Operation]]:
    """The operations on each item that any call names."""
    given = {
        (lease["id"], lease["token"])
        for call in history.calls
        if call.method == "lease" and call.told and "ok" in call.told
        for lease in call.told["ok"]["leases"]
    }
    found: dict[str, list[Operation]] = {}
    to_all: list[Operation] = []
    clients = itertools.count()
    known: dict[str, int] = {}
    for call in history.calls:
        # A call without an outcome may go on for ever, and its actor goes on beside it.
        client = next(clients) if call.lost else known.setdefault(call.actor, next(clients))
        common = {"client": client, "call": call.begin + 1, "return": 0 if call.lost else call.end or 0}
        for item_id, fields in _parts(call, given):
            operation = {**common, **fields, "unknown": call.lost}
            if item_id is None:
                to_all.append(operation)
            else:
                found.setdefault(item_id.decode("utf-8", "backslashreplace"), []).append(operation)
    last = max((call.end or call.begin for call in history.calls), default=0)
    for name in {*found, *history.left}:
        final = {"client": next(clients), "call": last + 1, "return": last + 2, "kind": "final"}
        found[name] = [*found.get(name, []), {**final, **_end(history.left.get(name))}, *to_all]
    return found


def _end(left: Left | None) -> Operation:
    """What is there at the end."""
    if left is None:
        return {"answer": "absent"}
    return {"answer": left.where, "attempt": left.attempt, "data": left.data.hex()}


def _parts(call: Call, given: set[tuple[bytes, str]]) -> Iterator[tuple[bytes | None, Operation]]:
    """What a call does to each of its items; None stands for all items there are."""
    told = call.told
    if told is not None and "ok" not in told and not call.lost:
        return  # a definite error: nothing has happened
    answers = told["ok"] if told is not None and "ok" in told else None
    args = call.args
    if call.method == LOST_TO_ALL:
        yield from _leases(answers)
    elif call.method == "add":
        delayed = bool(args.get("options", {}).get("delay_ms"))
        for item, answer in _with(args["items"], answers):
            yes_or_no = {"answer": "yes" if answer == "added" else "no"}
            yield item["id"], {"kind": "add", "data": item["data"].hex(), "delayed": delayed, **yes_or_no}
    elif call.method in {"complete", "extend", "release"}:
        for item, answer in _with(args["items"], answers):
            token = int(item["token"]) if (item["id"], item["token"]) in given else 0
            yield item["id"], {"kind": call.method, "token": token, **_said(call, answer)}
    elif call.method == "remove":
        for item_id, answer in _with(args["ids"], answers):
            yield item_id, {"kind": "remove", "answer": answer or ""}
    elif call.method == FORGE:
        yield args["id"], {"kind": "expire", "answer": answers}


def _leases(answers: Any) -> Iterator[tuple[bytes | None, Operation]]:
    if answers is None:
        yield None, {"kind": "lease"}
    elif not answers["leases"]:
        yield None, {"kind": "nothing"}
    else:
        for lease in answers["leases"]:
            numbers = {"token": int(lease["token"]), "attempt": lease["attempt"]}
            yield lease["id"], {"kind": "lease", "data": lease["data"].hex(), **numbers}


def _said(call: Call, answer: Any) -> Operation:
    if call.method == "complete":
        only = bool(call.args.get("only_current"))
        return {"only_current": only, "answer": "yes" if answer else "no"}
    if call.method == "extend":
        return {"answer": "yes" if answer else "no"}
    uncounted = bool(call.args.get("uncounted"))
    return {
        "uncounted": uncounted,
        "delayed": bool(call.args.get("delay_ms")),
        "answer": answer or "",
    }


def _with(entries: list[Any], answers: Any) -> Iterator[tuple[Any, Any]]:
    """Each entry with its answer, None where there is none."""
    return zip(entries, [None] * len(entries) if answers is None else answers, strict=True)
