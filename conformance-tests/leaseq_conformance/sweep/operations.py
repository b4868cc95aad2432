"""What is swept: every operation that changes something, and the queue that it finds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

Call = tuple[str, dict[str, Any]]
"""A method of the adapter protocol and its arguments, written as scenarios write them."""

A_MINUTE: Final = 60_000


@dataclass(frozen=True)
class Operation:
    """An operation and what comes before it.

    Attributes:
        call: what is struck. `$name` stands for a token that `before` saved, as $ID.
        before: calls of the same client, so that it holds the leases.
        capabilities: what the client has to claim.
        forge: item -> ms: what `before` leaves leased has its deadline there.
        meanwhile: what another client calls once this one blocks.
        queue: the queue of the call; None where the arguments name it.
        fresh: whether the client has no connection yet, so that its greetings are struck too.
    """

    call: Call
    capabilities: tuple[str, ...] = ("core",)
    before: tuple[Call, ...] = ()
    forge: dict[str, int] = field(default_factory=dict)
    meanwhile: Call | None = None
    queue: str | None = "q"
    fresh: bool = False


def _add(*ids: str, **options: Any) -> Call:
    return "add", {
        "items": [{"id": item_id, "data": "data"} for item_id in ids],
        **({"options": options} if options else {}),
    }


def _held(*ids: str, **more: Any) -> dict[str, Any]:
    return {"items": [{"id": item_id, "token": f"${item_id}", **more} for item_id in ids]}


LEASE: Final[Call] = ("lease", {"duration_ms": A_MINUTE})
LEASE_TWO: Final[Call] = ("lease", {"duration_ms": A_MINUTE, "count": 2})
LEASED: Final = (_add("a", "b"), LEASE)
LEASED_TWO: Final = (_add("a", "b", "c"), LEASE_TWO)
DIED: Final = (*LEASED, ("dead_letter", _held("a")))
FOLLOW_UP: Final = {"then": [{"queue": "r", "item": {"id": "a/next", "data": "more"}}]}

OPERATIONS: Final[dict[str, Operation]] = {
    "add": Operation(_add("a"), fresh=True),
    "add-several": Operation(_add("a", "b", "c")),
    "add-many": Operation(_add(*(f"i{number}" for number in range(600))), ("core", "many")),
    "add-scheduled": Operation(
        _add("a", delay_ms=A_MINUTE, priority=3, max_attempts=5), ("core", "schedule")
    ),
    "add-waiting": Operation(
        ("add", {"items": [{"id": "b", "data": "data"}], "wait_ms": A_MINUTE}),
        ("core", "limits"),
        (("configure", {"max_items": 1}), _add("a")),
        meanwhile=("configure", {"max_items": 2}),
    ),
    "lease": Operation(LEASE, before=(_add("a", "b"),)),
    "lease-several": Operation(LEASE_TWO, before=(_add("a", "b", "c"),)),
    "lease-reclaiming": Operation(LEASE, before=(_add("a"), LEASE), forge={"a": -1}),
    "lease-waiting": Operation(
        ("lease", {"duration_ms": A_MINUTE, "wait_ms": A_MINUTE}), ("core", "blocking"), meanwhile=_add("a")
    ),
    "lease-any": Operation(
        ("lease_any", {"queues": ["q", "r"], "duration_ms": A_MINUTE}),
        ("core", "many_queues"),
        (_add("a", "b"),),
        queue=None,
    ),
    "complete": Operation(("complete", _held("a")), before=LEASED),
    "complete-several": Operation(("complete", _held("a", "b")), before=LEASED_TWO),
    "complete-with-result": Operation(
        ("complete", _held("a", result="done", keep_ms=A_MINUTE)),
        ("core", "outcome"),
        (_add("a", "b", keep_ms=A_MINUTE), LEASE),
    ),
    "complete-and-lease": Operation(
        ("complete_and_lease", {"id": "a", "token": "$a", "duration_ms": A_MINUTE}), ("core", "fused"), LEASED
    ),
    "hand-off": Operation(("hand_off", _held("a", **FOLLOW_UP)), ("core", "handoff"), LEASED),
    "extend": Operation(("extend", {**_held("a"), "duration_ms": 2 * A_MINUTE}), before=LEASED),
    "release": Operation(("release", _held("a")), before=LEASED),
    "release-delayed": Operation(("release", {**_held("a"), "delay_ms": A_MINUTE}), before=LEASED),
    "release-uncounted": Operation(("release", {**_held("a"), "uncounted": True}), before=LEASED),
    "dead-letter": Operation(
        ("dead_letter", {**_held("a"), "error": "no"}), ("core", "dead_letters"), LEASED
    ),
    "revive": Operation(("revive", {"ids": ["a"]}), ("core", "dead_letters"), DIED),
    "purge": Operation(("purge", {"ids": ["a"]}), ("core", "dead_letters"), DIED),
    "remove": Operation(("remove", {"ids": ["a"]}), ("core", "cancel"), LEASED),
    "outcome": Operation(
        ("outcome", {"ids": ["a"]}),
        ("core", "outcome", "dead_letters"),
        (_add("a", keep_ms=A_MINUTE), LEASE, ("dead_letter", _held("a"))),
    ),
    "configure": Operation(("configure", {"max_data": 100}), ("core", "configure"), LEASED),
    "pause": Operation(("pause", {}), ("core", "limits"), LEASED),
    "resume": Operation(("resume", {}), ("core", "limits"), (*LEASED, ("pause", {}))),
    "light-clean": Operation(("light_clean", {}), ("core", "clean"), LEASED, forge={"a": -1}),
    "deep-clean": Operation(("deep_clean", {"dry_run": False}), ("core", "clean"), LEASED),
}
