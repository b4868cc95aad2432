"""The answers that a client must give its caller, derived from the server's replies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ABSENT: Final = (b"absent", 0, 0, 0, 0, b"")
CLEANED: Final = ("promoted", "reclaimed", "died", "expired", "pruned")


class UnexplainedError(Exception):
    """These replies are none that one call of a right client gets."""


def expected(method: str, replies: Sequence[Any], *, args: Mapping[str, Any]) -> Any:
    """The answer of a call, in the form of the adapter protocol.

    `replies` are those of the scripts that the call ran, in their order. One call runs one script, but for `lease` and
    `light_clean`, which call again at once if the reply says so (LQ-BLOCK-4), and for calls that wait: they look again
    as long as nothing came, and are answered by the last look.

    Raises:
        UnexplainedError: the client ran another number of scripts, so it repeated one without being asked (LQ-CLIENT-1).
    """
    if not replies:
        raise UnexplainedError("it was answered though no script was run")
    waits = bool(args.get("wait_ms"))
    again = (_WAITS if waits else _AGAIN).get(method, lambda _reply: False)
    if not all(again(reply) for reply in replies[:-1]) or (not waits and again(replies[-1])):
        raise UnexplainedError(f"it ran {len(replies)} scripts, answered {list(replies)}")
    reply = replies[-1]
    if method == "lease":
        return _leases(reply)
    if method == "complete_and_lease":
        return {"completed": reply[-1] == 1, "leases": _leases(reply)}
    if method == "outcome":
        return [
            _outcome(item_id, reply[6 * place : 6 * place + 6]) for place, item_id in enumerate(args["ids"])
        ]
    if method == "wait_outcome":
        awaited = next((look[1] for look in replies if look[1]), 0)
        another = reply[1] not in {0, awaited}  # LQ-BLOCK-13
        return _outcome(args["id"], ABSENT if another else reply)
    if method == "hand_off":
        return [_handed(reply[at], reply[at + 1]) for at in range(0, len(reply), 2)]
    if method == "light_clean":
        return {name: sum(each[place] for each in replies) for place, name in enumerate(CLEANED)}
    listed = reply if isinstance(reply, list) else [reply]
    return [_EACH[method](answer) for answer in listed]


def given(method: str, client_answer: Any) -> Any:
    """The part of an adapter's answer that `expected` tells."""
    return client_answer["leases"] if method == "lease" else client_answer


def _outcome(item_id: bytes, fields: Sequence[Any]) -> dict[str, Any]:
    state, created, ended, attempt, keep, content = fields
    return {
        "id": item_id,
        "state": state.decode(),
        "created": str(created),
        "ended": str(ended),
        "attempt": attempt,
        "keep_ms": keep,
        "content": content,
    }


def _handed(won: int, created: int) -> dict[str, Any]:
    """An entry of a hand-off with its one follow-up."""
    added = None if created < 0 else _EACH["add"](created)
    return {"completed": won == 1, "added": [added]}


def _is_to_lease_again(reply: Any) -> bool:
    wait, _, count = reply[:3]
    return bool(count == 0 and wait == 0)


def _leases(reply: Any) -> list[dict[str, Any]]:
    _, deadline, count = reply[:3]
    return [
        {
            "id": item_id,
            "data": data,
            "token": str(token),
            "attempt": attempt,
            "deadline": str(deadline),
            "keep_ms": 0,
            "content_type": None,
            "headers": {},
        }
        for item_id, data, token, attempt in (reply[at : at + 4] for at in range(3, 3 + 4 * count, 4))
    ]


_AGAIN: Final[dict[str, Callable[[Any], bool]]] = {
    "lease": _is_to_lease_again,
    "light_clean": lambda reply: bool(reply[5] == 0),
}
_WAITS: Final[dict[str, Callable[[Any], Any]]] = {
    "lease": lambda reply: reply[2] == 0,
    "wait_outcome": lambda reply: reply[0] not in {b"result", b"failure", b"absent"},
}
"""For each method that can wait: true of a reply after which it calls again."""
_EACH: Final[dict[str, Callable[[Any], Any]]] = {
    "add": lambda created: "added" if created > 0 else "exists",
    "complete": lambda answer: answer == 1,
    "extend": lambda deadline: str(deadline) if deadline else None,
    "release": lambda word: word.decode(),
    "remove": lambda word: word.decode(),
}
