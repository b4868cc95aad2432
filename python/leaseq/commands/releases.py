"""Giving items back, or letting them die."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from leaseq import _scripts
from leaseq.commands import codecs
from leaseq.commands.encoding import Command, command, for_one, held
from leaseq.durations import Duration
from leaseq.errors import BadTypeError
from leaseq.item import LeasedItemBase
from leaseq.keys import QueueKeys
from leaseq.results import Released


@dataclass(frozen=True, slots=True)
class ReleaseRequest:
    """An item that goes back, or with `dead` dies; see `release`."""

    item: LeasedItemBase
    delay: Duration = 0
    uncounted: bool = False
    error: str | None = None
    dead: bool = False

    @property
    def is_plain(self) -> bool:
        """True if the call needs no option for it."""
        item: Any = self.item  # what is none is refused later, by name
        return isinstance(item, LeasedItemBase) and not item.keep and self == ReleaseRequest(item)


def release_each(keys: QueueKeys, given: Sequence[ReleaseRequest]) -> Command[list[Released]]:
    """Give items back, each in its own way; answers for each where it went."""
    if len(given) == 1 and given[0].is_plain:
        alone = for_one(_scripts.RELEASE, keys, given[0].item, _released)
        if alone is not None:
            return alone
    entries = []
    results: list[str] = []
    for one in given:
        id_and_token = held(one.item)
        options = codecs.release_options(
            delay=one.delay,
            uncounted=one.uncounted,
            error=None if one.error is None else _error(one.error),
            dead=one.dead,
            keep=0 if one.item.keep else None,
        )
        if one.item.keep:
            results.append(keys.result + one.item.id)
        entries.append(codecs.release_entry(*id_and_token, options))
    return command(_scripts.RELEASE, keys, codecs.release_arguments(entries), codecs.release_reply, results)


def _released(reply: bytes) -> list[Released]:
    state: Any = reply.decode()
    return [state]


def _error(error: str) -> bytes:
    if not isinstance(error, str):
        raise BadTypeError(f"an error must be a str, not {type(error).__name__}")
    # as many bytes are kept: no more characters than that need be sent
    return error[: _scripts.MAX_ERROR_BYTES].encode(errors="backslashreplace")
