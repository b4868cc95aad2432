"""What a client has to tell its caller, from what the server answered it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CLEANED: Final = ("promoted", "reclaimed", "died", "expired", "pruned")


class UnexplainedError(Exception):
    """These replies are none that one call of a right client gets."""


def expected(method: str, replies: Sequence[Any]) -> Any:
    """The answer of a call, in the form of the adapter protocol.

    `replies` are those of the scripts that the call ran, in their order. One call runs one script, but for `lease` and
    `light_clean`, which call again where they are told to at once (LQ-BLOCK-4).

    Raises:
        UnexplainedError: the client ran another number of scripts, which is a second run of its own account (LQ-CLIENT-1).
    """
    if not replies:
        raise UnexplainedError("it was answered though no script was run")
    again = _AGAIN.get(method, lambda _reply: False)
    if not all(again(reply) for reply in replies[:-1]) or again(replies[-1]):
        raise UnexplainedError(f"it ran {len(replies)} scripts, answered {list(replies)}")
    reply = replies[-1]
    if method == "lease":
        return _leases(reply)
    if method == "light_clean":
        return {name: sum(each[place] for each in replies) for place, name in enumerate(CLEANED)}
    listed = reply if isinstance(reply, list) else [reply]
    return [_EACH[method](answer) for answer in listed]


def given(method: str, told: Any) -> Any:
    """The part of an adapter's answer that `expected` tells."""
    return told["leases"] if method == "lease" else told


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
_EACH: Final[dict[str, Callable[[Any], Any]]] = {
    "add": lambda created: "added" if created > 0 else "exists",
    "complete": lambda answer: answer == 1,
    "extend": lambda deadline: str(deadline) if deadline else None,
    "release": lambda word: word.decode(),
    "remove": lambda word: word.decode(),
}
