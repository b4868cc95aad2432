"""The operations that are broken off, and the queues that each finds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

Call = tuple[str, dict[str, Any]]
"""A method of the adapter protocol and its arguments, written as scenarios write them."""

A_MINUTE: Final = 60_000
GROUPS: Final = {"q": "g", "r": "g", "s": "h"}
"""The queues of every operation and their groups."""


@dataclass(frozen=True)
class Operation:
    """An operation and what comes before it.

    Attributes:
        call: the call that is broken off. `$ID` stands for the token that `before` was given for this item.
        capabilities: what the client has to claim.
        before: calls of the same client, so that it holds the leases.
        forge: item -> ms: the deadline that an item leased by `before` gets, from now.
        meanwhile: calls of another client, made once this one blocks.
        queue: the queue of the call; None if the arguments name it.
        fresh: whether the client has no connection yet, so that its greetings are broken off too.
    """

    call: Call
    capabilities: tuple[str, ...] = ("core",)
    before: tuple[Call, ...] = ()
    forge: dict[str, int] = field(default_factory=dict)
    meanwhile: tuple[Call, ...] = ()
    queue: str | None = "q"
    fresh: bool = False


def _add(*ids: str, **options: Any) -> Call:
    items = [{"id": item_id, "data": "data"} for item_id in ids]
    return "add", {"items": items, **({"options": options} if options else {})}


def _held(*ids: str, **more: Any) -> dict[str, Any]:
    return {"items": [{"id": item_id, "token": f"${item_id}", **more} for item_id in ids]}


def _lease(count: int = 1, **more: Any) -> Call:
    return "lease", {"duration_ms": A_MINUTE, **({"count": count} if count > 1 else {}), **more}


def _then(queue: str, *ids: str) -> dict[str, Any]:
    return {"then": [{"queue": queue, "item": {"id": item_id, "data": "more"}} for item_id in ids]}


BATCH_IDS: Final = tuple(f"i{number}" for number in range(300))
"""More entries than one call of a script takes."""
KEPT: Final = {"keep_ms": A_MINUTE}
LEASED: Final = (_add("a", "b"), _lease())
LEASED_TWO: Final = (_add("a", "b", "c"), _lease(2))
LEASED_KEPT: Final = (_add("a", "b", **KEPT), _lease())
LEASED_BATCH: Final = (
    _add(*BATCH_IDS[:256]),
    _add(*BATCH_IDS[256:]),
    _lease(256),
    _lease(len(BATCH_IDS) - 256),
)
DEAD: Final = (*LEASED, ("dead_letter", _held("a")))
DYING: Final = (_add("a", max_attempts=1, **KEPT), _add("b"), _lease())
"""Item a dies when its lease is reclaimed, and keeps an outcome."""

OPERATIONS: Final[dict[str, Operation]] = {
    "add": Operation(_add("a"), fresh=True),
    "add-several": Operation(_add("a", "b", "c")),
    "add-many": Operation(_add(*BATCH_IDS), ("core", "many")),
    "add-scheduled": Operation(
        _add("a", delay_ms=A_MINUTE, priority=3, max_attempts=5), ("core", "schedule")
    ),
    "add-waiting": Operation(
        ("add", {"items": [{"id": "b", "data": "data"}], "wait_ms": A_MINUTE}),
        ("core", "limits"),
        (("configure", {"max_items": 1}), _add("a")),
        meanwhile=(("configure", {"max_items": 2}),),
    ),
    "lease": Operation(_lease(), before=(_add("a", "b"),)),
    "lease-several": Operation(_lease(2), before=(_add("a", "b", "c"),)),
    "lease-reclaiming": Operation(_lease(), before=(_add("a"), _lease()), forge={"a": -1}),
    "lease-one-dies": Operation(_lease(), ("core", "schedule", "outcome"), DYING, forge={"a": -1}),
    "lease-waiting": Operation(_lease(wait_ms=A_MINUTE), ("core", "blocking"), meanwhile=(_add("a"),)),
    "lease-any": Operation(
        ("lease_any", {"queues": ["q", "r"], "duration_ms": A_MINUTE}),
        ("core", "many_queues"),
        (_add("a", "b"),),
        queue=None,
    ),
    "lease-any-groups": Operation(
        ("lease_any", {"queues": ["s", "q"], "duration_ms": A_MINUTE}),
        ("core", "many_queues"),
        (_add("a", "b"),),
        queue=None,
    ),
    "lease-any-waiting": Operation(
        ("lease_any", {"queues": ["s", "q"], "duration_ms": A_MINUTE, "wait_ms": A_MINUTE}),
        ("core", "many_queues", "blocking"),
        meanwhile=(_add("a"),),
        queue=None,
    ),
    "complete": Operation(("complete", _held("a")), before=LEASED),
    "complete-several": Operation(("complete", _held("a", "b")), before=LEASED_TWO),
    "complete-many": Operation(("complete", _held(*BATCH_IDS)), ("core", "many"), LEASED_BATCH),
    "complete-with-result": Operation(
        ("complete", _held("a", result="done", **KEPT)), ("core", "outcome"), LEASED_KEPT
    ),
    "complete-and-lease": Operation(
        ("complete_and_lease", {"id": "a", "token": "$a", "duration_ms": A_MINUTE}), ("core", "fused"), LEASED
    ),
    "complete-and-lease-kept": Operation(
        ("complete_and_lease", {"id": "a", "token": "$a", "duration_ms": A_MINUTE}),
        ("core", "fused", "outcome"),
        LEASED_KEPT,
    ),
    "hand-off": Operation(("hand_off", _held("a", **_then("r", "a/next"))), ("core", "handoff"), LEASED),
    "hand-off-several": Operation(
        ("hand_off", _held("a", "b", **_then("r", "next"))), ("core", "handoff"), LEASED_TWO
    ),
    "hand-off-kept": Operation(
        ("hand_off", _held("a", result="done", **KEPT, **_then("q", "a/next"))),
        ("core", "handoff", "outcome"),
        LEASED_KEPT,
    ),
    "hand-off-many": Operation(
        ("hand_off", _held(*BATCH_IDS, **_then("r", "next"))), ("core", "handoff", "many"), LEASED_BATCH
    ),
    "extend": Operation(("extend", {**_held("a"), "duration_ms": 2 * A_MINUTE}), before=LEASED),
    "extend-many": Operation(
        ("extend", {**_held(*BATCH_IDS), "duration_ms": 2 * A_MINUTE}), ("core", "many"), LEASED_BATCH
    ),
    "release": Operation(("release", _held("a")), before=LEASED),
    "release-delayed": Operation(("release", {**_held("a"), "delay_ms": A_MINUTE}), before=LEASED),
    "release-uncounted": Operation(("release", {**_held("a"), "uncounted": True}), before=LEASED),
    "release-many": Operation(("release", _held(*BATCH_IDS)), ("core", "many"), LEASED_BATCH),
    "dead-letter": Operation(
        ("dead_letter", {**_held("a"), "error": "no"}), ("core", "dead_letters"), LEASED
    ),
    "dead-letter-kept": Operation(
        ("dead_letter", {**_held("a"), "error": "no"}), ("core", "dead_letters", "outcome"), LEASED_KEPT
    ),
    "promote": Operation(
        ("promote", {"ids": ["a"]}),
        ("core", "promote", "schedule"),
        (_add("a", delay_ms=A_MINUTE),),
    ),
    "revive": Operation(("revive", {"ids": ["a"]}), ("core", "dead_letters"), DEAD),
    "purge": Operation(("purge", {"ids": ["a"]}), ("core", "dead_letters"), DEAD),
    "remove": Operation(("remove", {"ids": ["a"]}), ("core", "cancel"), LEASED),
    "remove-many": Operation(("remove", {"ids": list(BATCH_IDS)}), ("core", "cancel", "many"), LEASED_BATCH),
    "outcome": Operation(
        ("outcome", {"ids": ["a"]}),
        ("core", "outcome", "dead_letters"),
        (*LEASED_KEPT, ("dead_letter", _held("a"))),
    ),
    "wait-outcome": Operation(
        ("wait_outcome", {"id": "a", "wait_ms": A_MINUTE}),
        ("core", "outcome"),
        (_add("a", **KEPT),),
        meanwhile=(_lease(), ("complete", _held("a", result="done", **KEPT))),
    ),
    "stats": Operation(("stats", {}), ("core", "look"), LEASED),
    "inspect": Operation(("inspect", {"ids": ["a"]}), ("core", "look"), LEASED),
    "list": Operation(
        ("list", {"state": "ready", "offset": 0, "limit": 10, "order": "forward"}), ("core", "look"), LEASED
    ),
    "configure": Operation(("configure", {"max_data": 100}), ("core", "configure"), LEASED),
    "delete": Operation(("delete", {}), ("core", "delete"), (("configure", {"max_items": 9}),)),
    "pause": Operation(("pause", {}), ("core", "limits"), LEASED),
    "resume": Operation(("resume", {}), ("core", "limits"), (*LEASED, ("pause", {}))),
    "light-clean": Operation(("light_clean", {}), ("core", "clean"), LEASED, forge={"a": -1}),
    "light-clean-one-dies": Operation(
        ("light_clean", {}), ("core", "clean", "schedule", "outcome"), DYING, forge={"a": -1}
    ),
    "deep-clean": Operation(("deep_clean", {"dry_run": False}), ("core", "clean"), LEASED),
}
